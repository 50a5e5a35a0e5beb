/* cublas_blocks: cuBLAS, block by block. Pass j is one batched product of the j-th stored block of every block row that has one, added to
 * what the passes before it left: as many passes as the longest block row has blocks, in their order, so that the bits are the same on
 * every run. Sums are f32 (f64): where D is narrower, or more than alpha is asked for, they lie in the workspace, and the epilogue is a
 * program of ours. Refuses ragged edges, more passes than MOST_PASSES, and, where tensor cores may be used, blocks that do not begin on 16
 * bytes. Bound: launches, and the passes over the sums. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "backend/cuda/helpers/block_pointers.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/vendor/vendor.h"

typedef void *blas_handle;

typedef struct blas_functions {
    int (*create)(blas_handle *handle);
    int (*set_stream)(blas_handle handle, CUstream stream);
    int (*set_workspace)(blas_handle handle, void *workspace, size_t bytes);
    int (*batched)(blas_handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *const *a, int type_a,
                   int lda, const void *const *b, int type_b, int ldb, const void *beta, void *const *c, int type_c, int ldc, int count,
                   int compute, int algorithm);
} blas_functions;

static const char *const blas_names[] = {"cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasGemmBatchedEx"};

enum { BLAS_OP_N = 0, BLAS_OP_T = 1, BLAS_COMPUTE_32F = 68, BLAS_COMPUTE_64F = 70, BLAS_COMPUTE_TF32 = 77, BLAS_ALGORITHM_DEFAULT = -1 };
enum { MOST_DEVICES = 64, BLAS_FUNCTIONS = sizeof blas_names / sizeof blas_names[0] };
enum { MOST_PASSES = 2048, MOST_BATCH = 65535, BLAS_BYTES = 4 << 20, FAST_ALIGNMENT = 16 };

/* A handle carries stream and workspace, so that each run holds the lock while it is queued. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static blas_handle handles[MOST_DEVICES];
static blas_functions blas;
static bool have_functions;

static spk_status blas_try(int result, const char *call)
{
    return result == 0 ? SPK_OK : spk_fail(result == 3 ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_UNSUPPORTED, "%s: cuBLAS status %d", call, result);
}

static spk_status get_handle(const spk_device *device, blas_handle *handle)
{
    const int ordinal = spk_cuda_of(device)->ordinal;
    void *library = NULL, *found[BLAS_FUNCTIONS];
    SPK_TRY(spk_cuda_library_open(device, "cublas", &library));
    if (ordinal >= MOST_DEVICES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "device cuda:%d: cublas_blocks takes devices 0..%d", ordinal, MOST_DEVICES - 1);
    pthread_mutex_lock(&lock);
    spk_status status = have_functions ? SPK_OK : spk_cuda_library_functions(library, "cublas", blas_names, found, BLAS_FUNCTIONS);
    if (status == SPK_OK && !have_functions) {
        memcpy(&blas, found, sizeof blas);
        have_functions = true;
    }
    if (status == SPK_OK && handles[ordinal] == NULL) {
        const int mode = spk_cuda_capture_relax(spk_cuda_of(device));
        status = blas_try(blas.create(&handles[ordinal]), "cublasCreate");
        spk_cuda_capture_restore(spk_cuda_of(device), mode);
    }
    *handle = handles[ordinal];
    pthread_mutex_unlock(&lock);
    return status;
}

/* ------------------------------------------------------------------------------------------------ what it takes */

/* Of a batch's matrices in memory as the library sees them, by columns. */
typedef struct shape {
    int op_first, op_second; /* of the block and of B, or the other way round */
    int lda, ldb, ldd;
    bool block_first;
    int64_t value_step, b_step, sum_step; /* bytes: of a stored block, a block column of B, a block row of the sums */
} shape;

/* Where the library may use its tensor cores, it wants every matrix on 16 bytes. */
static bool is_fast(const spk_problem *p)
{
    return p->a.dtype == SPK_F16 || p->a.dtype == SPK_BF16 || (p->a.dtype == SPK_F32 && p->compute == SPK_TF32);
}

static int64_t block_height(const spk_problem *p)
{
    return p->trans_a == SPK_TRANS ? p->pattern->block_cols : p->pattern->block_rows;
}

static int64_t block_width(const spk_problem *p)
{
    return p->trans_a == SPK_TRANS ? p->pattern->block_rows : p->pattern->block_cols;
}

