/* What a caller can get wrong in a pattern, refused in O(nnzb) before anything is derived from it. */
#include <inttypes.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/pattern_parts.h"

spk_status spk_pattern_check_shape(const spk_bsr_indices *indices)
{
    SPK_TRY(spk_check_size(indices->rows, indices->cols));
    SPK_TRY(spk_check_block(indices->block_rows, indices->block_cols));
    SPK_TRY(spk_check_index_type(indices->index_type));
    if (indices->index_memory == SPK_DEVICE)
        return spk_fail(SPK_ERR_UNSUPPORTED, "index_memory = SPK_DEVICE: indices are read from host memory only");
    if (indices->index_memory != SPK_HOST)
        return spk_fail(SPK_ERR_ARGUMENT, "index_memory = %d is not SPK_HOST (%d)", (int)indices->index_memory, SPK_HOST);
    int64_t grid_rows = spk_ceil_div(indices->rows, indices->block_rows), grid_cols = spk_ceil_div(indices->cols, indices->block_cols);
    if (grid_rows > INT32_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED,
                        "rows = %" PRId64 " in blocks of %" PRId64 " make %" PRId64 " block rows: the limit is %" PRId32, indices->rows,
                        indices->block_rows, grid_rows, INT32_MAX);
    if (grid_cols > INT32_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED,
                        "cols = %" PRId64 " in blocks of %" PRId64 " make %" PRId64 " block columns: the limit is %" PRId32, indices->cols,
                        indices->block_cols, grid_cols, INT32_MAX);
    int64_t nnzb = indices->nnzb;
    if (nnzb < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "nnzb = %" PRId64 " is negative", nnzb);
    if (nnzb > grid_rows * grid_cols)
        return spk_fail(SPK_ERR_ARGUMENT, "nnzb = %" PRId64 " exceeds the %" PRId64 " blocks of a grid of %" PRId64 " x %" PRId64, nnzb,
                        grid_rows * grid_cols, grid_rows, grid_cols);
    if (!spk_product_fits(nnzb, indices->block_rows, indices->block_cols, (int64_t)sizeof(double)))
        return spk_fail(SPK_ERR_ARGUMENT, "nnzb = %" PRId64 " blocks of %" PRId64 " x %" PRId64 " overflow 64-bit sizes", nnzb,
                        indices->block_rows, indices->block_cols);
    return SPK_OK;
}

/* Words the first wrong column. */
static spk_status explain_columns(const spk_bsr_indices *indices, const spk_index *index)
{
    for (int64_t row = 0; row < index->grid_rows; row++) {
        int64_t before = -1;
        for (int64_t p = index->offsets[row]; p < index->offsets[row + 1]; p++) {
            int64_t column = spk_index_at(indices->col_indices, indices->index_type, p);
            if (column < 0 || column >= index->grid_cols)
                return spk_fail_index("col_indices", p, column, "block columns", index->grid_cols);
            if (column == before)
                return spk_fail(SPK_ERR_ARGUMENT,
                                "col_indices[%" PRId64 "] = %" PRId64 " repeats col_indices[%" PRId64 "] in block row %" PRId64
                                ": spk_matrix_canonicalize sums duplicates",
                                p, column, p - 1, row);
            if (column < before)
                return spk_fail(SPK_ERR_ARGUMENT,
                                "col_indices[%" PRId64 "] = %" PRId64 " is less than col_indices[%" PRId64 "] = %" PRId64
                                " in block row %" PRId64 ": columns must increase (spk_matrix_canonicalize sorts them)",
                                p, column, p - 1, before, row);
            before = column;
        }
    }
    return spk_fail(SPK_ERR_ARGUMENT, "col_indices changed while it was read");
}

static void copy_columns(const spk_bsr_indices *indices, int64_t grid_cols, int32_t *columns)
{
    if (indices->nnzb == 0)
        return;
    if (indices->index_type == SPK_INDEX_I32) {
        memcpy(columns, indices->col_indices, (size_t)indices->nnzb * sizeof *columns);
        return;
    }
    const int64_t *wide = indices->col_indices;
    for (int64_t p = 0; p < indices->nnzb; p++)
        columns[p] = wide[p] >= 0 && wide[p] < grid_cols ? (int32_t)wide[p] : -1; /* -1 never passes */
}

spk_status spk_pattern_copy_indices(const spk_bsr_indices *indices, spk_pattern *shell)
{
    spk_index *index = &shell->index;
    SPK_TRY(spk_check_offsets(indices->row_offsets, indices->index_type, index->grid_rows, indices->nnzb, "nnzb", index->offsets));
    SPK_TRY(spk_check_index_array(indices->col_indices, indices->index_type, indices->nnzb, "col_indices"));
    SPK_TRY(spk_alloc(&shell->mem, (size_t)indices->nnzb, sizeof *index->columns, &index->columns));
    copy_columns(indices, index->grid_cols, index->columns);
    bool wrong = false;
    for (int64_t row = 0; row < index->grid_rows; row++) {
        int32_t before = -1;
        for (int64_t p = index->offsets[row]; p < index->offsets[row + 1]; p++) {
            wrong |= index->columns[p] <= before;
            before = index->columns[p];
        }
        wrong |= before >= index->grid_cols; /* the last is the largest, where none was wrong */
    }
    return wrong ? explain_columns(indices, index) : SPK_OK;
}
