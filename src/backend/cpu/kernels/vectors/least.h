/* Whether products of bfloat16 numbers can be told from 0, by their least numbers: magnitudes less 1, as 16-bit numbers without a sign, of
 * which 0 is the largest. */
#ifndef SPK_BACKEND_CPU_KERNELS_VECTORS_LEAST_H
#define SPK_BACKEND_CPU_KERNELS_VECTORS_LEAST_H

#include <stdbool.h>

#include "backend/cpu/kernels/vectors/instance.h"

#if TYPE != BF16
#error "least.h is for TYPE BF16"
#endif

enum { S(LEAST_OF_NONE) = 0xffff };

/* Whether no product of numbers of A and of B whose least are these has bits below 2^-126: both have seven bits behind the point. */
static bool S(pairs_are_exact)(int least_a, int least_b)
{
    const int a = (least_a + 1) >> 7, b = (least_b + 1) >> 7; /* exponents, biased by 127; 512: there is none but 0 */
    return a > 0 && b > 0 && a + b - 2 * 127 - 2 * 7 >= -126;
}

#endif
