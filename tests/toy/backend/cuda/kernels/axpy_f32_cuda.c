/* axpy_f32_cuda: D = alpha X + Y in float32 on a GPU. Bound: memory. */
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/host/frame/rows.h"
#include "op/axpy/operands.h"

enum { MOST_BLOCKS = 1 << 20 };

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->operand[AXPY_D].dtype != SPK_F32)
        *why = "it is for f32";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return 2 + spk_problem_bytes(problem) / (device->stream_gbs * 1e3);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    spk_build_begin(build, "axpy_f32_cuda.cu", "axpy_f32_cuda", problem);
    spk_build_define(build, "THREADS", SPK_TUNED(axpy_f32_cuda, params, THREADS));
}

static spk_status bind(spk_bound *bound)
{
    CUfunction function = NULL;
    spk_build program;
    spk_cuda_scope scope;
    build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    const spk_status status = spk_cuda_function(bound->device, &program, &function);
    spk_cuda_leave(&scope);
    bound->state = function; /* the device's */
    return status;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    const unsigned threads = (unsigned)SPK_TUNED(axpy_f32_cuda, &bound->params, THREADS);
    const int64_t blocks = p->m * ((p->n + threads - 1) / threads);
    float alpha = (float)args->scalar[AXPY_ALPHA];
    int64_t m = p->m, n = p->n, ld[AXPY_D + 1];
    void *at[AXPY_D + 1];
    for (int i = AXPY_X; i <= AXPY_D; i++) {
        at[i] = args->at[i];
        ld[i] = p->operand[i].ld;
    }
    void *parameters[] = {&alpha, &at[AXPY_X], &ld[AXPY_X], &at[AXPY_Y], &ld[AXPY_Y], &at[AXPY_D], &ld[AXPY_D], &m, &n};
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    const spk_status status = spk_cuda_launch(bound->device, bound->state, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), threads,
                                              0, (CUstream)stream, parameters);
    spk_cuda_leave(&scope);
    return status;
}

const spk_kernel_ops axpy_f32_cuda_ops = {
    .applicable = applicable, .predict_us = predict_us, .build = build, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH};
