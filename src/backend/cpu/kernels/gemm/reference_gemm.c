/* reference_gemm: D from the definition, plain loops in the compute type. Takes every problem, batches and groups too; serial. The
 * yardstick, and always valid. */
#define REFERENCE_BODY "backend/cpu/kernels/gemm/reference_gemm_body.h"
#include "backend/cpu/kernels/tiles/reference_row.h"
#include "op/groups.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 5 + spk_problem_flops(problem) / (spk_problem_is_scaled(problem) ? 200 : 2000) + (double)problem->m * (double)problem->n / 200;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    spk_bound one = *bound;
    (void)stream;
    for (int64_t item = 0; item < bound->problem.batch; item++) {
        spk_args of_one;
        spk_product_take(&bound->problem, args, item, &one.problem, &of_one);
        run_product(&one, &of_one);
    }
    return SPK_OK;
}

const spk_kernel_ops reference_gemm_ops = {
    .predict_us = predict_us, .run = run, .batched = true, .grouped = true, .source_hash = SPK_SOURCE_HASH};
