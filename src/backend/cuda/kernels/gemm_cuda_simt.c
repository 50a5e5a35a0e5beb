/* gemm_cuda_simt: host side. A tile has HEIGHT rows, or all of D's where it has fewer, with threads of up to 8 rows. */
#include "backend/cuda/kernels/gemm_cuda_simt.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/dense_tiles.h"
#include "backend/cuda/host/tiles/simt.h"

#define TUNED(params, name) SPK_TUNED(gemm_cuda_simt, params, name)

static simt_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    const int most = TUNED(params, HEIGHT), height = problem->m < most ? (int)problem->m : most;
    simt_shape shape = spk_simt_tile_of(height > 0 ? height : 1, SIMT_TUNED(gemm_cuda_simt, params));
    if (shape.team.c.threads >= 32)
        spk_dense_tiles_complete(problem, &shape.team, TUNED(params, SPLIT), "gemm_cuda_simt_add");
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const simt_shape shape = shape_of(problem, params);
    if (!spk_simt_tile_fits(problem, &shape, why))
        return false;
    if (TUNED(params, HEIGHT) > 8 && TUNED(params, HEIGHT) / 2 >= problem->m)
        *why = "a lower tile holds all rows";
    else
        spk_dense_tiles_applicable(problem, device, &shape.team, TUNED(params, SPLIT), why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const simt_shape shape = shape_of(problem, params);
    return spk_dense_tiles_predict(problem, device, &shape.team, TUNED(params, SPLIT), spk_simt_tflops(problem, device, &shape));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const simt_shape shape = shape_of(problem, params);
    spk_dense_tiles_build(problem, &shape.team, "gemm_cuda_simt.cu", "gemm_cuda_simt", build);
    spk_simt_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const simt_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_dense_tiles_bind(bound, &shape.team, TUNED(&bound->params, SPLIT), &made);
}

const spk_kernel_ops gemm_cuda_simt_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_dense_tiles_unbind,
                                           .run = spk_dense_tiles_run,
                                           .batched = true,
                                           .grouped = true,
                                           .source_hash = SPK_SOURCE_HASH};
