/* reference_spmm: D from the definition, plain loops in the compute type. Takes every problem; serial. The yardstick, and always valid. */
#define REFERENCE_BODY "backend/cpu/kernels/spmm/reference_spmm_body.h"
#include "backend/cpu/kernels/tiles/reference_row.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 5 + spk_problem_flops(problem) / (spk_problem_is_scaled(problem) ? 200 : 2000) + (double)problem->m * (double)problem->n / 200;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    run_product(bound, args);
    return SPK_OK;
}

const spk_kernel_ops reference_spmm_ops = {.predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};
