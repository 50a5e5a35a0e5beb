/* A matrix from a caller's arrays: every index checked, everything copied, 64-bit indices within. */
#include <inttypes.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/entries.h"

static spk_status check_values(const spk_matrix_desc *desc)
{
    size_t bytes = spk_dtype_bytes(desc->dtype);
    if ((uintptr_t)desc->values % bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "values = %p is not aligned to its elements of %zu bytes", desc->values, bytes);
    return SPK_OK;
}

/* A writer may drop the values of a pattern, so they must be what it will be read back as. */
static spk_status check_ones(const spk_matrix *made)
{
    int64_t count = spk_matrix_value_count(made);
    for (int64_t i = 0; i < count; i++)
        if (spk_value_at(made->values, made->dtype, i) != 1)
            return spk_fail(SPK_ERR_ARGUMENT, "pattern_only = 1, but values[%" PRId64 "] = %g is not 1", i,
                            spk_value_at(made->values, made->dtype, i));
    return SPK_OK;
}

static void copy_values(const spk_matrix_desc *desc, spk_matrix *made)
{
    int64_t count = spk_matrix_value_count(made);
    if (desc->values != NULL && count > 0)
        memcpy(made->values, desc->values, (size_t)count * spk_dtype_bytes(made->dtype));
    for (int64_t i = 0; desc->values == NULL && i < count; i++)
        spk_value_set(made->values, made->dtype, i, 1);
}

static spk_status fill_dense(const spk_matrix_desc *desc, spk_matrix *made)
{
    bool by_rows = desc->layout == SPK_ROW_MAJOR;
    int64_t length = by_rows ? desc->cols : desc->rows, lines = by_rows ? desc->rows : desc->cols;
    int64_t ld = desc->ld == 0 ? length : desc->ld;
    if (ld < length)
        return spk_fail(SPK_ERR_ARGUMENT, "ld = %" PRId64 " is less than the %s length of %" PRId64, desc->ld, by_rows ? "row" : "column",
                        length);
    if (!spk_product_fits(ld, lines, 1, (int64_t)sizeof(double)))
        return spk_fail(SPK_ERR_ARGUMENT, "ld = %" PRId64 " times %" PRId64 " %s overflows 64-bit sizes", desc->ld, lines,
                        by_rows ? "rows" : "columns");
    if (desc->values == NULL)
        copy_values(desc, made);
    else
        spk_copy_strided(made->values, length, 1, desc->values, ld, 1, lines, length, spk_dtype_bytes(made->dtype));
    return SPK_OK;
}

static spk_status fill_arrays(const spk_matrix_desc *desc, spk_matrix *made)
{
    SPK_TRY(check_values(desc));
    if (made->format == SPK_DENSE)
        return fill_dense(desc, made);
    int64_t grid_rows = spk_matrix_grid_rows(made), grid_cols = spk_matrix_grid_cols(made);
    if (made->format == SPK_COO)
        SPK_TRY(spk_check_indices(desc->row_indices, desc->index_type, desc->nnz, grid_rows, "row_indices", "rows", made->row_indices));
    else
        SPK_TRY(spk_check_offsets(desc->row_offsets, desc->index_type, grid_rows, desc->nnz, "nnz", made->row_offsets));
    SPK_TRY(spk_check_indices(desc->col_indices, desc->index_type, desc->nnz, grid_cols, "col_indices",
                              made->format == SPK_BSR ? "block columns" : "columns", made->col_indices));
    copy_values(desc, made);
    return SPK_OK;
}

spk_status spk_convert_create(const spk_mem *mem, const spk_matrix_desc *desc, spk_matrix **out)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_check_index_type(desc->index_type));
    if (desc->format != SPK_BSR && (desc->block_rows < 0 || desc->block_rows > 1 || desc->block_cols < 0 || desc->block_cols > 1))
        return spk_fail(SPK_ERR_ARGUMENT,
                        "block_rows = %" PRId64 ", block_cols = %" PRId64 ": only BSR has blocks, the others leave them at 0 or 1",
                        desc->block_rows, desc->block_cols);
    SPK_TRY(spk_matrix_make(mem, desc->format, desc->dtype, desc->rows, desc->cols, desc->block_rows, desc->block_cols, desc->layout,
                            desc->nnz, &made));
    made->pattern_only = desc->pattern_only != 0 || desc->values == NULL;
    spk_status status = SPK_OK;
    if (desc->format == SPK_DENSE && desc->nnz != 0 && desc->nnz != made->nnz)
        status = spk_fail(SPK_ERR_ARGUMENT, "nnz = %" PRId64 ": a dense matrix of %" PRId64 " x %" PRId64 " has %" PRId64 " (or leave 0)",
                          desc->nnz, desc->rows, desc->cols, made->nnz);
    else
        status = fill_arrays(desc, made);
    if (status == SPK_OK && made->pattern_only)
        status = check_ones(made);
    if (status != SPK_OK) {
        spk_matrix_release(&made);
        return status;
    }
    *out = made;
    return SPK_OK;
}
