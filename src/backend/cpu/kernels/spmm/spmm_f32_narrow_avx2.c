/* spmm_f32_narrow_avx2: D = epilogue(A_bsr B) in float32 with AVX2 and FMA for N of 1 to 8.
 * Any block, layout, orientation and epilogue. Bound: reading the values, once and in order. */
#include "backend/cpu/kernels/cost.h"

#define REAL float
#define REAL_BITS 32
#define VECTOR_BYTES 32
#define T(name) name##_f32
#include "backend/cpu/kernels/vectors/vector.h"

#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/spmm/narrow_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"

#include "backend/cpu/kernels/spmm/narrow_spmm.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != SPK_F32)
        *why = "it is for f32";
    return *why == NULL && narrow_applicable(problem, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return cost_of_narrow(problem, device, lanes_f32, sizeof(float));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return narrow_execute_f32(bound, args);
}

const spk_kernel_ops spmm_f32_narrow_avx2_ops = {.applicable = applicable,
                                                 .predict_us = predict_us,
                                                 .bind = narrow_bind_f32,
                                                 .unbind = narrow_unbind_f32,
                                                 .run = run,
                                                 .source_hash = SPK_SOURCE_HASH};
