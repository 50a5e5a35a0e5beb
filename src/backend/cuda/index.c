/* A pattern's view in device memory, and the arguments that device programs take. */
#include <limits.h>
#include <string.h>

#include "backend/cuda/cuda.h"

enum { PIECE_ALIGNMENT = 256 };

static size_t rounded(size_t bytes)
{
    return (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

static spk_status check_limits(const spk_bsr_view *view)
{
    if (view->nnzb > INT_MAX || view->grid_rows >= INT_MAX || view->grid_cols > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld blocks in %lld block rows and %lld block columns: CUDA kernels take fewer than 2^31 of each",
                        (long long)view->nnzb, (long long)view->grid_rows, (long long)view->grid_cols);
    return SPK_OK;
}

static void narrow(int *to, const int64_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (int)from[i];
}

static void set_shape(const spk_bound *bound, spk_cuda_arguments *a)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *p = &bound->problem;
    *a = (spk_cuda_arguments){.m = p->m, .n = p->n, .k = p->k, .block_rows = view->block_rows, .block_cols = view->block_cols,
                              .grid_rows = (int)view->grid_rows, .grid_cols = (int)view->grid_cols, .nnzb = view->nnzb, .row_stride = view->row_stride,
                              .col_stride = view->col_stride, .block_stride = view->block_stride, .ldb = p->ldb, .ldc = p->ldc, .ldd = p->ldd,
                              .ldr = p->ldr, .ldp = p->ldp, .lda = p->lda, .items = (int)p->batch, .stride_a = p->stride_a, .stride_b = p->stride_b, .stride_c = p->stride_c,
                              .stride_d = p->stride_d, .stride_r = p->stride_r, .stride_p = p->stride_p};
}

spk_status spk_cuda_index_make(const spk_bound *bound, spk_cuda_index *index)
{
    const spk_bsr_view *view = &bound->view;
    spk_device *device = bound->device;
    SPK_TRY(check_limits(view));
    spk_cuda_index made = {.memory = 0};
    set_shape(bound, &made.arguments);
    size_t offsets = 0, columns = rounded(((size_t)view->grid_rows + 1) * sizeof(int));
    size_t positions = columns + rounded((size_t)view->nnzb * sizeof(int));
    size_t bytes = positions + (view->positions != NULL ? rounded((size_t)view->nnzb * sizeof(int)) : 0);
    char *staging = NULL;
    void *memory = NULL;
    SPK_TRY(spk_calloc(&device->mem, bytes, 1, &staging)); /* zeroed: the gaps go to the device too */
    narrow((int *)(void *)(staging + offsets), view->offsets, view->grid_rows + 1);
    if (view->nnzb > 0)
        memcpy(staging + columns, view->columns, (size_t)view->nnzb * sizeof(int));
    if (view->positions != NULL)
        narrow((int *)(void *)(staging + positions), view->positions, view->nnzb);
    spk_status status;
    SPK_GOTO(device->backend->allocate(device, bytes, &memory));
    SPK_GOTO(device->backend->copy_in(device, memory, staging, bytes));
    made.memory = (CUdeviceptr)(uintptr_t)memory;
    made.arguments.offsets = (const int *)((char *)memory + offsets);
    made.arguments.columns = (const int *)((char *)memory + columns);
    made.arguments.positions = view->positions != NULL ? (const int *)((char *)memory + positions) : NULL;
    *index = made;
    memory = NULL;
done:
    if (memory != NULL)
        device->backend->release(device, memory);
    spk_free(&device->mem, staging);
    return status;
}

void spk_cuda_index_release(const spk_device *device, spk_cuda_index *index)
{
    if (index->memory != 0)
        device->backend->release((spk_device *)(uintptr_t)device, (void *)(uintptr_t)index->memory);
    memset(index, 0, sizeof *index);
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
}
