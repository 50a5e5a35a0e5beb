/* float16 and bfloat16: every one of them there and back, and the nearest one (ties to even) of any number, found here by trying all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "type/half.h"
#include "base/rng.h"
#include "matrix/matrix.h"

/* The definition: sign, exponent, mantissa. */
static double value_of(uint16_t half, int exponent_bits)
{
    int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = half >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = half & ((1 << mantissa_bits) - 1);
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/* The nearest of x >= 0: halves of one sign are ordered as their bits. What would be the number behind the largest stands for infinity. */
static uint16_t nearest(double x, int exponent_bits)
{
    uint16_t low = 0, infinity = (uint16_t)(0x7fff & ~((1 << (15 - exponent_bits)) - 1)), high = infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (value_of(middle, exponent_bits) <= x)
            low = middle;
        else
            high = middle;
    }
    double below = value_of(low, exponent_bits), step = below - value_of((uint16_t)(low - (low > 0)), exponent_bits);
    double above = high == infinity ? below + step : value_of(high, exponent_bits);
    double down = x - below, up = above - x;
    return down < up || (down == up && low % 2 == 0) ? low : high;
}

static void test_all_halves(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        double f16 = (double)spk_f16_to_float(half), bf16 = (double)spk_bf16_to_float(half), want = value_of(half, 5),
               wide = value_of(half, 8);
        assert_true(isnan(want) ? isnan(f16) : f16 == want && !signbit(f16) == !signbit(want));
        assert_true(isnan(wide) ? isnan(bf16) : bf16 == wide && !signbit(bf16) == !signbit(wide));
        if (isnan(want))
            assert_true(isnan(spk_f16_to_float(spk_f16_from_float((float)f16))));
        else
            assert_int_equal(spk_f16_from_double(f16), half);
        if (isnan(wide))
            assert_true(isnan(spk_bf16_to_float(spk_bf16_from_float((float)bf16))));
        else
            assert_int_equal(spk_bf16_from_double(bf16), half);
    }
    assert_int_equal(spk_f16_from_float(spk_float_of_bits(0x7fffffff)), 0x7fff); /* poison stays poison */
    assert_int_equal(spk_bf16_from_float(spk_float_of_bits(0xffffffff)), 0xffff);
}

static void check(double x)
{
    double size = fabs(x);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    assert_int_equal(spk_f16_from_double(x), sign | nearest(size, 5));
    assert_int_equal(spk_bf16_from_double(x), sign | nearest(size, 8));
    if ((double)(float)x == x) {
        assert_int_equal(spk_f16_from_float((float)x), sign | nearest(size, 5));
        assert_int_equal(spk_bf16_from_float((float)x), sign | nearest(size, 8));
    }
}

static void test_nearest(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 11);
    for (int i = 0; i < 40000; i++) {
        double x = ldexp(2 * spk_rng_uniform(&rng) - 1, (int)spk_rng_below(&rng, 60) - 35);
        check(x);
        check((double)(float)x);
        check(ldexp(x, (int)spk_rng_below(&rng, 200) - 120));
        /* half way between two halves, and as little beside it as a double can tell: what rounding twice gets wrong */
        uint16_t half = (uint16_t)spk_rng_below(&rng, 0x7bff), wide = (uint16_t)spk_rng_below(&rng, 0x7f7f);
        double middle = 0.5 * (value_of(half, 5) + value_of((uint16_t)(half + 1), 5)),
               wide_middle = 0.5 * (value_of(wide, 8) + value_of((uint16_t)(wide + 1), 8));
        check(middle), check(nextafter(middle, 0)), check(nextafter(middle, 1e9));
        check(wide_middle), check(nextafter(wide_middle, 0)), check(nextafter(wide_middle, (double)INFINITY));
    }
    check(65504), check(65519.99), check(65520), check(65520.01), check(1e300), check(0), check(-0.0), check(0x1p-25), check(0x1.1p-25),
        check(1e-300);
}

static void test_values(void **state)
{
    (void)state;
    double all[5] = {1, -0.333333333333333, 70000, 1e-8, 3e38}, back[5];
    uint16_t half[5];
    spk_values_convert(SPK_F16, half, SPK_F64, all, 5);
    spk_values_convert(SPK_F64, back, SPK_F16, half, 5);
    assert_true(back[0] == 1 && fabs(back[1] - all[1]) < 0x1p-12 && isinf(back[2]) && back[3] == 0 && isinf(back[4]));
    spk_values_convert(SPK_BF16, half, SPK_F64, all, 5);
    float single[5];
    spk_values_convert(SPK_F32, single, SPK_BF16, half, 5);
    assert_true(single[0] == 1 && single[2] == 70144 && fabs((double)single[4] - 3e38) < 2e36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_halves), cmocka_unit_test(test_nearest), cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
