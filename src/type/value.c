#include "type/value.h"

double spk_value_get(const void *values, spk_dtype dtype, int64_t index)
{
    return spk_value_at(values, dtype, index);
}

void spk_value_set(void *values, spk_dtype dtype, int64_t index, double value)
{
    spk_value_put(values, dtype, index, value);
}

/* The commonest pairs in loops of their own. */
void spk_values_convert(spk_dtype to_dtype, void *to, spk_dtype from_dtype, const void *from, int64_t count)
{
    if (to_dtype == SPK_F32 && from_dtype == SPK_F64)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = (float)((const double *)from)[i];
    else if (to_dtype == SPK_F64 && from_dtype == SPK_F32)
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = (double)((const float *)from)[i];
    else if (to_dtype == SPK_F32 && from_dtype == SPK_F16)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = spk_f16_to_float(((const uint16_t *)from)[i]);
    else
        for (int64_t i = 0; i < count; i++)
            spk_value_put(to, to_dtype, i, spk_value_at(from, from_dtype, i));
}

bool spk_values_are_finite(const void *values, spk_dtype dtype, int64_t count)
{
    const spk_type *type = spk_type_of(dtype);
    const uint64_t exponent = spk_type_bits_beyond(dtype);
    const uint8_t *quarter = values, quarter_exponent = (uint8_t)exponent;
    const uint16_t *half = values, half_exponent = (uint16_t)exponent;
    const uint32_t *narrow = values, narrow_exponent = (uint32_t)exponent;
    const uint64_t *wide = values;
    uint64_t bad = 0;
    if (exponent == 0)
        return true;
    if (type->bytes == 8)
        for (int64_t i = 0; i < count; i++)
            bad |= (wide[i] & exponent) == exponent;
    else if (type->bytes == 4)
        for (int64_t i = 0; i < count; i++)
            bad |= (narrow[i] & narrow_exponent) == narrow_exponent;
    else if (type->bytes == 2)
        for (int64_t i = 0; i < count; i++)
            bad |= (half[i] & half_exponent) == half_exponent;
    else
        for (int64_t i = 0; i < count; i++)
            bad |= (quarter[i] & quarter_exponent) == quarter_exponent;
    return bad == 0;
}
