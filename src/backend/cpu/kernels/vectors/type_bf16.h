/* Begins an instance of the templates that read and write matrices for bfloat16 with float32 sums, after the one for float32
 * (stored_half.h). */
#undef STORED
#undef STORED_BF16
#undef S
#define STORED uint16_t
#define STORED_BF16 1
#define S(name) name##_bf16
#include "backend/cpu/kernels/vectors/stored_half.h"
