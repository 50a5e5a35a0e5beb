/* One copy of a pattern's indices for all of its plans, released when the last one is. */
#include "backend/cuda/host/indices/index.h"

#include <limits.h>
#include <string.h>

#include "backend/cuda/remote/deferred.h"

enum { PIECE_ALIGNMENT = 256 };

static size_t rounded(size_t bytes)
{
    return (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

static spk_status check_limits(const spk_bsr_view *view)
{
    if (view->nnzb > INT_MAX || view->grid_rows >= INT_MAX || view->grid_cols > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED,
                        "%lld blocks in %lld block rows and %lld block columns: CUDA kernels take fewer than 2^31 of each",
                        (long long)view->nnzb, (long long)view->grid_rows, (long long)view->grid_cols);
    return SPK_OK;
}

static void narrow(int *to, const int64_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (int)from[i];
}

spk_cuda_arguments spk_cuda_arguments_of(const spk_problem *p, const spk_bsr_view *view)
{
    return (spk_cuda_arguments){.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .block_rows = view->block_rows,
                                .block_cols = view->block_cols,
                                .grid_rows = (int)view->grid_rows,
                                .grid_cols = (int)view->grid_cols,
                                .nnzb = view->nnzb,
                                .row_stride = view->row_stride,
                                .col_stride = view->col_stride,
                                .block_stride = view->block_stride,
                                .ldb = p->b.ld,
                                .ldc = p->c.ld,
                                .ldd = p->d.ld,
                                .ldr = p->residual.ld,
                                .ldp = p->preact.ld,
                                .lda = p->a.ld,
                                .items = (int)p->batch,
                                .stride_a = p->a.stride,
                                .stride_b = p->b.stride,
                                .stride_c = p->c.stride,
                                .stride_d = p->d.stride,
                                .stride_r = p->residual.stride,
                                .stride_p = p->preact.stride,
                                .stride_bias = p->bias.stride};
}

/* ------------------------------------------------------------------------------------------------ one copy for all plans of a pattern */

typedef struct spk_cuda_shared_index {
    struct spk_cuda_shared_index *next;
    uint64_t pattern;
    bool turned; /* of op T */
    int users;
    void *memory;
    size_t bytes;
    const int *offsets, *columns, *positions;
} shared_index;

enum { SHARED_SLOTS = 256, DISCARDED = 64, MOST_DISCARDED_BYTES = 1 << 20 };

/* Giving memory back waits for all that the device is doing, so that who destroys a plan would wait for its last run: small pieces go many
 * at once. */
struct spk_cuda_shared_indices {
    spk_mem mem;
    pthread_mutex_t lock;
    shared_index *slots[SHARED_SLOTS];
    void *discarded[DISCARDED];
    int discarded_count;
};

spk_status spk_cuda_shared_indices_make(const spk_mem *mem, struct spk_cuda_shared_indices **all)
{
    struct spk_cuda_shared_indices *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    pthread_mutex_init(&made->lock, NULL);
    *all = made;
    return SPK_OK;
}

/* Takes what is discarded out, which is released outside the lock. */
static int take_discarded(struct spk_cuda_shared_indices *all, void *taken[DISCARDED])
{
    const int count = all->discarded_count;
    memcpy(taken, all->discarded, sizeof all->discarded);
    all->discarded_count = 0;
    return count;
}

static void release_all(const spk_device *device, void *const *memory, int count)
{
    for (int i = 0; i < count; i++)
        device->backend->release((spk_device *)(uintptr_t)device, memory[i]);
}

void spk_cuda_shared_indices_release(const spk_device *device, struct spk_cuda_shared_indices **all)
{
    struct spk_cuda_shared_indices *old = *all;
    *all = NULL;
    if (old == NULL)
        return;
    const spk_mem mem = old->mem;
    release_all(device, old->discarded, old->discarded_count);
    pthread_mutex_destroy(&old->lock);
    spk_free(&mem, old);
}

/* Where there is no memory, what is discarded may be enough. Under the lock. */
static spk_status allocate(spk_device *device, struct spk_cuda_shared_indices *all, size_t bytes, void **memory)
{
    void *taken[DISCARDED];
    const spk_status status = device->backend->allocate(device, bytes, memory);
    if (status != SPK_ERR_OUT_OF_MEMORY || all->discarded_count == 0)
        return status;
    const int count = take_discarded(all, taken);
    release_all(device, taken, count);
    return device->backend->allocate(device, bytes, memory);
}

static spk_status upload(spk_device *device, const spk_bsr_view *view, struct spk_cuda_shared_indices *all, shared_index *index)
{
    const size_t columns = rounded(((size_t)view->grid_rows + 1) * sizeof(int)),
                 positions = columns + rounded((size_t)view->nnzb * sizeof(int));
    const size_t bytes = positions + (view->positions != NULL ? rounded((size_t)view->nnzb * sizeof(int)) : 0);
    char *staging = NULL;
    SPK_TRY(spk_calloc(&device->mem, bytes, 1, &staging)); /* zeroed: the gaps go to the device too */
    narrow((int *)(void *)staging, view->offsets, view->grid_rows + 1);
    if (view->nnzb > 0)
        memcpy(staging + columns, view->columns, (size_t)view->nnzb * sizeof(int));
    if (view->positions != NULL)
        narrow((int *)(void *)(staging + positions), view->positions, view->nnzb);
    spk_status status;
    SPK_GOTO(allocate(device, all, bytes, &index->memory));
    index->bytes = bytes;
    SPK_GOTO(device->backend->copy_in(device, index->memory, staging, bytes));
    const char *base = index->memory;
    index->offsets = (const int *)(const void *)base;
    index->columns = (const int *)(const void *)(base + columns);
    index->positions = view->positions != NULL ? (const int *)(const void *)(base + positions) : NULL;
done:
    if (status != SPK_OK && index->memory != NULL)
        device->backend->release(device, index->memory);
    spk_free(&device->mem, staging);
    return status;
}

/* Under the lock. */
static spk_status share(const spk_bound *bound, struct spk_cuda_shared_indices *all, shared_index **out)
{
    const bool turned = bound->problem.trans_a == SPK_TRANS;
    const uint64_t pattern = bound->problem.pattern->id;
    shared_index **slot = &all->slots[pattern % SHARED_SLOTS], *made = NULL;
    for (shared_index *i = *slot; i != NULL; i = i->next)
        if (i->pattern == pattern && i->turned == turned) {
            i->users++;
            *out = i;
            return SPK_OK;
        }
    SPK_TRY(spk_calloc(&all->mem, 1, sizeof *made, &made));
    *made = (shared_index){.next = *slot, .pattern = pattern, .turned = turned, .users = 1};
    const spk_status status = upload(bound->device, &bound->view, all, made);
    if (status != SPK_OK) {
        spk_free(&all->mem, made);
        return status;
    }
    *out = *slot = made;
    return SPK_OK;
}

spk_status spk_cuda_index_make(const spk_bound *bound, spk_cuda_index *index)
{
    const spk_pattern *pattern = bound->problem.pattern;
    struct spk_cuda_shared_indices *all = spk_cuda_of(bound->device)->shared_indices;
    spk_cuda_index made = {.shared = NULL, .arguments = spk_cuda_arguments_of(&bound->problem, &bound->view)};
    if (pattern == NULL) {
        *index = made;
        return SPK_OK;
    }
    SPK_TRY(check_limits(&bound->view));
    if (pattern->remote.state != NULL && bound->problem.trans_a == SPK_NO_TRANS) {
        SPK_TRY(spk_cuda_deferred_indices(bound->device, pattern, &made.arguments.offsets, &made.arguments.columns));
    } else {
        pthread_mutex_lock(&all->lock);
        const spk_status status = share(bound, all, &made.shared);
        pthread_mutex_unlock(&all->lock);
        SPK_TRY(status);
        made.arguments.offsets = made.shared->offsets;
        made.arguments.columns = made.shared->columns;
        made.arguments.positions = made.shared->positions;
    }
    *index = made;
    return SPK_OK;
}

void spk_cuda_index_release(const spk_device *device, spk_cuda_index *index)
{
    struct spk_cuda_shared_indices *all = spk_cuda_of(device)->shared_indices;
    shared_index *old = index->shared;
    memset(index, 0, sizeof *index);
    if (old == NULL)
        return;
    void *taken[DISCARDED + 1];
    int count = 0;
    pthread_mutex_lock(&all->lock);
    const bool last = --old->users == 0;
    shared_index **link = &all->slots[old->pattern % SHARED_SLOTS];
    while (last && *link != old)
        link = &(*link)->next;
    if (last)
        *link = old->next;
    if (last && old->bytes <= MOST_DISCARDED_BYTES && all->discarded_count < DISCARDED) {
        all->discarded[all->discarded_count++] = old->memory;
    } else if (last) {
        count = take_discarded(all, taken);
        taken[count++] = old->memory;
    }
    pthread_mutex_unlock(&all->lock);
    release_all(device, taken, count);
    if (last)
        spk_free(&all->mem, old);
}

void spk_cuda_arguments_fill(const spk_cuda_index *index, const spk_args *args, spk_cuda_arguments *out)
{
    *out = index->arguments;
    out->values = args->a;
    out->b = args->b;
    out->c = args->c;
    out->d = args->d;
    out->bias = args->bias;
    out->residual = args->residual;
    out->preact = args->preact;
    out->alpha = args->alpha;
    out->beta = args->beta;
    out->workspace = args->workspace;
    out->ends = args->offsets;
}
