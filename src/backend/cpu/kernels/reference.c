/* reference: D from the definition, plain loops in the compute type. Takes every problem; serial. The yardstick, and always valid. */
#include "backend/cpu/cpu.h"

#define REAL float
#define T(name) name##_f32
#include "backend/cpu/kernels/reference_body.h"
#undef REAL
#undef T

#define REAL double
#define T(name) name##_f64
#include "backend/cpu/kernels/reference_body.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->dtype_a != SPK_F32 && problem->dtype_a != SPK_F64)
        *why = "it knows f32 and f64 only";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 5 + spk_problem_flops(problem) / 2000 + (double)problem->m * (double)problem->n / 200;
}

static spk_status run(const spk_bound *bound, const spk_spmm_args *args, void *stream)
{
    (void)stream;
    (bound->problem.dtype_a == SPK_F64 ? product_f64 : product_f32)(bound, args);
    return SPK_OK;
}

const spk_kernel_ops reference_ops = {.applicable = applicable, .predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};
