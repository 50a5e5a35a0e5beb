/* Tiled SpMM for elements of REAL_BITS (32 or 64) with vectors of VECTOR_BYTES, and what the row ROW of the table needs of it. */
#include "backend/cpu/kernels/cost.h"

#if REAL_BITS == 64
#include "backend/cpu/kernels/vectors/type_f64.h"
#define TILE_DTYPE SPK_F64
#else
#include "backend/cpu/kernels/vectors/type_f32.h"
#define TILE_DTYPE SPK_F32
#endif

#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/tiles/tile_job.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"

#include "backend/cpu/kernels/tiles/tile_pack.h"
#include "backend/cpu/kernels/tiles/tile_values.h"

#include "backend/cpu/kernels/spmm/tile_spmm.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (problem->a.dtype != TILE_DTYPE)
        *why = TILE_DTYPE == SPK_F64 ? "it is for f64" : "it is for f32";
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
