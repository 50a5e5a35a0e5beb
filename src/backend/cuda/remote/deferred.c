/* Patterns whose indices are in device memory and stay there: two programs on the caller's stream check and copy them, and a copy of what
 * they found comes to pinned host memory, where later calls look. Nothing waits. The memory is the caller's allocator's, else of a pool:
 * both are ordered by the stream. On a stream that is captured both programs become part of the graph, and no verdict comes: it would be
 * that of some replay, and a late one might be taken for another pattern's. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/helpers/check_indices.h"
#include "backend/cuda/remote/check_args.h"
#include "backend/cuda/remote/deferred.h"
#include "backend/cuda/host/frame/launch.h"
#include "matrix/check.h"

enum { PAGE_SLOTS = 256, MOST_GRID = 1024, PIECE_ALIGNMENT = 256, POOL_KEEPS_BYTES = 4, PINNED_PORTABLE = 1 };

/* Verdicts in pinned memory. A slot is free once its last verdict has come: a late one would be taken for its successor's. */
typedef struct page {
    struct page *next;
    volatile verdict *slots;
    uint64_t stamps[PAGE_SLOTS]; /* of the last user; 0: none yet */
    bool used[PAGE_SLOTS];
    int at;
} page;

struct spk_cuda_deferrals {
    CUmemoryPool pool;
    page *pages;
    uint64_t last_stamp;
};

typedef struct deferred {
    spk_device *device;
    CUstream stream;
    int64_t grid_rows, grid_cols, nnzb;
    void *memory;
    size_t bytes;
    const int *offsets, *columns;
    bool captured; /* no verdict comes */
    page *page;
    int slot;
    uint64_t stamp;
} deferred;

/* ------------------------------------------------------------------------------------------------ what a device keeps for it */

static spk_status make_pool(const spk_cuda *cuda, CUmemoryPool *pool)
{
    const spk_pool_properties properties = {.allocation = 1, .location_kind = 1, .location = cuda->handle};
    uint64_t all = UINT64_MAX; /* what is given back stays for the next pattern */
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->pool_create(pool, &properties), "cuMemPoolCreate"));
    const CUresult result = cuda->driver->pool_set_attribute(*pool, POOL_KEEPS_BYTES, &all);
    if (result != CUDA_SUCCESS_) {
        cuda->driver->pool_destroy(*pool);
        *pool = NULL;
    }
    return spk_cuda_try(cuda->driver, result, "cuMemPoolSetAttribute");
}

static spk_status add_page(spk_device *device, struct spk_cuda_deferrals *all)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    page *made = NULL;
    void *slots = NULL;
    SPK_TRY(spk_calloc(&device->mem, 1, sizeof *made, &made));
    const int mode = spk_cuda_capture_relax(cuda);
    const spk_status status =
        spk_cuda_check(device, cuda->driver->pinned_allocate(&slots, PAGE_SLOTS * sizeof(verdict), PINNED_PORTABLE), "cuMemHostAlloc");
    spk_cuda_capture_restore(cuda, mode);
    if (status != SPK_OK) {
        spk_free(&device->mem, made);
        return status;
    }
    memset(slots, 0, PAGE_SLOTS * sizeof(verdict));
    made->slots = slots;
    made->next = all->pages;
    all->pages = made;
    return SPK_OK;
}

/* Under the lock. */
static spk_status deferrals_get(spk_device *device, struct spk_cuda_deferrals **out)
{
    spk_cuda *cuda = spk_cuda_of(device);
    if (cuda->deferrals == NULL)
        SPK_TRY(spk_calloc(&device->mem, 1, sizeof *cuda->deferrals, &cuda->deferrals));
    if (cuda->deferrals->pool == NULL && device->device_mem.allocate == NULL)
        SPK_TRY(make_pool(cuda, &cuda->deferrals->pool));
    *out = cuda->deferrals;
    return SPK_OK;
}

void spk_cuda_deferrals_release(const spk_cuda_driver *driver, const spk_mem *mem, struct spk_cuda_deferrals **deferrals)
{
    struct spk_cuda_deferrals *old = *deferrals;
    *deferrals = NULL;
    if (old == NULL)
        return;
    if (driver != NULL && old->pool != NULL)
        driver->pool_destroy(old->pool);
    for (page *p = old->pages, *next; p != NULL; p = next) {
        next = p->next;
        if (driver != NULL)
            driver->pinned_release((void *)(uintptr_t)p->slots);
        spk_free(mem, p);
    }
    spk_free(mem, old);
}

