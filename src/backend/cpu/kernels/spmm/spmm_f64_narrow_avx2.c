/* spmm_f64_narrow_avx2: D = epilogue(A_bsr B) in float64 with AVX2 and FMA for N of 1 to 8.
 * Any block, layout, orientation and epilogue. Bound: reading the values, once and in order. */
#include "backend/cpu/kernels/cost.h"

#define REAL double
#define REAL_BITS 64
#define VECTOR_BYTES 32
#define T(name) name##_f64
#include "backend/cpu/kernels/vectors/vector.h"

#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/spmm/narrow_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"

#include "backend/cpu/kernels/spmm/narrow_spmm.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != SPK_F64)
        *why = "it is for f64";
    return *why == NULL && narrow_applicable(problem, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return cost_of_narrow(problem, device, lanes_f64, sizeof(double));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return narrow_execute_f64(bound, args);
}

const spk_kernel_ops spmm_f64_narrow_avx2_ops = {.applicable = applicable,
                                                 .predict_us = predict_us,
                                                 .bind = narrow_bind_f64,
                                                 .unbind = narrow_unbind_f64,
                                                 .run = run,
                                                 .source_hash = SPK_SOURCE_HASH};
