/* sddmm_sm80_mma: host side. */
#include "backend/cuda/kernels/sddmm_sm80_mma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/sddmm_gather.h"
#include "backend/cuda/host/tiles/warp_mma.h"

enum { HALF_SUMS = 2048, WIDE_SUMS = 1024 }; /* of a warp */

static int sums_of(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64 ? WIDE_SUMS : HALF_SUMS;
}

static warp_mma_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    warp_mma_shape shape = spk_warp_mma_tile(problem->pattern->block_rows, WARP_MMA_TUNED(sddmm_sm80_mma, params), sums_of(problem));
    spk_sddmm_gather_complete(problem, &shape.team);
    return shape;
}

static bool types_fit(const spk_problem *problem, const char **why)
{
    const bool halves = problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16;
    if (halves && problem->compute != SPK_F32)
        *why = "it keeps its sums in f32";
    else if (!halves && problem->a.dtype != SPK_F64 && (problem->a.dtype != SPK_F32 || problem->compute != SPK_TF32))
        *why = "it is for f16, bf16, f64, and f32 with TF32 products";
    return *why == NULL;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const int rows = problem->pattern->block_rows, swap = SPK_TUNED(sddmm_sm80_mma, params, SWAP),
              most = SPK_TUNED(sddmm_sm80_mma, params, HEIGHT), depth = SPK_TUNED(sddmm_sm80_mma, params, TILE_K);
    if (!types_fit(problem, why))
        return false;
    const warp_mma_shape shape = shape_of(problem, params);
    if (swap && spk_gather_round(rows, 16) == spk_gather_round(rows, 8))
        *why = "blocks of so many rows fill the side of 16";
    else if (!swap && rows <= 8)
        *why = "blocks of so few rows fill the side of 8 only";
    else if (most > 64 && spk_gather_round(rows, swap ? 8 : 16) <= most / 2)
        *why = "a lower tile holds the block's rows";
    else if (problem->a.dtype == SPK_F64 ? depth > 32 || most > 64 : depth < 32)
        *why = "steps are of 32 to 128 bytes a line";
    else if (problem->a.dtype == SPK_F32 && most > 64 && SPK_TUNED(sddmm_sm80_mma, params, TILE_N) == 32)
        *why = "the fragments of so high and narrow a tile of TF32 take too many registers";
    else if (shape.team.c.tile_m / shape.c.warps_m * (shape.team.c.tile_n / shape.c.warps_n) > 2 * sums_of(problem))
        *why = "a warp would keep too many sums";
    else
        spk_sddmm_gather_applicable(problem, device, &shape.team, SPK_TUNED(sddmm_sm80_mma, params, SPLIT), why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_mma_shape shape = shape_of(problem, params);
    const double peak = (device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 60) * (problem->a.dtype == SPK_F64   ? 1
                                                                                              : problem->a.dtype == SPK_F32 ? 3
                                                                                                                            : 7);
    const double m = shape.team.c.tile_m / shape.c.warps_m, n = shape.team.c.tile_n / shape.c.warps_n,
                 busy = m * n / (m * n + (problem->a.dtype == SPK_F64 ? 16 : 8) * (m + n));
    return spk_sddmm_gather_predict(problem, device, &shape.team, SPK_TUNED(sddmm_sm80_mma, params, SPLIT), peak * busy);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const warp_mma_shape shape = shape_of(problem, params);
    spk_sddmm_gather_build(problem, &shape.team, "sddmm_sm80_mma.cu", "sddmm_sm80_mma", build);
    spk_warp_mma_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_mma_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_sddmm_gather_bind(bound, &shape.team, &made, SPK_TUNED(sddmm_sm80_mma, &bound->params, SPLIT));
}

const spk_kernel_ops sddmm_sm80_mma_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_sddmm_gather_unbind,
                                           .run = spk_sddmm_gather_run,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
