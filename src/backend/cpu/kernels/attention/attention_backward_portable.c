/* attention_backward_portable: gradients of attention in float32, float64, float16 and bfloat16 (with float32 sums), with vectors of 16
 * bytes, on any processor. Any sizes, bands, masks and strides. Bound: the multipliers. */
#define ROW attention_backward_portable
#define ISA PORTABLE
#include "backend/cpu/kernels/attention/attention_backward_types.h"

const spk_kernel_ops attention_backward_portable_ops = ATTENTION_BACKWARD_OPS;
