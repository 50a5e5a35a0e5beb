/* Products on AMX (strip_types.h): a strip of 16 or 32 rows of A times panels of 32 columns of B. A strip is blocks that lie one beside the
 * other along K, where they are stored or a copy, `step` numbers of a row a tile. A panel holds pairs of rows of B. In copies a block's
 * side along K is filled up with 0 to whole steps, its rows to whole tiles.
 *
 * Tiles take denormal numbers for 0 and make 0 of denormal results: where a product may have bits below 2^-126 (tile_pairs.h), float
 * instructions multiply instead. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILES_AMX_PRODUCT_H
#define SPK_BACKEND_CPU_KERNELS_TILES_AMX_PRODUCT_H

#include "backend/cpu/kernels/tiles/tile_pairs.h"
#include "backend/cpu/kernels/tiles/tile_plan.h"
#include "backend/cpu/kernels/tiles/amx_tiles.h"
#include "backend/cpu/probe.h"

enum { AMX_SQUARE, AMX_LINE, AMX_LONG_LINE }; /* tiles of sums that are made together: 2 x 2, 1 x 2, 1 x 4 */
enum { STRIP_ROWS = 2 * TILE_ROWS, STRIP_COLUMNS = 32, AMX_PAIR_BYTES = STRIP_COLUMNS * 4, STRIP_LINE_BYTES = STRIP_COLUMNS * 2 };
#define STRIP_IN_PLACE 1
enum { STRIP_TILE_CYCLES = 50 }; /* of 16 x 16 sums, a step */

/* Sizes along K: what a tile of A holds, and a block of so many numbers filled up. */
static inline int64_t strip_step(int64_t depth)
{
    return depth <= 16 ? 16 : 32;
}

static inline int64_t strip_padded(int64_t depth)
{
    return tile_ceil(depth, strip_step(depth)) * strip_step(depth);
}

static inline int64_t strip_padded_rows(int64_t rows)
{
    return tile_ceil(rows, TILE_ROWS) * TILE_ROWS;
}

/* Rows of strip number i of a matrix or of a block with so many. */
static inline int64_t strip_rows(int64_t rows, int64_t i)
{
    const int64_t left = rows - i * STRIP_ROWS;
    return left < STRIP_ROWS ? left : STRIP_ROWS;
}

/* What a thread says before its first tile: 0 to 3 are sums, 4 and 5 A, 6 and 7 B. */
static inline void strip_begin(int64_t step)
{
    tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = (uint16_t)(i == 4 || i == 5 ? 2 * step : TILE_BYTES);
        shapes.rows[i] = (uint8_t)(i >= 6 ? step / 2 : TILE_ROWS);
    }
    tile_shape(&shapes);
}

static inline void strip_end(void)
{
    tile_release();
}

/* Asks the system for the tiles. */
static inline spk_status strip_request(void)
{
    return spk_request_tiles() ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "the system does not let this process use AMX");
}

typedef struct row_strip {
    const char *a;            /* element (first row, 0) of the block at position 0 */
    const int32_t *columns;   /* of the blocks: each begins with row columns[i] * padded of the panels */
    const int64_t *positions; /* of the blocks; NULL: 0, 1, 2 ... */
    int64_t blocks;
    int64_t block_bytes, tile_bytes, row_bytes; /* from one to the next: a block, a tile along K, a row of a tile */
    int64_t step, steps;                        /* numbers of a tile along K, tiles of a block */
    bool exact;                                 /* by float instructions */
    bool adds;                                  /* to the sums that are there */
} row_strip;

/* ------------------------------------------------------------------------------------------------ copies */

/* A strip of `rows` rows and `columns` columns, filled up to `padded`: tile by tile along K, in each the rows one behind the other. One of
 * the strides is 1. */
static void S(strip_copy)(const STORED *from, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t columns, int64_t padded,
                          STORED *to, S(pair_least) *least)
{
    const int64_t all = strip_padded_rows(rows), step = padded > 16 ? 32 : 16, lanes = step / 2;
    for (int64_t r = 0; r < all && col_stride == 1; r++)
        for (int64_t k = 0; k < padded; k += step) {
            const T(words) pairs = r < rows ? S(pairs_of_line)(from + r * row_stride + k, columns - k) : (T(words)){0};
            S(least_of)(least, pairs);
            T(store_part)((REAL *)(void *)(to + k * all + r * step), (T(vec))pairs, lanes);
        }
    for (int64_t r = 0; r < all && col_stride != 1; r += T(lanes))
        for (int64_t k = 0; k < padded; k += step) {
            T(vec) square[T(lanes)];
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++) {
                const int64_t column = k + 2 * i;
                const STORED *first = from + column * col_stride + r;
                const T(words) pairs =
                    column < columns ? S(pair_up)(first, column + 1 < columns ? first + col_stride : NULL, rows - r) : (T(words)){0};
                S(least_of)(least, pairs);
                square[i] = (T(vec))pairs;
            }
            T(transpose)(square);
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                T(store_part)((REAL *)(void *)(to + k * all + (r + i) * step), square[i], lanes);
        }
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
    const S(pair_run) run = {0, rows, padded / 2};
    if (layout == SPK_ROW_MAJOR)
        S(pair_row_major)(b, ldb, &run, padded / 2, STRIP_COLUMNS / T(lanes), columns, panel, least);
    else
        S(pair_col_major)(b, ldb, &run, padded / 2, STRIP_COLUMNS / T(lanes), columns, panel, least);
}

