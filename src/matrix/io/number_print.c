/* Numbers to text, without the locale. Promises that reading back gives the same value; the usual magnitudes (1e-11 to 1e16) are
 * printed by exact integer arithmetic, the rest by the C library. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/c_locale.h"
#include "matrix/io/number.h"
#include "matrix/io/number_exact.h"

static char *print_unsigned(char *at, uint64_t value)
{
    char text[20];
    int count = 0;
    do {
        text[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count > 0)
        *at++ = text[--count];
    return at;
}

char *spk_number_print_int(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    return print_unsigned(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static char *print_slowly(char *at, int precision, double value)
{
    return at + spk_snprintf(at, SPK_NUMBER_ROOM, "%.*g", precision, value);
}

#ifdef SPK_HAVE_U128

/* value > 0 as `count` decimal digits, correctly rounded: value ~ digits * 10^(exponent - count + 1). False where the power of ten
 * is out of the exact range. */
static bool decimal(double value, int count, uint64_t limit, uint64_t *digits, int *exponent)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int biased = (int)(bits >> 52);
    if (biased == 0)
        return false; /* subnormal: far out of range anyway */
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1) << 52);
    int binary = biased - 1075;                 /* value = mantissa * 2^binary */
    int guess = ((biased - 1023) * 1233) >> 12; /* floor(log10(value)), or one less */
    for (;; guess++) {
        int power = count - 1 - guess;
        if (power < 0 || power > SPK_POWER5_MAX)
            return false;
        spk_u128 product = (spk_u128)mantissa * spk_power5[power];
        int shift = binary + power;
        if (shift >= 0) {
            product <<= shift;
        } else if (shift <= -128) {
            return false;
        } else {
            spk_u128 rest = product & (((spk_u128)1 << -shift) - 1), half = (spk_u128)1 << (-shift - 1);
            product >>= -shift;
            if (rest > half || (rest == half && (product & 1)))
                product++;
        }
        if (product >= limit)
            continue; /* one digit too many: the guess was one low, or rounding carried over */
        *digits = (uint64_t)product;
        *exponent = guess;
        return true;
    }
}

/* digits * 10^(exponent - count + 1) in the manner of %g: trailing zeros cut. */
static char *emit(char *at, uint64_t digits, int count, int exponent, int precision)
{
    char text[20];
    while (digits % 10 == 0) { /* digits > 0 */
        digits /= 10;
        count--;
    }
    print_unsigned(text, digits);
    if (exponent < -4 || exponent >= precision) {
        *at++ = text[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, text + 1, (size_t)count - 1);
            at += count - 1;
        }
        *at++ = 'e';
        *at++ = exponent < 0 ? '-' : '+';
        unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);
        if (size < 10)
            *at++ = '0';
        return print_unsigned(at, size);
    }
    if (exponent < 0) {
        memcpy(at, "0.0000", 6);
        at += 1 - exponent;
    }
    for (int i = 0; i < count; i++) {
        if (i == exponent + 1 && exponent >= 0)
            *at++ = '.';
        *at++ = text[i];
    }
    for (int i = count; i <= exponent; i++)
        *at++ = '0';
    return at;
}

static const double power10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Drops `drop` digits where what is left, read back, differs from the value by at most `slack`. */
static void shorten(double value, double slack, int drop, uint64_t step, uint64_t *digits, int *count, int *exponent)
{
    uint64_t shorter = (*digits + step / 2) / step;
    int power = *exponent - (*count - drop) + 1; /* of ten, of the last digit */
    if (power < -22 || power > 22)
        return;
    double back = power < 0 ? (double)shorter / power10[-power] : (double)shorter * power10[power];
    if (fabs(back - value) > slack)
        return;
    *count -= drop;
    if (shorter == (uint64_t)power10[*count]) { /* 99..9 became 100..0 */
        shorter /= 10;
        *exponent += 1;
    }
    *digits = shorter;
}

static char *print_digits(char *at, double value, bool single)
{
    int count = single ? 9 : 17, exponent, precision = count;
    uint64_t digits;
    if (!decimal(value, count, single ? UINT64_C(1000000000) : UINT64_C(100000000000000000), &digits, &exponent))
        return print_slowly(at, precision, value);
    /* Half a unit in the last place of an f32 is more than 2^-25 of it: well inside that, no second rounding can go astray. */
    if (single)
        shorten(value, 0x1.fp-26 * value, 3, 1000, &digits, &count, &exponent);
    else
        shorten(value, 0, 2, 100, &digits, &count, &exponent);
    return emit(at, digits, count, exponent, precision);
}

#else

static char *print_digits(char *at, double value, bool single)
{
    return print_slowly(at, single ? 9 : 17, value);
}

#endif

static char *print(char *at, double value, bool single)
{
    if (isnan(value)) {
        memcpy(at, "nan", 3);
        return at + 3;
    }
    if (signbit(value)) {
        *at++ = '-';
        value = -value;
    }
    if (isinf(value)) {
        memcpy(at, "inf", 3);
        return at + 3;
    }
    if (value < 0x1p53 && value == (double)(uint64_t)value)
        return print_unsigned(at, (uint64_t)value);
    return print_digits(at, value, single);
}

char *spk_number_print_f64(char *at, double value)
{
    return print(at, value, false);
}

char *spk_number_print_f32(char *at, float value)
{
    return print(at, (double)value, true);
}
