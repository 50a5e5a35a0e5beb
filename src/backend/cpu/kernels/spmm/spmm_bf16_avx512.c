/* spmm_bf16_avx512: D = epilogue(A_bsr B) in bfloat16 with float32 sums, with AVX512-BF16. Blocks with 8 and more along K, any layout,
 * orientation, N and epilogue. B, and the values of a block row at a time, are copied as pairs of numbers that are neighbours along K;
 * then the register tiles are those of spmm_f32_avx512, with vdpbf16ps for a multiply-add. PACK=2 lays the pairs of A out as the tiles
 * read them. Bound: the FMA units, which multiply twice as much as in float32, from 32 x 32 blocks on. */
#define ROW spmm_bf16_avx512
#define ISA AVX512
#define TILE_PAIRED 1
#include "backend/cpu/kernels/cost.h"

/* What bfloat16 uses of the type of its sums. */
#define TYPE F32
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"

#undef TYPE
#define TYPE BF16
#include "backend/cpu/kernels/spmm/tile_spmm.h"

enum { LEAST_DEPTH = 8 };

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (tile_block_cols(problem) < LEAST_DEPTH)
        *why = "pairs pay from blocks of 8 along K on";
    return *why == NULL && tile_applicable(problem, TILE_TUNED(ROW, params), &machine_f32, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, TILE_TUNED(ROW, params), &machine_f32);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return tile_execute_bf16(bound, args);
}

const spk_kernel_ops spmm_bf16_avx512_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .bind = tile_bind_bf16,
                                             .unbind = tile_unbind_bf16,
                                             .run = run,
                                             .source_hash = SPK_SOURCE_HASH};
