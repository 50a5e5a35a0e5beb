/* Products by BFMMLA (strip_types.h): a strip of up to 32 rows of A times panels of 32 columns of B. An instruction adds to 2 x 2 sums the
 * products of two rows of A and two columns of B, four numbers of each. So in the copies four numbers along K lie side by side for one row
 * and then the next (a pair of rows, 16 bytes): of eight rows, and of the 32 columns of a panel, step after step. A block's side along K is
 * filled up with 0 to whole fours, its rows to eights.
 *
 * BFMMLA takes denormal numbers for 0 and makes 0 of denormal sums: where a product may have bits below 2^-126 (least.h), float
 * instructions multiply instead. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILES_BFMMLA_PRODUCT_H
#define SPK_BACKEND_CPU_KERNELS_TILES_BFMMLA_PRODUCT_H

#include <string.h>

#include "backend/cpu/kernels/tiles/tile_plan.h"
#include "backend/cpu/kernels/vectors/least.h"
#include "backend/cpu/kernels/vectors/stored.h"

#if TYPE != BF16 || ISA != NEON
#error "bfmmla_product.h is for TYPE BF16 and ISA NEON"
#endif

#define STRIP_IN_PLACE 0
enum {
    STRIP_ROWS = 32,
    STRIP_COLUMNS = 32,
    STRIP_LINE_BYTES = STRIP_COLUMNS * 2,
    STRIP_TILE_CYCLES = 32
}; /* cycles: of 16 x 16 sums, a step */
enum { MMLA_ROWS = 8, MMLA_STEP = 4, MMLA_PAIRS = MMLA_ROWS / 2, MMLA_BYTES = MMLA_ROWS * MMLA_STEP * 2 }; /* of eight rows, a step */

typedef uint16x8_t S(pair_least);

SPK_INLINE S(pair_least) S(least_of_none)(void)
{
    return vdupq_n_u16(S(LEAST_OF_NONE));
}

SPK_INLINE void S(least_of)(S(pair_least) *least, uint16x8_t numbers)
{
    *least = vminq_u16(*least, vsubq_u16(vandq_u16(numbers, vdupq_n_u16(0x7fff)), vdupq_n_u16(1)));
}

SPK_INLINE int S(least_number)(S(pair_least) least)
{
    return vminvq_u16(least);
}

/* Sizes along K: what a step takes, and a block of so many numbers filled up. */
static inline int64_t strip_step(int64_t depth)
{
    (void)depth;
    return MMLA_STEP;
}

static inline int64_t strip_padded(int64_t depth)
{
    return tile_ceil(depth, MMLA_STEP) * MMLA_STEP;
}

static inline int64_t strip_padded_rows(int64_t rows)
{
    return tile_ceil(rows, MMLA_ROWS) * MMLA_ROWS;
}

/* Rows of strip number i of a matrix or of a block with so many. */
static inline int64_t strip_rows(int64_t rows, int64_t i)
{
    const int64_t left = rows - i * STRIP_ROWS;
    return left < STRIP_ROWS ? left : STRIP_ROWS;
}

static inline void strip_begin(int64_t step)
{
    (void)step;
}

static inline void strip_end(void) {}

static inline spk_status strip_request(void)
{
    return SPK_OK;
}

typedef struct row_strip {
    const char *a;            /* the copy of the block at position 0 */
    const int32_t *columns;   /* of the blocks: each begins with row columns[i] * padded of the panels */
    const int64_t *positions; /* of the blocks; NULL: 0, 1, 2 ... */
    int64_t blocks, block_bytes;
    int64_t padded; /* numbers of a block's row */
    bool exact;     /* by float instructions */
    bool adds;      /* to the sums that are there */
} row_strip;

/* ------------------------------------------------------------------------------------------------ copies */

/* `count` numbers, eight at most, then 0. */
SPK_INLINE uint16x8_t S(some_numbers)(const STORED *from, int64_t count)
{
    if (count >= 8)
        return vld1q_u16(from);
    STORED some[8] = {0};
    if (count > 0)
        memcpy(some, from, (size_t)count * sizeof(STORED));
    return vld1q_u16(some);
}

