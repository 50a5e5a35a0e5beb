/* Any format to dense, the cast of values, and the transpose: what only moves elements about. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "matrix/check.h"
#include "matrix/entries.h"

static int64_t dense_down(const spk_matrix *matrix)
{
    return matrix->layout == SPK_ROW_MAJOR ? matrix->cols : 1;
}

static int64_t dense_across(const spk_matrix *matrix)
{
    return matrix->layout == SPK_ROW_MAJOR ? 1 : matrix->rows;
}

static spk_status scatter(const spk_mem *mem, const spk_matrix *in, spk_matrix *dense)
{
    spk_entries entries;
    int64_t down = dense_down(dense), across = dense_across(dense);
    SPK_TRY(spk_entries_open(mem, in, &entries));
    for (int64_t row = 0; row < in->rows; row++) {
        spk_entries_load(&entries, row, true);
        for (int64_t i = 0; i < entries.count; i++)
            spk_value_add(dense->values, dense->dtype, row * down + entries.cols[i] * across, entries.values[i]);
    }
    spk_entries_close(mem, &entries);
    return SPK_OK;
}

spk_status spk_convert_to_dense(const spk_mem *mem, const spk_matrix *in, spk_layout layout, spk_matrix **out)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_matrix_make(mem, SPK_DENSE, in->dtype, in->rows, in->cols, 1, 1, layout, 0, &made));
    spk_status status = SPK_OK;
    if (in->format == SPK_DENSE) {
        spk_copy_strided(made->values, dense_down(made), dense_across(made), in->values, dense_down(in), dense_across(in), in->rows,
                         in->cols, spk_dtype_bytes(in->dtype));
        made->pattern_only = in->pattern_only;
    } else {
        memset(made->values, 0, (size_t)made->nnz * spk_dtype_bytes(made->dtype));
        status = scatter(mem, in, made);
    }
    if (status != SPK_OK) {
        spk_matrix_release(&made);
        return status;
    }
    *out = made;
    return SPK_OK;
}

static void copy_indices(int64_t *to, const int64_t *from, int64_t count)
{
    if (to != NULL && count > 0)
        memcpy(to, from, (size_t)count * sizeof *to);
}

/* Says which element of a matrix dtype cannot hold. Infinities stay what they are where it has them. */
static spk_status refuse_overflow(const spk_matrix *in, int64_t at, spk_dtype dtype)
{
    double value = spk_value_at(in->values, in->dtype, at);
    int64_t area = in->block_rows * in->block_cols, row = 0, col = 0, entry = at / area, within = at % area;
    if (in->format == SPK_DENSE) {
        row = in->layout == SPK_ROW_MAJOR ? at / in->cols : at % in->rows;
        col = in->layout == SPK_ROW_MAJOR ? at % in->cols : at / in->rows;
    } else if (in->format == SPK_COO) {
        row = in->row_indices[at];
        col = in->col_indices[at];
    } else {
        while (in->row_offsets[row + 1] <= entry)
            row++;
        row = row * in->block_rows + (in->layout == SPK_ROW_MAJOR ? within / in->block_cols : within % in->block_rows);
        col = in->col_indices[entry] * in->block_cols + (in->layout == SPK_ROW_MAJOR ? within % in->block_cols : within / in->block_rows);
    }
    char least[32] = "at most";
    if (spk_type_is_whole(dtype))
        spk_snprintf(least, sizeof least, "%.5g to", spk_type_has_sign(dtype) ? -spk_type_of(dtype)->largest - 1 : 0);
    return spk_fail(SPK_ERR_ARGUMENT, "the entry in row %lld, column %lld (from 0) is %g: %s holds %s %.5g", (long long)row, (long long)col,
                    value, spk_dtype_name(dtype), least, spk_type_of(dtype)->largest);
}

spk_status spk_convert_cast(const spk_mem *mem, const spk_matrix *in, spk_dtype dtype, spk_matrix **out)
{
    spk_matrix *made = NULL;
    int64_t count = spk_matrix_value_count(in);
    SPK_TRY(spk_matrix_make(mem, in->format, dtype, in->rows, in->cols, in->block_rows, in->block_cols, in->layout, in->nnz, &made));
    made->pattern_only = in->pattern_only;
    copy_indices(made->row_offsets, in->row_offsets, spk_matrix_grid_rows(in) + 1);
    copy_indices(made->row_indices, in->row_indices, in->nnz);
    copy_indices(made->col_indices, in->col_indices, in->nnz);
    if (dtype == in->dtype)
        memcpy(made->values, in->values, (size_t)count * spk_dtype_bytes(dtype));
    else
        spk_values_convert(dtype, made->values, in->dtype, in->values, count);
    for (int64_t i = 0; i < count && spk_dtype_bytes(dtype) < 8 && dtype != in->dtype; i++)
        if (spk_value_is_lost(dtype, spk_value_at(in->values, in->dtype, i))) {
            spk_matrix_release(&made);
            return refuse_overflow(in, i, dtype);
        }
    *out = made;
    return SPK_OK;
}

/* CSR and BSR (CSR has blocks of one element): blocks move to their new places, each turned within. */
static spk_status transpose_compressed(const spk_mem *mem, const spk_matrix *in, spk_matrix *made)
{
    int64_t *positions = NULL;
    SPK_TRY(spk_alloc(mem, (size_t)in->nnz, sizeof *positions, &positions));
    spk_transpose_index(spk_matrix_grid_rows(in), spk_matrix_grid_cols(in), in->row_offsets, in->col_indices, made->row_offsets,
                        made->col_indices, positions);
    int64_t area = in->block_rows * in->block_cols;
    size_t bytes = spk_dtype_bytes(in->dtype);
    bool by_rows = in->layout == SPK_ROW_MAJOR;
    int64_t down = by_rows ? in->block_cols : 1, across = by_rows ? 1 : in->block_rows; /* old strides */
    int64_t new_down = by_rows ? in->block_rows : 1, new_across = by_rows ? 1 : in->block_cols;
    for (int64_t p = 0; p < in->nnz; p++) {
        char *to = (char *)made->values + (size_t)(p * area) * bytes;
        const char *from = (const char *)in->values + (size_t)(positions[p] * area) * bytes;
        if (area == 1)
            memcpy(to, from, bytes);
        else
            spk_copy_strided(to, new_across, new_down, from, down, across, in->block_rows, in->block_cols, bytes);
    }
    spk_free(mem, positions);
    return SPK_OK;
}

spk_status spk_convert_transpose(const spk_mem *mem, const spk_matrix *in, spk_matrix **out)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_matrix_make(mem, in->format, in->dtype, in->cols, in->rows, in->block_cols, in->block_rows, in->layout, in->nnz, &made));
    made->pattern_only = in->pattern_only;
    spk_status status = SPK_OK;
    if (in->format == SPK_DENSE) {
        spk_copy_strided(made->values, dense_across(made), dense_down(made), in->values, dense_down(in), dense_across(in), in->rows,
                         in->cols, spk_dtype_bytes(in->dtype));
    } else if (in->format == SPK_COO) {
        copy_indices(made->row_indices, in->col_indices, in->nnz);
        copy_indices(made->col_indices, in->row_indices, in->nnz);
        memcpy(made->values, in->values, (size_t)in->nnz * spk_dtype_bytes(in->dtype));
    } else {
        status = transpose_compressed(mem, in, made);
    }
    if (status != SPK_OK) {
        spk_matrix_release(&made);
        return status;
    }
    *out = made;
    return SPK_OK;
}
