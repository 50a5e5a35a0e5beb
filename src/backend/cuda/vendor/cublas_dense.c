/* cublas_dense: A made dense by a program of ours, then one cuBLASLt product: the yardstick. It multiplies the zeros it filled in, so it
 * wins only with assume_finite; without static_values, filling in is part of its time. ALGO: the library's first, second ...
 * recommendation. */
#include <stdio.h>
#include <string.h>

#include "backend/cuda/helpers/fill_dense.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/vendor/vendor.h"

typedef struct dense_state {
    spk_lt_product product;
    int64_t lda; /* of the dense A, which lies row by row */
    spk_around around;
    CUfunction fill;
    size_t dense_bytes;
    void *values; /* with static_values: the dense A */
    bool ready;
} dense_state;

static size_t dense_size(const spk_problem *p)
{
    size_t line = spk_round_up((size_t)p->k, 8);
    return spk_round_up((size_t)p->m * line * spk_dtype_bytes(p->a.dtype), 256);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = spk_cuda_vendor_refusal(problem);
    if (*why == NULL && (double)dense_size(problem) > (double)device->memory_bytes / 4)
        *why = "the dense matrix would take more than a quarter of the memory";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    double fill = problem->static_values ? 0 : 2 + 1.3 * (double)dense_size(problem) / (device->stream_gbs * 1e3);
    return spk_cuda_dense_us(problem, device) * (1 + spk_lt_rank_cost * SPK_TUNED(cublas_dense, params, ALGO)) + fill;
}

static void fill_build(const spk_problem *problem, spk_build *build)
{
    *build = (spk_build){.file = "fill_dense.cu", .entry = "fill_dense"};
    spk_problem_device_defines(problem, build->options, sizeof build->options);
}

static spk_lt_spec describe(const spk_problem *p, const dense_state *s, int rank)
{
    const spk_operand dense = {.rows = p->m, .cols = p->k, .ld = s->lda, .dtype = p->a.dtype, .layout = SPK_ROW_MAJOR};
    return (spk_lt_spec){.a = dense,
                         .b = p->b,
                         .c = s->around.direct ? p->c : (spk_operand){0},
                         .d = s->around.acc,
                         .compute = p->compute,
                         .items = 1,
                         .rank = rank};
}

static void release(const spk_bound *bound, dense_state *s)
{
    spk_lt_release(&s->product);
    spk_around_release(bound, &s->around);
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

static spk_status bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    dense_state *s = NULL;
    spk_build build;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_status status;
    s->lda = (int64_t)spk_round_up((size_t)p->k, 8);
    s->dense_bytes = dense_size(p);
    SPK_GOTO(spk_around_make(bound, spk_around_is_plain(p), &s->around));
    fill_build(p, &build);
    SPK_GOTO(spk_cuda_function(bound->device, &build, &s->fill));
    const spk_lt_spec spec = describe(p, s, SPK_TUNED(cublas_dense, &bound->params, ALGO));
    SPK_GOTO(spk_lt_make(bound->device, &spec, &s->product));
    if (p->static_values)
        SPK_GOTO(bound->device->backend->allocate(bound->device, s->dense_bytes, &s->values));
    bound->workspace_bytes = s->around.acc_bytes + spk_round_up(s->product.workspace_bytes, 256) + (p->static_values ? 0 : s->dense_bytes);
    bound->state = s;
    return SPK_OK;
done:
    release(bound, s);
    return status;
}

/* Zeros, then every stored block at its place. */
static spk_status fill(const spk_bound *bound, const dense_state *s, const spk_args *args, void *out, CUstream stream)
{
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_cuda_arguments arguments;
    spk_cuda_arguments_fill(&s->around.index, args, &arguments);
    SPK_TRY(
        spk_cuda_try(cuda->driver, cuda->driver->fill_bytes((CUdeviceptr)(uintptr_t)out, 0, s->dense_bytes, stream), "cuMemsetD8Async"));
    if (arguments.nnzb == 0)
        return SPK_OK;
    long long lda = s->lda;
    void *parameters[] = {&arguments, &out, &lda};
    int64_t turns = (arguments.nnzb / arguments.grid_rows + 1) / 2; /* two blocks of the matrix for a thread block */
    turns = turns < 1 ? 1 : turns > 64 ? 64 : turns;
    return spk_cuda_launch(bound->device, s->fill, (unsigned)(arguments.grid_rows * turns), FILL_DENSE_THREADS, 0, stream, parameters);
}

static spk_status update_values(spk_bound *bound, const void *values)
{
    dense_state *s = bound->state;
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_args args = {.a = values};
    spk_status status = fill(bound, s, &args, s->values, cuda->stream);
    if (status == SPK_OK)
        status = spk_cuda_try(cuda->driver, cuda->driver->stream_synchronize(cuda->stream), "cuStreamSynchronize");
    s->ready = status == SPK_OK;
    return status;
}

static spk_status multiply(const spk_bound *bound, const dense_state *s, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    char *work = args->workspace;
    void *acc = s->around.direct ? args->d : work, *lt_work = work + s->around.acc_bytes;
    void *dense = s->values != NULL ? s->values : work + s->around.acc_bytes + spk_round_up(s->product.workspace_bytes, 256);
    if (s->values == NULL)
        SPK_TRY(fill(bound, s, args, dense, stream));
    bool with_c = s->around.direct && p->epilogue.use_c && args->beta != 0;
    const spk_lt_arrays arrays = {.a = dense, .b = args->b, .c = with_c ? args->c : acc, .d = acc};
    SPK_TRY(spk_lt_run(&s->product, s->around.direct ? args->alpha : 1, with_c ? args->beta : 0, &arrays, lt_work, stream));
    return spk_around_finish(bound, &s->around, args, acc, stream);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const dense_state *s = bound->state;
    if (s->values != NULL && !s->ready)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    return multiply(bound, s, args, stream);
}

const spk_kernel_ops cublas_dense_ops = {.applicable = applicable,
                                         .predict_us = predict_us,
                                         .bind = bind,
                                         .unbind = unbind,
                                         .update_values = update_values,
                                         .run = run,
                                         .source_hash = SPK_SOURCE_HASH};
