/* The tiled SpMM for float16 and bfloat16. A is converted while it is copied, B then or as a tile reads it; sums are float. */

/* What both use of the type of their sums. */
#undef TYPE
#define TYPE F32
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"
#include "backend/cpu/kernels/tiles/tile_values.h"

#undef TYPE
#define TYPE F16
#include "backend/cpu/kernels/spmm/tile_spmm.h"

#undef TYPE
#define TYPE BF16
#include "backend/cpu/kernels/spmm/tile_spmm.h"

static spk_status tile_bind_half(spk_bound *bound)
{
    return bound->problem.a.dtype == SPK_BF16 ? tile_bind_bf16(bound) : tile_bind_f16(bound);
}

static void tile_unbind_half(spk_bound *bound)
{
    (bound->problem.a.dtype == SPK_BF16 ? tile_unbind_bf16 : tile_unbind_f16)(bound);
}

static spk_status tile_execute_half(const spk_bound *bound, const spk_args *args)
{
    return bound->problem.a.dtype == SPK_BF16 ? tile_execute_bf16(bound, args) : tile_execute_f16(bound, args);
}
