/* Plain models for the matrix tests: a dense array with a flag for each stored element, random matrices of every format, a counting
 * allocator. */
#ifndef SPK_TESTS_MODELS_H
#define SPK_TESTS_MODELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "matrix/matrix.h"
#include "matrix/pattern.h"

/* ------------------------------------------------------------------ memory: counted, so that a leak fails without a sanitizer too */

static atomic_long live_allocations;

static inline void *counted_allocate(void *user, size_t bytes, size_t alignment)
{
    atomic_fetch_add((atomic_long *)user, 1);
    return aligned_alloc(alignment, bytes);
}

static inline void counted_release(void *user, void *memory, size_t bytes)
{
    (void)bytes;
    atomic_fetch_sub((atomic_long *)user, 1);
    free(memory);
}

static const spk_mem counted = {counted_allocate, counted_release, &live_allocations};

static inline int no_leaks(void **state)
{
    (void)state;
    spk_mem_fail_after(-1);
    return atomic_load(&live_allocations) == 0 ? 0 : -1;
}

/* ------------------------------------------------------------------ assertions */

#define assert_ok(call)                                                               \
    do {                                                                              \
        spk_status ok_status_ = (call);                                               \
        if (ok_status_ != SPK_OK)                                                     \
            fail_msg("%s gave %d: %s", #call, (int)ok_status_, spk_error_message(0)); \
    } while (0)

/* The call fails with that status and a message that holds that text. */
#define assert_fails(call, expected, text)                                                                                      \
    do {                                                                                                                        \
        spk_status got_status_ = (call);                                                                                        \
        if (got_status_ != (expected) || strstr(spk_error_message(0), text) == NULL)                                            \
            fail_msg("%s gave %d \"%s\", not %d \"%s\"", #call, (int)got_status_, spk_error_message(0), (int)(expected), text); \
    } while (0)

/* Every allocation of the call fails in turn: out of memory each time, the output untouched, until nothing fails. */
#define assert_survives_injection(call, output)                   \
    do {                                                          \
        spk_status injected_ = SPK_ERR_OUT_OF_MEMORY;             \
        for (int64_t after_ = 0; injected_ != SPK_OK; after_++) { \
            assert_null(output);                                  \
            assert_int_equal(injected_, SPK_ERR_OUT_OF_MEMORY);   \
            spk_mem_fail_after(after_);                           \
            injected_ = (call);                                   \
            spk_mem_fail_after(-1);                               \
        }                                                         \
        assert_non_null(output);                                  \
    } while (0)

/* ------------------------------------------------------------------ the dense model */

typedef struct model {
    int64_t rows, cols;
    double *at;            /* rows x cols, row-major */
    unsigned char *stored; /* the element is stored (dense: not zero) */
} model;

static inline model model_make(int64_t rows, int64_t cols)
{
    size_t count = (size_t)(rows * cols) + 1;
    model made = {rows, cols, calloc(count, sizeof(double)), calloc(count, 1)};
    assert_non_null(made.at);
    assert_non_null(made.stored);
    return made;
}

static inline void model_free(model *m)
{
    free(m->at);
    free(m->stored);
    *m = (model){0};
}

static inline void model_add(model *m, int64_t row, int64_t col, double value)
{
    assert_in_range(row, 0, m->rows - 1);
    assert_in_range(col, 0, m->cols - 1);
    m->at[row * m->cols + col] += value;
    m->stored[row * m->cols + col] = 1;
}

static inline double model_value(const spk_matrix *matrix, int64_t i)
{
    return spk_value_get(matrix->values, matrix->dtype, i);
}

static inline void model_add_block(model *m, const spk_matrix *bsr, int64_t block_row, int64_t p)
{
    for (int64_t i = 0; i < bsr->block_rows; i++)
        for (int64_t j = 0; j < bsr->block_cols; j++) {
            int64_t row = block_row * bsr->block_rows + i, col = bsr->col_indices[p] * bsr->block_cols + j;
            int64_t inner = bsr->layout == SPK_ROW_MAJOR ? i * bsr->block_cols + j : j * bsr->block_rows + i;
            if (row < bsr->rows && col < bsr->cols)
                model_add(m, row, col, model_value(bsr, p * bsr->block_rows * bsr->block_cols + inner));
        }
}

static inline model model_of(const spk_matrix *matrix)
{
    model m = model_make(matrix->rows, matrix->cols);
    if (matrix->format == SPK_DENSE)
        for (int64_t row = 0; row < m.rows; row++)
            for (int64_t col = 0; col < m.cols; col++) {
                double value = model_value(matrix, matrix->layout == SPK_ROW_MAJOR ? row * m.cols + col : col * m.rows + row);
                if (value != 0)
                    model_add(&m, row, col, value);
            }
    if (matrix->format == SPK_COO)
        for (int64_t p = 0; p < matrix->nnz; p++)
            model_add(&m, matrix->row_indices[p], matrix->col_indices[p], model_value(matrix, p));
    if (matrix->format == SPK_CSR || matrix->format == SPK_BSR)
        for (int64_t row = 0; row < (matrix->rows + matrix->block_rows - 1) / matrix->block_rows; row++)
            for (int64_t p = matrix->row_offsets[row]; p < matrix->row_offsets[row + 1]; p++) {
                if (matrix->format == SPK_CSR)
                    model_add(&m, row, matrix->col_indices[p], model_value(matrix, p));
                else
                    model_add_block(&m, matrix, row, p);
            }
    return m;
}

static inline int model_equal(const model *a, const model *b)
{
    if (a->rows != b->rows || a->cols != b->cols)
        return 0;
    for (int64_t i = 0; i < a->rows * a->cols; i++)
        if (a->at[i] != b->at[i])
            return 0;
    return 1;
}

static inline int model_same_structure(const model *a, const model *b)
{
    return memcmp(a->stored, b->stored, (size_t)(a->rows * a->cols)) == 0;
}

/* ------------------------------------------------------------------ random matrices */

static inline int64_t pick(spk_rng *rng, int64_t low, int64_t high) /* both included */
{
    return low + (int64_t)spk_rng_below(rng, (uint64_t)(high - low + 1));
}

/* An index array of either width from 64-bit numbers; the caller frees it. */
static inline void *index_array(spk_index_type type, const int64_t *from, int64_t count)
{
    void *made = malloc((size_t)count * 8 + 8);
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++) {
        if (type == SPK_INDEX_I32)
            ((int32_t *)made)[i] = (int32_t)from[i];
        else
            ((int64_t *)made)[i] = from[i];
    }
    return made;
}

/* A type that matrices may have. */
static inline spk_dtype random_dtype(spk_rng *rng)
{
    const spk_type *type = NULL;
    for (int64_t left = pick(rng, 0, 63); left >= 0 || type == NULL; left--)
        type = spk_type_next(type, SPK_USES_OF_VALUES); /* behind the last one comes the first */
    return type->dtype;
}

/* Small integers, zero among them: sums are exact in every type, in any order. */
static inline void *random_values(spk_rng *rng, spk_dtype dtype, int64_t count, int mostly_zero)
{
    void *made = malloc((size_t)count * 8 + 8);
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++) {
        const int64_t most = spk_type_of(dtype)->significand < 7 ? 1 : 4, least = spk_type_has_sign(dtype) ? -most : 0;
        spk_value_set(made, dtype, i, mostly_zero && pick(rng, 0, 3) > 0 ? 0 : (double)pick(rng, least, most));
    }
    return made;
}

