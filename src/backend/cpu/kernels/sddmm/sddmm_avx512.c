/* sddmm_avx512: the stored blocks of D = alpha X Y + beta C in float32, float64, float16 and bfloat16 (with float32 sums), with AVX-512.
 * Any block of 4 columns or more, 2 for float64, any layouts, any K. Bound: the FMA units from 16 x 16 blocks on. */
#define ROW sddmm_avx512
#define ISA AVX512
#include "backend/cpu/kernels/sddmm/sddmm_types.h"

const spk_kernel_ops sddmm_avx512_ops = SDDMM_OPS;
