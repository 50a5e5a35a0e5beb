/* Packing of bfloat16 numbers in pairs: copies of B and of A's blocks whose elements are 32 bits, a row's and the next one's number of B, a
 * column's and the next one's of A, as vdpbf16ps multiplies them. A block with an odd side along K ends with a pair whose second number is
 * 0 in both.
 *
 * vdpbf16ps adds a pair's two products to the sum one after the other, each time rounded to nearest, as two multiply-adds would: the error
 * has the bound of the float rows. But it takes denormal numbers for 0, and makes 0 of denormal sums. So the copies find the least numbers
 * other than 0: where a product can have bits below 2^-126 (pairs_are_exact), the tiles multiply by float instructions instead. Where none
 * can, no sum has either: all are whole multiples of the least bit of a product, or of more. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILES_TILE_PAIRS_H
#define SPK_BACKEND_CPU_KERNELS_TILES_TILE_PAIRS_H

#include "backend/cpu/kernels/vectors/pairs.h"
#include "backend/cpu/kernels/vectors/transpose.h"

/* Where rows of B are in the steps of a panel: rows of a block, and of all. */
typedef struct S(pair_rows) {
    int64_t block, all;
} S(pair_rows);

/* ------------------------------------------------------------------------------------------------ B */

/* Steps of which the first is `step`: its first row, and how many rows from there on lie in the same run of pairs. Blocks of an even side
 * follow one another without a gap. Steps behind the last row, which no tile reads, are 0. */
typedef struct S(pair_run) {
    int64_t row, rows, steps;
} S(pair_run);

SPK_INLINE S(pair_run) S(pair_run_at)(const S(pair_rows) *rows, int64_t step)
{
    if (rows->block % 2 == 0)
        return (S(pair_run)){2 * step, rows->all - 2 * step, INT64_MAX};
    const int64_t steps = (rows->block + 1) / 2, block = step / steps, at = step % steps, row = block * rows->block + 2 * at;
    const int64_t end = (block + 1) * rows->block < rows->all ? (block + 1) * rows->block : rows->all;
    return (S(pair_run)){row, end - row, steps - at};
}

/* Numbers of two lines in turn: of 32 each the first 16 pairs and the last; of 16 each, one line in either half. */
typedef int16_t S(shorts) __attribute__((vector_size(64)));
static const S(shorts)
    S(first_pairs) = {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
static const S(shorts) S(last_pairs) = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                        24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
static const S(shorts) S(pairs_of_halves) = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                             8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

/* Steps of two rows that are there, as are all columns. */
SPK_INLINE void S(pair_whole_rows)(const STORED *from, int64_t ldb, int64_t steps, const int w, REAL *panel, S(pair_least) *least)
{
    S(pair_least) found = *least;
    for (int64_t s = 0; s < steps; s++, from += 2 * ldb, panel += w * T(lanes)) {
#pragma GCC unroll 3
        for (int j = 0; j + 1 < w; j += 2) {
            const __m512i first = _mm512_loadu_si512(from + j * T(lanes)), second = _mm512_loadu_si512(from + ldb + j * T(lanes));
            S(least_of)(&found, (T(words))first);
            S(least_of)(&found, (T(words))second);
            T(store)(panel + j * T(lanes), (T(vec))_mm512_permutex2var_epi16(first, (__m512i)S(first_pairs), second));
            T(store)(panel + (j + 1) * T(lanes), (T(vec))_mm512_permutex2var_epi16(first, (__m512i)S(last_pairs), second));
        }
        if (w % 2 != 0) {
            const STORED *last = from + (w - 1) * T(lanes);
            const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)last)),
                                                    _mm256_loadu_si256((const __m256i_u *)(last + ldb)), 1);
            S(least_of)(&found, (T(words))both);
            T(store)(panel + (w - 1) * T(lanes), (T(vec))_mm512_permutexvar_epi16((__m512i)S(pairs_of_halves), both));
        }
    }
    *least = found;
}

SPK_INLINE void S(pair_row_major)(const STORED *b, int64_t ldb, const S(pair_run) *run, int64_t steps, const int w, int64_t columns,
                                  REAL *panel, S(pair_least) *least)
{
    const STORED *from = b + run->row * ldb;
    int64_t s = 0;
    if (columns >= w * T(lanes) &&run->rows > 1) {
        s = run->rows / 2 < steps ? run->rows / 2 : steps;
        S(pair_whole_rows)(from, ldb, s, w, panel, least);
    }
    for (from += 2 * s * ldb, panel += s * w * T(lanes); s < steps; s++, from += 2 * ldb, panel += w * T(lanes)) {
        const int64_t left = run->rows - 2 * s;
#pragma GCC unroll 6
        for (int j = 0; j < w; j++) {
            T(words) pairs = {0};
            if (left > 0 && columns > j * T(lanes))
                pairs = S(pair_up)(from + j * T(lanes), left > 1 ? from + ldb + j * T(lanes) : NULL, columns - j * T(lanes));
            S(least_of)(least, pairs);
            T(store)(panel + j * T(lanes), (T(vec))pairs);
        }
    }
}

