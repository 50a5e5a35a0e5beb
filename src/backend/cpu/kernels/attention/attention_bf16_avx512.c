/* attention_bf16_avx512: O = softmax(scale Q K^T) V in bfloat16 with float32 sums, with AVX512-BF16: Q, K, V and the weights of V as pairs
 * of bfloat16 numbers for vdpbf16ps. Any sizes, bands and strides. Bound: the multipliers, and at depths of 64 and less exponentials; for
 * one query the memory of K and V. */
#define ROW attention_bf16_avx512
#define TYPE BF16
#define ISA AVX512
#define PAIRED 1
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_bf16_avx512_ops = ATTENTION_OPS;
