/* spmm_f32_neon: D = epilogue(A_bsr B) in float32 with NEON. Any block, layout, orientation, N and epilogue.
 * Register tiles of 27 / NV rows by NV vectors of 4; PACK=1 copies B into column panels first. Bound: the FMA units from 16 x 16 blocks
 * on. */
#define ROW spmm_f32_neon
#define TYPE F32
#define ISA NEON
#include "backend/cpu/kernels/spmm/tile_real_row.h"

const spk_kernel_ops spmm_f32_neon_ops = TILE_OPS;
