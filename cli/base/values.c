/* Values one at a time. Those of 8 and 16 bits from the definition: sign, exponent, mantissa. */
#include "cli/base/values.h"

#include <math.h>

#include "type/type.h"

/* A format of fewer than 32 bits: sign, exponent, mantissa. */
typedef struct short_format {
    int exponent_end, bits, least; /* bits below the sign; of the mantissa; the least exponent of a normal number */
    bool has_infinity;             /* else only what is all ones is NaN, and what is too large becomes that */
} short_format;

static short_format format_of(spk_dtype dtype)
{
    const spk_type *type = spk_type_of(dtype);
    return (short_format){8 * (int)type->bytes - 1, type->significand - 1, type->least_exponent, type->has_infinity};
}

/* The least pattern of bits that is no finite number, without the sign. */
static int beyond(short_format f)
{
    const int all = (1 << f.exponent_end) - 1;
    return f.has_infinity ? all - ((1 << f.bits) - 1) : all;
}

static double get_short(short_format f, int bits)
{
    const int size = bits & ((1 << f.exponent_end) - 1), mantissa = size & ((1 << f.bits) - 1), exponent = size >> f.bits;
    const double sign = bits >> f.exponent_end ? -1 : 1;
    if (size >= beyond(f))
        return f.has_infinity && size == beyond(f) ? sign * (double)INFINITY : (double)NAN;
    return exponent == 0 ? sign * ldexp(mantissa, f.least - f.bits)
                         : sign * ldexp(mantissa + (1 << f.bits), exponent - 1 + f.least - f.bits);
}

static int put_short(short_format f, double x)
{
    int exponent = f.least;
    const int sign = signbit(x) ? 1 << f.exponent_end : 0, end = beyond(f);
    const double size = fabs(x);
    if (isnan(x))
        return sign | end | (f.has_infinity ? 1 << (f.bits - 1) : 0);
    if (isinf(x))
        return sign | end;
    if (size > 0 && ilogb(size) > exponent)
        exponent = ilogb(size);
    /* in units of the last place; a carry into the next exponent comes out right in the bits */
    const double units = nearbyint(ldexp(size, f.bits - exponent)) + ldexp(exponent - f.least, f.bits);
    return sign | (units >= end ? end : (int)units);
}

/* A whole number of eight bits, in two's complement where it has a sign. */
static int get_whole(spk_dtype dtype, uint8_t bits)
{
    return spk_type_has_sign(dtype) ? (int8_t)bits : bits;
}

static uint8_t put_whole(spk_dtype dtype, double x)
{
    const double largest = spk_type_of(dtype)->largest, least = spk_type_has_sign(dtype) ? -largest - 1 : 0;
    return (uint8_t)(int)(isnan(x) ? 0 : fmax(fmin(nearbyint(x), largest), least));
}

double value_get(spk_dtype dtype, const void *array, int64_t index)
{
    switch (spk_dtype_bytes(dtype)) {
    case 8:
        return ((const double *)array)[index];
    case 4:
        return (double)((const float *)array)[index];
    case 2:
        return get_short(format_of(dtype), ((const uint16_t *)array)[index]);
    default:
        return spk_type_is_whole(dtype) ? get_whole(dtype, ((const uint8_t *)array)[index])
                                        : get_short(format_of(dtype), ((const uint8_t *)array)[index]);
    }
}

void value_put(spk_dtype dtype, void *array, int64_t index, double value)
{
    switch (spk_dtype_bytes(dtype)) {
    case 8:
        ((double *)array)[index] = value;
        break;
    case 4:
        ((float *)array)[index] = (float)value;
        break;
    case 2:
        ((uint16_t *)array)[index] = (uint16_t)put_short(format_of(dtype), value);
        break;
    default:
        ((uint8_t *)array)[index] = spk_type_is_whole(dtype) ? put_whole(dtype, value) : (uint8_t)put_short(format_of(dtype), value);
    }
}
