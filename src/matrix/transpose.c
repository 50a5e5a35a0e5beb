/* The transposed index of a pattern: made once, at the first call, by whichever thread is first; later calls take no lock. */
#include <string.h>

#include "matrix/pattern_parts.h"

struct spk_pattern_lazy {
    spk_index transposed;
};

void spk_pattern_lazy_release(const spk_mem *mem, struct spk_pattern_lazy *lazy)
{
    if (lazy == NULL)
        return;
    spk_free(mem, lazy->transposed.offsets);
    spk_free(mem, lazy->transposed.columns);
    spk_free(mem, lazy->transposed.positions);
    spk_free(mem, lazy);
}

/* Counting sort by column; rows come out ascending within a column because they go in ascending. */
static void fill_transposed(const spk_index *from, spk_index *to)
{
    int64_t *next = to->offsets; /* where the next block of a column goes; at the end, where the next column begins */
    memset(next, 0, ((size_t)to->grid_rows + 1) * sizeof *next);
    int64_t nnzb = from->offsets[from->grid_rows], start = 0;
    for (int64_t p = 0; p < nnzb; p++)
        next[from->columns[p]]++;
    for (int64_t column = 0; column <= to->grid_rows; column++) {
        int64_t count = next[column];
        next[column] = start;
        start += count;
    }
    for (int64_t row = 0; row < from->grid_rows; row++)
        for (int64_t p = from->offsets[row]; p < from->offsets[row + 1]; p++) {
            int64_t at = next[from->columns[p]]++;
            to->columns[at] = (int32_t)row;
            to->positions[at] = p;
        }
    memmove(to->offsets + 1, to->offsets, (size_t)to->grid_rows * sizeof *to->offsets);
    to->offsets[0] = 0;
}

static spk_status make_transposed(const spk_pattern *pattern, struct spk_pattern_lazy **out)
{
    spk_status status = SPK_OK;
    struct spk_pattern_lazy *made = NULL;
    SPK_TRY(spk_calloc(&pattern->mem, 1, sizeof *made, &made));
    spk_index *index = &made->transposed;
    index->grid_rows = pattern->index.grid_cols;
    index->grid_cols = pattern->index.grid_rows;
    SPK_GOTO(spk_alloc(&pattern->mem, (size_t)index->grid_rows + 1, sizeof *index->offsets, &index->offsets));
    SPK_GOTO(spk_alloc(&pattern->mem, (size_t)pattern->nnzb, sizeof *index->columns, &index->columns));
    SPK_GOTO(spk_alloc(&pattern->mem, (size_t)pattern->nnzb, sizeof *index->positions, &index->positions));
    fill_transposed(&pattern->index, index);
    *out = made;
done:
    if (status != SPK_OK)
        spk_pattern_lazy_release(&pattern->mem, made);
    return status;
}

spk_status spk_pattern_transposed(const spk_pattern *pattern, const spk_index **index)
{
    /* The pattern is immutable to its users; this slot alone is written, once, atomically. */
    struct spk_pattern_lazy **slot = &((spk_pattern *)pattern)->lazy;
    struct spk_pattern_lazy *lazy = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (lazy == NULL) {
        struct spk_pattern_lazy *made = NULL;
        SPK_TRY(spk_pattern_fetch(pattern));
        SPK_TRY(make_transposed(pattern, &made));
        if (__atomic_compare_exchange_n(slot, &lazy, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            lazy = made;
        else
            spk_pattern_lazy_release(&pattern->mem, made); /* another thread was first; its index is in lazy */
    }
    *index = &lazy->transposed;
    return SPK_OK;
}
