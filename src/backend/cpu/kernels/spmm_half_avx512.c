/* spmm_half_avx512: D = epilogue(A_bsr B) in float16 and bfloat16 with float32 sums, with AVX-512. Any block, layout, orientation, N and epilogue.
 * B, and the values of a block row at a time, are copied as float32; then the register tiles are those of spmm_f32_avx512. PACK=2 lays the values out as the
 * tiles read them. Bound: the FMA units from 16 x 16 blocks on; where N is small, the conversion. */
#include "backend/cpu/kernels/cost.h"
#include "base/half.h"

#define REAL float
#define REAL_BITS 32
#define VECTOR_BYTES 64
#define T(name) name##_f32
#include "backend/cpu/kernels/vector.h"

#include "backend/cpu/kernels/epilogue_body.h"
#include "backend/cpu/kernels/tile_micro.h"
#include "backend/cpu/kernels/transpose.h"

#include "backend/cpu/kernels/tile_values.h"

#include "backend/cpu/kernels/tile_half.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (!tile_converts(problem))
        *why = "it is for f16 and bf16";
    return *why == NULL && tile_applicable(problem, params, &machine_f32, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, params, &machine_f32);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return tile_execute_half(bound, args);
}

const spk_kernel_ops spmm_half_avx512_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = tile_bind_half, .unbind = tile_unbind_half, .run = run, .source_hash = SPK_SOURCE_HASH};
