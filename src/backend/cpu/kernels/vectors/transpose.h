/* A square of vectors, turned in registers. */
#include "backend/cpu/kernels/vectors/vector.h"

#ifndef TRANSPOSE_H
#define TRANSPOSE_H

/* lanes x lanes elements turned in registers: log2(lanes) rounds of interleaving row i with row i + lanes / 2. */
SPK_INLINE void T(transpose)(T(vec) v[T(lanes)])
{
    T(vec) u[T(lanes)];
#pragma GCC unroll 4
    for (int round = 1; round < T(lanes); round *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < T(lanes) / 2; i++) {
            const T(vec) low = v[i], high = v[i + T(lanes) / 2];
#if VECTOR_BYTES * 8 / REAL_BITS == 16
            u[2 * i] = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            u[2 * i + 1] = __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif VECTOR_BYTES * 8 / REAL_BITS == 8
            u[2 * i] = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
            u[2 * i + 1] = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
#elif VECTOR_BYTES * 8 / REAL_BITS == 4
            u[2 * i] = __builtin_shufflevector(low, high, 0, 4, 1, 5);
            u[2 * i + 1] = __builtin_shufflevector(low, high, 2, 6, 3, 7);
#else
            u[2 * i] = __builtin_shufflevector(low, high, 0, 2);
            u[2 * i + 1] = __builtin_shufflevector(low, high, 1, 3);
#endif
        }
#pragma GCC unroll 16
        for (int i = 0; i < T(lanes); i++)
            v[i] = u[i];
    }
}

#endif
