/* spmm_f64_neon: D = epilogue(A_bsr B) in float64 with NEON. Any block, layout, orientation, N and epilogue.
 * Register tiles of 27 / NV rows by NV vectors of 2; PACK=1 copies B into column panels first. Bound: the FMA units from 16 x 16 blocks
 * on. */
#define ROW spmm_f64_neon
#define TYPE F64
#define ISA NEON
#include "backend/cpu/kernels/spmm/tile_real_row.h"

const spk_kernel_ops spmm_f64_neon_ops = TILE_OPS;
