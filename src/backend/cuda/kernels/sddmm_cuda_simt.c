/* sddmm_cuda_simt: host side. A team covers up to 64 rows of a block row with threads of up to 8 rows. */
#include <stdio.h>

#include "backend/cuda/plan/sddmm_gather.h"
#include "backend/cuda/plan/simt.h"

enum { SPLIT = SIMT_STAGES + 1 }; /* the first tunables are those of simt.h */

static simt_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    simt_shape shape = spk_simt_tile(problem->pattern->block_rows, params);
    if (shape.team.threads >= 32)
        spk_sddmm_gather_complete(problem, &shape.team);
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const simt_shape shape = shape_of(problem, params);
    if (spk_simt_tile_fits(problem, params, &shape, why))
        spk_sddmm_gather_applicable(problem, device, &shape.team, params->v[SPLIT], why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const simt_shape shape = shape_of(problem, params);
    return spk_sddmm_gather_predict(problem, device, &shape.team, params->v[SPLIT], spk_simt_tflops(problem, device, params, &shape));
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    char more[64];
    const simt_shape shape = shape_of(problem, params);
    snprintf(more, sizeof more, "-DTHREAD_M=%d -DTHREAD_N=%d", shape.thread_m, params->v[SIMT_THREAD_N]);
    spk_sddmm_gather_build(problem, &shape.team, "sddmm_cuda_simt.cu", "sddmm_cuda_simt", more, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const simt_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return spk_sddmm_gather_bind(bound, &shape.team, &made, bound->params.v[SPLIT]);
}

const spk_kernel_ops sddmm_cuda_simt_ops = {.applicable = applicable,
                                            .predict_us = predict_us,
                                            .build = build,
                                            .bind = bind,
                                            .unbind = spk_sddmm_gather_unbind,
                                            .run = spk_sddmm_gather_run,
                                            .batched = true,
                                            .source_hash = SPK_SOURCE_HASH};
