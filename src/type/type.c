#include "type/type.h"

#include <math.h>
#include <string.h>

#include "base/c_locale.h"

static const spk_type none;

/* The parts of a row that types.def has in brackets. */
#define STORED(element, to_double, from_double) .bytes = sizeof(element)
#define FORMAT(significand_, least_exponent_, largest_, has_infinity_) \
    .significand = significand_, .least_exponent = least_exponent_, .largest = largest_, .has_infinity = has_infinity_
#define RESULTS(...) .results = {__VA_ARGS__}
#define NAMES(npy_, safetensors_, torch_, words_) .npy = npy_, .safetensors = safetensors_, .torch = #torch_, .words = words_
#define NUMBERS(tma_, cuda_, cudnn_, onednn_) .tma = tma_, .cuda = cuda_, .cudnn = cudnn_, .onednn = onednn_

static const spk_type types[] = {
#define SPK_TYPE(enumerator, name_, use_, stored, format, sums_, results, names, numbers) \
    [enumerator] = {.dtype = enumerator,                                                  \
                    .name = #name_,                                                       \
                    .use = use_,                                                          \
                    STORED stored,                                                        \
                    FORMAT format,                                                        \
                    .sums = sums_,                                                        \
                    RESULTS results,                                                      \
                    NAMES names,                                                          \
                    NUMBERS numbers},
#include "type/types.def"
#undef SPK_TYPE
};

enum { TYPES = sizeof types / sizeof types[0] };

const spk_type *spk_type_of(spk_dtype dtype)
{
    return (int)dtype > 0 && (int)dtype < TYPES ? &types[dtype] : &none;
}

const spk_type *spk_type_next(const spk_type *last, unsigned uses)
{
    for (int i = last == NULL ? 1 : (int)last->dtype + 1; i < TYPES; i++)
        if ((uses >> types[i].use & 1) != 0)
            return &types[i];
    return NULL;
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

/* Whether it is one of the words of "half|fp16|16". */
static bool is_word_of(const char *word, const char *list)
{
    const size_t length = strlen(word);
    for (size_t end; *list != '\0'; list += end + (list[end] == '|')) {
        end = strcspn(list, "|");
        if (end == length && strncmp(list, word, length) == 0)
            return true;
    }
    return false;
}

const spk_type *spk_type_meant(const char *word)
{
    for (const spk_type *type = NULL; (type = spk_type_next(type, SPK_USES_OF_VALUES)) != NULL;)
        if ((strcmp(word, type->torch) == 0 && strcmp(word, "none") != 0) || is_word_of(word, type->words))
            return type;
    return &none;
}

spk_dtype spk_type_reduced(spk_dtype dtype)
{
    for (const spk_type *type = NULL; (type = spk_type_next(type, 1u << SPK_USE_PRODUCTS)) != NULL;)
        if (type->sums == dtype)
            return type->dtype;
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
    for (const spk_type *type = NULL; (type = spk_type_next(type, uses)) != NULL;)
        list[count++] = type->dtype;
    return spk_type_list_of(list, count, last, text, size);
}

uint64_t spk_type_bits_beyond(spk_dtype dtype)
{
    const spk_type *type = spk_type_of(dtype);
    const int bits = 8 * (int)type->bytes, behind = type->has_infinity ? type->significand - 1 : 0;
    return type->bytes == 0 || spk_type_is_whole(dtype) ? 0 : (UINT64_C(1) << (bits - 1)) - (UINT64_C(1) << behind);
}

double spk_type_random(spk_dtype dtype, double normal)
{
    if (!spk_type_is_whole(dtype))
        return normal;
    return spk_type_of(dtype)->largest / 4 * (spk_type_has_sign(dtype) ? normal : fabs(normal));
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
