/* A row of the SpMM with a few columns for TYPE, F32 or F64: who includes this says ISA, too. */
#include "backend/cpu/kernels/cost.h"
#include "backend/cpu/kernels/spmm/narrow_spmm.h"

#if STORED_BITS == 16
#error "narrow_real_row.h is for TYPE F32 or F64"
#endif

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != (REAL_BITS == 64 ? SPK_F64 : SPK_F32))
        *why = REAL_BITS == 64 ? "it is for f64" : "it is for f32";
    return *why == NULL && narrow_applicable(problem, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return cost_of_narrow(problem, device, T(lanes), sizeof(REAL));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return T(narrow_execute)(bound, args);
}

#define NARROW_OPS                                                                                                          \
    {                                                                                                                       \
        .applicable = applicable, .predict_us = predict_us, .bind = T(narrow_bind), .unbind = T(narrow_unbind), .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                                      \
    }
