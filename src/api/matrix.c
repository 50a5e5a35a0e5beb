/* Matrices in host memory, as the public headers have them: arguments checked here, the work is in src/matrix. */
#include <stdio.h>

#include "api/context.h"
#include "base/callback.h"
#include "matrix/io/io.h"

spk_status spk_matrix_create(spk_context *context, const spk_matrix_desc *theirs, spk_matrix **matrix)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(theirs, "desc"));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    spk_matrix_desc desc;
    SPK_TRY(spk_struct_read(&desc, sizeof desc, theirs, "spk_matrix_desc"));
    if (desc.reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "desc.reserved = %d: it must be 0", desc.reserved);
    return spk_convert_create(&context->mem, &desc, matrix);
}

void spk_matrix_destroy(spk_matrix **matrix)
{
    if (matrix != NULL)
        spk_matrix_release(matrix);
}

spk_status spk_matrix_view(const spk_matrix *matrix, spk_matrix_desc *desc)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    SPK_TRY(spk_check_pointer(desc, "desc"));
    bool dense = matrix->format == SPK_DENSE;
    spk_matrix_desc ours = {.format = matrix->format,
                            .dtype = matrix->dtype,
                            .rows = matrix->rows,
                            .cols = matrix->cols,
                            .block_rows = matrix->block_rows,
                            .block_cols = matrix->block_cols,
                            .layout = matrix->layout,
                            .ld = dense ? (matrix->layout == SPK_ROW_MAJOR ? matrix->cols : matrix->rows) : 0,
                            .nnz = matrix->nnz,
                            .index_type = SPK_INDEX_I64,
                            .row_offsets = matrix->row_offsets,
                            .row_indices = matrix->row_indices,
                            .col_indices = matrix->col_indices,
                            .values = matrix->values,
                            .pattern_only = matrix->pattern_only};
    return spk_struct_write(desc, &ours, sizeof ours, "spk_matrix_desc");
}

static spk_status enter_conversion(const spk_context *context, const spk_matrix *matrix, spk_matrix **out)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    return spk_check_pointer(out, "out");
}

