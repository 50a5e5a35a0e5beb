/* A row of the tiled SpMM for TYPE, F32 or F64: who includes this says ROW and ISA, too. */
#include "backend/cpu/kernels/cost.h"
#include "backend/cpu/kernels/spmm/tile_spmm.h"

#if STORED_BITS == 16
#error "tile_real_row.h is for TYPE F32 or F64"
#endif

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (problem->a.dtype != (REAL_BITS == 64 ? SPK_F64 : SPK_F32))
        *why = REAL_BITS == 64 ? "it is for f64" : "it is for f32";
    return *why == NULL && tile_applicable(problem, TILE_TUNED(ROW, params), &T(machine), why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, TILE_TUNED(ROW, params), &T(machine));
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return T(tile_execute)(bound, args);
}

#define TILE_OPS                                                                                                        \
    {                                                                                                                   \
        .applicable = applicable, .predict_us = predict_us, .bind = T(tile_bind), .unbind = T(tile_unbind), .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                                  \
    }
