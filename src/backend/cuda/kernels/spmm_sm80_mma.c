/* spmm_sm80_mma: host side. */
#include "backend/cuda/kernels/spmm_sm80_mma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/warp_mma.h"

enum { SUMS = 2048, MOST_TF32_COLUMNS = 128 }; /* SUMS: of a warp: 64 a thread */
static const char adding[] = "spmm_sm80_mma_add";

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, WARP_MMA_TUNED(spmm_sm80_mma, params), SUMS, adding);
    const bool halves = problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16;
    if (!halves && (problem->a.dtype != SPK_F32 || problem->compute != SPK_TF32))
        *why = "it is for f16, bf16, and f32 with TF32 products";
    else if (problem->b.dtype != problem->a.dtype)
        *why = "A and B must have the same type";
    else if (halves && problem->compute != SPK_F32)
        *why = "it keeps its sums in f32";
    else if (!halves && shape.team.c.tile_n / shape.c.warps_n > MOST_TF32_COLUMNS)
        *why = "a warp would keep too many fragments";
    else
        spk_warp_mma_applicable(problem, device, WARP_MMA_TUNED(spmm_sm80_mma, params), SUMS, adding, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, WARP_MMA_TUNED(spmm_sm80_mma, params), SUMS, adding);
    const double peak = (device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 60) * (problem->a.dtype == SPK_F32 ? 3 : 7);
    return spk_gather_predict(problem, device, &shape.team, peak * spk_warp_mma_busy(&shape, 8));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    spk_warp_mma_build(problem, WARP_MMA_TUNED(spmm_sm80_mma, params), SUMS, "spmm_sm80_mma.cu", "spmm_sm80_mma", adding, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_mma_shape shape = spk_warp_mma_shape_of(&bound->problem, WARP_MMA_TUNED(spmm_sm80_mma, &bound->params), SUMS, adding);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_gather_bind(bound, &shape.team, &made);
}

const spk_kernel_ops spmm_sm80_mma_ops = {.applicable = applicable,
                                          .predict_us = predict_us,
                                          .build = build,
                                          .bind = bind,
                                          .unbind = spk_gather_unbind,
                                          .run = spk_gather_run,
                                          .device_indices = true,
                                          .batched = true,
                                          .source_hash = SPK_SOURCE_HASH};
