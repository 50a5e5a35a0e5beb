/* Vectors of REAL, and the few functions on them that kernels need. GCC's vector extensions, so that the compiler's flags decide which
 * instructions come out; intrinsics only for masked access, which the extensions lack. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/vectors/instance.h"

#if ISA == AVX2 || ISA == AVX512
#include <immintrin.h>
#elif ISA == NEON
#include <arm_neon.h>
#endif

#ifndef VECTOR_H
#define VECTOR_H

typedef REAL T(vec) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias)); /* in memory: aligned to the element */
#if REAL_BITS == 64
typedef int64_t T(bits) __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int32_t T(bits) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t T(words) __attribute__((vector_size(VECTOR_BYTES)));
#endif
enum { T(lanes) = VECTOR_BYTES / (int)sizeof(REAL) };

SPK_INLINE T(vec) T(splat)(REAL x)
{
    return (T(vec)){0} + x;
}

SPK_INLINE REAL T(get)(const REAL *from)
{
    return *from;
}

SPK_INLINE T(vec) T(load)(const REAL *from)
{
    return *(const T(vec) *)from;
}

SPK_INLINE void T(store)(REAL *to, T(vec) v)
{
    *(T(vec) *)to = v;
}

/* Contiguous elements, as REAL where they are something else. */
SPK_INLINE void T(widen_all)(const REAL *from, int64_t count, REAL *to)
{
    __builtin_memcpy(to, from, (size_t)count * sizeof(REAL));
}

/* The first count <= lanes elements; the others are 0 and not touched in memory. */
#if ISA == AVX2
SPK_INLINE T(bits) T(first_lanes)(int64_t count)
{
#if REAL_BITS == 64
    const T(bits) lane = {0, 1, 2, 3};
    return lane < count;
#else
    const T(bits) lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane < (int32_t)count;
#endif
}

SPK_INLINE T(vec) T(load_part)(const REAL *from, int64_t count)
{
#if REAL_BITS == 64
    return (T(vec))_mm256_maskload_pd(from, (__m256i)T(first_lanes)(count));
#else
    return (T(vec))_mm256_maskload_ps(from, (__m256i)T(first_lanes)(count));
#endif
}

SPK_INLINE void T(store_part)(REAL *to, T(vec) v, int64_t count)
{
#if REAL_BITS == 64
    _mm256_maskstore_pd(to, (__m256i)T(first_lanes)(count), (__m256d)v);
#else
    _mm256_maskstore_ps(to, (__m256i)T(first_lanes)(count), (__m256)v);
#endif
}
#elif ISA == AVX512
SPK_INLINE T(vec) T(load_part)(const REAL *from, int64_t count)
{
    const unsigned first = (1u << count) - 1;
#if REAL_BITS == 64
    return (T(vec))_mm512_maskz_loadu_pd((__mmask8)first, from);
#else
    return (T(vec))_mm512_maskz_loadu_ps((__mmask16)first, from);
#endif
}

SPK_INLINE void T(store_part)(REAL *to, T(vec) v, int64_t count)
{
    const unsigned first = (1u << count) - 1;
#if REAL_BITS == 64
    _mm512_mask_storeu_pd(to, (__mmask8)first, (__m512d)v);
#else
    _mm512_mask_storeu_ps(to, (__mmask16)first, (__m512)v);
#endif
}
#else
SPK_INLINE T(vec) T(load_part)(const REAL *from, int64_t count)
{
    T(vec) v = {0};
    __builtin_memcpy(&v, from, (size_t)count * sizeof(REAL));
    return v;
}

SPK_INLINE void T(store_part)(REAL *to, T(vec) v, int64_t count)
{
    __builtin_memcpy(to, &v, (size_t)count * sizeof(REAL));
}
#endif

/* condition ? yes : no, lane by lane; a comparison is all ones where it holds. */
SPK_INLINE T(vec) T(select)(T(bits) condition, T(vec) yes, T(vec) no)
{
    return (T(vec))((condition & (T(bits))yes) | (~condition & (T(bits))no));
}

/* exp(x), within 2 ulp; infinity above 710 (float: 89); 0 where the result would not be normal, for denormal arithmetic is slow; NaN stays
 * NaN. */
