/* The sum of the products of two rows: grad_O's with O. */
#ifndef GRADIENTS
#define GRADIENTS 1
#endif
#include "backend/cpu/kernels/attention/attention_pieces.h"

SPK_INLINE REAL S(dot)(const STORED *a, const STORED *b, int64_t count)
{
    T(vec) sum = {0};
    int64_t c = 0;
    for (; c + T(lanes) <= count; c += T(lanes))
        sum += S(load)(a + c) * S(load)(b + c);
    if (c < count)
        sum += S(load_part)(a + c, count - c) * S(load_part)(b + c, count - c);
    return T(attention_total)(sum);
}
