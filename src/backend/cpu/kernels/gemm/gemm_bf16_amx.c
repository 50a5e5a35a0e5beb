/* gemm_bf16_amx: D = epilogue(A B) in bfloat16 with float32 sums, with AMX. 16 rows and columns of D and more, any K, layouts
 * and epilogue. Bound: the tiles' loads from the second cache; copies where M or N is small. */
#define ROW gemm_bf16_amx
#define TYPE BF16
#define ISA AVX512
#include "backend/cpu/kernels/gemm/strip_gemm.h"

const spk_kernel_ops gemm_bf16_amx_ops = STRIP_GEMM_OPS;