/* Row-major D is D^T = B^T A^T to the library. */
static shape shape_of(const spk_problem *p, int64_t ld_sums)
{
    const int64_t height = block_height(p), width = block_width(p), size = (int64_t)spk_dtype_bytes(p->a.dtype);
    const bool rows = p->d.layout == SPK_ROW_MAJOR, k_inside = (p->block_layout == SPK_ROW_MAJOR) == (p->trans_a == SPK_NO_TRANS);
    const bool block_turned = rows != k_inside, b_turned = rows == (p->b.layout == SPK_COL_MAJOR);
    return (shape){.block_first = !rows,
                   .op_first = (rows ? b_turned : block_turned) ? BLAS_OP_T : BLAS_OP_N,
                   .op_second = (rows ? block_turned : b_turned) ? BLAS_OP_T : BLAS_OP_N,
                   .lda = (int)(k_inside ? width : height),
                   .ldb = (int)p->b.ld,
                   .ldd = (int)ld_sums,
                   .value_step = height * width * size,
                   .b_step = width * (p->b.layout == SPK_ROW_MAJOR ? p->b.ld : 1) * size,
                   .sum_step = height * (rows ? ld_sums : 1) * (p->a.dtype == SPK_F64 ? 8 : 4)};
}

/* Whether every block row of sums with that leading dimension begins where the library wants it. */
static bool sums_fit(const spk_problem *p, int64_t ld_sums)
{
    return !is_fast(p) || shape_of(p, ld_sums).sum_step % FAST_ALIGNMENT == 0;
}

/* The longest row of op(A): of a transpose, which is known once it is bound only, at most the grid's. */
static int64_t passes_at_most(const spk_problem *p)
{
    return p->trans_a == SPK_TRANS ? p->pattern->index.grid_rows : p->pattern->features.longest_row;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    const spk_problem *p = problem;
    *why = spk_cuda_vendor_refusal(p);
    if (*why == NULL && (p->m % block_height(p) != 0 || p->k % block_width(p) != 0))
        *why = "its matrices are whole blocks";
    if (*why == NULL && (p->b.ld > INT32_MAX || p->d.ld > INT32_MAX))
        *why = "its leading dimensions are 32-bit integers";
    if (*why == NULL && passes_at_most(p) > MOST_PASSES)
        *why = "the longest row would take more than 2048 products one after the other";
    const shape s = shape_of(p, p->d.ld);
    if (*why == NULL && is_fast(p) &&
        (s.value_step % FAST_ALIGNMENT != 0 || s.b_step % FAST_ALIGNMENT != 0 || !sums_fit(p, FAST_ALIGNMENT)))
        *why = "its blocks would not all begin on 16 bytes";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const spk_problem *p = problem;
    const double dense = spk_problem_dense_flops(p), share = dense > 0 ? spk_problem_flops(p) / dense : 0;
    const double passes = (double)p->pattern->nnzb * (double)block_height(p) / fmax((double)p->m, 1);
    const double sums_us =
        (double)p->m * (double)p->n * (p->a.dtype == SPK_F64 ? 16 : 8) / (fmax(device->stream_gbs, 1) * 1e3); /* read and written */
    return 10 + 2 * share * spk_cuda_dense_us(p, device) + passes * (3 + 0.5 * sums_us);
}

/* ------------------------------------------------------------------------------------------------ binding */

typedef struct blocks_state {
    blas_handle handle;
    spk_around around;
    shape shape;
    CUfunction pointers;
    void *places;   /* on the device: all stored blocks, pass by pass */
    int *pass_ends; /* entries up to the end of each pass */
    int passes, count;
    bool empty_rows;
    size_t list_bytes; /* of one list of addresses */
} blocks_state;

static void release(const spk_bound *bound, blocks_state *s)
{
    spk_around_release(bound, &s->around);
    if (s->places != NULL)
        bound->device->backend->release(bound->device, s->places);
    spk_free(&bound->device->mem, s->pass_ends);
    spk_free(&bound->device->mem, s);
}

static void unbind(spk_bound *bound)
{
    if (bound->state == NULL)
        return;
    release(bound, bound->state);
    bound->state = NULL;
}

