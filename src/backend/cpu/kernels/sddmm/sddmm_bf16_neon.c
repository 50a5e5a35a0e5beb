/* sddmm_bf16_neon: the stored blocks of D = alpha X Y + beta C in bfloat16 with float32 sums, with BFMMLA. Blocks of 16 x 16 and
 * more, any layouts, any K. Bound: the multipliers. */
#define ROW sddmm_bf16_neon
#define TYPE BF16
#define ISA NEON
#include "backend/cpu/kernels/sddmm/strip_sddmm.h"

const spk_kernel_ops sddmm_bf16_neon_ops = STRIP_SDDMM_OPS;
