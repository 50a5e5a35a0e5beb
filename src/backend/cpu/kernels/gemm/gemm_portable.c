/* gemm_portable: D = epilogue(A B) in float32, float64, float16 and bfloat16 (with float32 sums), with vectors of 16 bytes and no
 * intrinsics. Any sizes, layouts and epilogue. Bound: the multipliers. */
#define ROW gemm_portable
#define ISA PORTABLE
#include "backend/cpu/kernels/gemm/gemm_types.h"

const spk_kernel_ops gemm_portable_ops = GEMM_OPS;
