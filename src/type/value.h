/* Elements of arrays as doubles and back, for every type that holds values or indices. */
#ifndef SPK_TYPE_VALUE_H
#define SPK_TYPE_VALUE_H

#include <math.h>
#include <stdint.h>

#include "type/f8.h"
#include "type/type.h"

double spk_value_get(const void *values, spk_dtype dtype, int64_t index);
void spk_value_set(void *values, spk_dtype dtype, int64_t index, double value); /* rounds to nearest, once */

/* The arrays do not overlap. */
void spk_values_convert(spk_dtype to_dtype, void *to, spk_dtype from_dtype, const void *from, int64_t count);

/* Whether all are finite, by their bits: the host's rounding and flushing modes are no matter. */
bool spk_values_are_finite(const void *values, spk_dtype dtype, int64_t count);

/* The nearest whole number from least to most, of two the even one; 0 of NaN. */
static inline int spk_whole_from_double(double value, int least, int most)
{
    if (!(value > least))
        return value <= least ? least : 0;
    if (value >= most)
        return most;
    const double floor_of = floor(value), rest = value - floor_of;
    const int whole = (int)floor_of;
    return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1) != 0));
}

static inline int8_t spk_int8_from_double(double value)
{
    return (int8_t)spk_whole_from_double(value, INT8_MIN, INT8_MAX);
}

/* spk_value_get where a loop needs it inline. */
static inline double spk_value_at(const void *values, spk_dtype dtype, int64_t index)
{
#define SPK_ELEMENT(element, to_double, from_double) to_double(((const element *)values)[index])
    switch (dtype) {
#define SPK_TYPE(enumerator, name, use, stored, ...) \
    case enumerator:                                 \
        return (double)SPK_ELEMENT stored;
#include "type/types.def"
#undef SPK_TYPE
    default:
        return (double)NAN;
    }
#undef SPK_ELEMENT
}

/* spk_value_set likewise. */
static inline void spk_value_put(void *values, spk_dtype dtype, int64_t index, double value)
{
#define SPK_PUT(element, to_double, from_double) ((element *)values)[index] = from_double(value)
    switch (dtype) {
#define SPK_TYPE(enumerator, name, use, stored, ...) \
    case enumerator:                                 \
        SPK_PUT stored;                              \
        break;
#include "type/types.def"
#undef SPK_TYPE
    default:
        break;
    }
#undef SPK_PUT
}

/* spk_type_is_whole where a loop needs it inline. */
static inline bool spk_value_is_whole(spk_dtype dtype)
{
    switch (dtype) {
#define SPK_TYPE(enumerator, name, use, stored, format, sums, ...) \
    case enumerator:                                               \
        return (sums) == SPK_INT32;
#include "type/types.def"
#undef SPK_TYPE
    default:
        return false;
    }
}

/* Whether the type cannot hold a value: a finite one would become infinite or NaN; of whole numbers also what is infinite, NaN or beyond
 * them, where spk_value_put takes the nearest. */
static inline bool spk_value_is_lost(spk_dtype dtype, double value)
{
    double place;
    spk_value_put(&place, dtype, 0, value);
    const double rounded = spk_value_at(&place, dtype, 0);
    return spk_value_is_whole(dtype) ? rounded != rint(value) : isfinite(value) && !isfinite(rounded);
}

/* The sum of two elements: of eight bits as it is, to be rounded once at the end; else as an element. */
static inline double spk_value_sum(spk_dtype dtype, double a, double b)
{
    double rounded;
    if (spk_type_is_scaled(dtype))
        return a + b;
    if (dtype == SPK_F32)
        return (double)((float)a + (float)b);
    spk_value_put(&rounded, dtype, 0, a + b);
    return spk_value_at(&rounded, dtype, 0);
}

static inline void spk_value_add(void *values, spk_dtype dtype, int64_t index, double value)
{
    if (dtype == SPK_F32)
        ((float *)values)[index] += (float)value;
    else
        spk_value_put(values, dtype, index, spk_value_at(values, dtype, index) + value);
}

#endif