/* Where each pass begins: the rows that have so many blocks, counted. */
static spk_status count_passes(const spk_bound *bound, blocks_state *s)
{
    const spk_bsr_view *v = &bound->view;
    for (int64_t i = 0; i < v->grid_rows; i++) {
        const int length = (int)(v->offsets[i + 1] - v->offsets[i]);
        s->passes = length > s->passes ? length : s->passes;
        s->empty_rows = s->empty_rows || length == 0;
    }
    if (s->passes > MOST_PASSES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "the longest row has %d blocks: cublas_blocks makes %d products one after the other at most",
                        s->passes, MOST_PASSES);
    SPK_TRY(spk_calloc(&bound->device->mem, (size_t)s->passes + 1, sizeof *s->pass_ends, &s->pass_ends));
    for (int64_t i = 0; i < v->grid_rows; i++)
        for (int64_t j = 0; j < v->offsets[i + 1] - v->offsets[i]; j++)
            s->pass_ends[j]++;
    for (int j = 1; j < s->passes; j++)
        s->pass_ends[j] += s->pass_ends[j - 1];
    return SPK_OK;
}

static spk_status upload_places(const spk_bound *bound, blocks_state *s)
{
    const spk_bsr_view *v = &bound->view;
    spk_device *device = bound->device;
    block_place *places = NULL;
    int *next = NULL;
    spk_status status;
    SPK_GOTO(spk_alloc(&device->mem, (size_t)s->count + 1, sizeof *places, &places));
    SPK_GOTO(spk_calloc(&device->mem, (size_t)s->passes + 1, sizeof *next, &next));
    for (int j = 1; j < s->passes; j++)
        next[j] = s->pass_ends[j - 1];
    for (int64_t i = 0; i < v->grid_rows; i++)
        for (int64_t p = v->offsets[i]; p < v->offsets[i + 1]; p++)
            places[next[p - v->offsets[i]]++] = (block_place){(int)(v->positions != NULL ? v->positions[p] : p), v->columns[p], (int)i};
    SPK_GOTO(device->backend->allocate(device, (size_t)s->count * sizeof *places, &s->places));
    SPK_GOTO(device->backend->copy_in(device, s->places, places, (size_t)s->count * sizeof *places));
done:
    spk_free(&device->mem, places);
    spk_free(&device->mem, next);
    return status;
}

static spk_status bind(spk_bound *bound)
{
    const spk_build pointers = {.file = "block_pointers.cu", .entry = "block_pointers"};
    const spk_problem *p = &bound->problem;
    blocks_state *s = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_status status;
    SPK_GOTO(get_handle(bound->device, &s->handle));
    SPK_GOTO(count_passes(bound, s));
    SPK_GOTO(spk_around_make_summing(bound, !s->empty_rows && sums_fit(p, p->d.ld), &s->around)); /* refuses 2^31 blocks and more */
    SPK_GOTO(spk_cuda_function(bound->device, &pointers, &s->pointers));
    s->shape = shape_of(p, s->around.acc.ld);
    s->count = (int)bound->view.nnzb;
    SPK_GOTO(upload_places(bound, s));
    s->list_bytes = spk_round_up((size_t)s->count * sizeof(void *), 256);
    bound->workspace_bytes = s->around.acc_bytes + BLAS_BYTES + 3 * s->list_bytes;
    bound->state = s;
    return SPK_OK;
done:
    release(bound, s);
    return status;
}

/* ------------------------------------------------------------------------------------------------ running */

/* Addresses of blocks, of B and of the sums, in this order. */
static spk_status list_pointers(const spk_bound *bound, const blocks_state *s, const spk_args *args, void *sums, char *lists,
                                CUstream stream)
{
    long long value_step = s->shape.value_step, b_step = s->shape.b_step, sum_step = s->shape.sum_step;
    void *places = s->places, *values = lists, *b = lists + s->list_bytes, *d = lists + 2 * s->list_bytes;
    const void *from_values = args->a, *from_b = args->b;
    int count = s->count;
    void *parameters[] = {&places, &count, &from_values, &from_b, &sums, &value_step, &b_step, &sum_step, &values, &b, &d};
    const unsigned grid = ((unsigned)count + BLOCK_POINTERS_THREADS - 1) / BLOCK_POINTERS_THREADS;
    return spk_cuda_launch(bound->device, s->pointers, grid, BLOCK_POINTERS_THREADS, 0, stream, parameters);
}