static bool has_come(const page *p, int slot)
{
    return __atomic_load_n(&p->slots[slot].stamp, __ATOMIC_ACQUIRE) == p->stamps[slot] &&
           __atomic_load_n(&p->slots[slot].stamp_again, __ATOMIC_ACQUIRE) == p->stamps[slot];
}

/* Under the lock. */
static spk_status take_slot(spk_device *device, struct spk_cuda_deferrals *all, deferred *d)
{
    for (int round = 0; round < 2; round++) {
        for (page *p = all->pages; p != NULL; p = p->next)
            for (int i = 0; i < PAGE_SLOTS; i++) {
                const int slot = (p->at + i) % PAGE_SLOTS;
                if (p->used[slot] || !has_come(p, slot))
                    continue;
                p->used[slot] = true;
                p->at = slot + 1;
                p->stamps[slot] = d->stamp = ++all->last_stamp;
                d->page = p;
                d->slot = slot;
                return SPK_OK;
            }
        SPK_TRY(add_page(device, all));
    }
    return spk_fail(SPK_ERR_INTERNAL, "no place for a verdict");
}

static void give_slot(const deferred *d, bool asked)
{
    spk_cuda *cuda = spk_cuda_of(d->device);
    if (d->page == NULL)
        return;
    pthread_mutex_lock(&cuda->deferrals_lock);
    d->page->used[d->slot] = false;
    if (!asked) /* no verdict will come */
        d->page->stamps[d->slot] = d->page->slots[d->slot].stamp_again;
    pthread_mutex_unlock(&cuda->deferrals_lock);
}

/* ------------------------------------------------------------------------------------------------ memory ordered by the stream */

/* Inside spk_cuda_enter, as is give_stream_memory. */
static spk_status take_stream_memory(const deferred *d, size_t bytes, void **memory)
{
    const spk_cuda *cuda = spk_cuda_of(d->device);
    CUdeviceptr made = 0;
    if (d->device->device_mem.allocate != NULL)
        return spk_device_take(d->device, bytes, d->stream, memory);
    SPK_TRY(
        spk_cuda_check(d->device, cuda->driver->pool_allocate(&made, bytes, cuda->deferrals->pool, d->stream), "cuMemAllocFromPoolAsync"));
    *memory = (void *)(uintptr_t)made;
    return SPK_OK;
}

static void give_stream_memory(const deferred *d, size_t bytes, void *memory)
{
    if (memory == NULL)
        return;
    if (d->device->device_mem.allocate != NULL)
        spk_device_give(d->device, memory, bytes, d->stream);
    else
        spk_cuda_of(d->device)->driver->pool_release((CUdeviceptr)(uintptr_t)memory, d->stream);
}

/* ------------------------------------------------------------------------------------------------ the verdict */

static spk_status explain(const deferred *d, const verdict *v)
{
    const int64_t at = (int64_t)(v->first & ~WRONG_COLUMN);
    if (v->first & WRONG_COLUMN) {
        if (v->value < 0 || v->value >= d->grid_cols)
            return spk_fail_index("col_indices", at, v->value, "block columns", d->grid_cols);
        return spk_fail(SPK_ERR_ARGUMENT,
                        "col_indices[%" PRId64 "] = %" PRId64 " does not exceed col_indices[%" PRId64 "] = %" PRId64
                        " in one block row: columns must increase",
                        at, v->value, at - 1, v->before);
    }
    if (at == 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[0] = %" PRId64 ": the first offset must be 0", v->value);
    if (v->value < v->before)
        return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[%" PRId64 "] = %" PRId64 " is less than row_offsets[%" PRId64 "] = %" PRId64, at,
                        v->value, at - 1, v->before);
    return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[%" PRId64 "] = %" PRId64 ": the last offset must be nnzb = %" PRId64, at, v->value,
                    d->nnzb);
}

static spk_status check(void *state)
{
    const deferred *d = state;
    if (d->captured || !has_come(d->page, d->slot))
        return SPK_OK;
    const volatile verdict *from = &d->page->slots[d->slot];
    const verdict v = {.first = from->first, .fault = from->fault, .value = from->value, .before = from->before};
    return v.fault == 0 ? SPK_OK : explain(d, &v);
}

