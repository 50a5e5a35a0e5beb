/* Text in the C locale. tests/CMakeLists.txt runs this within other locales too. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/c_locale.h"
#include "base/json_text.h"

static void letters(void **state)
{
    (void)state;
    assert_true(spk_same_letters("INTEGER", "integer", 7));
    assert_true(spk_same_letters("ILP64x", "ilp64y", 5));
    assert_false(spk_same_letters("ILP64x", "ilp64y", 6));
    assert_true(spk_same_letters("ab", "AB", 9)); /* both end */
    assert_false(spk_same_letters("ab", "abc", 3));
    assert_false(spk_same_letters("\xdd", "i", 1)); /* of ISO-8859-9: another letter */
    assert_true(spk_ends_with("a.NPY", 5, ".npy"));
    assert_false(spk_ends_with(".npy", 4, ".npy"));
    assert_true(spk_holds_letters("intel,ilp64", "ILP64") && spk_holds_letters("ILP64", "ILP64") && spk_holds_letters("x", ""));
    assert_false(spk_holds_letters("LP64", "ILP64") || spk_holds_letters("", "ILP64"));
    assert_int_equal(spk_capital('i'), 'I');
    assert_int_equal(spk_capital('\xe9'), '\xe9');
    assert_true(spk_name_matches("lib[a-c]*.so", "libb.so") && !spk_name_matches("lib[a-c]*.so", "libd.so"));
}

static void numbers(void **state)
{
    (void)state;
    char text[64], *end = NULL;
    assert_int_equal(spk_snprintf(text, sizeof text, "%.2f %g %d", 1234567.5, 1e-300, -7), 20);
    assert_string_equal(text, "1234567.50 1e-300 -7");
    assert_true(spk_real("2.5,5", &end) == 2.5 && *end == ',');
    json_t *json = json_real(0.5), *back;
    char *dumped = spk_json_dumps(json, JSON_ENCODE_ANY);
    assert_string_equal(dumped, "0.5");
    const locale_t before = spk_c_locale_enter();
    back = json_loads("[0.25]", 0, NULL);
    spk_c_locale_leave(before);
    assert_true(json_real_value(json_array_get(back, 0)) == 0.25);
    free(dumped);
    json_decref(json);
    json_decref(back);
}

/* What the program has set is as it was. */
static void nothing_changes(void **state)
{
    (void)state;
    const char *point = localeconv()->decimal_point;
    const locale_t own = uselocale((locale_t)0), before = spk_c_locale_enter();
    assert_string_equal(localeconv()->decimal_point, ".");
    spk_c_locale_leave(before);
    assert_true(uselocale((locale_t)0) == own);
    assert_string_equal(localeconv()->decimal_point, point);
    assert_string_equal(spk_system_error(2), "No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(letters), cmocka_unit_test(numbers), cmocka_unit_test(nothing_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
