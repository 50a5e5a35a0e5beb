/* Products with a few columns of B: the work is to stream the values once, in the order in which they lie. Vectors run along the contiguous
 * direction of a block: along k where the elements of a row are neighbours (sums of lanes at the end), along the rows where those of a
 * column are, or along the columns of B. Tails are masked, so that nothing beyond a block's row takes part, not even times zero. Values lie
 * as STORED and become REAL on their way into registers; B is of REAL. */
#include "backend/cpu/kernels/vectors/stored.h"

enum { S(narrow_converts) = sizeof(STORED) != sizeof(REAL) };

/* Some rows of one block row and their sums so far. */
typedef struct S(narrow_job) {
    const STORED *values; /* element (first row, 0) of block 0 */
    const int32_t *columns;
    const int64_t *positions; /* NULL: identity */
    int64_t first, last;      /* blocks of the index */
    int64_t last_of_row;
    int64_t stride; /* along k and n: between rows; along rows: between columns */
    int64_t block_stride;
    int64_t depth, edge_column, edge_depth;
    int64_t rows_part; /* along rows: rows in the last vector, 1 .. lanes */
    int64_t n;         /* columns of B */
    const REAL *b;     /* element (0, 0) of B */
    int64_t b_down;    /* along rows and n: between rows of B; along n a row of B is contiguous */
    int64_t b_across;  /* along k and rows: between columns of B; along k a column of B is contiguous */
    /* along k: [row][column of B]; along n: [row][vector of columns]; along rows: [vector of rows][column of B] */
    T(vec) *sums;
    const STORED *share;              /* this tile's share of block 0, were blocks dealt out to tiles as they lie: what it fetches ahead */
    int64_t share_bytes, ahead_bytes; /* 0: nothing */
} S(narrow_job);

typedef void (*S(narrow_function))(const S(narrow_job) *job);

/* This tile's share of what comes next in memory. */
SPK_INLINE const char *S(narrow_next)(const S(narrow_job) *job, int64_t p)
{
    const int64_t next = p + 1 < job->last_of_row ? p + 1 : p;
    return job->positions != NULL ? (const char *)(job->share + job->positions[next] * job->block_stride)
                                  : (const char *)(job->share + p * job->block_stride) + job->ahead_bytes;
}

/* Fetches it. */
SPK_INLINE void S(narrow_fetch)(const S(narrow_job) *job, int64_t p)
{
    const char *line = S(narrow_next)(job, p);
    for (int64_t i = 0; i < job->share_bytes; i += 64)
        __builtin_prefetch(line + i, 0, 3);
}