/* A step of `depth` numbers of eight lines, of which `lines` are there; one of the strides, from line to line and along K, is 1. */
SPK_INLINE void S(copy_step)(const STORED *from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t depth, STORED *to,
                             S(pair_least) *least)
{
    if (k_stride == 1) {
        for (int pair = 0; pair < MMLA_PAIRS; pair++) {
            uint16x4_t half[2] = {vdup_n_u16(0), vdup_n_u16(0)};
            for (int i = 0; i < 2; i++)
                if (2 * pair + i < lines && depth > 0) {
                    const STORED *line = from + (2 * pair + i) * line_stride;
                    half[i] = depth >= MMLA_STEP ? vld1_u16(line) : vget_low_u16(S(some_numbers)(line, depth));
                }
            const uint16x8_t both = vcombine_u16(half[0], half[1]);
            S(least_of)(least, both);
            vst1q_u16(to + pair * 2 * MMLA_STEP, both);
        }
        return;
    }
    uint16x8_t k[MMLA_STEP];
    for (int i = 0; i < MMLA_STEP; i++) {
        k[i] = i < depth ? S(some_numbers)(from + i * k_stride, lines) : vdupq_n_u16(0);
        S(least_of)(least, k[i]);
    }
    const uint32x4_t first[2] = {vreinterpretq_u32_u16(vzip1q_u16(k[0], k[1])), vreinterpretq_u32_u16(vzip2q_u16(k[0], k[1]))},
                     second[2] = {vreinterpretq_u32_u16(vzip1q_u16(k[2], k[3])), vreinterpretq_u32_u16(vzip2q_u16(k[2], k[3]))};
    for (int i = 0; i < 2; i++) {
        vst1q_u16(to + i * 16, vreinterpretq_u16_u32(vzip1q_u32(first[i], second[i])));
        vst1q_u16(to + i * 16 + 8, vreinterpretq_u16_u32(vzip2q_u32(first[i], second[i])));
    }
}

/* A strip of `rows` rows and `columns` columns, filled up to `padded`: eight rows after eight rows. */
static void S(strip_copy)(const STORED *from, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t columns, int64_t padded,
                          STORED *to, S(pair_least) *least)
{
    for (int64_t r = 0; r < rows; r += MMLA_ROWS)
        for (int64_t k = 0; k < padded; k += MMLA_STEP, to += MMLA_ROWS * MMLA_STEP)
            S(copy_step)(from + r * row_stride + k * col_stride, row_stride, col_stride, rows - r, columns - k, to, least);
}

/* Where strip number i of copied rows begins, in numbers. */
static inline int64_t strip_at(int64_t i, int64_t padded)
{
    return i * STRIP_ROWS * padded;
}

/* `rows` rows of B and `columns` columns from b on, to a panel, filled up to `padded` rows. */
static void S(panel_copy)(spk_layout layout, const STORED *b, int64_t ldb, int64_t rows, int64_t padded, int64_t columns, void *panel,
                          S(pair_least) *least)
{
    const int64_t row_step = layout == SPK_ROW_MAJOR ? ldb : 1, col_step = layout == SPK_ROW_MAJOR ? 1 : ldb;
    STORED *to = panel;
    for (int64_t k = 0; k < padded; k += MMLA_STEP)
        for (int64_t c = 0; c < STRIP_COLUMNS; c += MMLA_ROWS, to += MMLA_ROWS * MMLA_STEP)
            S(copy_step)(b + k * row_step + c * col_step, col_step, row_step, columns - c, rows - k, to, least);
}

/* ------------------------------------------------------------------------------------------------ products */

/* A strip of one copied block: so many numbers along K, filled up to `padded`. */
static inline row_strip copied_strip(const void *copy, int64_t rows, int64_t padded)
{
    static const int32_t first_column = 0;
    (void)rows;
    return (row_strip){.a = copy, .columns = &first_column, .blocks = 1, .padded = padded};
}

SPK_INLINE const char *strip_block(const row_strip *strip, int64_t i)
{
    return strip->a + (strip->positions != NULL ? strip->positions[i] : i) * strip->block_bytes;
}

SPK_INLINE const char *mmla_panel(const row_strip *strip, int64_t i, const void *panel)
{
    return (const char *)panel + strip->columns[i] * strip->padded * STRIP_LINE_BYTES;
}

