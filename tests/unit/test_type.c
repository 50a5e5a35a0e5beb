/* The rows of element types: what they say is what the conversions do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "type/names.h"
#include "type/tile.h"
#include "type/value.h"

enum { NUMBERS = 16 }; /* of dtypes that are asked, those that name none among them */

static double rounded(spk_dtype dtype, double value)
{
    double place;
    spk_value_set(&place, dtype, 0, value);
    return spk_value_get(&place, dtype, 0);
}

/* The type that is asked about, for who reads of a failure. */
static const char *asked;

static const spk_type *next_type(const spk_type *last, unsigned uses)
{
    const spk_type *type = spk_type_next(last, uses);
    asked = type != NULL ? type->name : NULL;
    return type;
}

static int names_what_failed(void **state)
{
    (void)state;
    if (asked != NULL)
        print_error("the type was %s\n", asked);
    asked = NULL;
    return 0;
}

static int rows_of(unsigned uses)
{
    int count = 0;
    for (const spk_type *type = NULL; (type = spk_type_next(type, uses)) != NULL;)
        count += type->name != NULL;
    return count;
}

static void rows_are_of_their_types(void **state)
{
    (void)state;
    int named = 0;
    for (int i = -1; i < NUMBERS; i++) {
        const spk_dtype dtype = (spk_dtype)i;
        const spk_type *type = spk_type_of(dtype);
        assert_non_null(type);
        if (type->name == NULL) {
            assert_true(type->bytes == 0 && type->use == SPK_USE_NONE && spk_dtype_bytes(dtype) == 0 && spk_dtype_name(dtype) == NULL);
            continue;
        }
        named++;
        assert_int_equal(type->dtype, dtype);
        assert_string_equal(spk_dtype_name(dtype), type->name);
        assert_int_equal(spk_dtype_from_name(type->name), dtype);
        assert_ptr_equal(spk_type_named(type->name), type);
        assert_true(type->npy == NULL || spk_type_of_npy(type->npy) == type);
        assert_true(type->safetensors == NULL || spk_type_of_safetensors(type->safetensors) == type);
        assert_int_equal(spk_type_of(type->sums)->sums, type->sums); /* sums of sums are of the same type */
        assert_true(type->tma >= -1 && type->cuda >= -1 && type->cudnn >= -1 && type->onednn >= -1);
        assert_true(type->use == SPK_USE_INDICES || spk_type_of(type->sums)->significand >= type->significand);
    }
    assert_int_equal(named, rows_of(~0u));
    assert_null(spk_type_named("f31")->name);
    assert_null(spk_type_named(NULL)->name);
    assert_int_equal(spk_dtype_from_name("f31"), SPK_DTYPE_DEFAULT);
    assert_null(spk_type_of_npy("f3")->name);
    assert_null(spk_type_of_safetensors("")->name);
}

/* In "a|b|c", by its whole name. */
static bool has_word(const char *list, const char *word)
{
    const char *at = strstr(list, word);
    const size_t length = strlen(word);
    while (at != NULL && ((at != list && at[-1] != '|') || (at[length] != '\0' && at[length] != '|')))
        at = strstr(at + 1, word);
    return at != NULL;
}

/* The lists for options have the types that they are of, and no others. */
static void options_list_all(void **state)
{
    (void)state;
    for (const spk_type *type = NULL; (type = spk_type_next(type, ~0u)) != NULL;) {
        bool sums = type->use == SPK_USE_PRODUCTS;
        for (const spk_type *other = NULL; (other = spk_type_next(other, SPK_USES_OF_VALUES)) != NULL;)
            sums = sums || other->sums == type->dtype;
        assert_int_equal(has_word(SPK_TYPES_OF_VALUES, type->name), type->use == SPK_USE_VALUES);
        assert_int_equal(has_word(SPK_TYPES_OF_MATRICES, type->name), spk_type_holds_values(type->dtype));
        assert_int_equal(has_word(SPK_TYPES_OF_SUMS, type->name), sums);
    }
    assert_string_equal(SPK_TYPES_OF_VALUES, "f32|f64|f16|bf16");
}

