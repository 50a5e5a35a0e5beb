/* spmm_cuda_simt: host side. A team covers up to 64 rows of a block row with threads of up to 8 rows. */
#include "backend/cuda/kernels/spmm_cuda_simt.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/simt.h"

static simt_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    simt_shape shape = spk_simt_tile(spk_gather_block_rows(problem), SIMT_TUNED(spmm_cuda_simt, params));
    shape.team.adding = SPK_TUNED(spmm_cuda_simt, params, SPLIT) ? "spmm_cuda_simt_add" : NULL;
    if (shape.team.c.threads >= 32)
        spk_gather_complete(problem, &shape.team);
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const simt_shape shape = shape_of(problem, params);
    if (!spk_simt_tile_fits(problem, &shape, why))
        return false;
    if (shape.team.c.tile_n > 32 && shape.team.c.tile_n / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (shape.team.c.tile_n == 32 && problem->n > 64)
        *why = "so many columns fill wider tiles";
    else
        spk_gather_applicable(problem, device, &shape.team, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const simt_shape shape = shape_of(problem, params);
    return spk_gather_predict(problem, device, &shape.team, spk_simt_tflops(problem, device, &shape));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const simt_shape shape = shape_of(problem, params);
    spk_gather_build(problem, &shape.team, "spmm_cuda_simt.cu", "spmm_cuda_simt", build);
    spk_simt_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const simt_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_gather_bind(bound, &shape.team, &made);
}

const spk_kernel_ops spmm_cuda_simt_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_gather_unbind,
                                           .run = spk_gather_run,
                                           .device_indices = true,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
