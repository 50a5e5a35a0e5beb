/* spmm_bf16_amx: D = epilogue(A_bsr B) in bfloat16 with float32 sums, with AMX. Blocks of 16 x 16 and more, any layout,
 * orientation, N and epilogue. Bound: what comes from the last cache (A for each slice, B for each thread), then the tiles' loads. */
#define ROW spmm_bf16_amx
#define TYPE BF16
#define ISA AVX512
#include "backend/cpu/kernels/spmm/strip_spmm.h"

const spk_kernel_ops spmm_bf16_amx_ops = STRIP_SPMM_OPS;
