/* reference_gemm: D from the definition, plain loops in the compute type. Takes every problem; serial. The yardstick, and always valid. */
#define REFERENCE_BODY "backend/cpu/kernels/reference_gemm_body.h"
#include "backend/cpu/kernels/reference_row.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 5 + spk_problem_flops(problem) / 2000 + (double)problem->m * (double)problem->n / 200;
}

const spk_kernel_ops reference_gemm_ops = {.applicable = applicable, .predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};
