/* sddmm_bf16_amx: the stored blocks of D = alpha X Y + beta C in bfloat16 with float32 sums, with AMX. Blocks of 16 x 16 and
 * more, any layouts, any K. Bound: what comes from the last cache (X for each slice, Y for each thread), then the tiles' loads. */
#define ROW sddmm_bf16_amx
#define TYPE BF16
#define ISA AVX512
#include "backend/cpu/kernels/sddmm/strip_sddmm.h"

const spk_kernel_ops sddmm_bf16_amx_ops = STRIP_SDDMM_OPS;
