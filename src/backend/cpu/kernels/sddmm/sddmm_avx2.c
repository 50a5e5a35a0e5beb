/* sddmm_avx2: the stored blocks of D = alpha X Y + beta C in float32, float64, float16 and bfloat16 (with float32 sums), with AVX2, FMA and
 * F16C. Any block of 2 columns or more, any layouts, any K. Bound: the FMA units from 16 x 16 blocks on. */
#define ROW sddmm_avx2
#define ISA AVX2
#include "backend/cpu/kernels/sddmm/sddmm_types.h"

const spk_kernel_ops sddmm_avx2_ops = SDDMM_OPS;