static spk_status check_block(int64_t block_rows, int64_t block_cols, spk_layout layout)
{
    if (block_rows < 1 || block_rows > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_rows = %lld: the limits are 1 and 256", (long long)block_rows);
    if (block_cols < 1 || block_cols > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_cols = %lld: the limits are 1 and 256", (long long)block_cols);
    if (layout != SPK_ROW_MAJOR && layout != SPK_COL_MAJOR)
        return spk_fail(SPK_ERR_ARGUMENT, "layout = %d: the values are 0 and 1", (int)layout);
    return SPK_OK;
}

static spk_status check_value_dtype(spk_dtype dtype)
{
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: matrices hold %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    return SPK_OK;
}

/* What is known of the values' origin goes along. */
static void mark(const spk_matrix *from, spk_matrix *made)
{
    made->unvalued = from->pattern_only != 0 || from->unvalued != 0;
}

spk_status spk_matrix_to_bsr(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols,
                             spk_layout block_layout, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(check_block(block_rows, block_cols, block_layout));
    SPK_TRY(spk_convert_to_bsr(&context->mem, matrix, block_rows, block_cols, block_layout, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_to_csr(spk_context *context, const spk_matrix *matrix, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(spk_convert_to_csr(&context->mem, matrix, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_to_coo(spk_context *context, const spk_matrix *matrix, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(spk_convert_to_coo(&context->mem, matrix, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_to_dense(spk_context *context, const spk_matrix *matrix, spk_layout layout, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(check_block(1, 1, layout));
    SPK_TRY(spk_convert_to_dense(&context->mem, matrix, layout, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_cast(spk_context *context, const spk_matrix *matrix, spk_dtype dtype, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(check_value_dtype(dtype));
    SPK_TRY(spk_convert_cast(&context->mem, matrix, dtype, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_transpose(spk_context *context, const spk_matrix *matrix, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(spk_convert_transpose(&context->mem, matrix, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_canonicalize(spk_context *context, const spk_matrix *matrix, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(spk_convert_canonicalize(&context->mem, matrix, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_prune(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols, double density,
                            spk_norm norm, spk_matrix **out)
{
    SPK_TRY(enter_conversion(context, matrix, out));
    SPK_TRY(check_block(block_rows, block_cols, SPK_ROW_MAJOR));
    if (!(density >= 0 && density <= 1))
        return spk_fail(SPK_ERR_ARGUMENT, "density = %g: the limits are 0 and 1", density);
    if (norm != SPK_NORM_L1 && norm != SPK_NORM_L2 && norm != SPK_NORM_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "norm = %d: the values are 1 (L1), 2 (L2) and 3 (max)", (int)norm);
    SPK_TRY(spk_convert_prune(&context->mem, matrix, block_rows, block_cols, density, norm, out));
    mark(matrix, *out);
    return SPK_OK;
}

spk_status spk_matrix_advise(spk_context *context, const spk_matrix *matrix, spk_block_advice *advice, int *count)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    SPK_TRY(spk_check_pointer(advice, "advice"));
    SPK_TRY(spk_check_pointer(count, "count"));
    if (*count < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "*count = %d: there must be room for one entry", *count);
    return spk_advise_blocks(&context->mem, matrix, advice, count);
}

spk_status spk_matrix_read(spk_context *context, const char *path, const spk_read_options *theirs, spk_matrix **matrix)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(path, "path"));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    spk_read_options options = {.struct_size = sizeof options};
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&options, sizeof options, theirs, "spk_read_options"));
    if (options.dtype != SPK_DTYPE_DEFAULT)
        SPK_TRY(check_value_dtype(options.dtype));
    if (options.max_bytes < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "max_bytes = %lld: it cannot be negative", (long long)options.max_bytes);
    if (options.max_bytes == 0)
        options.max_bytes = context->device->memory_bytes > 0 ? context->device->memory_bytes / 4 * 3 : INT64_MAX;
    char remark[SPK_REMARK_ROOM] = "", text[SPK_REMARK_ROOM + 256];
    SPK_TRY(spk_read_matrix_remarking(&context->mem, path, &options, context->progress, context->progress_user, remark, matrix));
    if (remark[0] != '\0') {
        snprintf(text, sizeof text, "%.200s: %s", path, remark);
        spk_tell_log(context->log, context->log_user, 1, text);
    }
    return SPK_OK;
}

spk_status spk_matrix_write(spk_context *context, const spk_matrix *matrix, const char *path, const spk_write_options *theirs)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    SPK_TRY(spk_check_pointer(path, "path"));
    spk_write_options options = {.struct_size = sizeof options};
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&options, sizeof options, theirs, "spk_write_options"));
    return spk_write_matrix_until(&context->mem, matrix, path, &options, &context->interrupted);
}

spk_status spk_matrix_generate(spk_context *context, const spk_generate *theirs, spk_matrix **matrix, int64_t *shortfall)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(theirs, "options"));
    SPK_TRY(spk_check_pointer(matrix, "matrix"));
    spk_generate options;
    int64_t missing = 0;
    SPK_TRY(spk_struct_read(&options, sizeof options, theirs, "spk_generate"));
    if (options.reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "options.reserved = %d: it must be 0", options.reserved);
    SPK_TRY(spk_generate_matrix(&context->mem, &options, matrix, &missing));
    if (shortfall != NULL)
        *shortfall = missing;
    return SPK_OK;
}

spk_status spk_fill_random(spk_context *context, spk_dtype dtype, int64_t count, uint64_t seed, void *out)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(check_value_dtype(dtype));
    if (count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "count = %lld: it cannot be negative", (long long)count);
    if (count > (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(dtype))
        return spk_fail(SPK_ERR_ARGUMENT, "count = %lld: elements of %zu bytes exceed 2^62 bytes", (long long)count,
                        spk_dtype_bytes(dtype));
    if (count == 0)
        return SPK_OK;
    SPK_TRY(spk_check_pointer(out, "out"));
    if ((uintptr_t)out % spk_dtype_bytes(dtype) != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "out = %p is not aligned to its elements of %zu bytes", out, spk_dtype_bytes(dtype));
    return spk_generate_values(dtype, count, seed, out);
}
