/* gemm_avx2: D = epilogue(A B) in float32, float64, float16 and bfloat16 (with float32 sums), with AVX2, FMA and F16C. Any sizes, layouts
 * and epilogue. Bound: the FMA units. */
#define ROW gemm_avx2
#define ISA AVX2
#include "backend/cpu/kernels/gemm/gemm_types.h"

const spk_kernel_ops gemm_avx2_ops = GEMM_OPS;
