/* gemm_bf16_avx512: D = epilogue(A B) in bfloat16 with float32 sums, with AVX512-BF16. Any sizes, layouts and epilogue. A and B are copied
 * as pairs of numbers that are neighbours along K, for vdpbf16ps. Bound: the FMA units, which multiply twice as much as in float32. */
#define ROW gemm_bf16_avx512
#define ISA AVX512
#define TILE_PAIRED 1

/* What bfloat16 uses of the type of its sums. */
#define TYPE F32
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"

#undef TYPE
#define TYPE BF16
#include "backend/cpu/kernels/gemm/gemm_tiles.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    return *why == NULL && gemm_applicable(problem, GEMM_TUNED(ROW, params), device, &machine_f32, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return gemm_cost(problem, device, GEMM_TUNED(ROW, params), &machine_f32);
}

static spk_status bind(spk_bound *bound)
{
    return gemm_bind(bound, GEMM_TUNED(ROW, &bound->params), &machine_f32);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return gemm_execute_bf16(bound, args);
}

const spk_kernel_ops gemm_bf16_avx512_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .bind = bind,
                                             .unbind = gemm_unbind,
                                             .run = run,
                                             .batched = true,
                                             .grouped = true,
                                             .source_hash = SPK_SOURCE_HASH};
