/* Arrays of batches and patterns that a test knows too, through the public interface: everything that must not matter is NaN. */
#ifndef OPERATION_CASE_H
#define OPERATION_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "matrix/matrix.h"
#include "context_case.h"

static inline int64_t pick(spk_rng *rng, int64_t from, int64_t to)
{
    return from + (int64_t)spk_rng_below(rng, (uint64_t)(to - from + 1));
}

/* A pattern whose blocks the test knows too. */
typedef struct blocks {
    int64_t rows, cols, block_rows, block_cols, nnzb;
    int64_t *row, *col; /* of each stored block, in blocks */
    spk_pattern *pattern;
} blocks;

/* Sizes are there; blocks are drawn. */
static inline void draw_blocks(spk_rng *rng, blocks *b, double density)
{
    const int64_t grid_rows = (b->rows + b->block_rows - 1) / b->block_rows, grid_cols = (b->cols + b->block_cols - 1) / b->block_cols;
    int64_t *offsets = calloc((size_t)grid_rows + 1, sizeof *offsets);
    b->row = calloc((size_t)(grid_rows * grid_cols), sizeof *b->row);
    b->col = calloc((size_t)(grid_rows * grid_cols), sizeof *b->col);
    b->nnzb = 0;
    for (int64_t i = 0; i < grid_rows; i++) {
        for (int64_t j = 0; j < grid_cols; j++)
            if (spk_rng_uniform(rng) < density) {
                b->row[b->nnzb] = i;
                b->col[b->nnzb++] = j;
            }
        offsets[i + 1] = b->nnzb;
    }
    ok(spk_pattern_create(context,
                          &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = b->rows, .cols = b->cols, .block_rows = b->block_rows,
                                             .block_cols = b->block_cols, .nnzb = b->nnzb, .row_offsets = offsets, .col_indices = b->col,
                                             .index_type = SPK_INDEX_I64},
                          &b->pattern));
    free(offsets);
}

static inline void make_blocks(spk_rng *rng, blocks *b)
{
    static const int64_t sizes[] = {1, 3, 4, 7, 16, 32, 40};
    b->block_rows = sizes[pick(rng, 0, 6)];
    b->block_cols = pick(rng, 0, 1) ? b->block_rows : sizes[pick(rng, 0, 6)];
    b->rows = pick(rng, 1, 4 * b->block_rows);
    b->cols = pick(rng, 1, 4 * b->block_cols);
    draw_blocks(rng, b, spk_rng_uniform(rng));
}

static inline void free_blocks(blocks *b)
{
    spk_pattern_destroy(&b->pattern);
    free(b->row);
    free(b->col);
}

/* Where element (r, c) of block p lies in an array of values. */
static inline int64_t value_at(const blocks *b, spk_layout layout, int64_t p, int64_t r, int64_t c)
{
    return p * b->block_rows * b->block_cols + (layout == SPK_ROW_MAJOR ? r * b->block_cols + c : c * b->block_rows + r);
}

/* An array of `items` of rows x cols, NaN where there is no element. */
typedef struct array {
    spk_dtype dtype;
    spk_layout layout;
    int64_t rows, cols, ld, stride, elements;
    char *memory;
} array;

static inline int64_t place(const array *a, int64_t item, int64_t i, int64_t j)
{
    return item * a->stride + (a->layout == SPK_ROW_MAJOR ? i * a->ld + j : j * a->ld + i);
}

static inline double at(const array *a, int64_t item, int64_t i, int64_t j)
{
    return spk_value_get(a->memory, a->dtype, place(a, item, i, j));
}

/* How the items of a batch lie. */
enum { TIGHT, LOOSE, SIDE_BY_SIDE, SHARED };

static inline void make_array(spk_rng *rng, array *a, spk_dtype dtype, spk_layout layout, int64_t rows, int64_t cols, int64_t items,
                              int how)
{
    const int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols;
    *a = (array){.dtype = dtype, .layout = layout, .rows = rows, .cols = cols};
    a->ld = (length > 0 ? length : 1) + pick(rng, 0, 3);
    a->stride = a->ld * lines + (how == LOOSE ? pick(rng, 1, 9) : 0);
    if (how == SIDE_BY_SIDE) {
        a->stride = a->ld;
        a->ld *= items;
    } else if (how == SHARED) {
        a->stride = 0;
    }
    a->elements = length > 0 && lines > 0 ? (items - 1) * a->stride + a->ld * (lines - 1) + length : 0;
    a->memory = malloc((size_t)a->elements * spk_dtype_bytes(dtype) + 1);
    for (int64_t e = 0; e < a->elements; e++)
        spk_value_set(a->memory, dtype, e, (double)NAN);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                spk_value_set(a->memory, dtype, place(a, item, i, j), spk_rng_normal(rng));
}

/* The stride as a caller gives it. */
static inline int64_t given(const array *a, int how)
{
    return how == TIGHT ? 0 : how == SHARED ? SPK_STRIDE_SHARED : a->stride;
}

static inline void random_dtypes(spk_rng *rng, spk_dtype *in, spk_dtype *out)
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    *in = dtypes[pick(rng, 0, 3)];
    *out = (*in == SPK_F16 || *in == SPK_BF16) && pick(rng, 0, 1) ? SPK_F32 : *in;
}

/* An array of values: one line an item. */
static inline void make_values(spk_rng *rng, array *a, spk_dtype dtype, int64_t values, int64_t items, int how)
{
    make_array(rng, a, dtype, SPK_ROW_MAJOR, values > 0 ? 1 : 0, values, items, SHARED);
    free(a->memory);
    a->ld = values;
    a->stride = how == SHARED ? 0 : values + (how == LOOSE ? pick(rng, 1, 9) : 0);
    a->elements = values > 0 ? (items - 1) * a->stride + values : 0;
    a->memory = malloc((size_t)a->elements * spk_dtype_bytes(dtype) + 1);
    for (int64_t e = 0; e < a->elements; e++)
        spk_value_set(a->memory, dtype, e, spk_rng_normal(rng));
}

#endif