/* Bytes of numbers that stay where they are. */
static __attribute__((unused)) void S(strip_look)(const char *from, int64_t bytes, S(pair_least) *least)
{
    S(pair_least) found = *least;
    for (int64_t i = 0; i < bytes; i += VECTOR_BYTES)
        S(least_of)(&found, (T(words))_mm512_loadu_si512(from + i)); /* numbers of two bytes */
    *least = found;
}

/* ------------------------------------------------------------------------------------------------ products */

/* A strip of one copied block: `rows` rows of so many numbers, filled up to `padded`. */
static inline row_strip copied_strip(const void *copy, int64_t rows, int64_t padded)
{
    static const int32_t first_column = 0;
    const int64_t step = padded > 16 ? 32 : 16;
    return (row_strip){.a = copy,
                       .columns = &first_column,
                       .blocks = 1,
                       .tile_bytes = strip_padded_rows(rows) * step * 2,
                       .row_bytes = step * 2,
                       .step = step,
                       .steps = padded / step};
}

SPK_INLINE const char *strip_block(const row_strip *strip, int64_t i)
{
    return strip->a + (strip->positions != NULL ? strip->positions[i] : i) * strip->block_bytes;
}

SPK_INLINE const char *amx_rows(const row_strip *strip, int64_t i, const void *panel)
{
    return (const char *)panel + strip->columns[i] * (strip->steps * strip->step / 2) * AMX_PAIR_BYTES;
}

/* Tiles 0 to 3, side by side below one another or all in a line, as they are before the first product. */
SPK_INLINE void amx_first_sums(const row_strip *strip, const char *sums, int64_t ld, const int tiles)
{
    if (!strip->adds) {
        tile_zero(0);
        tile_zero(1);
        if (tiles != AMX_LINE) {
            tile_zero(2);
            tile_zero(3);
        }
        return;
    }
    tile_load(0, sums, ld);
    tile_load(1, sums + TILE_BYTES, ld);
    if (tiles == AMX_SQUARE) {
        tile_load(2, sums + TILE_ROWS * ld, ld);
        tile_load(3, sums + TILE_ROWS * ld + TILE_BYTES, ld);
    } else if (tiles == AMX_LONG_LINE) {
        tile_load(2, sums + 2 * TILE_BYTES, ld);
        tile_load(3, sums + 3 * TILE_BYTES, ld);
    }
}

/* Two tiles of rows times a panel. The sums' rows are `ld` bytes apart. */
static void amx_square(const row_strip *strip, const void *panel, char *sums, int64_t ld)
{
    const int64_t row = strip->row_bytes, wide = strip->tile_bytes, deep = strip->step / 2 * AMX_PAIR_BYTES;
    amx_first_sums(strip, sums, ld, AMX_SQUARE);
    for (int64_t i = 0; i < strip->blocks; i++) {
        const char *a = strip_block(strip, i), *b = amx_rows(strip, i, panel);
        for (int64_t k = strip->steps; k > 0; k--, a += wide, b += deep) {
            tile_load(4, a, row);
            tile_load(6, b, AMX_PAIR_BYTES);
            tile_load(7, b + TILE_BYTES, AMX_PAIR_BYTES);
            tile_load(5, a + TILE_ROWS * row, row);
            tile_multiply(0, 4, 6);
            tile_multiply(1, 4, 7);
            tile_multiply(2, 5, 6);
            tile_multiply(3, 5, 7);
        }
    }
    tile_store(0, sums, ld);
    tile_store(1, sums + TILE_BYTES, ld);
    tile_store(2, sums + TILE_ROWS * ld, ld);
    tile_store(3, sums + TILE_ROWS * ld + TILE_BYTES, ld);
}