/* No word means two types. */
static void words_mean_one(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        spk_dtype dtype;
    } meant[] = {{"half", SPK_F16},
                 {"fp16", SPK_F16},
                 {"16", SPK_F16},
                 {"float", SPK_F32},
                 {"float32", SPK_F32},
                 {"double", SPK_F64},
                 {"bfloat16", SPK_BF16},
                 {"float8", SPK_F8E4M3},
                 {"float8_e4m3fn", SPK_F8E4M3},
                 {"e5m2", SPK_F8E5M2},
                 {"int8", SPK_INT8},
                 {"8", SPK_INT8},
                 {"", SPK_DTYPE_DEFAULT},
                 {"hal", SPK_DTYPE_DEFAULT},
                 {"none", SPK_DTYPE_DEFAULT},
                 {"p16", SPK_DTYPE_DEFAULT},
                 {"int32", SPK_DTYPE_DEFAULT},
                 {"half|fp16", SPK_DTYPE_DEFAULT}};
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++)
        assert_int_equal(spk_type_meant(meant[i].word)->dtype, meant[i].dtype);
    for (const spk_type *type = NULL; (type = spk_type_next(type, SPK_USES_OF_VALUES)) != NULL;) {
        assert_true(spk_type_meant(type->torch) == type || strcmp(type->torch, "none") == 0);
        for (const spk_type *other = NULL; (other = spk_type_next(other, SPK_USES_OF_VALUES)) != NULL;)
            assert_true(other == type || !has_word(type->words, other->name));
    }
}

/* As the device's scan is compiled with. */
static void bits_beyond_are_of_the_format(void **state)
{
    (void)state;
    assert_int_equal(spk_type_bits_beyond(SPK_F32), 0x7f800000);
    assert_true(spk_type_bits_beyond(SPK_F64) == UINT64_C(0x7ff0000000000000));
    assert_int_equal(spk_type_bits_beyond(SPK_F16), 0x7c00);
    assert_int_equal(spk_type_bits_beyond(SPK_BF16), 0x7f80);
    assert_int_equal(spk_type_bits_beyond(SPK_F8E4M3), 0x7f);
    assert_int_equal(spk_type_bits_beyond(SPK_F8E5M2), 0x7c);
    assert_int_equal(spk_type_bits_beyond(SPK_INT8), 0);
    assert_int_equal(spk_type_bits_beyond(SPK_DTYPE_DEFAULT), 0);
}

/* Tiles of scale factors: what is written is read again, and no other text is. */
static void tiles_are_read_as_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        spk_scale tile;
    } known[] = {{"tensor", {SPK_SCALE_ALL, SPK_SCALE_ALL}},
                 {"row", {1, SPK_SCALE_ALL}},
                 {"col", {SPK_SCALE_ALL, 1}},
                 {"block", {SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}},
                 {"1x128", {1, 128}},
                 {"allx4", {SPK_SCALE_ALL, 4}},
                 {"128xall", {128, SPK_SCALE_ALL}}};
    static const char *const wrong[] = {
        "",           "3", "0x1", "1x0", "x", "1x", "x1", "1x2x3", "-1x2", "rows", "1X2", " 1x2", "1x2 ", "allx", "99999999999999999999x1",
        "blockxblock"};
    char text[SPK_TILE_TEXT], list[SPK_TILE_LIST_TEXT];
    spk_scale tile;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_true(spk_tile_read(known[i].text, &tile));
        assert_true(tile.rows == known[i].tile.rows && tile.cols == known[i].tile.cols);
        assert_string_equal(spk_tile_text(tile, text, sizeof text), known[i].text);
    }
    assert_true(spk_tile_read("allxall", &tile) && tile.rows == SPK_SCALE_ALL && tile.cols == SPK_SCALE_ALL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(spk_tile_read(wrong[i], &tile));
    assert_string_equal(spk_tile_words("", list, sizeof list), "tensor, row, col or block");
    assert_string_equal(spk_tile_words("\"", list, sizeof list), "\"tensor\", \"row\", \"col\" or \"block\"");
    assert_string_equal(spk_tile_words("", list, 9), "tensor, ");
}