SPK_INLINE void S(pair_col_major)(const STORED *b, int64_t ldb, const S(pair_run) *run, int64_t steps, int w, int64_t columns, REAL *panel,
                                  S(pair_least) *least)
{
    const int64_t row = (int64_t)w * T(lanes);
    for (int64_t s = 0; s < steps; s += T(lanes))
        for (int64_t j = 0; j < row; j += T(lanes)) {
            T(vec) square[T(lanes)];
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++) {
                const T(words) pairs =
                    j + i < columns ? S(pairs_of_line)(b + (j + i) * ldb + run->row + 2 * s, run->rows - 2 * s) : (T(words)){0};
                S(least_of)(least, pairs);
                square[i] = (T(vec))pairs;
            }
            T(transpose)(square);
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                if (s + i < steps)
                    T(store)(panel + (s + i) * row + j, square[i]);
        }
}

/* As S(pack) of tile_pack.h, steps for rows. */
static __attribute__((unused)) void S(pack_pairs)(const S(pair_rows) *rows, spk_layout layout, const STORED *b, int64_t ldb, int64_t s0,
                                                  int64_t s1, int w, int64_t columns, REAL *panel, S(pair_least) *least)
{
    for (int64_t s = s0; s < s1;) {
        const S(pair_run) run = S(pair_run_at)(rows, s);
        const int64_t steps = run.steps < s1 - s ? run.steps : s1 - s;
        REAL *to = panel + s * w * T(lanes);
        /* clang-format off */
        if (layout != SPK_ROW_MAJOR)
            S(pair_col_major)(b, ldb, &run, steps, w, columns, to, least);
        else switch (w) {
        case 1: S(pair_row_major)(b, ldb, &run, steps, 1, columns, to, least); break;
        case 2: S(pair_row_major)(b, ldb, &run, steps, 2, columns, to, least); break;
        case 3: S(pair_row_major)(b, ldb, &run, steps, 3, columns, to, least); break;
        case 4: S(pair_row_major)(b, ldb, &run, steps, 4, columns, to, least); break;
        case 5: S(pair_row_major)(b, ldb, &run, steps, 5, columns, to, least); break;
        default: S(pair_row_major)(b, ldb, &run, steps, 6, columns, to, least); break;
        }
        /* clang-format on */
        s += steps;
    }
}

/* ------------------------------------------------------------------------------------------------ blocks of A */

/* Two lines of numbers, as pairs; second NULL: 0. */
SPK_INLINE void S(pair_lines)(const STORED *first, const STORED *second, int64_t count, REAL *to, S(pair_least) *least)
{
    for (int64_t i = 0; i < count; i += T(lanes)) {
        const T(words) pairs = S(pair_up)(first + i, second != NULL ? second + i : NULL, count - i);
        S(least_of)(least, pairs);
        if (count - i >= T(lanes))
            T(store)(to + i, (T(vec))pairs);
        else
            T(store_part)(to + i, (T(vec))pairs, count - i);
    }
}

/* Whether the pairs of a row lie side by side, as the numbers of a row do; else those of a column do. */
SPK_INLINE bool S(pairs_by_row)(const spk_bsr_view *view)
{
    return view->col_stride == 1;
}

/* The block at `from`, of which `rows` rows and `columns` columns are there. What hangs over is not read. */
SPK_INLINE void S(pair_block)(const spk_bsr_view *view, const STORED *from, int64_t rows, int64_t columns, REAL *to, S(pair_least) *least)
{
    const int64_t steps = (view->block_cols + 1) / 2;
    if (S(pairs_by_row)(view)) {
        if (columns == view->block_cols && columns % 2 == 0 && view->row_stride == columns)
            S(pair_line)(from, rows * columns, to, least);
        else
            for (int64_t r = 0; r < rows; r++)
                S(pair_line)(from + r * view->row_stride, columns, to + r * steps, least);
        return;
    }
    for (int64_t k = 0; k < columns; k += 2) {
        const STORED *first = from + k * view->col_stride;
        S(pair_lines)(first, k + 1 < columns ? first + view->col_stride : NULL, rows, to + k / 2 * view->block_rows, least);
    }
}

#endif
