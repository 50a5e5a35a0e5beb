/* What was meant by a wrong name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"

#define NEAREST(text, ...) \
    spk_nearest(text, (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

static void nearest_by_edits(void **state)
{
    (void)state;
    assert_string_equal(NEAREST("bensh", "tune", "bench", "check"), "bench");
    assert_string_equal(NEAREST("CAUSAL", "window", "causal"), "causal");
    assert_string_equal(NEAREST("casual", "window", "causal"), "causal");
    assert_string_equal(NEAREST("tow", "two", "toad"), "two");
    assert_string_equal(NEAREST("assume", "resume", "assume-finite"), "assume-finite");
}

static void none_is_near(void **state)
{
    (void)state;
    assert_null(NEAREST("nonsense", "reference_spmm", "mkl_bsr"));
    assert_null(NEAREST("", "n", "m"));
    assert_null(NEAREST("x", "n", "m"));
    assert_null(spk_nearest("n", NULL, 0));
    char longer[4096];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(NEAREST(longer, "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* Of names that are about as near, the one that begins alike for longest; of equals, the first. */
static void beginnings_decide(void **state)
{
    (void)state;
    assert_string_equal(NEAREST("reference_attn", "reference_spmm", "reference_gemm", "reference_attention"), "reference_attention");
    assert_string_equal(NEAREST("mkl_bsd", "okl_bsd", "mkl_bsr"), "mkl_bsr");
    assert_string_equal(NEAREST("reference", "reference_gemm", "reference_spmm"), "reference_gemm");
    assert_string_equal(NEAREST("rol", "row", "col"), "row");
    assert_string_equal(NEAREST("bcoll", "bc", "coll"), "coll"); /* one edit, against three */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_by_edits),
        cmocka_unit_test(none_is_near),
        cmocka_unit_test(beginnings_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