static spk_status fetch(void *state, int32_t *offsets, int32_t *columns)
{
    const deferred *d = state;
    const spk_backend *backend = d->device->backend;
    if (d->captured)
        return spk_fail(SPK_ERR_UNSUPPORTED, "deferred: the pattern was made while its stream was captured: its indices are those of "
                                             "each replay, and never on the host");
    SPK_TRY(backend->synchronize(d->device, d->stream));
    SPK_TRY(check(state));
    SPK_TRY(backend->copy_out(d->device, offsets, d->offsets, ((size_t)d->grid_rows + 1) * sizeof *offsets));
    return backend->copy_out(d->device, columns, d->columns, (size_t)d->nnzb * sizeof *columns);
}

static void release(void *state)
{
    deferred *d = state;
    const spk_mem mem = d->device->mem;
    spk_cuda_scope scope;
    if (spk_cuda_enter(d->device, &scope) == SPK_OK) { /* a lost device: its memory goes with the process */
        give_stream_memory(d, d->bytes, d->memory);
        spk_cuda_leave(&scope);
    }
    give_slot(d, true);
    spk_free(&mem, d);
}

/* ------------------------------------------------------------------------------------------------ making one */

void spk_cuda_deferred_build(spk_index_type type, bool settle, spk_build *build)
{
    *build = (spk_build){.file = "check_indices.cu", .entry = settle ? "settle_indices" : "check_indices"};
    snprintf(build->options, sizeof build->options, "-DINDEX=%s", type == SPK_INDEX_I64 ? "spk_i64" : "int");
}

static spk_status check_indices(const spk_device *device, const spk_bsr_indices *indices, deferred *d)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    int capturing = 0;
    if (d->nnzb > INT_MAX || d->grid_rows >= INT_MAX || d->grid_cols > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED,
                        "%" PRId64 " blocks in %" PRId64 " block rows and %" PRId64
                        " block columns: CUDA kernels take fewer than 2^31 of each",
                        d->nnzb, d->grid_rows, d->grid_cols);
    SPK_TRY(spk_check_index_array(indices->row_offsets, indices->index_type, d->grid_rows + 1, "row_offsets"));
    SPK_TRY(spk_check_index_array(indices->col_indices, indices->index_type, d->nnzb, "col_indices"));
    SPK_TRY(spk_cuda_check_pointer(cuda, "", "row_offsets", indices->row_offsets));
    if (d->nnzb > 0)
        SPK_TRY(spk_cuda_check_pointer(cuda, "", "col_indices", indices->col_indices));
    SPK_TRY(spk_cuda_check(device, cuda->driver->stream_is_capturing(d->stream, &capturing), "cuStreamIsCapturing"));
    d->captured = capturing != 0;
    if (d->captured && device->device_mem.allocate == NULL)
        return spk_fail(SPK_ERR_UNSUPPORTED,
                        "deferred: the stream is captured, and the context has no device_allocate: make the pattern before");
    return SPK_OK;
}

static spk_status start(deferred *d, const spk_bsr_indices *indices)
{
    const spk_cuda *cuda = spk_cuda_of(d->device);
    const size_t offsets_bytes = ((size_t)d->grid_rows + 1) * sizeof(int), columns = sizeof(verdict) + (offsets_bytes + 63) / 64 * 64;
    spk_build builds[2];
    CUfunction functions[2];
    for (int i = 0; i < 2; i++) {
        spk_cuda_deferred_build(indices->index_type, i == 1, &builds[i]);
        SPK_TRY(spk_cuda_function(d->device, &builds[i], &functions[i]));
    }
    d->offsets = (const int *)(const void *)((char *)d->memory + sizeof(verdict));
    d->columns = (const int *)(const void *)((char *)d->memory + columns);
    check_arguments arguments = {.offsets = indices->row_offsets,
                                 .columns = indices->col_indices,
                                 .grid_rows = d->grid_rows,
                                 .grid_cols = d->grid_cols,
                                 .nnzb = d->nnzb,
                                 .to_offsets = (int *)(uintptr_t)d->offsets,
                                 .to_columns = (int *)(uintptr_t)d->columns,
                                 .said = d->memory,
                                 .stamp = d->stamp};
    void *parameters[] = {&arguments};
    const int64_t blocks = (d->grid_rows + CHECK_THREADS / 32) / (CHECK_THREADS / 32);
    const CUdeviceptr said = (CUdeviceptr)(uintptr_t)d->memory;
    SPK_TRY(spk_cuda_check(d->device, cuda->driver->fill_bytes(said, 0xff, sizeof(verdict), d->stream), "cuMemsetD8Async"));
    SPK_TRY(spk_cuda_launch(d->device, functions[0], (unsigned)(blocks < MOST_GRID ? blocks : MOST_GRID), CHECK_THREADS, 0, d->stream,
                            parameters));
    SPK_TRY(spk_cuda_launch(d->device, functions[1], 1, SETTLE_THREADS, 0, d->stream, parameters));
    /* Last, as the next launch may begin before a kernel's writes can be seen, but not before a copy or a fill is done. */
    if (d->captured)
        return spk_cuda_check(d->device, cuda->driver->fill_bytes(said, 0, sizeof(verdict), d->stream), "cuMemsetD8Async");
    void *slot = (void *)(uintptr_t)&d->page->slots[d->slot];
    return spk_cuda_check(d->device, cuda->driver->copy_out(slot, said, sizeof(verdict), d->stream), "cuMemcpyDtoHAsync");
}