/* Eight rows times eight columns of a panel; first_rows: bytes of a block's rows before these. */
static void S(mmla_square)(const row_strip *strip, int64_t first_rows, const void *panel, int column, char *sums, int64_t ld)
{
    float32x4_t acc[MMLA_PAIRS][MMLA_PAIRS];
    char *to = sums + column * 4;
#pragma GCC unroll 4
    for (int i = 0; i < MMLA_PAIRS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < MMLA_PAIRS; j++) {
            acc[i][j] = vdupq_n_f32(0);
            if (strip->adds)
                acc[i][j] = vcombine_f32(vld1_f32((const float *)(const void *)(to + 2 * i * ld + j * 8)),
                                         vld1_f32((const float *)(const void *)(to + (2 * i + 1) * ld + j * 8)));
        }
    for (int64_t block = 0; block < strip->blocks; block++) {
        const char *a = strip_block(strip, block) + first_rows, *b = mmla_panel(strip, block, panel) + column * (MMLA_BYTES / MMLA_ROWS);
        for (int64_t k = 0; k < strip->padded; k += MMLA_STEP, a += MMLA_BYTES, b += STRIP_COLUMNS / MMLA_ROWS * MMLA_BYTES) {
            bfloat16x8_t rows[MMLA_PAIRS];
#pragma GCC unroll 4
            for (int i = 0; i < MMLA_PAIRS; i++)
                rows[i] = vld1q_bf16((const bfloat16_t *)(const void *)(a + 16 * i));
#pragma GCC unroll 4
            for (int j = 0; j < MMLA_PAIRS; j++) {
                const bfloat16x8_t columns = vld1q_bf16((const bfloat16_t *)(const void *)(b + 16 * j));
#pragma GCC unroll 4
                for (int i = 0; i < MMLA_PAIRS; i++)
                    acc[i][j] = vbfmmlaq_f32(acc[i][j], rows[i], columns);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < MMLA_PAIRS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < MMLA_PAIRS; j++) {
            vst1_f32((float *)(void *)(to + 2 * i * ld + j * 8), vget_low_f32(acc[i][j]));
            vst1_f32((float *)(void *)(to + (2 * i + 1) * ld + j * 8), vget_high_f32(acc[i][j]));
        }
}

/* The same by float instructions: four partial sums for each row and column. */
static void S(exact_square)(const row_strip *strip, int64_t first_rows, const void *panel, int column, char *sums, int64_t ld)
{
    for (int r = 0; r < MMLA_ROWS; r++)
        for (int c = 0; c < MMLA_ROWS; c++) {
            REAL *to = (REAL *)(void *)(sums + r * ld) + column + c;
            float32x4_t sum = {0};
            for (int64_t block = 0; block < strip->blocks; block++) {
                const char *a = strip_block(strip, block) + first_rows + r * 2 * MMLA_STEP,
                           *b = mmla_panel(strip, block, panel) + (column + c) * 2 * MMLA_STEP;
                for (int64_t k = 0; k < strip->padded; k += MMLA_STEP, a += MMLA_BYTES, b += STRIP_COLUMNS / MMLA_ROWS * MMLA_BYTES) {
                    const uint32x4_t x = vshll_n_u16(vld1_u16((const uint16_t *)(const void *)a), 16),
                                     y = vshll_n_u16(vld1_u16((const uint16_t *)(const void *)b), 16);
                    sum = vfmaq_f32(sum, vreinterpretq_f32_u32(x), vreinterpretq_f32_u32(y));
                }
            }
            *to = (strip->adds ? *to : 0) + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
}

/* The strip's rows times `count` panels that are panel_bytes apart: sums in rows as long as the panels together. */
static void T(strip_multiply)(const row_strip *strip, int64_t rows, const void *panels, int64_t panel_bytes, int64_t count, void *sums)
{
    const int64_t ld = count * STRIP_COLUMNS * 4;
    for (int64_t i = 0; i < count; i++)
        for (int64_t r = 0; r < rows; r += MMLA_ROWS)
            for (int column = 0; column < STRIP_COLUMNS; column += MMLA_ROWS)
                (strip->exact ? S(exact_square) : S(mmla_square))(strip, r / MMLA_ROWS * strip->padded / MMLA_STEP * MMLA_BYTES,
                                                                  (const char *)panels + i * panel_bytes, column,
                                                                  (char *)sums + r * ld + i * STRIP_COLUMNS * 4, ld);
}

#endif
