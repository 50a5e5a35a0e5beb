/* float16 (IEEE binary16) and bfloat16 to float and back: round to nearest even, infinities and NaN kept, denormals right. Integer work on
 * the bits, so that neither the rounding mode nor flush-to-zero of the calling thread changes a result, and no F16C is needed. */
#ifndef SPK_BASE_HALF_H
#define SPK_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t spk_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float spk_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Free of branches once compiled, for loops that read whole arrays. */
static inline float spk_f16_to_float(uint16_t half)
{
    uint32_t exponent = (uint32_t)half >> 10 & 31, mantissa = (uint32_t)half & 0x3ff;
    uint32_t small = spk_float_bits((float)mantissa * 0x1p-24f); /* denormals: a whole number of 2^-24, normal as a float */
    uint32_t bits = (exponent + (exponent == 31 ? 224 : 112)) << 23 | mantissa << 13;
    return spk_float_of_bits((exponent == 0 ? small : bits) | ((uint32_t)half & 0x8000) << 16);
}

static inline uint16_t spk_f16_from_float(float x)
{
    uint32_t bits = spk_float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) /* NaN, made quiet */
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) /* half way from the largest number, 65504, to 2^16, and beyond */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x33000000) /* below half of the least denormal, 2^-24 */
        return (uint16_t)sign;
    if (size >= 0x38800000) /* 2^-14: normal */
        return (uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
    uint32_t mantissa = (size & 0x7fffff) | 0x800000, shift = 126 - (size >> 23); /* 14 .. 24 */
    uint32_t whole = mantissa >> shift, rest = mantissa & ((UINT32_C(1) << shift) - 1), middle = UINT32_C(1) << (shift - 1);
    whole += rest > middle || (rest == middle && (whole & 1) != 0);
    return (uint16_t)(sign | whole);
}

static inline float spk_bf16_to_float(uint16_t half)
{
    return spk_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t spk_bf16_from_float(float x)
{
    uint32_t bits = spk_float_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN, made quiet */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A double on its way to a half: what float cannot hold goes into its last bit (round to odd), so that the second rounding gives what one
 * would. */
static inline float spk_float_to_round_again(double x)
{
    float near = (float)x;
    double back = (double)near;
    if (back == x || x != x || x - x != 0) /* exact, NaN or infinite */
        return near;
    uint32_t bits = spk_float_bits(near);
    bits -= (back < 0 ? -back : back) > (x < 0 ? -x : x);
    return spk_float_of_bits(bits | 1);
}

static inline uint16_t spk_f16_from_double(double x)
{
    return spk_f16_from_float(spk_float_to_round_again(x));
}

static inline uint16_t spk_bf16_from_double(double x)
{
    return spk_bf16_from_float(spk_float_to_round_again(x));
}

#endif
