/* A row of the tiled SDDMM for all types: who includes this says ROW and ISA. */
#define TEMPLATE "backend/cpu/kernels/sddmm/sddmm_tiles.h"
#include "backend/cpu/kernels/vectors/for_each_type.h"

static const tile_machine *machine_of(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64 ? &machine_f64 : &machine_f32;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    return sddmm_applicable(problem, device, SDDMM_TUNED(ROW, params), machine_of(problem), why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return sddmm_cost(problem, device, SDDMM_TUNED(ROW, params), machine_of(problem));
}

static spk_status bind(spk_bound *bound)
{
    return sddmm_bind(bound, SDDMM_TUNED(ROW, &bound->params), machine_of(&bound->problem));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    switch (bound->problem.a.dtype) {
    case SPK_F64:
        return sddmm_execute_f64(bound, args);
    case SPK_F16:
        return sddmm_execute_f16(bound, args);
    case SPK_BF16:
        return sddmm_execute_bf16(bound, args);
    default:
        return sddmm_execute_f32(bound, args);
    }
}

#define SDDMM_OPS                                                                                             \
    {                                                                                                         \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = sddmm_unbind, .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                        \
    }
