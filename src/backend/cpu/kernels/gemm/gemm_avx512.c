/* gemm_avx512: D = epilogue(A B) in float32, float64, float16 and bfloat16 (with float32 sums), with AVX-512. Any sizes, layouts and
 * epilogue. Bound: the FMA units. */
#define ROW gemm_avx512
#define ISA AVX512
#include "backend/cpu/kernels/gemm/gemm_types.h"

const spk_kernel_ops gemm_avx512_ops = GEMM_OPS;