/* The least number: of whole ones with a sign one more below 0 than above. */
static double least_of(spk_dtype dtype)
{
    const double largest = spk_type_of(dtype)->largest;
    if (!spk_type_is_whole(dtype))
        return -largest;
    return spk_type_has_sign(dtype) ? -largest - 1 : 0;
}

/* Whole numbers from the least to the largest; what is beyond is the last there is. */
static void whole_numbers_are(spk_dtype dtype)
{
    const double largest = spk_type_of(dtype)->largest, least = least_of(dtype);
    assert_true(largest == ldexp(1, spk_type_of(dtype)->significand) - 1);
    for (double x = least; x <= largest; x++)
        assert_true(rounded(dtype, x) == x && rounded(dtype, x + 0.25) == x && rounded(dtype, x - 0.25) == x);
    assert_true(rounded(dtype, 0.5) == 0 && rounded(dtype, 1.5) == 2 && rounded(dtype, -0.5) == 0);
    assert_true(rounded(dtype, -1.5) == (spk_type_has_sign(dtype) ? -2 : 0));
    assert_true(rounded(dtype, largest + 0.5) == largest && rounded(dtype, 1e300) == largest &&
                rounded(dtype, (double)INFINITY) == largest);
    assert_true(rounded(dtype, -1e300) == least && rounded(dtype, -(double)INFINITY) == least);
    assert_true(rounded(dtype, (double)NAN) == 0 && spk_value_is_lost(dtype, 1e300) && spk_value_is_lost(dtype, (double)NAN));
    assert_true(spk_value_is_lost(dtype, (double)INFINITY) && spk_value_is_lost(dtype, largest + 0.5) &&
                spk_value_is_lost(dtype, least - 0.6));
    assert_true(!spk_value_is_lost(dtype, largest + 0.4) && !spk_value_is_lost(dtype, least - 0.5));
}

/* The number that an element's bits are by the row: sign, exponent, magnitude; of a whole number two's complement. */
static double meant_by(const spk_type *type, unsigned bits)
{
    const int width = 8 * (int)type->bytes, behind = type->significand - 1;
    const unsigned half = 1u << (width - 1), size = bits & (half - 1), exponent = size >> behind;
    const unsigned beyond = type->has_infinity ? half - (1u << behind) : half - 1;
    const double sign = bits >= half ? -1 : 1, mantissa = size & ((1u << behind) - 1);
    if (spk_type_is_whole(type->dtype))
        return bits >= half && spk_type_has_sign(type->dtype) ? (double)bits - 2 * (double)half : bits;
    if (size >= beyond)
        return type->has_infinity && size == beyond ? sign * (double)INFINITY : (double)NAN;
    return sign * ldexp(exponent == 0 ? mantissa : mantissa + (1 << behind),
                        (exponent == 0 ? 0 : (int)exponent - 1) + type->least_exponent - behind);
}

/* Each pattern of bits is the number that the format says, and that number becomes this pattern again. */
static void bits_mean_what_the_row_says(void **state)
{
    (void)state;
    for (const spk_type *type = NULL; (type = next_type(type, SPK_USES_OF_VALUES)) != NULL;)
        for (unsigned bits = 0; type->bytes < 3 && bits < 1u << 8 * type->bytes; bits++) {
            const uint8_t eight = (uint8_t)bits;
            const uint16_t sixteen = (uint16_t)bits;
            const void *element = type->bytes == 1 ? (const void *)&eight : &sixteen;
            const double want = meant_by(type, bits), got = spk_value_get(element, type->dtype, 0);
            uint64_t again = 0;
            spk_value_set(&again, type->dtype, 0, want);
            if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want) || memcmp(&again, element, type->bytes) != 0)
                fail_msg("%s: 0x%x is %g, and by the row (src/type/types.def) %g, which becomes 0x%llx", type->name, bits, got, want,
                         (unsigned long long)again);
        }
}

