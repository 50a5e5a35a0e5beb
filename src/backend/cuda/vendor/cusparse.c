/* cusparse_bsr and cusparse_blocked_ell: cuSPARSE's generic SpMM on the two block formats it has. BSR takes the stored blocks as they are;
 * Blocked-ELL wants every block row of one length, so the blocks are laid out anew (part of the time, unless the values are static) with
 * empty slots. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/helpers/fill_ell.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/vendor/cusparse.h"
#include "backend/cuda/vendor/vendor.h"

/* ------------------------------------------------------------------------------------------------ what both rows share */

typedef struct sparse_state {
    spk_around around;
    size_t buffer_bytes;
    /* Blocked-ELL */
    CUfunction fill;
    int64_t slots; /* blocks of every row */
    size_t ell_bytes;
    void *ell_columns, *values; /* values: with static_values */
    bool is_ell, ready;
} sparse_state;

static int64_t longest_row(const spk_bsr_view *view)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < view->grid_rows; i++)
        longest = view->offsets[i + 1] - view->offsets[i] > longest ? view->offsets[i + 1] - view->offsets[i] : longest;
    return longest;
}

static const char *refusal(const spk_problem *p)
{
    const char *why = spk_cuda_vendor_refusal(p);
    if (why != NULL)
        return why;
    int64_t rows = p->trans_a == SPK_TRANS ? p->pattern->block_cols : p->pattern->block_rows;
    int64_t cols = p->trans_a == SPK_TRANS ? p->pattern->block_rows : p->pattern->block_cols;
    if (p->m % rows != 0 || p->k % cols != 0)
        return "its matrices are whole blocks";
    if (p->pattern->nnzb == 0)
        return "there is no stored block";
    return NULL;
}

static bool bsr_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    *why = refusal(problem);
    if (*why == NULL && problem->pattern->block_rows != problem->pattern->block_cols)
        *why = "its blocks are square";
    if (*why == NULL && problem->block_layout != SPK_ROW_MAJOR)
        *why = "its blocks are row-major";
    if (*why == NULL && problem->trans_a == SPK_TRANS)
        *why = "it multiplies the stored matrix only, not its transpose";
    return *why == NULL;
}

/* Its product writes lines of D in pieces of 16 bytes, beyond the end of one that is no whole number of them (seen with CUDA 13.0 at one
 * column). */
static bool writes_beyond_lines(const spk_problem *problem)
{
    const int64_t length = problem->d.layout == SPK_ROW_MAJOR ? problem->n : problem->m;
    return problem->d.ld != length && length * (int64_t)spk_dtype_bytes(problem->d.dtype) % 16 != 0;
}

static bool ell_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    const spk_pattern *p = problem->pattern;
    *why = refusal(problem);
    if (*why == NULL && p->block_rows != p->block_cols)
        *why = "its blocks are square";
    if (*why == NULL && problem->a.dtype == SPK_F32 && problem->compute != SPK_TF32)
        *why = "it multiplies f32 in TF32";
    if (*why == NULL && writes_beyond_lines(problem))
        *why = "it writes beyond lines of D that are no whole 16 bytes";
    double slots =
        (double)(problem->trans_a == SPK_TRANS ? p->index.grid_rows : p->features.longest_row) * (double)problem->m / p->block_rows;
    if (*why == NULL && problem->trans_a == SPK_NO_TRANS && slots > 4.0 * (double)p->nnzb)
        *why = "rows of one length would be more than four times the stored blocks";
    if (*why == NULL && problem->trans_a == SPK_TRANS)
        *why = "it multiplies the stored matrix only, not its transpose";
    if (*why == NULL &&
        slots * p->block_rows * p->block_cols * (double)spk_dtype_bytes(problem->a.dtype) > (double)device->memory_bytes / 4)
        *why = "its rows of one length would take more than a quarter of the memory";
    return *why == NULL;
}

/* A block costs what 10^4 and a row of blocks what 10^5 operations do at the card's peak, however small they are (H200: 0.16 and 1.5 ns,
 * within a third from 39 us to 3 ms). */
