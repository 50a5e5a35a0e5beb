/* STORED and S(name) as TYPE says (instance.h), and INSTANCE, the type that they are of: at the beginning of an instance, and behind
 * as_real.h. */
#ifndef SPK_BACKEND_CPU_KERNELS_VECTORS_INSTANCE_H
#include "backend/cpu/kernels/vectors/instance.h"
#endif

#undef INSTANCE
#undef STORED
#undef STORED_BITS
#undef STORED_BF16
#undef S
#if TYPE == F32
#define INSTANCE F32
#define STORED float
#define STORED_BITS 32
#define STORED_BF16 0
#define S(name) name##_f32
#elif TYPE == F64
#define INSTANCE F64
#define STORED double
#define STORED_BITS 64
#define STORED_BF16 0
#define S(name) name##_f64
#elif TYPE == F16
#define INSTANCE F16
#define STORED uint16_t
#define STORED_BITS 16
#define STORED_BF16 0
#define S(name) name##_f16
#elif TYPE == BF16
#define INSTANCE BF16
#define STORED uint16_t
#define STORED_BITS 16
#define STORED_BF16 1
#define S(name) name##_bf16
#elif TYPE == BYTES
#define INSTANCE BYTES
#define STORED uint8_t
#define STORED_BITS 8
#define STORED_BF16 0
#define S(name) name##_bytes
#else
#error "TYPE: F32, F64, F16, BF16 or BYTES"
#endif
