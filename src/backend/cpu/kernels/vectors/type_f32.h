/* Begins an instance of the templates for float32, the first of a file or after the one for float64 (vector.h). */
#undef REAL
#undef REAL_BITS
#undef T
#define REAL float
#define REAL_BITS 32
#define T(name) name##_f32
#include "backend/cpu/kernels/vectors/vector.h"
