/* Values one at a time. Halves from the definition: sign, exponent, mantissa. */
#include "cli/base/values.h"

#include <math.h>

#include "type/type.h"

typedef struct half_format {
    int bits, least; /* of the mantissa; the least exponent of a normal number */
} half_format;

static half_format format_of(spk_dtype dtype)
{
    const spk_type *type = spk_type_of(dtype);
    return (half_format){type->significand - 1, type->least_exponent};
}

static double get_half(half_format f, uint16_t half)
{
    int mantissa = half & ((1 << f.bits) - 1), exponent = (half & 0x7fff) >> f.bits, top = (1 << (15 - f.bits)) - 1;
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == top)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    return exponent == 0 ? sign * ldexp(mantissa, f.least - f.bits)
                         : sign * ldexp(mantissa + (1 << f.bits), exponent - 1 + f.least - f.bits);
}

static uint16_t put_half(half_format f, double x)
{
    int top = (1 << (15 - f.bits)) - 1, exponent = f.least;
    uint16_t sign = signbit(x) ? 0x8000 : 0, infinity = (uint16_t)(top << f.bits);
    double size = fabs(x);
    if (isnan(x))
        return (uint16_t)(sign | infinity | 1 << (f.bits - 1));
    if (isinf(x))
        return sign | infinity;
    if (size > 0 && ilogb(size) > exponent)
        exponent = ilogb(size);
    /* in units of the last place; a carry into the next exponent comes out right in the bits */
    double units = nearbyint(ldexp(size, f.bits - exponent)) + ldexp(exponent - f.least, f.bits);
    return sign | (units >= infinity ? infinity : (uint16_t)units);
}

double value_get(spk_dtype dtype, const void *array, int64_t index)
{
    if (spk_dtype_bytes(dtype) == sizeof(double))
        return ((const double *)array)[index];
    if (spk_dtype_bytes(dtype) == sizeof(float))
        return (double)((const float *)array)[index];
    return get_half(format_of(dtype), ((const uint16_t *)array)[index]);
}

void value_put(spk_dtype dtype, void *array, int64_t index, double value)
{
    if (spk_dtype_bytes(dtype) == sizeof(double))
        ((double *)array)[index] = value;
    else if (spk_dtype_bytes(dtype) == sizeof(float))
        ((float *)array)[index] = (float)value;
    else
        ((uint16_t *)array)[index] = put_half(format_of(dtype), value);
}
