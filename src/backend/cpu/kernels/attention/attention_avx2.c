/* attention_avx2: O = softmax(scale Q K^T) V in float32, float64, float16 and bfloat16 (with float32 sums), with AVX2, FMA and F16C. Any
 * sizes, bands and strides. Bound: the multipliers. */
#define ROW attention_avx2
#define ISA AVX2
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_avx2_ops = ATTENTION_OPS;
