/* reference_cuda_attention: host side. */
#include "backend/cuda/kernels/reference_cuda_attention.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>

#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch.h"
#include "op/attention/attention.h"

enum { MOST_BLOCKS = 132 * 16 };

typedef struct state {
    spk_cuda_index index;
    CUfunction function;
    attention_task task;
} state;

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (p->m > INT_MAX / 4 || p->n > INT_MAX / 4 || p->k > INT_MAX / 4 || p->depth_v > INT_MAX / 4)
        *why = "it counts with 29 bits";
    return *why == NULL;
}

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 10 + spk_problem_flops(p) / 3e5;
}

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    (void)params;
    spk_build_begin(build, "reference_cuda_attention.cu", "reference_cuda_attention", p);
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    spk_build_define(build, "COMPUTE", p->compute);
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

static spk_status bind(spk_bound *bound)
{
    spk_build program;
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    build(&bound->problem, bound->device, &bound->params, &program);
    spk_status status = spk_cuda_function(bound->device, &program, &made->function);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status != SPK_OK)
        unbind(bound);
    else
        made->task = spk_cuda_attention_task(&bound->problem, &made->index);
    return status;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    const int64_t queries = bound->problem.m * spk_operand_heads(&bound->problem.operand[ATTENTION_Q]) * bound->problem.batch,
                  each = REFERENCE_ATTENTION_THREADS / 32, blocks = (queries + each - 1) / each;
    attention_task task = made->task;
    if (queries == 0)
        return SPK_OK;
    spk_cuda_attention_fill(&bound->problem, args, &task);
    void *parameters[] = {&task};
    return spk_cuda_launch(bound->device, made->function, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                           REFERENCE_ATTENTION_THREADS, 0, (CUstream)stream, parameters);
}

const spk_kernel_ops reference_cuda_attention_ops = {.applicable = applicable,
                                                     .predict_us = predict_us,
                                                     .build = build,
                                                     .bind = bind,
                                                     .unbind = unbind,
                                                     .run = run,
                                                     .batched = true,
                                                     .device_indices = true,
                                                     .source_hash = SPK_SOURCE_HASH};
