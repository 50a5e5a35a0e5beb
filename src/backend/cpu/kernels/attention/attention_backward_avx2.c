/* attention_backward_avx2: gradients of attention in float32, float64, float16 and bfloat16 (with float32 sums), with AVX2 and FMA. Any
 * sizes, bands, masks and strides. Bound: the multipliers. */
#define ROW attention_backward_avx2
#define ISA AVX2
#include "backend/cpu/kernels/attention/attention_backward_types.h"

const spk_kernel_ops attention_backward_avx2_ops = ATTENTION_BACKWARD_OPS;
