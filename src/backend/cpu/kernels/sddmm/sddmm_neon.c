/* sddmm_neon: the stored blocks of D = alpha X Y + beta C in float32, float64, float16 and bfloat16 (with float32 sums), with NEON. Any
 * block, any layouts, any K. Bound: the FMA units from 16 x 16 blocks on. */
#define ROW sddmm_neon
#define ISA NEON
#include "backend/cpu/kernels/sddmm/sddmm_types.h"

const spk_kernel_ops sddmm_neon_ops = SDDMM_OPS;
