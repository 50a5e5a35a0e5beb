/* attention_portable: O = softmax(scale Q K^T) V in float32, float64, float16 and bfloat16 (with float32 sums), with vectors of 16 bytes
 * and no intrinsics. Any sizes, bands and strides. Bound: the multipliers. */
#define ROW attention_portable
#define ISA PORTABLE
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_portable_ops = ATTENTION_OPS;
