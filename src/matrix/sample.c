/* A pattern of some output block rows only: the columns of those rows stay as they are, the other rows go. */
#include <inttypes.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/pattern_parts.h"

static spk_status check_rows(const int64_t *block_rows, int64_t count, int64_t limit)
{
    if (count < 0 || count > limit)
        return spk_fail(SPK_ERR_ARGUMENT, "count = %" PRId64 " is not in 0..%" PRId64 ", the block rows of op(A)", count, limit);
    for (int64_t i = 0; i < count; i++) {
        if (block_rows[i] < 0 || block_rows[i] >= limit)
            return spk_fail_index("block_rows", i, block_rows[i], "block rows of op(A)", limit);
        if (i > 0 && block_rows[i] <= block_rows[i - 1])
            return spk_fail(SPK_ERR_ARGUMENT, "block_rows[%" PRId64 "] = %" PRId64 " does not exceed block_rows[%" PRId64 "] = %" PRId64, i,
                            block_rows[i], i - 1, block_rows[i - 1]);
    }
    return SPK_OK;
}

/* Elements that the chosen blocks span: only the last block of the grid can be short, and it comes last. */
static int64_t span(const int64_t *chosen, int64_t count, int64_t grid, int64_t block, int64_t size)
{
    if (count == 0)
        return 0;
    return chosen[count - 1] == grid - 1 ? (count - 1) * block + size - (grid - 1) * block : count * block;
}

static spk_status make_shell(const spk_pattern *pattern, int64_t rows, int64_t cols, int64_t nnzb, spk_pattern **shell)
{
    spk_pattern *made = NULL;
    SPK_TRY(spk_pattern_shell(&pattern->mem, rows, cols, pattern->block_rows, pattern->block_cols, nnzb, &made));
    spk_status status = spk_alloc(&pattern->mem, (size_t)nnzb, sizeof *made->index.columns, &made->index.columns);
    if (status != SPK_OK) {
        spk_pattern_release(&made);
        return status;
    }
    *shell = made;
    return SPK_OK;
}

static spk_status sample_rows(const spk_pattern *pattern, const int64_t *chosen, int64_t count, spk_pattern **shell)
{
    const spk_index *from = &pattern->index;
    int64_t nnzb = 0;
    for (int64_t i = 0; i < count; i++)
        nnzb += from->offsets[chosen[i] + 1] - from->offsets[chosen[i]];
    spk_pattern *made = NULL;
    SPK_TRY(make_shell(pattern, span(chosen, count, from->grid_rows, pattern->block_rows, pattern->rows), pattern->cols, nnzb, &made));
    int64_t *offsets = made->index.offsets;
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = from->offsets[chosen[i] + 1] - from->offsets[chosen[i]];
        if (length > 0)
            memcpy(made->index.columns + offsets[i], from->columns + from->offsets[chosen[i]], (size_t)length * sizeof *from->columns);
        offsets[i + 1] = offsets[i] + length;
    }
    *shell = made;
    return SPK_OK;
}

/* Of op T: the chosen output rows are stored columns. renamed[column] is its new number, or -1. */
static void keep_columns(const spk_index *from, const int32_t *renamed, spk_index *to)
{
    int64_t kept = 0;
    to->offsets[0] = 0;
    for (int64_t row = 0; row < from->grid_rows; row++) {
        for (int64_t p = from->offsets[row]; p < from->offsets[row + 1]; p++)
            if (renamed[from->columns[p]] >= 0)
                to->columns[kept++] = renamed[from->columns[p]];
        to->offsets[row + 1] = kept;
    }
}

static spk_status sample_columns(const spk_pattern *pattern, const int64_t *chosen, int64_t count, spk_pattern **shell)
{
    const spk_index *from = &pattern->index;
    int32_t *renamed = NULL;
    SPK_TRY(spk_alloc(&pattern->mem, (size_t)from->grid_cols, sizeof *renamed, &renamed));
    memset(renamed, 0xff, (size_t)from->grid_cols * sizeof *renamed);
    for (int64_t i = 0; i < count; i++)
        renamed[chosen[i]] = (int32_t)i;
    int64_t nnzb = 0;
    for (int64_t p = 0; p < pattern->nnzb; p++)
        nnzb += renamed[from->columns[p]] >= 0;
    spk_pattern *made = NULL;
    spk_status status =
        make_shell(pattern, pattern->rows, span(chosen, count, from->grid_cols, pattern->block_cols, pattern->cols), nnzb, &made);
    if (status == SPK_OK)
        keep_columns(from, renamed, &made->index);
    spk_free(&pattern->mem, renamed);
    if (status == SPK_OK)
        *shell = made;
    return status;
}

spk_status spk_pattern_sample(const spk_pattern *pattern, spk_trans trans, const int64_t *block_rows, int64_t count, spk_pattern **sample)
{
    spk_pattern *made = NULL;
    SPK_TRY(check_rows(block_rows, count, trans == SPK_TRANS ? pattern->index.grid_cols : pattern->index.grid_rows));
    if (trans == SPK_TRANS)
        SPK_TRY(sample_columns(pattern, block_rows, count, &made));
    else
        SPK_TRY(sample_rows(pattern, block_rows, count, &made));
    made->device_only = pattern->device_only;
    spk_status status = spk_pattern_measure(made);
    if (status != SPK_OK) {
        spk_pattern_release(&made);
        return status;
    }
    *sample = made;
    return SPK_OK;
}