/* h rows, n columns of B; constants where this is inlined. */
SPK_INLINE void S(narrow_along_k)(const S(narrow_job) *job, const int h, const int n)
{
    const int step_bytes = h * T(lanes) *(int)sizeof(STORED);
    T(vec) acc[8][4];
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            acc[r][j] = job->sums[r * n + j];
    const int64_t stride = job->stride, across = job->b_across, depth = job->depth;
    for (int64_t p = job->first; p < job->last; p++) {
        const int64_t column = job->columns[p], size = column == job->edge_column ? job->edge_depth : depth;
        const STORED *a = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride;
        const char *line = S(narrow_next)(job, p), *const line_end = line + job->share_bytes;
        const REAL *b = job->b + column * depth;
        int64_t k = 0;
        for (; k + T(lanes) <= size; k += T(lanes)) {
            T(vec) x[4];
#pragma GCC unroll 4
            for (int j = 0; j < n; j++)
                x[j] = T(load)(b + j * across + k);
#pragma GCC unroll 8
            for (int r = 0; r < h; r++) {
                const T(vec) v = S(load)(a + r * stride + k);
#pragma GCC unroll 4
                for (int j = 0; j < n; j++)
                    acc[r][j] += v * x[j];
            }
            if (line < line_end) /* as many bytes as this step has read; all lines at once would leave it waiting for them */
#pragma GCC unroll 8
                for (int i = 0; i < step_bytes; i += 64)
                    __builtin_prefetch(line + i, 0, 2);
            line += step_bytes;
        }
        if (k < size) {
            T(vec) x[4];
#pragma GCC unroll 4
            for (int j = 0; j < n; j++)
                x[j] = T(load_part)(b + j * across + k, size - k);
#pragma GCC unroll 8
            for (int r = 0; r < h; r++) {
                const T(vec) v = S(load_part)(a + r * stride + k, size - k);
#pragma GCC unroll 4
                for (int j = 0; j < n; j++)
                    acc[r][j] += v * x[j];
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            job->sums[r * n + j] = acc[r][j];
}

/* The same for blocks of at most a vector's columns: one masked vector a row. */
SPK_INLINE void S(narrow_short)(const S(narrow_job) *job, const int h, const int n)
{
    T(vec) acc[8][4];
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            acc[r][j] = job->sums[r * n + j];
    const int64_t stride = job->stride, across = job->b_across, depth = job->depth;
    const int64_t edge = job->edge_column, edge_depth = job->edge_depth;
    for (int64_t p = job->first; p < job->last; p++) {
        const int64_t column = job->columns[p], size = column == edge ? edge_depth : depth;
        const STORED *a = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride;
        S(narrow_fetch)(job, p);
        const REAL *b = job->b + column * depth;
        T(vec) x[4];
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            x[j] = T(load_part)(b + j * across, size);
#pragma GCC unroll 8
        for (int r = 0; r < h; r++) {
            const T(vec) v = S(load_part)(a + r * stride, size);
#pragma GCC unroll 4
            for (int j = 0; j < n; j++)
                acc[r][j] += v * x[j];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            job->sums[r * n + j] = acc[r][j];
}

/* Blocks of one element, one column of B. */
static REAL S(narrow_scalar)(const S(narrow_job) *job)
{
    REAL sum[4] = {0};
    const STORED *a = job->values;
    const REAL *b = job->b;
    const int64_t *positions = job->positions;
    int64_t p = job->first;
    for (; p + 4 <= job->last; p += 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sum[i] += S(get)(a + (positions != NULL ? positions[p + i] : p + i)) * b[job->columns[p + i] * job->b_down];
    for (; p < job->last; p++)
        sum[0] += S(get)(a + (positions != NULL ? positions[p] : p)) * b[job->columns[p] * job->b_down];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* h rows, w vectors of columns of B; constants where this is inlined. Values that are not of REAL are converted a vector at a time. */
SPK_INLINE void S(narrow_along_n)(const S(narrow_job) *job, const int h, const int w)
{
    T(vec) acc[8][2];
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++)
            acc[r][j] = job->sums[r * w + j];
    const int64_t down = job->b_down, part = job->n - (w - 1) * T(lanes), stride = S(narrow_converts) ? T(lanes) : job->stride;
    REAL converted[8 * T(lanes)];
    for (int64_t p = job->first; p < job->last; p++) {
        const int64_t column = job->columns[p], size = column == job->edge_column ? job->edge_depth : job->depth;
        const STORED *a = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride;
        const REAL *b = job->b + column * job->depth * down;
        S(narrow_fetch)(job, p);
        for (int64_t k0 = 0, count = size; k0 < size; k0 += count) {
            const REAL *low = (const REAL *)(const void *)a;
            if (S(narrow_converts)) {
                count = size - k0 < T(lanes) ? size - k0 : T(lanes);
#pragma GCC unroll 8
                for (int r = 0; r < h; r++)
                    T(store)(converted + r * T(lanes),
                             count == T(lanes) ? S(load)(a + r * job->stride + k0) : S(load_part)(a + r * job->stride + k0, count));
                low = converted;
            }
            const REAL *high = low + (h > 4 ? 4 : 0) * stride;
            for (int64_t k = count; k > 0; k--) {
                T(vec) x[2];
#pragma GCC unroll 2
                for (int j = 0; j < w; j++)
                    x[j] = j + 1 < w ? T(load)(b + j * T(lanes)) : T(load_part)(b + j * T(lanes), part);
#pragma GCC unroll 8
                for (int r = 0; r < h; r++) {
                    const REAL v = r < 4 ? low[r * stride] : high[(r - 4) * stride];
#pragma GCC unroll 2
                    for (int j = 0; j < w; j++)
                        acc[r][j] += v * x[j];
                }
                low++;
                high++;
                b += down;
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++)
            job->sums[r * w + j] = acc[r][j];
}

/* h vectors of rows, n columns of B; constants where this is inlined. */
SPK_INLINE void S(narrow_along_rows)(const S(narrow_job) *job, const int h, const int n)
{
    T(vec) acc[8][8];
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            acc[r][j] = job->sums[r * n + j];
    const int64_t stride = job->stride, across = job->b_across, down = job->b_down, part = job->rows_part;
    for (int64_t p = job->first; p < job->last; p++) {
        const int64_t column = job->columns[p];
        const STORED *a = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride;
        S(narrow_fetch)(job, p);
        const REAL *b = job->b + column * job->depth * down;
        for (int64_t k = column == job->edge_column ? job->edge_depth : job->depth; k > 0; k--) {
#pragma GCC unroll 8
            for (int r = 0; r < h; r++) {
                const T(vec) v = r + 1 < h ? S(load)(a + r * T(lanes)) : S(load_part)(a + r * T(lanes), part);
#pragma GCC unroll 8
                for (int j = 0; j < n; j++)
                    acc[r][j] += v * b[j * across];
            }
            a += stride;
            b += down;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < h; r++)
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            job->sums[r * n + j] = acc[r][j];
}

/* clang-format off */
#define ALONG_K(h, n)                                                                                            \
    static void S(along_k_##h##x##n)(const S(narrow_job) *job) { S(narrow_along_k)(job, h, n); } \
    static void S(short_##h##x##n)(const S(narrow_job) *job) { S(narrow_short)(job, h, n); }
#define ALONG_N(h, w) \
    static void S(along_n_##h##x##w)(const S(narrow_job) *job) { S(narrow_along_n)(job, h, w); }
#define ALONG_ROWS(h, n)                                                                                         \
    static void S(along_rows_##h##x##n)(const S(narrow_job) *job) { S(narrow_along_rows)(job, h, n); }
ALONG_K(1, 1) ALONG_K(2, 1) ALONG_K(3, 1) ALONG_K(4, 1) ALONG_K(5, 1) ALONG_K(6, 1) ALONG_K(7, 1) ALONG_K(8, 1)
ALONG_K(1, 2) ALONG_K(2, 2) ALONG_K(3, 2) ALONG_K(4, 2) ALONG_K(5, 2) ALONG_K(6, 2)
ALONG_K(1, 3) ALONG_K(2, 3) ALONG_K(3, 3) ALONG_K(4, 3)
ALONG_K(1, 4) ALONG_K(2, 4) ALONG_K(3, 4)
ALONG_N(1, 1) ALONG_N(2, 1) ALONG_N(3, 1) ALONG_N(4, 1) ALONG_N(5, 1) ALONG_N(6, 1) ALONG_N(7, 1) ALONG_N(8, 1)
ALONG_N(1, 2) ALONG_N(2, 2) ALONG_N(3, 2) ALONG_N(4, 2) ALONG_N(5, 2)
ALONG_ROWS(1, 1) ALONG_ROWS(2, 1) ALONG_ROWS(3, 1) ALONG_ROWS(4, 1) ALONG_ROWS(5, 1) ALONG_ROWS(6, 1) ALONG_ROWS(7, 1) ALONG_ROWS(8, 1)
ALONG_ROWS(1, 2) ALONG_ROWS(2, 2) ALONG_ROWS(3, 2) ALONG_ROWS(4, 2) ALONG_ROWS(5, 2) ALONG_ROWS(6, 2)
ALONG_ROWS(1, 3) ALONG_ROWS(2, 3) ALONG_ROWS(3, 3) ALONG_ROWS(4, 3)
ALONG_ROWS(1, 4) ALONG_ROWS(2, 4) ALONG_ROWS(3, 4)
ALONG_ROWS(1, 5) ALONG_ROWS(2, 5)
ALONG_ROWS(1, 6) ALONG_ROWS(2, 6)
ALONG_ROWS(1, 7)
ALONG_ROWS(1, 8)
#undef ALONG_K
#undef ALONG_N
#undef ALONG_ROWS
    /* clang-format on */

    /* By columns of B (along n: vectors of them) and height, less one each. */
    static const S(narrow_function) S(narrow_k)[4][8] = {
        {S(along_k_1x1), S(along_k_2x1), S(along_k_3x1), S(along_k_4x1), S(along_k_5x1), S(along_k_6x1), S(along_k_7x1), S(along_k_8x1)},
        {S(along_k_1x2), S(along_k_2x2), S(along_k_3x2), S(along_k_4x2), S(along_k_5x2), S(along_k_6x2)},
        {S(along_k_1x3), S(along_k_2x3), S(along_k_3x3), S(along_k_4x3)},
        {S(along_k_1x4), S(along_k_2x4), S(along_k_3x4)},
};
static const S(narrow_function) S(narrow_k_short)[4][8] = {
    {S(short_1x1), S(short_2x1), S(short_3x1), S(short_4x1), S(short_5x1), S(short_6x1), S(short_7x1), S(short_8x1)},
    {S(short_1x2), S(short_2x2), S(short_3x2), S(short_4x2), S(short_5x2), S(short_6x2)},
    {S(short_1x3), S(short_2x3), S(short_3x3), S(short_4x3)},
    {S(short_1x4), S(short_2x4), S(short_3x4)},
};
static const S(narrow_function) S(narrow_n)[2][8] = {
    {S(along_n_1x1), S(along_n_2x1), S(along_n_3x1), S(along_n_4x1), S(along_n_5x1), S(along_n_6x1), S(along_n_7x1), S(along_n_8x1)},
    {S(along_n_1x2), S(along_n_2x2), S(along_n_3x2), S(along_n_4x2), S(along_n_5x2)},
};
static const S(narrow_function) S(narrow_rows)[8][8] = {
    {S(along_rows_1x1), S(along_rows_2x1), S(along_rows_3x1), S(along_rows_4x1), S(along_rows_5x1), S(along_rows_6x1), S(along_rows_7x1),
     S(along_rows_8x1)},
    {S(along_rows_1x2), S(along_rows_2x2), S(along_rows_3x2), S(along_rows_4x2), S(along_rows_5x2), S(along_rows_6x2)},
    {S(along_rows_1x3), S(along_rows_2x3), S(along_rows_3x3), S(along_rows_4x3)},
    {S(along_rows_1x4), S(along_rows_2x4), S(along_rows_3x4)},
    {S(along_rows_1x5), S(along_rows_2x5)},
    {S(along_rows_1x6), S(along_rows_2x6)},
    {S(along_rows_1x7)},
    {S(along_rows_1x8)},
};