/* One tile of rows times a panel, or two panels. */
static void amx_line(const row_strip *strip, const void *panel, char *sums, int64_t ld)
{
    const int64_t row = strip->row_bytes, wide = strip->tile_bytes, deep = strip->step / 2 * AMX_PAIR_BYTES;
    amx_first_sums(strip, sums, ld, AMX_LINE);
    for (int64_t i = 0; i < strip->blocks; i++) {
        const char *a = strip_block(strip, i), *b = amx_rows(strip, i, panel);
        for (int64_t k = strip->steps; k > 0; k--, a += wide, b += deep) {
            tile_load(4, a, row);
            tile_load(6, b, AMX_PAIR_BYTES);
            tile_load(7, b + TILE_BYTES, AMX_PAIR_BYTES);
            tile_multiply(0, 4, 6);
            tile_multiply(1, 4, 7);
        }
    }
    tile_store(0, sums, ld);
    tile_store(1, sums + TILE_BYTES, ld);
}

static void amx_long_line(const row_strip *strip, const void *panel, const void *next, char *sums, int64_t ld)
{
    const int64_t row = strip->row_bytes, wide = strip->tile_bytes, deep = strip->step / 2 * AMX_PAIR_BYTES;
    const int64_t apart = (const char *)next - (const char *)panel;
    amx_first_sums(strip, sums, ld, AMX_LONG_LINE);
    for (int64_t i = 0; i < strip->blocks; i++) {
        const char *a = strip_block(strip, i), *b = amx_rows(strip, i, panel);
        for (int64_t k = strip->steps; k > 0; k--, a += wide, b += deep) {
            tile_load(4, a, row);
            tile_load(6, b, AMX_PAIR_BYTES);
            tile_load(7, b + TILE_BYTES, AMX_PAIR_BYTES);
            tile_multiply(0, 4, 6);
            tile_multiply(1, 4, 7);
            tile_load(6, b + apart, AMX_PAIR_BYTES);
            tile_load(7, b + apart + TILE_BYTES, AMX_PAIR_BYTES);
            tile_multiply(2, 4, 6);
            tile_multiply(3, 4, 7);
        }
    }
    tile_store(0, sums, ld);
    tile_store(1, sums + TILE_BYTES, ld);
    tile_store(2, sums + 2 * TILE_BYTES, ld);
    tile_store(3, sums + 3 * TILE_BYTES, ld);
}

SPK_INLINE T(vec) T(amx_add)(T(vec) sum, uint32_t pair, const char *b)
{
    const T(words) row = (T(words))T(load)((const REAL *)(const void *)b);
    sum += (T(vec))((T(words)){0} + (pair << 16)) * (T(vec))(row << 16);
    return sum + (T(vec))((T(words)){0} + (pair >> 16 << 16)) * (T(vec))(row >> 16 << 16);
}

/* A row of the strip times a panel, by float instructions. */
static void T(amx_exact_row)(const row_strip *strip, int64_t row, const void *panel, char *sums)
{
    T(vec) sum[2] = {{0}, {0}};
    if (strip->adds)
        memcpy(sum, sums, sizeof sum);
    for (int64_t i = 0; i < strip->blocks; i++) {
        const char *a = strip_block(strip, i) + row * strip->row_bytes, *b = amx_rows(strip, i, panel);
        for (int64_t k = 0; k < strip->steps; k++, a += strip->tile_bytes)
            for (int64_t at = 0; at < 2 * strip->step; at += 4, b += AMX_PAIR_BYTES) {
                uint32_t pair;
                memcpy(&pair, a + at, sizeof pair);
                sum[0] = T(amx_add)(sum[0], pair, b);
                sum[1] = T(amx_add)(sum[1], pair, b + TILE_BYTES);
            }
    }
    memcpy(sums, sum, sizeof sum);
}

/* The strip's rows, 16 or 32, times `count` panels that are panel_bytes apart: sums in rows as long as the panels together. */
static void T(strip_multiply)(const row_strip *strip, int64_t rows, const void *panels, int64_t panel_bytes, int64_t count, void *sums)
{
    const int64_t ld = count * STRIP_COLUMNS * 4;
    const char *from = panels;
    char *to = sums;
    tile_settle(strip->a);
    for (int64_t i = 0; i < count; i++, from += panel_bytes, to += STRIP_COLUMNS * 4) {
        if (strip->exact) {
            for (int64_t row = 0; row < rows; row++)
                T(amx_exact_row)(strip, row, from, to + row * ld);
        } else if (rows > TILE_ROWS) {
            amx_square(strip, from, to, ld);
        } else if (i + 1 < count) {
            amx_long_line(strip, from, from + panel_bytes, to, ld);
            i++;
            from += panel_bytes;
            to += STRIP_COLUMNS * 4;
        } else {
            amx_line(strip, from, to, ld);
        }
    }
}

#endif