/* What the row says of a type that holds values, shown by rounding to it. */
static void numbers_are_as_the_row_says(void **state)
{
    (void)state;
    for (const spk_type *type = NULL; (type = next_type(type, SPK_USES_OF_VALUES)) != NULL;) {
        const spk_dtype dtype = type->dtype;
        const double eps = spk_type_epsilon(dtype), least = ldexp(1, type->least_exponent), step = 2 * spk_type_least_rounding(dtype);
        if (spk_type_is_whole(dtype)) {
            whole_numbers_are(dtype);
            continue;
        }
        assert_true(rounded(dtype, 1 + eps) == 1 + eps);
        assert_true(spk_type_is_double(dtype) || (rounded(dtype, 1 + eps / 2) == 1 && rounded(dtype, 1 + 1.5 * eps) == 1 + 2 * eps));
        assert_true(spk_type_rounding(dtype) == eps / 2);
        assert_true(rounded(dtype, type->largest) == type->largest && !spk_value_is_lost(dtype, type->largest));
        const double next = ldexp(1, ilogb(type->largest)) * eps, too_large = type->largest + 0.51 * next; /* half a step more, and some */
        assert_true(spk_type_is_double(dtype) || !isfinite(rounded(dtype, too_large)));
        assert_true(spk_type_is_double(dtype) || isinf(rounded(dtype, too_large)) == type->has_infinity);
        assert_true(spk_type_is_double(dtype) || spk_value_is_lost(dtype, -too_large));
        assert_true(!spk_value_is_lost(dtype, (double)NAN) && !spk_value_is_lost(dtype, -(double)INFINITY));
        assert_true(rounded(dtype, least) == least);
        if (!spk_type_is_double(dtype)) { /* a double has none that are smaller */
            assert_true(rounded(dtype, step) == step && rounded(dtype, 0.75 * step) == step && rounded(dtype, 0.25 * step) == 0);
            assert_true(rounded(dtype, 1.5 * step) == 2 * step && rounded(dtype, least - step) == least - step);
        }
        assert_true(spk_type_is_narrow(dtype) == (spk_type_of(type->sums)->significand > type->significand));
    }
}

/* Rounding changes no number by more than the row says; and nothing that rounding explains is an error. */
static void rounding_is_bounded(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 7);
    for (const spk_type *type = NULL; (type = next_type(type, SPK_USES_OF_VALUES)) != NULL;) {
        const spk_dtype dtype = type->dtype;
        for (int n = 0; n < 20000; n++) {
            const int exponent = type->least_exponent - type->significand - 2 + (int)spk_rng_below(&rng, 60);
            const double value = ldexp(spk_rng_normal(&rng), exponent), got = rounded(dtype, value);
            if (!isfinite(got)) {
                assert_true(spk_value_is_lost(dtype, value));
                continue;
            }
            if (spk_type_is_whole(dtype) && (value > type->largest || value < least_of(dtype))) {
                assert_true(got == (value > 0 ? type->largest : least_of(dtype)));
                continue;
            }
            const double half = spk_type_is_whole(dtype) ? 0.5 : spk_type_least_rounding(dtype);
            assert_true(fabs(got - value) <= fmax(spk_type_rounding(dtype) * fabs(value), half));
            assert_true(spk_type_is_whole(dtype) || spk_type_difference(dtype, got, value) <= spk_type_rounding(dtype) * fabs(value));
        }
        assert_true(spk_type_difference(dtype, (double)INFINITY, INFINITY) == 0);
        assert_true(spk_type_difference(dtype, (double)INFINITY, type->largest) == 0);
        assert_true(spk_type_difference(dtype, -(double)INFINITY, -type->largest) == 0);
        assert_true(isinf(spk_type_difference(dtype, (double)INFINITY, -type->largest)));
        assert_true(isinf(spk_type_difference(dtype, (double)INFINITY, type->largest / 2)));
        assert_true(isnan(spk_type_difference(dtype, (double)NAN, 1)));
    }
}

