/* sddmm_bf16_avx512: the stored blocks of D = alpha X Y + beta C in bfloat16 with float32 sums, with AVX512-BF16. Any block of 4 columns or
 * more, any layouts, any K. X and Y are copied as pairs of numbers that are neighbours along K, for vdpbf16ps. Bound: the FMA units, which
 * multiply twice as much as in float32. */
#define ROW sddmm_bf16_avx512
#define ISA AVX512
#define TILE_PAIRED 1

/* What bfloat16 uses of the type of its sums. */
#define TYPE F32
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"

#undef TYPE
#define TYPE BF16
#include "backend/cpu/kernels/sddmm/sddmm_tiles.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    return *why == NULL && sddmm_applicable(problem, device, SDDMM_TUNED(ROW, params), &machine_f32, why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return sddmm_cost(problem, device, SDDMM_TUNED(ROW, params), &machine_f32);
}

static spk_status bind(spk_bound *bound)
{
    return sddmm_bind(bound, SDDMM_TUNED(ROW, &bound->params), &machine_f32);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    return sddmm_execute_bf16(bound, args);
}

const spk_kernel_ops sddmm_bf16_avx512_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = sddmm_unbind, .run = run, .source_hash = SPK_SOURCE_HASH};
