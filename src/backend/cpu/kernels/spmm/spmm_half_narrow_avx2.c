/* spmm_half_narrow_avx2: D = epilogue(A_bsr B) in float16 and bfloat16 with float32 sums, with AVX2, FMA and F16C, for N of 1 to 8.
 * Any block, layout, orientation and epilogue. Bound: reading the values, once and in order. */
#define ISA AVX2
#include "backend/cpu/kernels/spmm/narrow_half_row.h"

const spk_kernel_ops spmm_half_narrow_avx2_ops = NARROW_OPS;
