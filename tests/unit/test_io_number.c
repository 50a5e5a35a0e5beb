/* Numbers from and to text against the C library: every bit, whatever the locale. */
#include "unit/io_case.h"

#include <locale.h>

#include "base/rng.h"
#include "matrix/io/number.h"

static void check_parse(const char *text, spk_number_status wanted)
{
    double value = 12345, expected = strtod(text, NULL), quick;
    spk_number_status status = spk_number_parse(text, strlen(text), &value);
    if (status != wanted ||
        (status == SPK_NUMBER_OK ? memcmp(&value, &expected, sizeof value) != 0 && !(isnan(value) && isnan(expected)) : value != 12345))
        fail_msg("'%s': status %d, %.17g; wanted %d, %.17g", text, (int)status, value, (int)wanted, expected);
    unsigned char padded[128] = "";
    if (strlen(text) < 64) {
        memcpy(padded, text, strlen(text));
        const unsigned char *end = spk_number_fast(padded, &quick);
        if (end && end == padded + strlen(text) && status == SPK_NUMBER_OK)
            assert_memory_equal(&quick, &value, sizeof quick);
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const char *const ok[] = {
        "0",
        "-0",
        "+0",
        "1",
        "007",
        "1.",
        ".5",
        "-.5e1",
        "1e5",
        "1E+5",
        "1e-5",
        "0.1",
        "123456789012345678",
        "1234567890123456789",
        "12345678901234567890",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000000000000000001",
        "4.35",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "8.5e27",
        "3e-27",
        "1e28",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4e-324",
        "2.5e-324",
        "1e-400",
        "0e999999999999999999999",
        "0.000000000000000000000000000000000000000000000000000000001",
        "0.1000000000000000055511151231257827021181583404541015625",
        "0.3000000000000000166533453693773481063544750213623046875",
        "179769313486231570000000000000000000000e270",
        "nan",
        "-NaN",
        "Inf",
        "-inf",
        "+Infinity",
        "INFINITY",
        "18446744073709551615",
        "18446744073709551616",
        "999999999999999999e-9",
        "9999999999999999999e-27",
        "1e0000000000000000000000001",
    };
    static const char *const bad[] = {"",    "+",     "-",    ".",     "e5", "1e", "1e+", "1e5.", "1.2.3", "1,5", "0x10",
                                      "1p5", "nan()", "nanx", "infin", "1 ", " 1", "1d",  "--1",  "+-1",   "1f"};
    static const char *const range[] = {"1e309", "-1e309", "1.7976931348623159e308", "1e99999999999", "9e9999999999999999999999999"};
    for (size_t i = 0; i < sizeof ok / sizeof *ok; i++)
        check_parse(ok[i], SPK_NUMBER_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_parse(bad[i], SPK_NUMBER_BAD);
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        check_parse(range[i], SPK_NUMBER_RANGE);
    char text[SPK_NUMBER_LONGEST + 2];
    memset(text, '1', sizeof text);
    double value;
    static const char *const fortran[] = {"1.5D+03", "-1d5", "12345678901234567890.D-3", "4.9d-324"}; /* strtod does not know them */
    static const double values[] = {1500, -1e5, 12345678901234567.890, 4.9e-324};
    for (size_t i = 0; i < sizeof fortran / sizeof *fortran; i++) {
        assert_int_equal(spk_number_parse(fortran[i], strlen(fortran[i]), &value), SPK_NUMBER_OK);
        assert_true(value == values[i]);
    }
    assert_int_equal(spk_number_parse(text, SPK_NUMBER_LONGEST + 1, &value), SPK_NUMBER_BAD);
    assert_int_equal(spk_number_parse(text, SPK_NUMBER_LONGEST, &value), SPK_NUMBER_RANGE);
    assert_int_equal(spk_number_parse(text, 300, &value), SPK_NUMBER_OK);
}

static void test_parse_index(void **state)
{
    (void)state;
    int64_t value = 5;
    assert_int_equal(spk_number_parse_index("0", 1, &value), SPK_NUMBER_OK);
    assert_int_equal(value, 0);
    assert_int_equal(spk_number_parse_index("009223372036854775807", 21, &value), SPK_NUMBER_OK);
    assert_true(value == INT64_MAX);
    assert_int_equal(spk_number_parse_index("9223372036854775808", 19, &value), SPK_NUMBER_RANGE);
    assert_int_equal(spk_number_parse_index("99999999999999999999", 20, &value), SPK_NUMBER_RANGE);
    assert_int_equal(spk_number_parse_index("99999999999999999999x", 21, &value), SPK_NUMBER_BAD);
    assert_int_equal(spk_number_parse_index("", 0, &value), SPK_NUMBER_BAD);
    assert_int_equal(spk_number_parse_index("-1", 2, &value), SPK_NUMBER_BAD);
    assert_int_equal(spk_number_parse_index("1.", 2, &value), SPK_NUMBER_BAD);
    assert_true(value == INT64_MAX);
}

/* A number of any magnitude, most of them such as files hold. */
static double draw(spk_rng *rng)
{
    uint64_t bits = spk_rng_next(rng);
    double value;
    switch (spk_rng_below(rng, 5)) {
    case 0:
        memcpy(&value, &bits, sizeof value);
        return value;
    case 1:
        return (double)(int64_t)(bits >> 44) / 1000;
    case 2:
        return ldexp((double)(bits >> 11), (int)spk_rng_below(rng, 140) - 110);
    case 3:
        return (double)(bits >> 11) * pow(10, (double)spk_rng_below(rng, 40) - 30);
    default:
        return (double)(float)ldexp((double)bits, -(int)spk_rng_below(rng, 110));
    }
}

static void check_print(double value)
{
    char text[SPK_NUMBER_ROOM + 1], longest[64];
    double back;
    char *end = spk_number_print_f64(text, value);
    *end = '\0';
    assert_int_equal(spk_number_parse(text, (size_t)(end - text), &back), SPK_NUMBER_OK);
    snprintf(longest, sizeof longest, "%.17g", value);
    if (isnan(value) ? !isnan(back)
                     : memcmp(&back, &value, sizeof back) != 0 || strtod(text, NULL) != value || strlen(text) > strlen(longest))
        fail_msg("%.17g is printed as %s and read as %.17g", value, text, back);
    float single = (float)value, single_back;
    end = spk_number_print_f32(text, single);
    *end = '\0';
    assert_int_equal(spk_number_parse(text, (size_t)(end - text), &back), SPK_NUMBER_OK);
    single_back = (float)back;
    if (isnan(single) ? !isnan(back) : memcmp(&single_back, &single, sizeof single) != 0 || strtof(text, NULL) != single)
        fail_msg("the f32 %.9g is printed as %s and read as %.9g", (double)single, text, (double)single_back);
}

static void test_random(void **state)
{
    (void)state;
    int count = getenv("SPARSEK_TEST_QUICK") ? 20000 : 300000;
    spk_rng rng;
    spk_rng_seed(&rng, 13);
    for (int i = 0; i < count; i++) {
        char text[64];
        double value = draw(&rng);
        check_print(value);
        check_print(-(double)i / 64);
        check_print(i / 1e5);
        snprintf(text, sizeof text, "%.*e", (int)spk_rng_below(&rng, 22), value);
        check_parse(text, isfinite(value) && isinf(strtod(text, NULL)) ? SPK_NUMBER_RANGE : SPK_NUMBER_OK);
    }
}

static void check_text(double value, const char *f64, const char *f32)
{
    char text[SPK_NUMBER_ROOM + 1];
    *spk_number_print_f64(text, value) = '\0';
    assert_string_equal(text, f64);
    *spk_number_print_f32(text, (float)value) = '\0';
    assert_string_equal(text, f32);
}

static void test_print(void **state)
{
    (void)state;
    check_text(0, "0", "0");
    check_text(-0.0, "-0", "-0");
    check_text(1, "1", "1");
    check_text(-17, "-17", "-17");
    check_text(0.1, "0.1", "0.1");
    check_text(0.01, "0.01", "0.01");
    check_text(1e-4, "0.0001", "0.0001");
    check_text(1e-5, "1e-05", "1e-05");
    check_text(1.5e-5, "1.5e-05", "1.5e-05");
    check_text(123.25, "123.25", "123.25");
    check_text(1.0 / 3, "0.33333333333333331", "0.333333343");
    check_text(0x1p53 + 2, "9007199254740994", "9.00719925e+15");
    check_text(1e16, "10000000000000000", "1.00000003e+16");
    check_text(1e17, "1e+17", "9.99999984e+16");
    check_text(1e300, "1.0000000000000001e+300", "inf");
    check_text(-INFINITY, "-inf", "-inf");
    check_text(NAN, "nan", "nan");
    char text[SPK_NUMBER_ROOM + 1];
    *spk_number_print_int(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036854775808");
    *spk_number_print_int(text, INT64_MAX) = '\0';
    assert_string_equal(text, "9223372036854775807");
}

/* A locale with a decimal comma changes nothing. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!found)
        return;
    double value;
    char text[SPK_NUMBER_ROOM + 1];
    assert_int_equal(spk_number_parse("1.5e-300", 8, &value), SPK_NUMBER_OK);
    assert_true(value == 1.5e-300);
    *spk_number_print_f64(text, 1.5e-300) = '\0';
    assert_string_equal(text, "1.5000000000000001e-300");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_parse_index), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_print), cmocka_unit_test(test_locale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
