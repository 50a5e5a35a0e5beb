/* spmm_half_narrow_avx512: D = epilogue(A_bsr B) in float16 and bfloat16 with float32 sums, with AVX-512, for N of 1 to 8.
 * Any block, layout, orientation and epilogue. Bound: reading the values, once and in order. */
#define ISA AVX512
#include "backend/cpu/kernels/spmm/narrow_half_row.h"

const spk_kernel_ops spmm_half_narrow_avx512_ops = NARROW_OPS;