/* Entries from..to of the lists as one product; those of a pass write different block rows. */
static spk_status multiply_some(const spk_bound *bound, const blocks_state *s, const char *lists, int from, int to, double alpha, bool adds)
{
    const spk_problem *p = &bound->problem;
    const shape *h = &s->shape;
    const int type = spk_type_of(p->a.dtype)->cuda, type_d = spk_cuda_type_of_sums(p->a.dtype), wide = p->a.dtype == SPK_F64;
    const int compute = wide ? BLAS_COMPUTE_64F : p->a.dtype == SPK_F32 && p->compute == SPK_TF32 ? BLAS_COMPUTE_TF32 : BLAS_COMPUTE_32F;
    const int height = (int)block_height(p), width = (int)block_width(p), n = (int)p->n;
    const void *const *values = (const void *const *)(const void *)lists + from, *const *b =
                                                                                     (const void *const *)(const void *)(lists +
                                                                                                                         s->list_bytes) +
                                                                                     from;
    void *const *sums = (void *const *)(const void *)(lists + 2 * s->list_bytes) + from;
    const double beta = adds ? 1 : 0;
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const void *scale = wide ? (const void *)&alpha : (const void *)&alpha32, *keep = wide ? (const void *)&beta : (const void *)&beta32;
    const int result =
        blas.batched(s->handle, h->op_first, h->op_second, h->block_first ? height : n, h->block_first ? n : height, width, scale,
                     h->block_first ? values : b, type, h->block_first ? h->lda : h->ldb, h->block_first ? b : values, type,
                     h->block_first ? h->ldb : h->lda, keep, sums, type_d, h->ldd, to - from, compute, BLAS_ALGORITHM_DEFAULT);
    return blas_try(result, "cublasGemmBatchedEx");
}

static spk_status multiply_all(const spk_bound *bound, const blocks_state *s, char *work, double alpha, CUstream stream)
{
    pthread_mutex_lock(&lock);
    spk_status status = blas_try(blas.set_stream(s->handle, stream), "cublasSetStream");
    if (status == SPK_OK) /* after the stream, which takes the handle's own back; that one would not be two streams' at once */
        status = blas_try(blas.set_workspace(s->handle, work, BLAS_BYTES), "cublasSetWorkspace");
    for (int j = 0, from = 0; status == SPK_OK && j < s->passes; j++)
        for (const int end = s->pass_ends[j]; status == SPK_OK && from < end;) {
            const int to = end - from > MOST_BATCH ? from + MOST_BATCH : end;
            status = multiply_some(bound, s, work + BLAS_BYTES, from, to, alpha, j > 0);
            from = to;
        }
    pthread_mutex_unlock(&lock);
    return status;
}

static spk_status multiply(const spk_bound *bound, const blocks_state *s, const spk_args *args, CUstream stream)
{
    char *work = args->workspace;
    void *sums = s->around.direct ? args->d : work;
    char *rest = work + s->around.acc_bytes;
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    if (s->empty_rows) /* no product writes those; the sums lie in the workspace then */
        SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->fill_bytes((CUdeviceptr)(uintptr_t)sums, 0, s->around.acc_bytes, stream),
                             "cuMemsetD8Async"));
    if (s->count > 0) {
        SPK_TRY(list_pointers(bound, s, args, sums, rest + BLAS_BYTES, stream));
        SPK_TRY(multiply_all(bound, s, rest, s->around.direct ? args->alpha : 1, stream));
    }
    return spk_around_finish(bound, &s->around, args, sums, stream);
}

static bool aligned(const spk_bound *bound, const blocks_state *s, const spk_args *args)
{
    const uintptr_t all = (uintptr_t)args->a | (uintptr_t)args->b | (s->around.direct ? (uintptr_t)args->d : 0);
    return !is_fast(&bound->problem) || all % FAST_ALIGNMENT == 0;
}

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const blocks_state *s = bound->state;
    return aligned(bound, s, args) && spk_around_takes(bound, &s->around, args);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    if (!aligned(bound, bound->state, args))
        return spk_fail(SPK_ERR_UNSUPPORTED, "cublas_blocks takes values, B and D on %d bytes", FAST_ALIGNMENT);
    return multiply(bound, bound->state, args, stream);
}

const spk_kernel_ops cublas_blocks_ops = {.applicable = applicable,
                                          .predict_us = predict_us,
                                          .bind = bind,
                                          .unbind = unbind,
                                          .accepts = accepts,
                                          .run = run,
                                          .source_hash = SPK_SOURCE_HASH};
