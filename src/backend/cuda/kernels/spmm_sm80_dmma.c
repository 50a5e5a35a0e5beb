/* spmm_sm80_dmma: host side. */
#include "backend/cuda/kernels/spmm_sm80_dmma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/warp_mma.h"

enum { SUMS = 1024 }; /* of a warp: 32 a thread */
static const char adding[] = "spmm_sm80_dmma_add";

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    if (problem->a.dtype != SPK_F64 || problem->b.dtype != SPK_F64 || problem->compute != SPK_F64)
        *why = "it is for f64";
    else
        spk_warp_mma_applicable(problem, device, WARP_MMA_TUNED(spmm_sm80_dmma, params), SUMS, adding, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, WARP_MMA_TUNED(spmm_sm80_dmma, params), SUMS, adding);
    const double peak = (device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 60);
    return spk_gather_predict(problem, device, &shape.team, peak * spk_warp_mma_busy(&shape, 16));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    spk_warp_mma_build(problem, WARP_MMA_TUNED(spmm_sm80_dmma, params), SUMS, "spmm_sm80_dmma.cu", "spmm_sm80_dmma", adding, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_mma_shape shape = spk_warp_mma_shape_of(&bound->problem, WARP_MMA_TUNED(spmm_sm80_dmma, &bound->params), SUMS, adding);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_gather_bind(bound, &shape.team, &made);
}

const spk_kernel_ops spmm_sm80_dmma_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_gather_unbind,
                                           .run = spk_gather_run,
                                           .device_indices = true,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
