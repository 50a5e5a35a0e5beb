/* reference_sddmm: values from the definition, plain loops in the compute type. Takes every problem; a block row is a task. Always valid. */
#include "backend/cpu/cpu.h"
#include "base/half.h"
#include "matrix/matrix.h"

#define REAL float
#define ELEMENT float
#define LOAD(x) (x)
#define T(name) name##_f32
#include "backend/cpu/kernels/reference_sddmm_body.h"
#undef ELEMENT
#undef LOAD
#undef T

#define ELEMENT uint16_t
#define LOAD(x) spk_f16_to_float(x)
#define T(name) name##_f16
#include "backend/cpu/kernels/reference_sddmm_body.h"
#undef LOAD
#undef T

#define LOAD(x) spk_bf16_to_float(x)
#define T(name) name##_bf16
#include "backend/cpu/kernels/reference_sddmm_body.h"
#undef REAL
#undef ELEMENT
#undef LOAD
#undef T

#define REAL double
#define ELEMENT double
#define LOAD(x) (x)
#define T(name) name##_f64
#include "backend/cpu/kernels/reference_sddmm_body.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->dtype_a != SPK_F32 && problem->dtype_a != SPK_F64 && problem->dtype_a != SPK_F16 && problem->dtype_a != SPK_BF16)
        *why = "it knows f32, f64, f16 and bf16 only";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const double threads = device->executor.threads > 0 ? device->executor.threads : 1;
    return 5 + spk_problem_flops(problem) / 1000 / threads;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    switch (bound->problem.dtype_a) {
    case SPK_F64:
        sample_f64(bound, args);
        break;
    case SPK_F16:
        sample_f16(bound, args);
        break;
    case SPK_BF16:
        sample_bf16(bound, args);
        break;
    default:
        sample_f32(bound, args);
    }
    return SPK_OK;
}

const spk_kernel_ops reference_sddmm_ops = {.applicable = applicable, .predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};
