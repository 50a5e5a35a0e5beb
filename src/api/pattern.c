/* Patterns, as the public headers have them. */
#include <math.h>

#include "api/context.h"
#include "matrix/check.h"
#include "matrix/matrix.h"
#include "matrix/pattern_parts.h"

/* Indices in device memory, copied to the host and made there: they are checked before anything is made of them. */
static spk_status make_from_device(spk_context *context, const spk_bsr_indices *theirs, spk_pattern **pattern)
{
    spk_device *device = context->device;
    spk_bsr_indices indices = *theirs;
    indices.index_memory = SPK_HOST;
    SPK_TRY(spk_pattern_check_shape(&indices));
    SPK_TRY(spk_check_pointer(theirs->row_offsets, "row_offsets"));
    if (theirs->nnzb > 0)
        SPK_TRY(spk_check_pointer(theirs->col_indices, "col_indices"));
    size_t index_bytes = theirs->index_type == SPK_INDEX_I64 ? sizeof(int64_t) : sizeof(int32_t);
    size_t offsets_bytes = ((size_t)spk_ceil_div(theirs->rows, theirs->block_rows) + 1) * index_bytes,
           columns_bytes = (size_t)theirs->nnzb * index_bytes;
    char *offsets = NULL, *columns = NULL;
    spk_status status;
    SPK_GOTO(spk_alloc(&context->mem, offsets_bytes, 1, &offsets));
    SPK_GOTO(spk_alloc(&context->mem, columns_bytes, 1, &columns));
    SPK_GOTO(device->backend->copy_out(device, offsets, theirs->row_offsets, offsets_bytes));
    SPK_GOTO(device->backend->copy_out(device, columns, theirs->col_indices, columns_bytes));
    indices.row_offsets = offsets;
    indices.col_indices = columns;
    SPK_GOTO(spk_pattern_make(&context->mem, &indices, pattern));
done:
    spk_free(&context->mem, offsets);
    spk_free(&context->mem, columns);
    return status;
}

/* Which hints make sense, and where deferring does. */
static spk_status check_deferred(const spk_context *context, const spk_bsr_indices *indices)
{
    const spk_deferred_indices *deferred = indices->deferred;
    const int64_t across = spk_ceil_div(indices->cols, indices->block_cols);
    if (indices->index_memory != SPK_DEVICE)
        return spk_fail(SPK_ERR_ARGUMENT, "deferred = %p goes with index_memory = SPK_DEVICE (%d)", (const void *)deferred, SPK_DEVICE);
    if (context->device->backend->defer == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "deferred = %p: device = \"%s\" has no streams", (const void *)deferred,
                        context->device->backend->kind);
    if (deferred->longest_row < 0 || deferred->longest_row > across)
        return spk_fail(SPK_ERR_ARGUMENT, "deferred.longest_row = %lld: the limits are 0 and %lld, the block columns",
                        (long long)deferred->longest_row, (long long)across);
    if (!(deferred->row_spread >= 0 && isfinite(deferred->row_spread)))
        return spk_fail(SPK_ERR_ARGUMENT, "deferred.row_spread = %g is negative or not finite", deferred->row_spread);
    if (!(deferred->row_overlap >= 0 && deferred->row_overlap <= 1))
        return spk_fail(SPK_ERR_ARGUMENT, "deferred.row_overlap = %g: the limits are 0 and 1", deferred->row_overlap);
    return SPK_OK;
}

static spk_status make_deferred(spk_context *context, const spk_bsr_indices *indices, spk_pattern **pattern)
{
    spk_pattern_remote remote = {.state = NULL};
    SPK_TRY(check_deferred(context, indices));
    SPK_TRY(context->device->backend->defer(context->device, indices, &remote));
    const spk_status status = spk_pattern_make_remote(&context->mem, indices, &remote, pattern);
    if (status != SPK_OK)
        remote.release(remote.state);
    return status;
}

spk_status spk_pattern_create(spk_context *context, const spk_bsr_indices *theirs, spk_pattern **pattern)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(theirs, "indices"));
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    spk_bsr_indices indices;
    SPK_TRY(spk_struct_read(&indices, sizeof indices, theirs, "spk_bsr_indices"));
    spk_deferred_indices deferred;
    spk_pattern *made = NULL;
    if (indices.deferred != NULL) {
        SPK_TRY(spk_struct_read(&deferred, sizeof deferred, indices.deferred, "spk_deferred_indices"));
        indices.deferred = &deferred;
        spk_bsr_indices shape = indices;
        shape.index_memory = SPK_HOST;
        SPK_TRY(spk_pattern_check_shape(&shape));
        SPK_TRY(make_deferred(context, &indices, &made));
    } else if (indices.index_memory == SPK_DEVICE && !context->device->backend->host_memory)
        SPK_TRY(make_from_device(context, &indices, &made));
    else
        SPK_TRY(spk_pattern_make(&context->mem, &indices, &made));
    made->owner = context;
    *pattern = made;
    return SPK_OK;
}

spk_status spk_pattern_from_matrix(spk_context *context, const spk_matrix *bsr, spk_pattern **pattern)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(bsr, "bsr"));
    if (bsr->format != SPK_BSR)
        return spk_fail(SPK_ERR_ARGUMENT, "bsr is a matrix in another format: convert it with spk_matrix_to_bsr");
    SPK_TRY(spk_pattern_create(context,
                               &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = bsr->rows, .cols = bsr->cols,
                                                  .block_rows = bsr->block_rows, .block_cols = bsr->block_cols, .nnzb = bsr->nnz,
                                                  .row_offsets = bsr->row_offsets, .col_indices = bsr->col_indices,
                                                  .index_type = SPK_INDEX_I64},
                               pattern));
    (*pattern)->dtype = bsr->pattern_only != 0 || bsr->unvalued != 0 ? SPK_DTYPE_DEFAULT : bsr->dtype;
    return SPK_OK;
}

void spk_pattern_destroy(spk_pattern **pattern)
{
    if (pattern == NULL || *pattern == NULL)
        return;
    spk_context *owner = (*pattern)->owner;
    if (owner != NULL) {
        spk_recent_drop_pattern(owner->recent, *pattern);
        spk_plan_cache_drop_pattern(owner->plans, *pattern);
    }
    spk_pattern_release(pattern);
}

spk_status spk_pattern_get_info(const spk_pattern *pattern, spk_pattern_info *info)
{
    const spk_context *owner = pattern != NULL ? pattern->owner : NULL;
    spk_error_enter(owner != NULL ? owner->id : 0);
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    SPK_TRY(spk_check_pointer(info, "info"));
    SPK_TRY(spk_check_caller());
    SPK_TRY(spk_pattern_fetch(pattern));
    const spk_features features = spk_pattern_measured(pattern);
    spk_pattern_info ours = {.rows = pattern->rows,
                             .cols = pattern->cols,
                             .block_rows = pattern->block_rows,
                             .block_cols = pattern->block_cols,
                             .grid_rows = pattern->index.grid_rows,
                             .grid_cols = pattern->index.grid_cols,
                             .nnzb = pattern->nnzb,
                             .density = pattern->density,
                             .empty_rows = features.empty_rows,
                             .longest_row = features.longest_row,
                             .row_spread = features.row_spread,
                             .row_overlap = features.row_overlap,
                             .bandwidth = features.bandwidth};
    return spk_struct_write(info, &ours, sizeof ours, "spk_pattern_info");
}