/* Inside spk_cuda_enter. What was put on the stream before a failure is followed by the release of its memory. */
static spk_status defer(deferred *d, const spk_bsr_indices *indices)
{
    spk_cuda *cuda = spk_cuda_of(d->device);
    struct spk_cuda_deferrals *all = NULL;
    SPK_TRY(check_indices(d->device, indices, d));
    pthread_mutex_lock(&cuda->deferrals_lock);
    spk_status status = deferrals_get(d->device, &all);
    if (status == SPK_OK && !d->captured)
        status = take_slot(d->device, all, d);
    pthread_mutex_unlock(&cuda->deferrals_lock);
    SPK_TRY(status);
    status = take_stream_memory(d, d->bytes, &d->memory);
    if (status == SPK_OK)
        status = start(d, indices);
    if (status != SPK_OK) {
        give_stream_memory(d, d->bytes, d->memory);
        give_slot(d, false);
    }
    return status;
}

spk_status spk_cuda_defer(spk_device *device, const spk_bsr_indices *indices, spk_pattern_remote *remote)
{
    spk_cuda_scope scope;
    deferred *made = NULL;
    SPK_TRY(spk_calloc(&device->mem, 1, sizeof *made, &made));
    made->device = device;
    made->stream = indices->deferred->stream;
    made->grid_rows = spk_ceil_div(indices->rows, indices->block_rows);
    made->grid_cols = spk_ceil_div(indices->cols, indices->block_cols);
    made->nnzb = indices->nnzb;
    made->bytes = sizeof(verdict) + (((size_t)made->grid_rows + 1) * sizeof(int) + 63) / 64 * 64 + (size_t)made->nnzb * sizeof(int);
    made->bytes = (made->bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    spk_status status = spk_cuda_enter(device, &scope);
    if (status == SPK_OK) {
        status = defer(made, indices);
        spk_cuda_leave(&scope);
    }
    if (status != SPK_OK) {
        spk_free(&device->mem, made);
        return status;
    }
    *remote = (spk_pattern_remote){made, check, fetch, release};
    return SPK_OK;
}

spk_status spk_cuda_deferred_indices(const spk_device *device, const spk_pattern *pattern, const int **offsets, const int **columns)
{
    const deferred *d = pattern->remote.state;
    if (spk_cuda_of(d->device)->ordinal != spk_cuda_of(device)->ordinal)
        return spk_fail(SPK_ERR_UNSUPPORTED, "the pattern's indices are in memory of cuda:%d: this context is for cuda:%d",
                        spk_cuda_of(d->device)->ordinal, spk_cuda_of(device)->ordinal);
    *offsets = d->offsets;
    *columns = d->columns;
    return SPK_OK;
}

spk_status spk_cuda_deferred_take(const spk_pattern *pattern, size_t bytes, void **memory)
{
    const deferred *d = pattern->remote.state;
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(d->device, &scope));
    const spk_status status = take_stream_memory(d, bytes, memory);
    spk_cuda_leave(&scope);
    return status;
}

void spk_cuda_deferred_give(const spk_pattern *pattern, size_t bytes, void *memory)
{
    const deferred *d = pattern->remote.state;
    spk_cuda_scope scope;
    if (spk_cuda_enter(d->device, &scope) != SPK_OK)
        return;
    give_stream_memory(d, bytes, memory);
    spk_cuda_leave(&scope);
}

CUstream spk_cuda_deferred_stream(const spk_pattern *pattern)
{
    return ((const deferred *)pattern->remote.state)->stream;
}