static double bsr_predict(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const double by_flops = spk_problem_flops(problem) / 0.2;
    const double by_blocks = 1e4 * (double)problem->pattern->nnzb + 1e5 * (double)problem->pattern->index.grid_rows;
    return 10 + fmax(by_flops, by_blocks) / (fmax(device->peak_gflops_f32, 1) * 1e3);
}

static double ell_predict(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return 10 + spk_problem_flops(problem) / (fmax(device->peak_gflops_f32, 1) * 2.5 * 1e3);
}

/* Descriptors are cheap and hold pointers, so that each run makes its own. */
typedef struct descriptors {
    void *a, *b, *d;
} descriptors;

static void destroy(const spk_sparse_functions *sparse, descriptors *all)
{
    if (all->a != NULL)
        sparse->destroy_sparse(all->a);
    if (all->b != NULL)
        sparse->destroy_dense(all->b);
    if (all->d != NULL)
        sparse->destroy_dense(all->d);
}

static spk_status describe(const spk_bound *bound, const spk_sparse_functions *sparse, const sparse_state *s, const void *values,
                           const void *b, void *d, descriptors *all)
{
    const spk_problem *p = &bound->problem;
    const spk_bsr_view *v = &bound->view;
    const int type = spk_type_of(p->a.dtype)->cuda, out = spk_type_of(s->around.acc.dtype)->cuda;
    const spk_cuda_arguments *index = &s->around.index.arguments;
    if (s->is_ell)
        SPK_TRY(spk_sparse_try(sparse->create_ell(&all->a, p->m, p->k, v->block_rows, s->slots * v->block_cols, s->ell_columns,
                                                  (void *)values, SPARSE_I32, 0, type),
                               "cusparseCreateBlockedEll"));
    else
        SPK_TRY(spk_sparse_try(sparse->create_bsr(&all->a, v->grid_rows, v->grid_cols, v->nnzb, v->block_rows, v->block_cols,
                                                  (void *)index->offsets, (void *)index->columns, (void *)values, SPARSE_I32, SPARSE_I32, 0,
                                                  type, spk_sparse_order(p->block_layout)),
                               "cusparseCreateBsr"));
    SPK_TRY(spk_sparse_try(sparse->create_dense(&all->b, p->k, p->n, p->b.ld, (void *)b, type, spk_sparse_order(p->b.layout)),
                           "cusparseCreateDnMat"));
    return spk_sparse_try(sparse->create_dense(&all->d, p->m, p->n, s->around.acc.ld, d, out, spk_sparse_order(p->d.layout)),
                          "cusparseCreateDnMat");
}

/* Asks for the buffer with addresses that are only looked at. */
static spk_status ask_buffer(const spk_bound *bound, sparse_state *s)
{
    const spk_problem *p = &bound->problem;
    const spk_sparse_functions *sparse;
    void *handle = NULL;
    descriptors all = {NULL, NULL, NULL};
    double one64 = 1, zero64 = 0;
    float one32 = 1, zero32 = 0;
    bool wide = p->a.dtype == SPK_F64;
    void *somewhere = (void *)s->around.index.arguments.offsets;
    spk_status status = spk_sparse_begin(bound->device, &sparse, &handle);
    if (status == SPK_OK)
        status = describe(bound, sparse, s, somewhere, somewhere, somewhere, &all);
    if (status == SPK_OK)
        status = spk_sparse_try(sparse->buffer(handle, 0, 0, wide ? (void *)&one64 : (void *)&one32, all.a, all.b,
                                               wide ? (void *)&zero64 : (void *)&zero32, all.d, spk_cuda_type_of_sums(p->a.dtype),
                                               s->is_ell ? SPARSE_ALG_ELL : SPARSE_ALG_BSR, &s->buffer_bytes),
                                "cusparseSpMM_bufferSize");
    destroy(sparse, &all);
    spk_sparse_end();
    return status;
}

static void release(const spk_bound *bound, sparse_state *s)
{
    spk_around_release(bound, &s->around);
    if (s->ell_columns != NULL)
        bound->device->backend->release(bound->device, s->ell_columns);
    if (s->values != NULL)
        bound->device->backend->release(bound->device, s->values);
    spk_free(&bound->device->mem, s);
}