static void finite_by_bits(void **state)
{
    (void)state;
    static const double odd[] = {INFINITY, -INFINITY, NAN};
    double room[8];
    for (const spk_type *type = NULL; (type = next_type(type, SPK_USES_OF_VALUES)) != NULL;) {
        const spk_dtype dtype = type->dtype;
        for (int n = 0; n < 8; n++)
            spk_value_set(room, dtype, n, n % 2 != 0 ? spk_type_of(dtype)->largest : -ldexp(1, spk_type_of(dtype)->least_exponent));
        assert_true(spk_values_are_finite(room, dtype, 8));
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 3; k++) {
                const double before = spk_value_get(room, dtype, n);
                spk_value_set(room, dtype, n, odd[k]);
                assert_true(spk_values_are_finite(room, dtype, 8) == spk_type_is_whole(dtype));
                assert_true(spk_values_are_finite(room, dtype, n));
                spk_value_set(room, dtype, n, before);
            }
    }
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void converting_rounds_once(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 8);
    double from[64], to[64], value[64];
    for (int i = 1; i < NUMBERS; i++)
        for (int j = 1; j < NUMBERS; j++) {
            if (!spk_type_holds_values((spk_dtype)i) || !spk_type_holds_values((spk_dtype)j))
                continue;
            for (int n = 0; n < 64; n++) {
                spk_value_set(from, (spk_dtype)i, n, ldexp(spk_rng_normal(&rng), (int)spk_rng_below(&rng, 40) - 20));
                value[n] = spk_value_get(from, (spk_dtype)i, n);
            }
            spk_values_convert((spk_dtype)j, to, (spk_dtype)i, from, 64);
            for (int n = 0; n < 64; n++)
                assert_true(is_same(spk_value_get(to, (spk_dtype)j, n), rounded((spk_dtype)j, value[n])));
            spk_value_add(to, (spk_dtype)j, 3, 2.5);
            assert_true(is_same(spk_value_get(to, (spk_dtype)j, 3), rounded((spk_dtype)j, rounded((spk_dtype)j, value[3]) + 2.5)) ||
                        (spk_dtype)j == SPK_F32); /* in float, where 2.5 is exact: one rounding, too */
        }
}

static void lists_are_for_messages(void **state)
{
    (void)state;
    char text[SPK_TYPE_LIST_TEXT];
    assert_string_equal(spk_type_list(1u << SPK_USE_VALUES, "and", text, sizeof text), "f32, f64, f16 and bf16");
    const spk_type *type, *last = NULL;
    for (type = NULL; (type = spk_type_next(type, SPK_USES_OF_VALUES)) != NULL; last = type)
        assert_true(strstr(spk_type_list(SPK_USES_OF_VALUES, "or", text, sizeof text), type->name) != NULL);
    assert_string_equal(strstr(text, " or ") + 4, last->name); /* all are there: the text is long enough */
    assert_string_equal(spk_type_list(1u << SPK_USE_INDICES, "or", text, sizeof text), "i32");
    assert_string_equal(spk_type_list(1u << SPK_USE_VALUES, "or", text, 9), "f32, f64");
    assert_int_equal(spk_type_reduced(SPK_F32), SPK_TF32);
    assert_int_equal(spk_type_reduced(SPK_F64), SPK_DTYPE_DEFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_of_their_types),
        cmocka_unit_test_teardown(bits_mean_what_the_row_says, names_what_failed),
        cmocka_unit_test_teardown(numbers_are_as_the_row_says, names_what_failed),
        cmocka_unit_test_teardown(rounding_is_bounded, names_what_failed),
        cmocka_unit_test_teardown(finite_by_bits, names_what_failed),
        cmocka_unit_test(converting_rounds_once),
        cmocka_unit_test(lists_are_for_messages),
        cmocka_unit_test(options_list_all),
        cmocka_unit_test(words_mean_one),
        cmocka_unit_test(bits_beyond_are_of_the_format),
        cmocka_unit_test(tiles_are_read_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
