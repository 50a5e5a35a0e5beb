/* A row of the GEMM with few rows or columns for all types: who includes this says ISA. */
#define TEMPLATE "backend/cpu/kernels/gemm/gemm_narrow.h"
#include "backend/cpu/kernels/vectors/for_each_type.h"

static const tile_machine *machine_of(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64 ? &machine_f64 : &machine_f32;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    return narrow_gemm_applicable(problem, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return narrow_gemm_cost(problem, device, machine_of(problem));
}

static spk_status bind(spk_bound *bound)
{
    return narrow_gemm_bind(bound, machine_of(&bound->problem));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    switch (bound->problem.a.dtype) {
    case SPK_F64:
        return narrow_execute_f64(bound, args);
    case SPK_F16:
        return narrow_execute_f16(bound, args);
    case SPK_BF16:
        return narrow_execute_bf16(bound, args);
    default:
        return narrow_execute_f32(bound, args);
    }
}

#define GEMM_OPS                                                                                             \
    {                                                                                                        \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = gemm_unbind, .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                       \
    }
