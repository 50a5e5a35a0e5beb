/* Tiled SpMM for float16 and bfloat16: two instances of the templates that touch memory, after one of vector.h, epilogue_body.h,
 * tile_micro.h, transpose.h and tile_values.h for float. A is converted while it is copied, B then or as a tile reads it; sums are
 * float. */

#include "backend/cpu/kernels/vectors/type_f16.h"

#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#include "backend/cpu/kernels/tiles/tile_pack.h"

#include "backend/cpu/kernels/spmm/tile_spmm.h"

#include "backend/cpu/kernels/vectors/type_bf16.h"

#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#include "backend/cpu/kernels/tiles/tile_pack.h"

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
