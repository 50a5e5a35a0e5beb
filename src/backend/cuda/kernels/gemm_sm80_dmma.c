/* gemm_sm80_dmma: host side. */
#include "backend/cuda/kernels/gemm_sm80_dmma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/dense_tiles.h"
#include "backend/cuda/host/tiles/warp_mma.h"

enum { SUMS = 2048 }; /* of a warp: 64 a thread */

#define TUNED(params, name) SPK_TUNED(gemm_sm80_dmma, params, name)

static warp_mma_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    warp_mma_shape shape = spk_warp_mma_square(TUNED(params, HEIGHT), TUNED(params, WIDTH), SUMS);
    shape.team.c.tile_k = TUNED(params, TILE_K);
    shape.team.c.stages = TUNED(params, STAGES);
    spk_dense_tiles_complete(problem, &shape.team, TUNED(params, SPLIT), "gemm_sm80_dmma_add");
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const warp_mma_shape shape = shape_of(problem, params);
    if (problem->a.dtype != SPK_F64 || problem->b.dtype != SPK_F64 || problem->compute != SPK_F64)
        *why = "it is for f64";
    else if (!spk_warp_mma_fills(&shape, SUMS))
        *why = "instructions do not fill so small a tile, or warps so large a one";
    else
        spk_dense_tiles_applicable(problem, device, &shape.team, TUNED(params, SPLIT), why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_mma_shape shape = shape_of(problem, params);
    const double peak = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 60;
    return spk_dense_tiles_predict(problem, device, &shape.team, TUNED(params, SPLIT), peak * spk_warp_mma_busy(&shape, 16));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const warp_mma_shape shape = shape_of(problem, params);
    spk_dense_tiles_build(problem, &shape.team, "gemm_sm80_dmma.cu", "gemm_sm80_dmma", build);
    spk_warp_mma_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_mma_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_dense_tiles_bind(bound, &shape.team, TUNED(&bound->params, SPLIT), &made);
}

const spk_kernel_ops gemm_sm80_dmma_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_dense_tiles_unbind,
                                           .run = spk_dense_tiles_run,
                                           .batched = true,
                                           .grouped = true,
                                           .source_hash = SPK_SOURCE_HASH};
