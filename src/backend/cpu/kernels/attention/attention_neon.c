/* attention_neon: O = softmax(scale Q K^T) V in float32, float64, float16 and bfloat16 (with float32 sums), with NEON. Any sizes, bands
 * and strides. Bound: the multipliers. */
#define ROW attention_neon
#define ISA NEON
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_neon_ops = ATTENTION_OPS;
