/* 8-bit floating point to float and back (OFP8 1.0): round to nearest even, denormals right. f8e5m2 has infinities and NaN as IEEE 754 has
 * them. f8e4m3 has no infinity and one NaN of either sign: what is too large becomes NaN, so that it is seen. */
#ifndef SPK_TYPE_F8_H
#define SPK_TYPE_F8_H

#include "type/half.h"

static inline float spk_f8e5m2_to_float(uint8_t bits)
{
    return spk_f16_to_float((uint16_t)(bits << 8)); /* the upper half of one */
}

static inline float spk_f8e4m3_to_float(uint8_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x80) << 24, exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 0x7f) == 0x7f)
        return spk_float_of_bits(sign | 0x7fc00000);
    const float small = (float)mantissa * 0x1p-9f; /* denormals: a whole number of 2^-9 */
    return spk_float_of_bits((exponent == 0 ? spk_float_bits(small) : (exponent + 120) << 23 | mantissa << 20) | sign);
}

/* A float to a format of `behind` bits behind the point, whose least normal number is 2^least: the bits without the sign, as if there were
 * no largest number. size: the float's bits without the sign, below infinity. */
static inline uint32_t spk_f8_round(uint32_t size, uint32_t behind, int least)
{
    const int exponent = (int)(size >> 23) - 127;
    const uint32_t mantissa = (size & 0x7fffff) | 0x800000;
    const int missing = exponent < least ? least - exponent : 0;
    const uint32_t shift = 23 - behind + (uint32_t)missing;
    if (shift > 24) /* below half of the least denormal; floats that are denormal, too */
        return 0;
    uint32_t whole = mantissa >> shift;
    const uint32_t rest = mantissa & ((UINT32_C(1) << shift) - 1), middle = UINT32_C(1) << (shift - 1);
    whole += rest > middle || (rest == middle && (whole & 1) != 0);
    /* the leading one of a normal number adds 1 to the exponent's bits, and so does a carry */
    return whole + ((uint32_t)(missing > 0 ? 0 : exponent - least) << behind);
}

static inline uint8_t spk_f8e4m3_from_float(float x)
{
    const uint32_t bits = spk_float_bits(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    const uint32_t made = size >= 0x7f800000 ? 0x7f : spk_f8_round(size, 3, -6);
    return (uint8_t)(sign | (made < 0x7f ? made : 0x7f));
}

static inline uint8_t spk_f8e5m2_from_float(float x)
{
    const uint32_t bits = spk_float_bits(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint8_t)(sign | 0x7e);
    const uint32_t made = size == 0x7f800000 ? 0x7c : spk_f8_round(size, 2, -14);
    return (uint8_t)(sign | (made < 0x7c ? made : 0x7c));
}

static inline uint8_t spk_f8e4m3_from_double(double x)
{
    return spk_f8e4m3_from_float(spk_float_to_round_again(x));
}

static inline uint8_t spk_f8e5m2_from_double(double x)
{
    return spk_f8e5m2_from_float(spk_float_to_round_again(x));
}

#endif
