/* attention_backward_bf16_avx512: gradients of attention in bfloat16 with float32 sums, with AVX512-BF16: Q, K, V, grad_O, the weights and
 * the gradients of scores as pairs of bfloat16 numbers for vdpbf16ps. Any sizes, bands, masks and strides. Bound: the multipliers. */
#define ROW attention_backward_bf16_avx512
#define TYPE BF16
#define ISA AVX512
#define PAIRED 1
#include "backend/cpu/kernels/attention/attention_backward_types.h"

const spk_kernel_ops attention_backward_bf16_avx512_ops = ATTENTION_BACKWARD_OPS;
