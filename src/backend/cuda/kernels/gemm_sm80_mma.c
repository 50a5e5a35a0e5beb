/* gemm_sm80_mma: host side. */
#include "backend/cuda/kernels/gemm_sm80_mma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/dense_tiles.h"
#include "backend/cuda/host/tiles/warp_mma.h"

enum { SUMS = 4096, MOST_TF32 = 64 }; /* SUMS: of a warp, 128 a thread; MOST_TF32: of a thread */

#define TUNED(params, name) SPK_TUNED(gemm_sm80_mma, params, name)

static warp_mma_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    warp_mma_shape shape = spk_warp_mma_square(TUNED(params, HEIGHT), TUNED(params, WIDTH), SUMS);
    shape.team.c.tile_k = TUNED(params, TILE_K);
    shape.team.c.stages = TUNED(params, STAGES);
    spk_dense_tiles_complete(problem, &shape.team, TUNED(params, SPLIT), "gemm_sm80_mma_add");
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const bool halves = problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16;
    const warp_mma_shape shape = shape_of(problem, params);
    if (!halves && (problem->a.dtype != SPK_F32 || problem->compute != SPK_TF32))
        *why = "it is for f16, bf16, and f32 with TF32 products";
    else if (problem->b.dtype != problem->a.dtype)
        *why = "A and B must have the same type";
    else if (halves && problem->compute != SPK_F32)
        *why = "it keeps its sums in f32";
    else if (!halves && TUNED(params, HEIGHT) * TUNED(params, WIDTH) > MOST_TF32 * shape.team.c.threads)
        *why = "its sums leave no registers for elements of 32 bits";
    else if (!spk_warp_mma_fills(&shape, SUMS))
        *why = "instructions do not fill so small a tile, or warps so large a one";
    else
        spk_dense_tiles_applicable(problem, device, &shape.team, TUNED(params, SPLIT), why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_mma_shape shape = shape_of(problem, params);
    const double peak = (device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 60) * (problem->a.dtype == SPK_F32 ? 3 : 7);
    return spk_dense_tiles_predict(problem, device, &shape.team, TUNED(params, SPLIT), peak * spk_warp_mma_busy(&shape, 8));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const warp_mma_shape shape = shape_of(problem, params);
    spk_dense_tiles_build(problem, &shape.team, "gemm_sm80_mma.cu", "gemm_sm80_mma", build);
    spk_warp_mma_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_mma_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_dense_tiles_bind(bound, &shape.team, TUNED(&bound->params, SPLIT), &made);
}

const spk_kernel_ops gemm_sm80_mma_ops = {.applicable = applicable,
                                          .predict_us = predict_us,
                                          .build = build,
                                          .bind = bind,
                                          .unbind = spk_dense_tiles_unbind,
                                          .run = spk_dense_tiles_run,
                                          .batched = true,
                                          .grouped = true,
                                          .source_hash = SPK_SOURCE_HASH};
