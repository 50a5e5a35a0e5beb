/* attention_backward_neon: gradients of attention in float32, float64, float16 and bfloat16 (with float32 sums), with NEON. Any sizes,
 * bands, masks and strides. Bound: the multipliers. */
#define ROW attention_backward_neon
#define ISA NEON
#include "backend/cpu/kernels/attention/attention_backward_types.h"

const spk_kernel_ops attention_backward_neon_ops = ATTENTION_BACKWARD_OPS;
