/* A row of the SpMM with a few columns for float16 and bfloat16: who includes this says ISA. */
#include "backend/cpu/kernels/cost.h"

#undef TYPE
#define TYPE F16
#include "backend/cpu/kernels/spmm/narrow_spmm.h"

#undef TYPE
#define TYPE BF16
#include "backend/cpu/kernels/spmm/narrow_spmm.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (!tile_converts(problem))
        *why = "it is for f16 and bf16";
    return *why == NULL && narrow_applicable(problem, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return cost_of_narrow(problem, device, lanes_f32, sizeof(uint16_t));
}

static spk_status bind(spk_bound *bound)
{
    return bound->problem.a.dtype == SPK_BF16 ? narrow_bind_bf16(bound) : narrow_bind_f16(bound);
}

static void unbind(spk_bound *bound)
{
    (bound->problem.a.dtype == SPK_BF16 ? narrow_unbind_bf16 : narrow_unbind_f16)(bound);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return bound->problem.a.dtype == SPK_BF16 ? narrow_execute_bf16(bound, args) : narrow_execute_f16(bound, args);
}

#define NARROW_OPS                                                                                                                     \
    {                                                                                                                                  \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH \
    }
