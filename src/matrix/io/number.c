/* Numbers from text. Promises the nearest double (ties to even) for every input: short numbers by exact integer arithmetic, the
 * rest by the C library. */
#include "matrix/io/number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/c_locale.h"
#include "matrix/io/number_exact.h"

/* A double is exact up to 2^53 and so are the powers of ten up to 10^22: one operation on two of them rounds once. */
#define EXACT_MANTISSA (UINT64_C(1) << 53)
#define EXACT_POWER 22
static const double power10[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef SPK_HAVE_U128

/* quotient * 2^shift to the nearest double; `more`: a remainder was cut off below the last bit. The result is a normal number. */
static double round_u128(spk_u128 quotient, bool more, int shift)
{
    uint64_t high = (uint64_t)(quotient >> 64), low = (uint64_t)quotient;
    int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
    if (bits > 53) {
        int cut = bits - 53;
        spk_u128 rest = quotient & (((spk_u128)1 << cut) - 1), half = (spk_u128)1 << (cut - 1);
        quotient >>= cut;
        shift += cut;
        if (rest > half || (rest == half && (more || (quotient & 1))))
            quotient++;
    }
    return (double)(uint64_t)quotient * from_bits((uint64_t)(1023 + shift) << 52);
}

/* mantissa * 10^power, 1 <= mantissa, |power| <= SPK_POWER5_MAX. */
static bool scale_u128(uint64_t mantissa, int power, double *value)
{
    if (power > SPK_POWER5_MAX || power < -SPK_POWER5_MAX)
        return false;
    if (power >= 0) {
        *value = round_u128((spk_u128)mantissa * spk_power5[power], false, power);
        return true;
    }
    int up = __builtin_clzll(mantissa);
    spk_u128 numerator = (spk_u128)(mantissa << up) << 62;
    uint64_t divisor = spk_power5[-power];
    spk_u128 quotient = numerator / divisor; /* 63 bits or more, as the divisor has 63 at most */
    *value = round_u128(quotient, quotient * divisor != numerator, power - up - 62);
    return true;
}

#else

static bool scale_u128(uint64_t mantissa, int power, double *value)
{
    (void)mantissa, (void)power, (void)value;
    return false;
}

#endif

static bool scale(uint64_t mantissa, int power, double *value)
{
    if (mantissa <= EXACT_MANTISSA && power >= -EXACT_POWER && power <= EXACT_POWER) {
        *value = power < 0 ? (double)mantissa / power10[-power] : (double)mantissa * power10[power];
        return true;
    }
    return scale_u128(mantissa, power, value);
}

/* Adds digits to the mantissa as long as 19 significant ones do not overflow it. */
static const unsigned char *digits(const unsigned char *at, const unsigned char *stop, uint64_t *mantissa)
{
    uint64_t m = *mantissa;
    unsigned digit;
    while (at < stop && m < UINT64_C(1000000000000000000) && (digit = *at - (unsigned)'0') <= 9) {
        m = m * 10 + digit;
        at++;
    }
    *mantissa = m;
    return at;
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

/* D is Fortran's mark of a double's exponent. */
static bool is_exponent(unsigned char byte)
{
    return byte == 'e' || byte == 'E' || byte == 'd' || byte == 'D';
}

const unsigned char *spk_number_fast(const unsigned char *at, double *value)
{
    const unsigned char *stop = at + 48;
    bool negative = *at == '-';
    at += negative || *at == '+';
    uint64_t mantissa = 0;
    const unsigned char *first = at;
    at = digits(at, stop, &mantissa);
    int count = (int)(at - first), power = 0;
    if (*at == '.') {
        const unsigned char *point = ++at;
        at = digits(at, stop, &mantissa);
        power = -(int)(at - point);
        count -= power;
    }
    if (count == 0 || is_digit(*at))
        return NULL;
    if (is_exponent(*at)) {
        at++;
        bool down = *at == '-';
        at += down || *at == '+';
        int exponent = 0;
        const unsigned char *from = at;
        for (; is_digit(*at) && at - from < 4; at++)
            exponent = exponent * 10 + (*at - '0');
        if (at == from || is_digit(*at))
            return NULL;
        power += down ? -exponent : exponent;
    }
    double magnitude = 0;
    if (mantissa != 0 && !scale(mantissa, power, &magnitude))
        return NULL;
    *value = negative ? -magnitude : magnitude;
    return at;
}

/* Whether text is a decimal number by our grammar: strtod takes more (hexadecimal, nan(...)). */
static bool is_decimal(const char *text, size_t length)
{
    size_t at = 0, count = 0;
    at += at < length && (text[at] == '+' || text[at] == '-');
    for (; at < length && is_digit((unsigned char)text[at]); at++)
        count++;
    if (at < length && text[at] == '.')
        for (at++; at < length && is_digit((unsigned char)text[at]); at++)
            count++;
    if (count == 0)
        return false;
    if (at < length && is_exponent((unsigned char)text[at])) {
        at++;
        at += at < length && (text[at] == '+' || text[at] == '-');
        size_t from = at;
        while (at < length && is_digit((unsigned char)text[at]))
            at++;
        if (at == from)
            return false;
    }
    return at == length;
}

static bool is_named(const char *text, size_t length, double *value)
{
    bool negative = length > 0 && text[0] == '-';
    size_t sign = length > 0 && (text[0] == '-' || text[0] == '+');
    text += sign;
    length -= sign;
    if (length == 3 && spk_same_letters(text, "nan", 3))
        *value = negative ? -NAN : NAN;
    else if ((length == 3 && spk_same_letters(text, "inf", 3)) || (length == 8 && spk_same_letters(text, "infinity", 8)))
        *value = negative ? -INFINITY : INFINITY;
    else
        return false;
    return true;
}

spk_number_status spk_number_parse(const char *text, size_t length, double *value)
{
    char copy[SPK_NUMBER_LONGEST + 1];
    if (length > SPK_NUMBER_LONGEST)
        return SPK_NUMBER_BAD;
    if (is_named(text, length, value))
        return SPK_NUMBER_OK;
    if (!is_decimal(text, length))
        return SPK_NUMBER_BAD;
    memcpy(copy, text, length);
    copy[length] = '\0';
    size_t mark = strcspn(copy, "dD");
    if (mark < length)
        copy[mark] = 'e'; /* what strtod knows */
    double result;
    const unsigned char *end = spk_number_fast((const unsigned char *)copy, &result);
    if (!end)
        result = spk_real(copy, NULL);
    if (isinf(result))
        return SPK_NUMBER_RANGE;
    *value = result;
    return SPK_NUMBER_OK;
}

spk_number_status spk_number_parse_index(const char *text, size_t length, int64_t *value)
{
    int64_t result = 0;
    if (length == 0)
        return SPK_NUMBER_BAD;
    for (size_t i = 0; i < length; i++)
        if (!is_digit((unsigned char)text[i]))
            return SPK_NUMBER_BAD;
    for (size_t i = 0; i < length; i++)
        if (__builtin_mul_overflow(result, (int64_t)10, &result) || __builtin_add_overflow(result, (int64_t)(text[i] - '0'), &result))
            return SPK_NUMBER_RANGE;
    *value = result;
    return SPK_NUMBER_OK;
}
