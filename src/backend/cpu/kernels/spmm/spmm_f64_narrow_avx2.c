/* spmm_f64_narrow_avx2: D = epilogue(A_bsr B) in float64 with AVX2 and FMA for N of 1 to 8.
 * Any block, layout, orientation and epilogue. Bound: reading the values, once and in order. */
#define TYPE F64
#define ISA AVX2
#include "backend/cpu/kernels/spmm/narrow_real_row.h"

const spk_kernel_ops spmm_f64_narrow_avx2_ops = NARROW_OPS;