static void unbind(spk_bound *bound)
{
    if (bound->state == NULL)
        return;
    release(bound, bound->state);
    bound->state = NULL;
}

/* ------------------------------------------------------------------------------------------------ Blocked-ELL */

/* Block columns in rows of one length; -1 marks an empty slot. */
static spk_status upload_ell_columns(const spk_bound *bound, sparse_state *s)
{
    const spk_bsr_view *v = &bound->view;
    spk_device *device = bound->device;
    int32_t *columns = NULL;
    size_t count = (size_t)(v->grid_rows * s->slots);
    SPK_TRY(spk_alloc(&device->mem, count, sizeof *columns, &columns));
    for (int64_t i = 0; i < v->grid_rows; i++)
        for (int64_t j = 0; j < s->slots; j++)
            columns[i * s->slots + j] = v->offsets[i] + j < v->offsets[i + 1] ? v->columns[v->offsets[i] + j] : -1;
    spk_status status = device->backend->allocate(device, count * sizeof *columns, &s->ell_columns);
    if (status == SPK_OK)
        status = device->backend->copy_in(device, s->ell_columns, columns, count * sizeof *columns);
    spk_free(&device->mem, columns);
    return status;
}

static spk_status bind_ell(spk_bound *bound, sparse_state *s)
{
    const spk_problem *p = &bound->problem;
    spk_build build = {.file = "fill_ell.cu", .entry = "fill_ell"};
    spk_problem_device_defines(p, build.options, sizeof build.options);
    s->is_ell = true;
    s->slots = longest_row(&bound->view);
    s->ell_bytes = spk_round_up((size_t)(bound->view.grid_rows * s->slots * bound->view.block_stride) * spk_dtype_bytes(p->a.dtype), 256);
    SPK_TRY(spk_cuda_function(bound->device, &build, &s->fill));
    SPK_TRY(upload_ell_columns(bound, s));
    return p->static_values ? bound->device->backend->allocate(bound->device, s->ell_bytes, &s->values) : SPK_OK;
}

/* The blocks side by side, row by row, as the format has them: element (i, j) of the rows x (slots * block) array of values. */
static spk_status fill(const spk_bound *bound, const sparse_state *s, const spk_args *args, void *out, CUstream stream)
{
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_cuda_arguments arguments;
    spk_cuda_arguments_fill(&s->around.index, args, &arguments);
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->fill_bytes((CUdeviceptr)(uintptr_t)out, 0, s->ell_bytes, stream), "cuMemsetD8Async"));
    long long slots = s->slots;
    void *parameters[] = {&arguments, &out, &slots};
    return spk_cuda_launch(bound->device, s->fill, (unsigned)arguments.grid_rows, FILL_ELL_THREADS, 0, stream, parameters);
}

static spk_status update_ell(spk_bound *bound, const void *values)
{
    sparse_state *s = bound->state;
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_args args = {.a = values};
    spk_status status = fill(bound, s, &args, s->values, cuda->stream);
    if (status == SPK_OK)
        status = spk_cuda_try(cuda->driver, cuda->driver->stream_synchronize(cuda->stream), "cuStreamSynchronize");
    s->ready = status == SPK_OK;
    return status;
}

/* ------------------------------------------------------------------------------------------------ binding and running */

static spk_status bind_as(spk_bound *bound, bool is_ell)
{
    sparse_state *s = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_status status;
    SPK_GOTO(spk_around_make(bound, spk_around_is_plain(&bound->problem), &s->around));
    if (is_ell)
        SPK_GOTO(bind_ell(bound, s));
    SPK_GOTO(ask_buffer(bound, s));
    bound->workspace_bytes =
        s->around.acc_bytes + spk_round_up(s->buffer_bytes, 256) + (is_ell && !bound->problem.static_values ? s->ell_bytes : 0);
    bound->state = s;
    return SPK_OK;
done:
    release(bound, s);
    return status;
}

static spk_status bsr_bind(spk_bound *bound)
{
    return bind_as(bound, false);
}

static spk_status ell_bind(spk_bound *bound)
{
    return bind_as(bound, true);
}

