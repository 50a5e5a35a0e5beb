/* attention_avx512: O = softmax(scale Q K^T) V in float32, float64, float16 and bfloat16 (with float32 sums), with AVX-512. Any sizes,
 * bands and strides. Bound: the multipliers. */
#define ROW attention_avx512
#define ISA AVX512
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_avx512_ops = ATTENTION_OPS;
