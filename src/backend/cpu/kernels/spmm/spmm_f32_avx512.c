/* spmm_f32_avx512: D = epilogue(A_bsr B) in float32 with AVX-512. Any block, layout, orientation, N and epilogue.
 * Register tiles of 28 / NV rows by NV vectors of 16; PACK=1 copies B into column panels first; PACK=3 and 4 fetch from the last
 * cache for later tiles (tile_plan.h). Bound: the FMA units from 16 x 16 blocks on. */
#define ROW spmm_f32_avx512
#define TYPE F32
#define ISA AVX512
#include "backend/cpu/kernels/spmm/tile_real_row.h"

const spk_kernel_ops spmm_f32_avx512_ops = TILE_OPS;
