/* spmm_portable: D = epilogue(A_bsr B) in float32, float64, float16 and bfloat16 (with float32 sums), with vectors of 16 bytes and no
 * intrinsics: whatever the compiler makes of them on any processor. Any block, layout, orientation, N and epilogue. The tiles are those of
 * the wider kernels. */
#define ROW spmm_portable
#define ISA PORTABLE
#include "backend/cpu/kernels/cost.h"

#define TYPE F64
#include "backend/cpu/kernels/spmm/tile_spmm.h"

#undef TYPE
#define TYPE F32
#include "backend/cpu/kernels/spmm/tile_spmm.h"

#include "backend/cpu/kernels/spmm/tile_half.h"

static const tile_machine *machine_of(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64 ? &machine_f64 : &machine_f32;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    if (problem->a.dtype != SPK_F32 && problem->a.dtype != SPK_F64 && !tile_converts(problem))
        *why = "it is for f32, f64, f16 and bf16";
    return *why == NULL && tile_applicable(problem, TILE_TUNED(ROW, params), machine_of(problem), why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return cost_of_tiles(problem, device, TILE_TUNED(ROW, params), machine_of(problem));
}

static spk_status bind(spk_bound *bound)
{
    if (tile_converts(&bound->problem))
        return tile_bind_half(bound);
    return bound->problem.a.dtype == SPK_F64 ? tile_bind_f64(bound) : tile_bind_f32(bound);
}

static void unbind(spk_bound *bound)
{
    if (tile_converts(&bound->problem))
        tile_unbind_half(bound);
    else
        (bound->problem.a.dtype == SPK_F64 ? tile_unbind_f64 : tile_unbind_f32)(bound);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    if (tile_converts(&bound->problem))
        return tile_execute_half(bound, args);
    return bound->problem.a.dtype == SPK_F64 ? tile_execute_f64(bound, args) : tile_execute_f32(bound, args);
}

const spk_kernel_ops spmm_portable_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH};