/* Entries in any order, some twice, some rows empty; an even longer row now and then. */
static inline spk_matrix *random_matrix(spk_rng *rng, spk_format format, int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols,
                                        int distinct)
{
    if (format != SPK_BSR)
        block_rows = block_cols = 1;
    int64_t grid_rows = (rows + block_rows - 1) / block_rows, grid_cols = (cols + block_cols - 1) / block_cols;
    int64_t per_row = grid_cols > 0 ? pick(rng, 0, grid_cols < 9 ? grid_cols : 9) : 0, nnz = 0;
    int64_t *offsets = calloc((size_t)grid_rows + 1, 8), *row_of = calloc((size_t)(grid_rows * 10) + 1, 8),
            *col_of = calloc((size_t)(grid_rows * 10) + 1, 8);
    for (int64_t row = 0; row < grid_rows; row++) {
        int64_t count = per_row > 0 && pick(rng, 0, 3) > 0 ? pick(rng, 0, per_row) : 0, last = -1;
        for (int64_t i = 0; i < count; i++) {
            int64_t col =
                distinct ? last + 1 + pick(rng, 0, (grid_cols - last - 1) / (count - i) > 1 ? (grid_cols - last - 1) / (count - i) - 1 : 0)
                         : pick(rng, 0, grid_cols - 1);
            if (col >= grid_cols)
                break;
            row_of[nnz] = row;
            col_of[nnz++] = last = col;
        }
        offsets[row + 1] = nnz;
    }
    if (format == SPK_COO && !distinct)
        for (int64_t i = nnz - 1; i > 0; i--) {
            int64_t j = pick(rng, 0, i), row = row_of[i], col = col_of[i];
            row_of[i] = row_of[j], col_of[i] = col_of[j];
            row_of[j] = row, col_of[j] = col;
        }
    spk_dtype dtype = random_dtype(rng);
    spk_index_type type = pick(rng, 0, 1) ? SPK_INDEX_I32 : SPK_INDEX_I64;
    spk_layout layout = pick(rng, 0, 1) && (format == SPK_DENSE || format == SPK_BSR) ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
    int64_t lines = layout == SPK_ROW_MAJOR ? rows : cols, length = layout == SPK_ROW_MAJOR ? cols : rows;
    int64_t ld = length + pick(rng, 0, 3);
    void *offset_array = index_array(type, offsets, grid_rows + 1), *row_array = index_array(type, row_of, nnz),
         *col_array = index_array(type, col_of, nnz);
    void *values = random_values(rng, dtype, format == SPK_DENSE ? lines * ld : nnz * block_rows * block_cols, format == SPK_DENSE);
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),
                            .format = format,
                            .dtype = dtype,
                            .rows = rows,
                            .cols = cols,
                            .block_rows = block_rows,
                            .block_cols = block_cols,
                            .layout = layout,
                            .ld = format == SPK_DENSE ? ld : 0,
                            .nnz = format == SPK_DENSE ? 0 : nnz,
                            .index_type = type,
                            .row_offsets = offset_array,
                            .row_indices = row_array,
                            .col_indices = col_array,
                            .values = values};
    spk_matrix *made = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &made));
    free(offsets), free(row_of), free(col_of), free(offset_array), free(row_array), free(col_array), free(values);
    return made;
}

static inline uint64_t test_seed(void)
{
    const char *text = getenv("SPARSEK_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 20240607;
    print_message("seed %llu (SPARSEK_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

#endif
