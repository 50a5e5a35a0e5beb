/* Patterns, as the public header has them. */
#include "api/context.h"
#include "matrix/matrix.h"

spk_status spk_pattern_create(spk_context *context, const spk_bsr_indices *theirs, spk_pattern **pattern)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(theirs, "indices"));
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    spk_bsr_indices indices;
    SPK_TRY(spk_struct_read(&indices, sizeof indices, theirs, "spk_bsr_indices"));
    spk_pattern *made = NULL;
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
    return spk_pattern_create(context,
                              &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = bsr->rows, .cols = bsr->cols, .block_rows = bsr->block_rows,
                                                 .block_cols = bsr->block_cols, .nnzb = bsr->nnz, .row_offsets = bsr->row_offsets,
                                                 .col_indices = bsr->col_indices, .index_type = SPK_I64},
                              pattern);
}

void spk_pattern_destroy(spk_pattern **pattern)
{
    if (pattern == NULL || *pattern == NULL)
        return;
    spk_context *owner = (*pattern)->owner;
    if (owner != NULL)
        spk_plan_cache_drop_pattern(owner->plans, (*pattern)->id);
    spk_pattern_release(pattern);
}

spk_status spk_pattern_get_info(const spk_pattern *pattern, spk_pattern_info *info)
{
    const spk_context *owner = pattern != NULL ? pattern->owner : NULL;
    spk_error_enter(owner != NULL ? owner->id : 0);
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    SPK_TRY(spk_check_pointer(info, "info"));
    spk_pattern_info ours = {.rows = pattern->rows,
                             .cols = pattern->cols,
                             .block_rows = pattern->block_rows,
                             .block_cols = pattern->block_cols,
                             .grid_rows = pattern->index.grid_rows,
                             .grid_cols = pattern->index.grid_cols,
                             .nnzb = pattern->nnzb,
                             .density = pattern->density,
                             .empty_rows = pattern->features.empty_rows,
                             .longest_row = pattern->features.longest_row,
                             .row_spread = pattern->features.row_spread,
                             .row_overlap = pattern->features.row_overlap,
                             .bandwidth = pattern->features.bandwidth};
    return spk_struct_write(info, &ours, sizeof ours, "spk_pattern_info");
}
