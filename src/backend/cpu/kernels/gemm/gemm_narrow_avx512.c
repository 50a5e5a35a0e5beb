/* gemm_narrow_avx512: D = epilogue(A B) with 8 rows or columns at most, in float32, float64, float16 and bfloat16 (with float32 sums), with
 * AVX-512. Any layouts and epilogue. Bound: the memory that the large matrix comes from. */
#define ISA AVX512
#include "backend/cpu/kernels/gemm/gemm_narrow_types.h"

const spk_kernel_ops gemm_narrow_avx512_ops = GEMM_OPS;
