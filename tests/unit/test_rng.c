/* Random numbers: the published sequence bit for bit, bounds without bias, and moments of the normal numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

/* The first outputs of xoshiro256** from the state 1, 2, 3, 4. */
static void test_published_sequence(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    spk_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(spk_rng_next(&rng), expected[i]);
}

/* The first outputs of splitmix64 from 1234567. */
static void test_published_seeding(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 1234567);
    assert_int_equal(rng.s[0], UINT64_C(6457827717110365317));
    assert_int_equal(rng.s[1], UINT64_C(3203168211198807973));
    assert_int_equal(rng.s[2], UINT64_C(9817491932198370423));
    assert_int_equal(rng.s[3], UINT64_C(4593380528125082431));
}

static void test_golden(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, first[4];
    } sequences[] = {
        {0, {UINT64_C(0x99ec5f36cb75f2b4), UINT64_C(0xbf6e1f784956452a), UINT64_C(0x1a5f849d4933e6e0), UINT64_C(0x6aa594f1262d2d2c)}},
        {42, {UINT64_C(0x15780b2e0c2ec716), UINT64_C(0x6104d9866d113a7e), UINT64_C(0xae17533239e499a1), UINT64_C(0xecb8ad4703b360a1)}},
        {UINT64_MAX,
         {UINT64_C(0x8f5520d52a7ead08), UINT64_C(0xc476a018caa1802d), UINT64_C(0x81de31c0d260469e), UINT64_C(0xbf658d7e065f3c2f)}},
    };
    spk_rng rng;
    for (size_t s = 0; s < sizeof sequences / sizeof *sequences; s++) {
        spk_rng_seed(&rng, sequences[s].seed);
        for (int i = 0; i < 4; i++)
            assert_int_equal(spk_rng_next(&rng), sequences[s].first[i]);
    }

    static const uint64_t digits[] = {2, 2, 9, 3, 6, 4, 4, 7};
    spk_rng_seed(&rng, 42);
    for (int i = 0; i < 8; i++)
        assert_int_equal(spk_rng_below(&rng, 10), digits[i]);
    assert_int_equal(spk_rng_below(&rng, (UINT64_C(1) << 63) + 1), UINT64_C(5362058279183681893));
    assert_int_equal(spk_rng_below(&rng, UINT64_C(3) << 61), UINT64_C(5928998142081247042));
    assert_int_equal(spk_rng_below(&rng, 1), 0);
    assert_int_equal(spk_rng_below(&rng, UINT64_MAX), UINT64_C(16191947441114085370));

    static const double uniforms[] = {0x1.5780b2e0c2ec0p-4, 0x1.84136619b444ep-2, 0x1.5c2ea66473c93p-1};
    spk_rng_seed(&rng, 42);
    for (int i = 0; i < 3; i++)
        assert_true(spk_rng_uniform(&rng) == uniforms[i]);

    static const double normals[] = {-0x1.5528934752b90p+0, 0x1.1e67599a2743fp+0, -0x1.439e6b2c48cf2p-1, 0x1.ea14c16ab4d17p-1};
    spk_rng_seed(&rng, 42);
    for (int i = 0; i < 4; i++)
        assert_true(spk_rng_normal(&rng) == normals[i]);
}

/* Chi-square over equal parts of the range within four standard deviations of its mean. */
static void check_flat(const int *seen, int parts, int draws, const char *what)
{
    double expected = (double)draws / parts, chi_square = 0, freedom = parts - 1;
    for (int i = 0; i < parts; i++)
        chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
    if (fabs(chi_square - freedom) > 4 * sqrt(2 * freedom))
        fail_msg("%s: chi-square %g at %g degrees of freedom", what, chi_square, freedom);
}

static void test_below_is_flat(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    static const uint64_t bounds[] = {2, 3, 7, 10, 48, 64};
    spk_rng rng;
    spk_rng_seed(&rng, 1);
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        int seen[64] = {0};
        for (int i = 0; i < DRAWS; i++) {
            uint64_t number = spk_rng_below(&rng, bounds[b]);
            assert_true(number < bounds[b]);
            seen[number]++;
        }
        check_flat(seen, (int)bounds[b], DRAWS, "small bound");
    }
}

