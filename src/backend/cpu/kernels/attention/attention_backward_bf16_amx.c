/* attention_backward_bf16_amx: gradients of attention in bfloat16 with float32 sums, with AMX: the five products by tiles, all else with
 * AVX-512. Depths of multiples of 32, any bands, masks and strides. Bound: exponentials and what makes pairs of numbers. */
#define ROW attention_backward_bf16_amx
#define TYPE BF16
#define ISA AVX512
#define PAIRED 1
#define TILES 1
#include "backend/cpu/kernels/attention/attention_backward_types.h"

const spk_kernel_ops attention_backward_bf16_amx_ops = ATTENTION_BACKWARD_OPS;
