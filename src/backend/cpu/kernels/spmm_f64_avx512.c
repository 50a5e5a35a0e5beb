/* spmm_f64_avx512: D = epilogue(A_bsr B) in float64 with AVX-512. Any block, layout, orientation, N and epilogue.
 * Register tiles of 28 / NV rows by NV vectors of 8; PACK=1 copies B into column panels first. Bound: the FMA units from 16 x 16 blocks on. */
#include "backend/cpu/kernels/cost.h"

#define REAL double
#define REAL_BITS 64
#define VECTOR_BYTES 64
#define T(name) name##_f64
#include "backend/cpu/kernels/vector.h"

#include "backend/cpu/kernels/epilogue_body.h"
#include "backend/cpu/kernels/tile_micro.h"
#include "backend/cpu/kernels/transpose.h"

#include "backend/cpu/kernels/tile_pack.h"
#include "backend/cpu/kernels/tile_values.h"

#include "backend/cpu/kernels/tile_spmm.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (problem->dtype_a != SPK_F64)
        *why = "it is for f64";
    return *why == NULL && tile_applicable(problem, params, &machine_f64, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, params, &machine_f64);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return tile_execute_f64(bound, args);
}

const spk_kernel_ops spmm_f64_avx512_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = tile_bind_f64, .unbind = tile_unbind_f64, .run = run, .source_hash = SPK_SOURCE_HASH};
