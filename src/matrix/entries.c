/* Reading any format row by row. */
#include "matrix/entries.h"

#include <string.h>

#include "matrix/check.h"

spk_status spk_coo_to_rows(const spk_mem *mem, const spk_matrix *coo, spk_matrix **csr)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_matrix_make(mem, SPK_CSR, coo->dtype, coo->rows, coo->cols, 1, 1, SPK_ROW_MAJOR, coo->nnz, &made));
    made->pattern_only = coo->pattern_only;
    size_t bytes = spk_dtype_bytes(coo->dtype);
    int64_t *next = made->row_offsets, start = 0; /* next place of a row; at the end, where the next row begins */
    memset(next, 0, ((size_t)coo->rows + 1) * sizeof *next);
    for (int64_t p = 0; p < coo->nnz; p++)
        next[coo->row_indices[p]]++;
    for (int64_t row = 0; row <= coo->rows; row++) {
        int64_t count = next[row];
        next[row] = start;
        start += count;
    }
    for (int64_t p = 0; p < coo->nnz; p++) {
        int64_t at = next[coo->row_indices[p]]++;
        made->col_indices[at] = coo->col_indices[p];
        memcpy((char *)made->values + (size_t)at * bytes, (const char *)coo->values + (size_t)p * bytes, bytes);
    }
    memmove(next + 1, next, (size_t)coo->rows * sizeof *next);
    next[0] = 0;
    *csr = made;
    return SPK_OK;
}

/* The most entries that a row can have. */
static int64_t widest_row(const spk_matrix *matrix)
{
    if (matrix->format == SPK_DENSE)
        return matrix->rows > 0 ? matrix->cols : 0;
    int64_t widest = 0, grid_rows = spk_matrix_grid_rows(matrix);
    for (int64_t row = 0; row < grid_rows; row++) {
        int64_t length = matrix->row_offsets[row + 1] - matrix->row_offsets[row];
        widest = length > widest ? length : widest;
    }
    return widest * matrix->block_cols;
}

spk_status spk_entries_open(const spk_mem *mem, const spk_matrix *matrix, spk_entries *entries)
{
    *entries = (spk_entries){.matrix = matrix};
    if ((matrix->format == SPK_COO || matrix->format == SPK_CSR) && spk_type_is_scaled(matrix->dtype))
        SPK_TRY(spk_convert_to_csr(mem, matrix, &entries->made)); /* repeats are summed before they are rounded to eight bits */
    else if (matrix->format == SPK_COO)
        SPK_TRY(spk_coo_to_rows(mem, matrix, &entries->made));
    if (matrix->format == SPK_DENSE && matrix->layout == SPK_COL_MAJOR)
        SPK_TRY(spk_convert_to_dense(mem, matrix, SPK_ROW_MAJOR, &entries->made));
    if (entries->made != NULL)
        entries->matrix = entries->made;
    spk_status status = SPK_OK;
    int64_t widest = widest_row(entries->matrix);
    if (entries->matrix->format != SPK_CSR)
        SPK_GOTO(spk_alloc(mem, (size_t)widest, sizeof *entries->cols_room, &entries->cols_room));
    if (entries->matrix->format != SPK_CSR || !spk_type_is_double(entries->matrix->dtype))
        SPK_GOTO(spk_alloc(mem, (size_t)widest, sizeof *entries->values_room, &entries->values_room));
done:
    if (status != SPK_OK)
        spk_entries_close(mem, entries);
    return status;
}

void spk_entries_close(const spk_mem *mem, spk_entries *entries)
{
    spk_free(mem, entries->cols_room);
    spk_free(mem, entries->values_room);
    spk_matrix_release(&entries->made);
    *entries = (spk_entries){0};
}

static void load_csr(spk_entries *entries, int64_t row, bool with_values)
{
    const spk_matrix *csr = entries->matrix;
    int64_t start = csr->row_offsets[row];
    entries->count = csr->row_offsets[row + 1] - start;
    entries->cols = csr->col_indices + start;
    if (!with_values)
        return;
    if (spk_type_is_double(csr->dtype)) {
        entries->values = (const double *)csr->values + start;
        return;
    }
    for (int64_t i = 0; i < entries->count; i++)
        entries->values_room[i] = spk_value_at(csr->values, csr->dtype, start + i);
}

static void load_dense(spk_entries *entries, int64_t row)
{
    const spk_matrix *dense = entries->matrix;
    int64_t count = 0;
    for (int64_t col = 0; col < dense->cols; col++) {
        double value = spk_value_at(dense->values, dense->dtype, row * dense->cols + col);
        entries->cols_room[count] = col;
        entries->values_room[count] = value;
        count += value != 0; /* NaN is kept */
    }
    entries->count = count;
}

static void load_bsr(spk_entries *entries, int64_t row, bool with_values)
{
    const spk_matrix *bsr = entries->matrix;
    int64_t block_row = row / bsr->block_rows, inner = row % bsr->block_rows, count = 0;
    int64_t area = bsr->block_rows * bsr->block_cols;
    int64_t across = bsr->layout == SPK_ROW_MAJOR ? 1 : bsr->block_rows, down = bsr->layout == SPK_ROW_MAJOR ? bsr->block_cols : 1;
    for (int64_t p = bsr->row_offsets[block_row]; p < bsr->row_offsets[block_row + 1]; p++) {
        int64_t first = bsr->col_indices[p] * bsr->block_cols;
        int64_t width = spk_min_i64(bsr->block_cols, bsr->cols - first);
        for (int64_t i = 0; i < width; i++)
            entries->cols_room[count + i] = first + i;
        for (int64_t i = 0; with_values && i < width; i++)
            entries->values_room[count + i] = spk_value_at(bsr->values, bsr->dtype, p * area + inner * down + i * across);
        count += width;
    }
    entries->count = count;
}

void spk_entries_load(spk_entries *entries, int64_t row, bool with_values)
{
    entries->cols = entries->cols_room;
    entries->values = with_values ? entries->values_room : NULL;
    if (entries->matrix->format == SPK_CSR)
        load_csr(entries, row, with_values);
    else if (entries->matrix->format == SPK_DENSE)
        load_dense(entries, row);
    else
        load_bsr(entries, row, with_values);
}

int64_t spk_entries_total(spk_entries *entries)
{
    if (entries->matrix->format == SPK_CSR)
        return entries->matrix->nnz;
    int64_t total = 0;
    for (int64_t row = 0; row < entries->matrix->rows; row++) {
        spk_entries_load(entries, row, false);
        total += entries->count;
    }
    return total;
}
