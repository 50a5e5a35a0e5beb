/* spmm_f64_avx2: D = epilogue(A_bsr B) in float64 with AVX2 and FMA. Any block, layout, orientation, N and epilogue.
 * Register tiles of 12 / NV rows by NV vectors of 4; PACK=1 copies B into column panels first. Bound: the FMA units from 16 x 16 blocks
 * on. */
#define ROW spmm_f64_avx2
#define TYPE F64
#define ISA AVX2
#include "backend/cpu/kernels/spmm/tile_real_row.h"

const spk_kernel_ops spmm_f64_avx2_ops = TILE_OPS;
