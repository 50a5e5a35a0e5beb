#include "type/type.h"

#include <math.h>
#include <string.h>

#include "base/c_locale.h"

static const spk_type none;

#define SPK_TYPE_RESULTS(...) \
    {                         \
        __VA_ARGS__           \
    }

static const spk_type types[] = {
#define SPK_TYPE(enumerator, name_, use_, bytes_, significand_, least_exponent_, largest_, has_infinity_, sums_, results_, npy_, \
                 safetensors_)                                                                                                   \
    [enumerator] = {.dtype = enumerator,                                                                                         \
                    .name = name_,                                                                                               \
                    .use = use_,                                                                                                 \
                    .bytes = bytes_,                                                                                             \
                    .significand = significand_,                                                                                 \
                    .least_exponent = least_exponent_,                                                                           \
                    .largest = largest_,                                                                                         \
                    .has_infinity = has_infinity_,                                                                               \
                    .sums = sums_,                                                                                               \
                    .results = SPK_TYPE_RESULTS results_,                                                                        \
                    .npy = npy_,                                                                                                 \
                    .safetensors = safetensors_},
#include "type/types.def"
};

enum { TYPES = sizeof types / sizeof types[0] };

const spk_type *spk_type_of(spk_dtype dtype)
{
    return (int)dtype > 0 && (int)dtype < TYPES ? &types[dtype] : &none;
}

static const spk_type *named(size_t member, const char *name)
{
    for (int i = 1; name != NULL && i < TYPES; i++) {
        const char *its;
        memcpy(&its, (const char *)&types[i] + member, sizeof its);
        if (its != NULL && strcmp(its, name) == 0)
            return &types[i];
    }
    return &none;
}

const spk_type *spk_type_of_npy(const char *name)
{
    return named(offsetof(spk_type, npy), name);
}

const spk_type *spk_type_of_safetensors(const char *name)
{
    return named(offsetof(spk_type, safetensors), name);
}

const spk_type *spk_type_named(const char *name)
{
    return named(offsetof(spk_type, name), name);
}

spk_dtype spk_type_reduced(spk_dtype dtype)
{
    for (int i = 1; i < TYPES; i++)
        if (types[i].use == SPK_USE_PRODUCTS && types[i].sums == dtype)
            return types[i].dtype;
    return SPK_DTYPE_DEFAULT;
}

bool spk_type_gives(spk_dtype factors, spk_dtype result)
{
    const spk_type *type = spk_type_of(factors);
    bool any = false;
    for (int i = 0; i < SPK_MOST_RESULTS && type->results[i] != SPK_DTYPE_DEFAULT; i++)
        any = any || type->results[i] == result;
    return any;
}

const char *spk_type_list_of(const spk_dtype *list, int most, const char *last, char *text, size_t size)
{
    int count = 0;
    size_t at = 0;
    while (count < most && list[count] != SPK_DTYPE_DEFAULT)
        count++;
    text[0] = '\0';
    for (int i = 0; i < count && at < size; i++) {
        const bool with_last = i == count - 1 && count > 1;
        const char *between = i == 0 ? "" : with_last ? " " : ", ", *name = spk_type_of(list[i])->name;
        spk_snprintf(text + at, size - at, "%s%s%s%s", between, with_last ? last : "", with_last ? " " : "", name != NULL ? name : "");
        at += strlen(text + at);
    }
    return text;
}

const char *spk_type_list(unsigned uses, const char *last, char *text, size_t size)
{
    spk_dtype list[TYPES];
    int count = 0;
    for (int i = 1; i < TYPES; i++)
        if ((uses >> types[i].use & 1) != 0)
            list[count++] = types[i].dtype;
    return spk_type_list_of(list, count, last, text, size);
}

double spk_type_rounding(spk_dtype dtype)
{
    return ldexp(1, -spk_type_of(dtype)->significand);
}

double spk_type_epsilon(spk_dtype dtype)
{
    return ldexp(1, 1 - spk_type_of(dtype)->significand);
}

double spk_type_least_rounding(spk_dtype dtype)
{
    const spk_type *type = spk_type_of(dtype);
    return ldexp(1, type->least_exponent - type->significand);
}

double spk_type_difference(spk_dtype dtype, double got, double want)
{
    const spk_type *type = spk_type_of(dtype);
    if (got == want)
        return 0;
    if (isinf(got) && (got > 0 ? want >= type->largest : want <= -type->largest)) /* want itself is not exact */
        return 0;
    const double difference = fabs(got - want), least = spk_type_least_rounding(dtype);
    return difference <= least ? 0 : difference - least; /* NaN stays what it is */
}
