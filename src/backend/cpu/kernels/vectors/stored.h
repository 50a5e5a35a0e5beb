/* Elements in memory as vectors of REAL: those of 16 bits here, which become float on their way into registers and are rounded to nearest
 * even on their way back, as type/half.h does; of other types S(load) and its like are those of vector.h. */
#include "backend/cpu/kernels/vectors/vector.h"
#include "type/half.h"

#if STORED_BITS == 16 && !defined(STORED_H)
#define STORED_H

typedef uint16_t S(halves) __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias)); /* as many as a vector has lanes */

/* Between 16 and 32 bits, the upper ones 0; intrinsics, as __builtin_convertvector goes by halves of a vector. */
SPK_INLINE T(words) S(lengthen)(S(halves) h)
{
#if ISA == AVX2
    return (T(words))_mm256_cvtepu16_epi32((__m128i)h);
#elif ISA == AVX512
    return (T(words))_mm512_cvtepu16_epi32((__m256i)h);
#else
    return __builtin_convertvector(h, T(words));
#endif
}

SPK_INLINE S(halves) S(shorten)(T(words) words)
{
#if ISA == AVX2
    return (S(halves))_mm_packus_epi32(_mm256_castsi256_si128((__m256i)words), _mm256_extracti128_si256((__m256i)words, 1));
#elif ISA == AVX512
    return (S(halves))_mm512_cvtepi32_epi16((__m512i)words);
#else
    return __builtin_convertvector(words, S(halves));
#endif
}

#if !STORED_BF16 && defined(__F16C__) && ISA == AVX2
SPK_INLINE T(vec) S(widen)(S(halves) h)
{
    return (T(vec))_mm256_cvtph_ps((__m128i)h);
}

SPK_INLINE S(halves) S(round)(T(vec) v)
{
    return (S(halves))_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif !STORED_BF16 && ISA == AVX512
SPK_INLINE T(vec) S(widen)(S(halves) h)
{
    return (T(vec))_mm512_cvtph_ps((__m256i)h);
}

SPK_INLINE S(halves) S(round)(T(vec) v)
{
    return (S(halves))_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif !STORED_BF16 && ISA == NEON
SPK_INLINE T(vec) S(widen)(S(halves) h)
{
    return (T(vec))vcvt_f32_f16((float16x4_t)h);
}

SPK_INLINE S(halves) S(round)(T(vec) v)
{
    return (S(halves))vcvt_f16_f32((float32x4_t)v);
}
#elif STORED_BF16
SPK_INLINE T(vec) S(widen)(S(halves) h)
{
    return (T(vec))(S(lengthen)(h) << 16);
}

SPK_INLINE S(halves) S(round)(T(vec) v)
{
#if defined(__AVX512BF16__) && ISA == AVX512
    /* The instruction takes denormal numbers for 0. */
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)v, 0x20) == 0, 1)) {
        __m256i halves;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(v));
        return (S(halves))halves;
    }
#endif
    const T(words) x = (T(words))v, rounded = x + 0x7fff + (x >> 16 & 1), quiet = x | 0x400000;
    const T(words) result = (T(words))T(select)(v != v, (T(vec))quiet, (T(vec))rounded);
    return S(shorten)(result >> 16);
}
#else
/* By arithmetic: a denormal is a whole number of 2^-24, which is a normal float. */
SPK_INLINE T(vec) S(widen)(S(halves) h)
{
    const T(words) x = S(lengthen)(h), size = x & 0x7fff;
    const T(vec) small = __builtin_convertvector((T(bits))size, T(vec)) * 0x1p-24f;
    const T(words) normal = (size << 13) + (112u << 23), special = (size << 13) + (224u << 23);
    const T(vec) finite = T(select)((T(bits))size < 0x400, small, (T(vec))normal);
    const T(vec) result = T(select)((T(bits))size >= 0x7c00, (T(vec))special, finite);
    return (T(vec))((T(words))result | (x & 0x8000) << 16);
}

SPK_INLINE S(halves) S(round)(T(vec) v)
{
    const T(words) x = (T(words))v, size = x & 0x7fffffff;
    const T(bits) order = (T(bits))size;
    /* Beside 0.5 a float has steps of 2^-24: the sum rounds. */
    const T(words) small = (T(words))((T(vec))size + 0.5f) - 0x3f000000;
    const T(words) normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13, nan = 0x7e00 | (size >> 13 & 0x3ff);
    T(vec) result = T(select)(order < 0x38800000, (T(vec))small, (T(vec))normal);
    result = T(select)(order >= 0x477ff000, (T(vec))((T(words)){0} + 0x7c00), result); /* half way from 65504 to 2^16, and beyond */
    result = T(select)(order > 0x7f800000, (T(vec))nan, result);
    return S(shorten)((T(words))result | (x >> 16 & 0x8000));
}
#endif

SPK_INLINE REAL S(get)(const STORED *from)
{
#if STORED_BF16
    return spk_bf16_to_float(*from);
#elif defined(__F16C__)
    return _cvtsh_ss(*from);
#else
    return spk_f16_to_float(*from);
#endif
}

SPK_INLINE T(vec) S(load)(const STORED *from)
{
    return S(widen)(*(const S(halves) *)from);
}

SPK_INLINE void S(store)(STORED *to, T(vec) v)
{
    *(S(halves) *)to = S(round)(v);
}

/* The first count <= lanes elements, one at least; the others are 0 and not touched in memory. */
#if ISA == AVX512
SPK_INLINE T(vec) S(load_part)(const STORED *from, int64_t count)
{
    return S(widen)((S(halves))_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), from));
}

SPK_INLINE void S(store_part)(STORED *to, T(vec) v, int64_t count)
{
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << count) - 1), (__m256i)S(round)(v));
}
#else
/* Put together in registers: a load of what was just stored in parts would wait for the stores. */
SPK_INLINE T(vec) S(load_part)(const STORED *from, int64_t count)
{
    typedef uint64_t four __attribute__((vector_size(VECTOR_BYTES / 2 < 16 ? 8 : 16))); /* elements each */
    uint64_t first = 0;
    if (count == T(lanes))
        return S(load)(from);
    if (count >= 4) {
        __builtin_memcpy(&first, from, 8);
    } else {
        first = from[0];
        if (count > 1)
            first |= (uint64_t)from[1] << 16;
        if (count > 2)
            first |= (uint64_t)from[2] << 32;
    }
    four all = {first};
#if ISA == AVX2
    if (count > 4) {
        uint64_t last;
        __builtin_memcpy(&last, from + count - 4, 8);
        all[1] = last >> 16 * (8 - count);
    }
#endif
    return S(widen)((S(halves))all);
}

SPK_INLINE void S(store_part)(STORED *to, T(vec) v, int64_t count)
{
    const S(halves) h = S(round)(v);
    __builtin_memcpy(to, &h, (size_t)count * sizeof(STORED));
}
#endif

/* Contiguous elements as REAL. */
SPK_INLINE void S(widen_all)(const STORED *from, int64_t count, REAL *to)
{
    int64_t i = 0;
    for (; i + T(lanes) <= count; i += T(lanes))
        T(store)(to + i, S(load)(from + i));
    for (; i < count; i++)
        to[i] = S(get)(from + i);
}

#endif
