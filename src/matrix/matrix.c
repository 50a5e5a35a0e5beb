/* The life of a matrix: a shell whose sizes cannot overflow, and what is asked of it. */
#include "matrix/matrix.h"

#include <inttypes.h>

#include "matrix/check.h"
#include "matrix/entries.h"

static spk_status check_kind(spk_format format, spk_dtype dtype, spk_layout layout)
{
    if (format < SPK_DENSE || format > SPK_BSR)
        return spk_fail(SPK_ERR_ARGUMENT, "format = %d is none of SPK_DENSE (%d) .. SPK_BSR (%d)", (int)format, SPK_DENSE, SPK_BSR);
    char types[SPK_TYPE_LIST_TEXT];
    if (spk_dtype_name(dtype) == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "dtype = %d is no type: matrices hold %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d (%s): matrices in host memory hold %s", (int)dtype, spk_dtype_name(dtype),
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    if (layout != SPK_ROW_MAJOR && layout != SPK_COL_MAJOR)
        return spk_fail(SPK_ERR_ARGUMENT, "layout = %d is neither SPK_ROW_MAJOR (%d) nor SPK_COL_MAJOR (%d)", (int)layout, SPK_ROW_MAJOR,
                        SPK_COL_MAJOR);
    return SPK_OK;
}

static spk_status check_room(const spk_matrix *shell)
{
    int64_t bytes = (int64_t)spk_dtype_bytes(shell->dtype);
    if (shell->format == SPK_DENSE && !spk_product_fits(shell->rows, shell->cols, 1, bytes))
        return spk_fail(SPK_ERR_ARGUMENT,
                        "a dense matrix of %" PRId64 " x %" PRId64 " elements of %" PRId64 " bytes overflows 64-bit sizes", shell->rows,
                        shell->cols, bytes);
    if (shell->nnz < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "nnz = %" PRId64 " is negative", shell->nnz);
    if (!spk_product_fits(shell->nnz, shell->block_rows, shell->block_cols, (int64_t)sizeof(double)))
        return spk_fail(SPK_ERR_ARGUMENT, "nnz = %" PRId64 " blocks of %" PRId64 " x %" PRId64 " overflow 64-bit sizes", shell->nnz,
                        shell->block_rows, shell->block_cols);
    return SPK_OK;
}

static spk_status allocate_arrays(spk_matrix *shell)
{
    const spk_mem *mem = &shell->mem;
    size_t index_bytes = shell->format == SPK_DENSE ? 0 : (size_t)shell->nnz * sizeof *shell->col_indices;
    SPK_TRY(spk_mem_expect(mem, index_bytes + (size_t)spk_matrix_value_count(shell) * spk_dtype_bytes(shell->dtype)));
    if (shell->format == SPK_CSR || shell->format == SPK_BSR)
        SPK_TRY(spk_alloc(mem, (size_t)spk_matrix_grid_rows(shell) + 1, sizeof *shell->row_offsets, &shell->row_offsets));
    if (shell->format == SPK_COO)
        SPK_TRY(spk_alloc(mem, (size_t)shell->nnz, sizeof *shell->row_indices, &shell->row_indices));
    if (shell->format != SPK_DENSE)
        SPK_TRY(spk_alloc(mem, (size_t)shell->nnz, sizeof *shell->col_indices, &shell->col_indices));
    return spk_alloc(mem, (size_t)spk_matrix_value_count(shell), spk_dtype_bytes(shell->dtype), &shell->values);
}

spk_status spk_matrix_make(const spk_mem *mem, spk_format format, spk_dtype dtype, int64_t rows, int64_t cols, int64_t block_rows,
                           int64_t block_cols, spk_layout layout, int64_t nnz, spk_matrix **matrix)
{
    SPK_TRY(check_kind(format, dtype, layout));
    SPK_TRY(spk_check_size(rows, cols));
    if (format == SPK_BSR)
        SPK_TRY(spk_check_block(block_rows, block_cols));
    spk_matrix sizes = {.mem = *mem,
                        .format = format,
                        .dtype = dtype,
                        .rows = rows,
                        .cols = cols,
                        .block_rows = 1,
                        .block_cols = 1,
                        .layout = layout,
                        .nnz = nnz};
    if (format == SPK_BSR) {
        sizes.block_rows = block_rows;
        sizes.block_cols = block_cols;
    }
    if (format == SPK_DENSE)
        sizes.nnz = 0;
    SPK_TRY(check_room(&sizes));
    if (format == SPK_DENSE)
        sizes.nnz = rows * cols;
    spk_matrix *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    *made = sizes;
    spk_status status = allocate_arrays(made);
    if (status != SPK_OK) {
        spk_matrix_release(&made);
        return status;
    }
    *matrix = made;
    return SPK_OK;
}

void spk_matrix_release(spk_matrix **matrix)
{
    spk_matrix *gone = *matrix;
    *matrix = NULL;
    if (gone == NULL)
        return;
    spk_mem mem = gone->mem;
    spk_free(&mem, gone->row_offsets);
    spk_free(&mem, gone->row_indices);
    spk_free(&mem, gone->col_indices);
    spk_free(&mem, gone->values);
    spk_free(&mem, gone);
}

int64_t spk_matrix_grid_rows(const spk_matrix *matrix)
{
    return spk_ceil_div(matrix->rows, matrix->block_rows);
}

int64_t spk_matrix_grid_cols(const spk_matrix *matrix)
{
    return spk_ceil_div(matrix->cols, matrix->block_cols);
}

int64_t spk_matrix_value_count(const spk_matrix *matrix)
{
    return matrix->nnz * matrix->block_rows * matrix->block_cols;
}
