/* sddmm_cuda_simt: host side. A team covers up to 64 rows of a block row with threads of up to 8 rows. */
#include "backend/cuda/kernels/sddmm_cuda_simt.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/sddmm_gather.h"
#include "backend/cuda/host/tiles/simt.h"

static simt_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    simt_shape shape = spk_simt_tile(problem->pattern->block_rows, SIMT_TUNED(sddmm_cuda_simt, params));
    if (shape.team.c.threads >= 32)
        spk_sddmm_gather_complete(problem, &shape.team);
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const simt_shape shape = shape_of(problem, params);
    if (spk_simt_tile_fits(problem, &shape, why))
        spk_sddmm_gather_applicable(problem, device, &shape.team, SPK_TUNED(sddmm_cuda_simt, params, SPLIT), why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const simt_shape shape = shape_of(problem, params);
    return spk_sddmm_gather_predict(problem, device, &shape.team, SPK_TUNED(sddmm_cuda_simt, params, SPLIT),
                                    spk_simt_tflops(problem, device, &shape));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const simt_shape shape = shape_of(problem, params);
    spk_sddmm_gather_build(problem, &shape.team, "sddmm_cuda_simt.cu", "sddmm_cuda_simt", build);
    spk_simt_define(shape.c, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const simt_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_sddmm_gather_bind(bound, &shape.team, &made, SPK_TUNED(sddmm_cuda_simt, &bound->params, SPLIT));
}

const spk_kernel_ops sddmm_cuda_simt_ops = {.applicable = applicable,
                                            .predict_us = predict_us,
                                            .build = build,
                                            .bind = bind,
                                            .unbind = spk_sddmm_gather_unbind,
                                            .run = spk_sddmm_gather_run,
                                            .batched = true,
                                            .source_hash = SPK_SOURCE_HASH};
