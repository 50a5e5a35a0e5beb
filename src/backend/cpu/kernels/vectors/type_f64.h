/* Begins an instance of the templates for float64: what is included from here on is of it (vector.h). */
#define REAL double
#define REAL_BITS 64
#define T(name) name##_f64
#include "backend/cpu/kernels/vectors/vector.h"
