/* attention_bf16_amx: O = softmax(scale Q K^T) V in bfloat16 with float32 sums, with AMX: the products by tiles, weights of V as bfloat16,
 * all else with AVX-512. Depths of multiples of 32, any bands and strides. Bound: exponentials. */
#define ROW attention_bf16_amx
#define TYPE BF16
#define ISA AVX512
#define PAIRED 1
#define TILES 1
#include "backend/cpu/kernels/attention/attention_types.h"

const spk_kernel_ops attention_bf16_amx_ops = ATTENTION_OPS;
