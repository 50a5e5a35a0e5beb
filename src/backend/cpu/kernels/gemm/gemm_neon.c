/* gemm_neon: D = epilogue(A B) in float32, float64, float16 and bfloat16 (with float32 sums), with NEON. Any sizes, layouts and epilogue.
 * Bound: the FMA units. */
#define ROW gemm_neon
#define ISA NEON
#include "backend/cpu/kernels/gemm/gemm_types.h"

const spk_kernel_ops gemm_neon_ops = GEMM_OPS;
