/* The instance of templates: two macros say which, and all types and names follow from them. Who includes a template defines
 *
 *     TYPE    what matrices hold: F32, F64, F16, BF16, or BYTES (any type of 8 bits, for reference kernels)
 *     ISA     whose vectors compute: PORTABLE, AVX2, AVX512 or NEON
 *
 * and templates write
 *
 *     REAL, REAL_BITS, T(name)        the type of sums, its size, and a name with its suffix; float for types of 16 bits
 *     STORED, STORED_BITS, S(name)    the same of elements in memory; STORED_BF16: they are bfloat16
 *     VECTOR_BYTES, VECTOR_REGISTERS  of the instruction set
 *
 * A template includes what it uses, and compiles alone. A file may include one again with another TYPE, those of one REAL behind each other
 * (for_each_type.h). A template that several others include has a guard, which ends with the instance, below. */
#ifndef SPK_BACKEND_CPU_KERNELS_VECTORS_INSTANCE_H
#define SPK_BACKEND_CPU_KERNELS_VECTORS_INSTANCE_H

#define F32 1
#define F64 2
#define F16 3
#define BF16 4
#define BYTES 5

#define PORTABLE 1
#define AVX2 2
#define AVX512 3
#define NEON 4

#ifndef ISA
#define ISA PORTABLE
#endif

#if ISA == AVX512
#define VECTOR_BYTES 64
#elif ISA == AVX2
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#if ISA == AVX512 || ISA == NEON
#define VECTOR_REGISTERS 32
#else
#define VECTOR_REGISTERS 16
#endif

#define SPK_INLINE static inline __attribute__((always_inline, unused))

#endif

#ifndef TYPE
#define TYPE F32
#endif

#if !defined(REAL_BITS) || (REAL_BITS == 64) != (TYPE == F64 || TYPE == BYTES)
#undef REAL
#undef REAL_BITS
#undef T
#if TYPE == F64 || TYPE == BYTES
#define REAL double
#define REAL_BITS 64
#define T(name) name##_f64
#else
#define REAL float
#define REAL_BITS 32
#define T(name) name##_f32
#endif
/* Guards of templates for a REAL. */
#undef VECTOR_H
#undef TRANSPOSE_H
#undef EPILOGUE_H
#undef TILE_JOB_H
#undef TILE_MICRO_H
#undef TILE_VALUES_H
#undef ATTENTION_PRODUCTS_H
#endif

#if !defined(INSTANCE) || INSTANCE != TYPE
#include "backend/cpu/kernels/vectors/as_stored.h"
/* Guards of templates for a STORED. */
#undef STORED_H
#undef EPILOGUE_STORED_H
#undef TILE_WORKER_H
#endif
