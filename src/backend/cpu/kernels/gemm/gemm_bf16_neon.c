/* gemm_bf16_neon: D = epilogue(A B) in bfloat16 with float32 sums, with BFMMLA. 16 rows and columns of D and more, any K, layouts
 * and epilogue. Bound: the multipliers. */
#define ROW gemm_bf16_neon
#define TYPE BF16
#define ISA NEON
#include "backend/cpu/kernels/gemm/strip_gemm.h"

const spk_kernel_ops gemm_bf16_neon_ops = STRIP_GEMM_OPS;