SPK_INLINE T(vec) T(exp)(T(vec) x)
{
#if REAL_BITS == 64
    const REAL shifter = 6755399441055744.0, lowest = -708, highest = 760, log2_high = 0.693147180369123816490,
               log2_low = 1.90821492927058770002e-10;
    enum { TERMS = 13, MANTISSA = 52, BIAS = 1023 };
#else
    const REAL shifter = 12582912.0f, lowest = -87, highest = 112, log2_high = 0.693145751953125f, log2_low = 1.428606765330187e-6f;
    enum { TERMS = 7, MANTISSA = 23, BIAS = 127 };
#endif
    static const REAL inverse_factorial[14] = {1,
                                               1,
                                               (REAL)(1 / 2.0),
                                               (REAL)(1 / 6.0),
                                               (REAL)(1 / 24.0),
                                               (REAL)(1 / 120.0),
                                               (REAL)(1 / 720.0),
                                               (REAL)(1 / 5040.0),
                                               (REAL)(1 / 40320.0),
                                               (REAL)(1 / 362880.0),
                                               (REAL)(1 / 3628800.0),
                                               (REAL)(1 / 39916800.0),
                                               (REAL)(1 / 479001600.0),
                                               (REAL)(1 / 6227020800.0)};
    const T(vec) zero = {0};
    const T(bits) tiny = x < lowest;
    x = T(select)(tiny, zero, T(select)(x > highest, zero + highest, x));
    /* x = n log 2 + r with |r| <= log(2) / 2; adding the shifter rounds to an integer and leaves it in the low bits. */
    const T(vec) shifted = x * (REAL)1.44269504088896340736 + shifter, n = shifted - shifter;
    const T(vec) r = (x - n * log2_high) - n * log2_low;
    T(vec) sum = zero + inverse_factorial[TERMS];
#pragma GCC unroll 13
    for (int i = TERMS - 1; i >= 0; i--)
        sum = sum * r + inverse_factorial[i];
    /* 2^n in two factors, so that neither overflows. */
    const T(bits) whole = (T(bits))shifted - (T(bits))(zero + shifter), half = whole >> 1;
    sum = sum * (T(vec))((half + BIAS) << MANTISSA) * (T(vec))((whole - half + BIAS) << MANTISSA);
    return T(select)(tiny, zero, sum);
}

/* The activations of sparsek.h; written with exp so that both tails keep their relative accuracy. -infinity gives -0 as the limit is. */
SPK_INLINE T(vec) T(activate)(const spk_activation activation, T(vec) x)
{
    const T(vec) zero = {0};
#if REAL_BITS == 64
    const REAL largest = __DBL_MAX__;
#else
    const REAL largest = __FLT_MAX__;
#endif
    if (activation == SPK_ACT_RELU)
        return T(select)(x < zero, zero, x);
    const T(vec) clamped = T(select)(x < -largest, zero - largest, x);
    if (activation == SPK_ACT_SILU)
        return clamped / (1 + T(exp)(-x));
    if (activation == SPK_ACT_GELU_TANH) { /* (1 + tanh u) / 2 = 1 / (1 + exp(-2u)) */
        const T(vec) u2 = clamped * ((REAL)1.59576912160573071176 + (REAL)0.0713548162726002488 * x * x);
        return clamped / (1 + T(exp)(-u2));
    }
    if (activation == SPK_ACT_GELU_ERF) {
        /* x Phi(x), with Phi(-z) = exp(-z^2 / 2) t P(t), t = 1 / (1 + c z), z = |x|: P is a Chebyshev fit on t in [0, 1]. */
#if REAL_BITS == 64
        const REAL c = 0.2;
        static const REAL fit[] = {0.0797884560802865398,  0.0797884560802867353,  0.076596917837028845,    0.0702138413553896317,
                                   0.0610222109530576784,  0.0497880049041199389,  0.037583380641327117,    0.0256369302394751038,
                                   0.0150853002161892938,  0.00710505849722546209, 0.000321746338282844462, 0.0038605626449119138,
                                   -0.0200768909176921146, 0.0489016941086630825,  -0.109974157198574617,   0.188567670482974944,
                                   -0.250408638239960547,  0.25594064162503792,    -0.192509871139732251,   0.101490561547438275,
                                   -0.0353608951690395665, 0.00732404900109201922, -0.000685029887788259623};
#else
        const REAL c = 0.25f;
        static const REAL fit[] = {0.09973556104f, 0.09973739677f,  0.09343951471f, 0.08188963177f,  0.05744625824f,
                                   0.06827399573f, -0.03974686337f, 0.1037988575f,  -0.08538922994f, 0.0208148884f};
#endif
        enum { DEGREE = (int)(sizeof fit / sizeof fit[0]) - 1 };
        const T(vec) z = T(select)(clamped < zero, -clamped, clamped), t = 1 / (1 + c * z);
        T(vec) sum = zero + fit[DEGREE];
#pragma GCC unroll 22
        for (int i = DEGREE - 1; i >= 0; i--)
            sum = sum * t + fit[i];
        const T(vec) tail = T(exp)(z * z * (REAL)-0.5) * t * sum;
        return clamped * T(select)(x < zero, tail, 1 - tail);
    }
    return x;
}

#endif
