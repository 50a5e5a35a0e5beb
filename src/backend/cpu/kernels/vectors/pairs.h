/* Pairs of bfloat16 numbers, one vector of them at a time: an element is 32 bits, as vdpbf16ps and AMX multiply them. And the least of what
 * was seen, other than 0 (least.h). */
#ifndef SPK_BACKEND_CPU_KERNELS_VECTORS_PAIRS_H
#define SPK_BACKEND_CPU_KERNELS_VECTORS_PAIRS_H

#include "backend/cpu/kernels/vectors/least.h"
#include "backend/cpu/kernels/vectors/stored.h"

#if TYPE != BF16 || ISA != AVX512
#error "pairs.h is for TYPE BF16 and ISA AVX512"
#endif

/* Largest of minus twice the numbers, as 16-bit numbers without a sign: the sign has gone, the least magnitude is the largest, and 0 is the
 * least. A multiplication and a maximum. */
typedef __m512i S(pair_least);

SPK_INLINE S(pair_least) S(least_of_none)(void)
{
    return _mm512_setzero_si512();
}

SPK_INLINE void S(least_of)(S(pair_least) *least, T(words) pairs)
{
    *least = _mm512_max_epu16(*least, _mm512_mullo_epi16((__m512i)pairs, _mm512_set1_epi16(-2)));
}

SPK_INLINE int S(least_number)(S(pair_least) least)
{
    const __m512i less = _mm512_sub_epi16(_mm512_srli_epi16(_mm512_sub_epi16(_mm512_setzero_si512(), least), 1), _mm512_set1_epi16(1));
    const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(less), _mm512_extracti64x4_epi64(less, 1));
    const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return _mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
}

/* `count` pairs, one at least, of numbers that lie side by side; second NULL: 0. */
SPK_INLINE T(words) S(pair_up)(const STORED *first, const STORED *second, int64_t count)
{
    const __mmask16 there = count >= T(lanes) ? (__mmask16)-1 : (__mmask16)((1u << count) - 1);
    const T(words) low = S(lengthen)((S(halves))_mm256_maskz_loadu_epi16(there, first));
    return second == NULL ? low : low | S(lengthen)((S(halves))_mm256_maskz_loadu_epi16(there, second)) << 16;
}

/* `count` pairs, 16 at most, of a line of `numbers` numbers, 0 behind them. */
SPK_INLINE T(words) S(pairs_of_line)(const STORED *from, int64_t numbers)
{
    const __mmask32 there = numbers >= 2 * T(lanes) ? ~(__mmask32)0 : (__mmask32)((1ull << (numbers > 0 ? numbers : 0)) - 1);
    return (T(words))_mm512_maskz_loadu_epi16(there, from);
}

/* Numbers that lie side by side, as pairs; an odd last one with 0. */
SPK_INLINE void S(pair_line)(const STORED *from, int64_t count, REAL *to, S(pair_least) *least)
{
    S(pair_least) found = *least;
    int64_t i = 0;
    for (; i + 2 * T(lanes) <= count; i += 2 * T(lanes)) {
        const T(words) pairs = (T(words))_mm512_loadu_si512(from + i);
        S(least_of)(&found, pairs);
        T(store)(to + i / 2, (T(vec))pairs);
    }
    if (i < count) {
        const T(words) pairs = S(pairs_of_line)(from + i, count - i);
        S(least_of)(&found, pairs);
        T(store_part)(to + i / 2, (T(vec))pairs, (count - i + 1) / 2);
    }
    *least = found;
}

#endif
