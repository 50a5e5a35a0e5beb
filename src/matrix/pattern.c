/* The life of a pattern: made valid or not at all, shared by counting, seen through views. */
#include "matrix/pattern.h"

#include "matrix/check.h"
#include "matrix/pattern_parts.h"

static uint64_t last_id; /* atomic */

spk_status spk_pattern_shell(const spk_mem *mem, int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols, int64_t nnzb,
                             spk_pattern **pattern)
{
    spk_pattern *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    made->references = 1;
    made->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    made->rows = rows;
    made->cols = cols;
    made->block_rows = (int)block_rows;
    made->block_cols = (int)block_cols;
    made->nnzb = nnzb;
    made->index.grid_rows = spk_ceil_div(rows, block_rows);
    made->index.grid_cols = spk_ceil_div(cols, block_cols);
    if (made->index.grid_rows > 0 && made->index.grid_cols > 0)
        made->density = (double)nnzb / ((double)made->index.grid_rows * (double)made->index.grid_cols);
    spk_status status = spk_alloc(mem, (size_t)made->index.grid_rows + 1, sizeof *made->index.offsets, &made->index.offsets);
    if (status != SPK_OK) {
        spk_pattern_release(&made);
        return status;
    }
    *pattern = made;
    return SPK_OK;
}

spk_status spk_pattern_make(const spk_mem *mem, const spk_bsr_indices *indices, spk_pattern **pattern)
{
    spk_pattern *made = NULL;
    SPK_TRY(spk_pattern_check_shape(indices));
    SPK_TRY(spk_pattern_shell(mem, indices->rows, indices->cols, indices->block_rows, indices->block_cols, indices->nnzb, &made));
    spk_status status = spk_pattern_copy_indices(indices, made);
    if (status == SPK_OK)
        status = spk_pattern_measure(made);
    if (status != SPK_OK) {
        spk_pattern_release(&made);
        return status;
    }
    *pattern = made;
    return SPK_OK;
}

spk_pattern *spk_pattern_share(spk_pattern *pattern)
{
    __atomic_add_fetch(&pattern->references, 1, __ATOMIC_RELAXED);
    return pattern;
}

void spk_pattern_release(spk_pattern **pattern)
{
    spk_pattern *gone = *pattern;
    *pattern = NULL;
    /* The last holder must see what every other holder did. */
    if (gone == NULL || __atomic_sub_fetch(&gone->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    spk_mem mem = gone->mem;
    spk_pattern_remote_release(gone);
    spk_pattern_lazy_release(&mem, gone->lazy);
    spk_free(&mem, gone->index.offsets);
    spk_free(&mem, gone->index.columns);
    spk_free(&mem, gone);
}

spk_status spk_pattern_view(const spk_pattern *pattern, spk_trans trans, spk_layout block_layout, spk_bsr_view *view)
{
    if (trans != SPK_NO_TRANS && trans != SPK_TRANS)
        return spk_fail(SPK_ERR_ARGUMENT, "trans_a = %d is neither SPK_NO_TRANS (%d) nor SPK_TRANS (%d)", (int)trans, SPK_NO_TRANS,
                        SPK_TRANS);
    if (block_layout != SPK_ROW_MAJOR && block_layout != SPK_COL_MAJOR)
        return spk_fail(SPK_ERR_ARGUMENT, "block_layout = %d is neither SPK_ROW_MAJOR (%d) nor SPK_COL_MAJOR (%d)", (int)block_layout,
                        SPK_ROW_MAJOR, SPK_COL_MAJOR);
    const spk_index *index = &pattern->index;
    bool turned = trans == SPK_TRANS;
    if (turned)
        SPK_TRY(spk_pattern_transposed(pattern, &index));
    int64_t down = block_layout == SPK_ROW_MAJOR ? pattern->block_cols : 1; /* from a stored block's row to the next */
    int64_t across = block_layout == SPK_ROW_MAJOR ? 1 : pattern->block_rows;
    *view = (spk_bsr_view){
        .rows = turned ? pattern->cols : pattern->rows,
        .cols = turned ? pattern->rows : pattern->cols,
        .block_rows = turned ? pattern->block_cols : pattern->block_rows,
        .block_cols = turned ? pattern->block_rows : pattern->block_cols,
        .grid_rows = index->grid_rows,
        .grid_cols = index->grid_cols,
        .nnzb = pattern->nnzb,
        .offsets = index->offsets,
        .columns = index->columns,
        .positions = index->positions,
        .row_stride = turned ? across : down,
        .col_stride = turned ? down : across,
        .block_stride = (int64_t)pattern->block_rows * pattern->block_cols,
    };
    return SPK_OK;
}
