/* Includes TEMPLATE for each type of matrices, as a row for all of them wants it. */
#ifndef TEMPLATE /* this file alone */
#define TEMPLATE "backend/cpu/kernels/vectors/epilogue.h"
#endif

#undef TYPE
#define TYPE F64
#include TEMPLATE

#undef TYPE
#define TYPE F32
#include TEMPLATE

#undef TYPE
#define TYPE F16
#include TEMPLATE

#undef TYPE
#define TYPE BF16
#include TEMPLATE