/* Near the top of 64 bits a plain remainder would give the low numbers twice as often. */
static void test_large_bounds_are_flat(void **state)
{
    (void)state;
    enum { DRAWS = 96000, PARTS = 24 };
    static const uint64_t bounds[] = {UINT64_C(3) << 62, (UINT64_C(1) << 63) + 8, UINT64_C(3) << 61, UINT64_MAX - 15};
    spk_rng rng;
    spk_rng_seed(&rng, 2);
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        int seen[PARTS + 1] = {0};
        for (int i = 0; i < DRAWS; i++) {
            uint64_t number = spk_rng_below(&rng, bounds[b]);
            assert_true(number < bounds[b]);
            seen[number / (bounds[b] / PARTS)]++;
        }
        assert_true(seen[PARTS] == 0); /* less than a millionth of the range */
        check_flat(seen, PARTS, DRAWS, "large bound");
    }
}

static void test_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 500000, PARTS = 100 };
    int seen[PARTS] = {0};
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    for (int i = 0; i < DRAWS; i++) {
        double x = spk_rng_uniform(&rng);
        assert_true(x >= 0 && x < 1);
        seen[(int)(x * PARTS)]++;
    }
    check_flat(seen, PARTS, DRAWS, "uniform");

    /* The largest draw stays below one: all bits set in s[1] * 5 rotated by 7, times 9. */
    uint64_t ninth = UINT64_C(0x8e38e38e38e38e39); /* 9 * ninth = 1 modulo 2^64 */
    uint64_t fifth = UINT64_C(0xcccccccccccccccd);
    uint64_t turned = UINT64_MAX * ninth;
    rng = (spk_rng){{1, ((turned >> 7) | (turned << 57)) * fifth, 3, 4}};
    assert_true(spk_rng_uniform(&rng) == 1 - 0x1p-53);
}

/* The sum of twelve uniforms: mean 0, variance 1, third moment 0, fourth 3 - 6/5/12 = 2.9, never beyond 6. */
static void test_normal_moments(void **state)
{
    (void)state;
    enum { DRAWS = 1000000 };
    spk_rng rng;
    spk_rng_seed(&rng, 4);
    double moment[5] = {0}, within_one = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = spk_rng_normal(&rng), power = 1;
        assert_true(fabs(x) < 6);
        within_one += fabs(x) < 1;
        for (int k = 1; k <= 4; k++)
            moment[k] += (power *= x) / DRAWS;
    }
    double sigma = 1 / sqrt((double)DRAWS);
    assert_true(fabs(moment[1]) < 5 * sigma);
    assert_true(fabs(moment[2] - 1) < 5 * 1.38 * sigma);    /* sqrt(2.9 - 1) */
    assert_true(fabs(moment[3]) < 5 * 3.7 * sigma);         /* sqrt(E x^6), about 13.4 */
    assert_true(fabs(moment[4] - 2.9) < 5 * 8.7 * sigma);   /* sqrt(E x^8 - 2.9^2), about 84 - 8 */
    assert_true(fabs(within_one / DRAWS - 0.6827) < 0.005); /* the normal law's share */
}

static void test_neighbouring_seeds_differ(void **state)
{
    (void)state;
    enum { SEEDS = 1000 };
    double sum = 0;
    spk_rng a, b;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        spk_rng_seed(&a, seed);
        spk_rng_seed(&b, seed + 1);
        sum += __builtin_popcountll(spk_rng_next(&a) ^ spk_rng_next(&b));
    }
    assert_true(fabs(sum / SEEDS - 32) < 5 * 4 / sqrt((double)SEEDS)); /* half of the bits, as of independent numbers */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_sequence), cmocka_unit_test(test_published_seeding),         cmocka_unit_test(test_golden),
        cmocka_unit_test(test_below_is_flat),      cmocka_unit_test(test_large_bounds_are_flat),     cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal_moments),     cmocka_unit_test(test_neighbouring_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
