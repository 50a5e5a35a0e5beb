/* spmm_bf16_neon: D = epilogue(A_bsr B) in bfloat16 with float32 sums, with BFMMLA. Blocks of 16 x 16 and more, any layout,
 * orientation, N and epilogue. Bound: the multipliers. */
#define ROW spmm_bf16_neon
#define TYPE BF16
#define ISA NEON
#include "backend/cpu/kernels/spmm/strip_spmm.h"

const spk_kernel_ops spmm_bf16_neon_ops = STRIP_SPMM_OPS;
