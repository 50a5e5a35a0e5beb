/* Patterns whose indices a device has: on the host they are there once somebody asked for them. */
#include <pthread.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/pattern_parts.h"

struct spk_pattern_fetched {
    pthread_mutex_t lock;
    spk_features measured;
    bool done; /* atomic: index.offsets and index.columns are there */
};

/* What the tuning key and the cost models go by. The longest row is at least the mean. */
static spk_features features_of(const spk_bsr_indices *indices, int64_t grid_rows)
{
    const int64_t mean = grid_rows > 0 ? spk_ceil_div(indices->nnzb, grid_rows) : 0;
    return (spk_features){.row_spread = indices->deferred->row_spread,
                          .row_overlap = indices->deferred->row_overlap,
                          .col_spread = indices->deferred->row_spread,
                          .longest_row = indices->deferred->longest_row > mean ? indices->deferred->longest_row : mean};
}

spk_status spk_pattern_make_remote(const spk_mem *mem, const spk_bsr_indices *indices, const spk_pattern_remote *remote,
                                   spk_pattern **pattern)
{
    spk_pattern *made = NULL;
    SPK_TRY(spk_pattern_shell(mem, indices->rows, indices->cols, indices->block_rows, indices->block_cols, indices->nnzb, &made));
    spk_status status = spk_calloc(mem, 1, sizeof *made->fetched, &made->fetched);
    if (status != SPK_OK) {
        spk_pattern_release(&made);
        return status;
    }
    spk_free(mem, made->index.offsets);
    made->index.offsets = NULL;
    pthread_mutex_init(&made->fetched->lock, NULL);
    made->features = features_of(indices, made->index.grid_rows);
    made->device_only = true;
    made->remote = *remote;
    *pattern = made;
    return SPK_OK;
}

void spk_pattern_remote_release(spk_pattern *pattern)
{
    if (pattern->fetched != NULL)
        pthread_mutex_destroy(&pattern->fetched->lock);
    spk_free(&pattern->mem, pattern->fetched);
    if (pattern->remote.state != NULL)
        pattern->remote.release(pattern->remote.state);
}

spk_status spk_pattern_check(const spk_pattern *pattern)
{
    return pattern->remote.state != NULL ? pattern->remote.check(pattern->remote.state) : SPK_OK;
}

/* Under the lock. The host's own check goes over the copy: what lies in device memory may have been written over. */
static spk_status fetch(spk_pattern *pattern)
{
    const spk_mem *mem = &pattern->mem;
    int32_t *offsets = NULL, *columns = NULL;
    spk_pattern *copy = NULL;
    spk_status status;
    SPK_GOTO(spk_alloc(mem, (size_t)pattern->index.grid_rows + 1, sizeof *offsets, &offsets));
    SPK_GOTO(spk_alloc(mem, (size_t)pattern->nnzb, sizeof *columns, &columns));
    SPK_GOTO(pattern->remote.fetch(pattern->remote.state, offsets, columns));
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices),        .rows = pattern->rows, .cols = pattern->cols,  .block_rows = pattern->block_rows,
        .block_cols = pattern->block_cols, .nnzb = pattern->nnzb, .row_offsets = offsets, .col_indices = columns};
    SPK_GOTO(spk_pattern_make(mem, &indices, &copy));
    pattern->index.offsets = copy->index.offsets;
    pattern->index.columns = copy->index.columns;
    copy->index.offsets = NULL;
    copy->index.columns = NULL;
    pattern->fetched->measured = copy->features;
    __atomic_store_n(&pattern->features.longest_row, copy->features.longest_row, __ATOMIC_RELAXED);
    __atomic_store_n(&pattern->fetched->done, true, __ATOMIC_RELEASE);
done:
    spk_pattern_release(&copy);
    spk_free(mem, columns);
    spk_free(mem, offsets);
    return status;
}

spk_status spk_pattern_fetch(const spk_pattern *pattern)
{
    /* The pattern is immutable to its users: its indices appear once, under the lock. */
    struct spk_pattern_fetched *fetched = pattern->fetched;
    if (fetched == NULL || __atomic_load_n(&fetched->done, __ATOMIC_ACQUIRE))
        return SPK_OK;
    pthread_mutex_lock(&fetched->lock);
    const spk_status status = fetched->done ? SPK_OK : fetch((spk_pattern *)pattern);
    pthread_mutex_unlock(&fetched->lock);
    return status;
}

static bool is_fetched(const spk_pattern *pattern)
{
    return pattern->fetched != NULL && __atomic_load_n(&pattern->fetched->done, __ATOMIC_ACQUIRE);
}

spk_features spk_pattern_measured(const spk_pattern *pattern)
{
    return is_fetched(pattern) ? pattern->fetched->measured : pattern->features;
}

bool spk_pattern_is_remote(const spk_pattern *pattern, spk_pattern_facts *facts)
{
    if (pattern->fetched == NULL || is_fetched(pattern))
        return false;
    *facts = (spk_pattern_facts){.rows = pattern->rows,
                                 .cols = pattern->cols,
                                 .block_rows = pattern->block_rows,
                                 .block_cols = pattern->block_cols,
                                 .nnzb = pattern->nnzb,
                                 .features = pattern->features};
    facts->features.longest_row = __atomic_load_n(&pattern->features.longest_row, __ATOMIC_RELAXED); /* fetching sets it */
    return true;
}
