/* A row of the tiled SpMM for float16 and bfloat16: who includes this says ROW and ISA. */
#include "backend/cpu/kernels/cost.h"
#include "backend/cpu/kernels/spmm/tile_half.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (!tile_converts(problem))
        *why = "it is for f16 and bf16";
    return *why == NULL && tile_applicable(problem, TILE_TUNED(ROW, params), &machine_f32, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, TILE_TUNED(ROW, params), &machine_f32);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return tile_execute_half(bound, args);
}

#define TILE_OPS                                                                                                            \
    {                                                                                                                       \
        .applicable = applicable, .predict_us = predict_us, .bind = tile_bind_half, .unbind = tile_unbind_half, .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                                      \
    }