/* D = C, where the library adds to what is there and C lies elsewhere. */
static spk_status start_from_c(const spk_bound *bound, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    size_t bytes = spk_dtype_bytes(p->d.dtype);
    int64_t lines = p->d.layout == SPK_ROW_MAJOR ? p->m : p->n, length = p->d.layout == SPK_ROW_MAJOR ? p->n : p->m;
    if (args->c == args->d)
        return SPK_OK;
    if (p->c.ld == length && p->d.ld == length)
        return spk_cuda_try(cuda->driver,
                            cuda->driver->copy_within((CUdeviceptr)(uintptr_t)args->d, (CUdeviceptr)(uintptr_t)args->c,
                                                      (size_t)(lines * length) * bytes, stream),
                            "cuMemcpyDtoDAsync");
    for (int64_t i = 0; i < lines; i++)
        SPK_TRY(spk_cuda_try(cuda->driver,
                             cuda->driver->copy_within((CUdeviceptr)(uintptr_t)args->d + (size_t)(i * p->d.ld) * bytes,
                                                       (CUdeviceptr)(uintptr_t)args->c + (size_t)(i * p->c.ld) * bytes,
                                                       (size_t)length * bytes, stream),
                             "cuMemcpyDtoDAsync"));
    return SPK_OK;
}

static spk_status multiply(const spk_bound *bound, const sparse_state *s, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    char *work = args->workspace;
    void *acc = s->around.direct ? args->d : work, *buffer = work + s->around.acc_bytes;
    const void *values = args->a;
    if (s->is_ell) {
        void *out = s->values != NULL ? s->values : (void *)(work + s->around.acc_bytes + spk_round_up(s->buffer_bytes, 256));
        if (s->values == NULL)
            SPK_TRY(fill(bound, s, args, out, stream));
        values = out;
    }
    bool with_c = s->around.direct && p->epilogue.use_c && args->beta != 0, wide = p->a.dtype == SPK_F64;
    if (with_c)
        SPK_TRY(start_from_c(bound, args, stream));
    double alpha64 = s->around.direct ? args->alpha : 1, beta64 = with_c ? args->beta : 0;
    float alpha32 = (float)alpha64, beta32 = (float)beta64;
    const spk_sparse_functions *sparse;
    void *handle = NULL;
    descriptors all = {NULL, NULL, NULL};
    spk_status status = spk_sparse_begin(bound->device, &sparse, &handle);
    if (status == SPK_OK)
        status = describe(bound, sparse, s, values, args->b, acc, &all);
    if (status == SPK_OK)
        status = spk_sparse_try(sparse->set_stream(handle, stream), "cusparseSetStream");
    if (status == SPK_OK)
        status = spk_sparse_try(sparse->multiply(handle, 0, 0, wide ? (void *)&alpha64 : (void *)&alpha32, all.a, all.b,
                                                 wide ? (void *)&beta64 : (void *)&beta32, all.d, spk_cuda_type_of_sums(p->a.dtype),
                                                 s->is_ell ? SPARSE_ALG_ELL : SPARSE_ALG_BSR, buffer),
                                "cusparseSpMM");
    destroy(sparse, &all);
    spk_sparse_end();
    return status == SPK_OK ? spk_around_finish(bound, &s->around, args, acc, stream) : status;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const sparse_state *s = bound->state;
    if (s->is_ell && s->values != NULL && !s->ready)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    return multiply(bound, s, args, stream);
}

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const sparse_state *s = bound->state;
    return spk_around_takes(bound, &s->around, args);
}

const spk_kernel_ops cusparse_bsr_ops = {.applicable = bsr_applicable,
                                         .predict_us = bsr_predict,
                                         .bind = bsr_bind,
                                         .unbind = unbind,
                                         .accepts = accepts,
                                         .run = run,
                                         .source_hash = SPK_SOURCE_HASH};

const spk_kernel_ops cusparse_blocked_ell_ops = {.applicable = ell_applicable,
                                                 .predict_us = ell_predict,
                                                 .bind = ell_bind,
                                                 .unbind = unbind,
                                                 .update_values = update_ell,
                                                 .run = run,
                                                 .source_hash = SPK_SOURCE_HASH};
