/* What attention's rows of pairs of bfloat16 numbers share with those of its gradients. */
#ifndef PAIRED
#define PAIRED 1
#endif
#if GRADIENTS
#include "backend/cpu/kernels/attention/attention_backward_dot.h"
#else
#include "backend/cpu/kernels/attention/attention_pieces.h"
#endif
#include "backend/cpu/kernels/vectors/pairs.h"
#if TILES
#include "backend/cpu/kernels/attention/attention_amx.h"
#endif

SPK_INLINE int64_t S(pairs)(int64_t numbers)
{
    return (numbers + 1) / 2;
}

/* 2^y, within 2^-22; 0 for a y of -infinity. Fewer instructions than attention_exp: one scales by 2^n, and the polynomial is of what is
 * left of y. */
SPK_INLINE T(vec) S(power)(T(vec) y)
{
    const T(vec) f = (T(vec))_mm512_reduce_ps((__m512)y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    T(vec) sum = (T(vec)){0} + 0.001867130079f;
    sum = sum * f + 0.009017030296f;
    sum = sum * f + 0.05579991313f;
    sum = sum * f + 0.2401644501f;
    sum = sum * f + 0.6931513118f;
    sum = sum * f + 1;
    return (T(vec))_mm512_scalef_ps((__m512)sum, (__m512)y);
}

/* What a worker has seen of some rows. */
typedef struct S(seen_values) {
    S(pair_least) least, most; /* most: of the magnitudes; a number that is not finite is greater than all others */
} S(seen_values);

SPK_INLINE void S(see_values)(S(seen_values) *seen, T(words) pairs)
{
    S(least_of)(&seen->least, pairs);
    seen->most = _mm512_max_epu16(seen->most, _mm512_and_si512((__m512i)pairs, _mm512_set1_epi16(0x7fff)));
}

SPK_INLINE bool S(values_finite)(const S(seen_values) *seen)
{
    return _mm512_cmpge_epu16_mask(seen->most, _mm512_set1_epi16(0x7f80)) == 0;
}
