/* The tunables of the tables: as text, and by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "registry/registry.h"

/* Every word is NAME=VALUE,VALUE: a table that puts spaces between values would lose all but the first. */
static void text_is_whole(void **state)
{
    (void)state;
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    for (int r = 0; r < rows; r++) {
        for (const char *word = table[r].tunables; *word != '\0'; word += strspn(word, " ")) {
            const size_t length = strcspn(word, " "), name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
            if (name == 0 || name >= length || word[name] != '=' || strspn(word + name + 1, "0123456789,") != length - name - 1 ||
                word[length - 1] == ',')
                fail_msg("%s: tunables \"%s\" at \"%.*s\"", table[r].name, table[r].tunables, (int)length, word);
            int values = 1;
            for (const char *c = word; c < word + length; c++)
                values += *c == ',';
            assert_in_range(values, 1, SPK_MOST_VALUES);
            word += length;
        }
        if (table[r].tunables[0] == ' ')
            fail_msg("%s: a space before \"%s\"", table[r].name, table[r].tunables);
    }
}

/* SPK_TUNED finds what the text names. */
static void names_are_places(void **state)
{
    (void)state;
    const spk_kernel *row = spk_kernel_by_name("spmm_f32_avx2");
    spk_params params;
    assert_int_equal(spk_params_parse(row, "SERIAL=1 GROUP=4 NV=6 PACK=2", &params), SPK_OK);
    assert_int_equal(SPK_TUNED(spmm_f32_avx2, &params, NV), 6);
    assert_int_equal(SPK_TUNED(spmm_f32_avx2, &params, PACK), 2);
    assert_int_equal(SPK_TUNED(spmm_f32_avx2, &params, GROUP), 4);
    assert_int_equal(SPK_TUNED(spmm_f32_avx2, &params, SERIAL), 1);
    assert_string_equal(spk_kernel_by_name("reference_spmm")->tunables, "");
}

/* Candidates span all combinations, the last tunable fastest, and their text leads back to them. */
static void candidates_are_combinations(void **state)
{
    (void)state;
    static const spk_kernel row = {.name = "row", .tunables = "A=1,20 B=7 C=0,5,300"};
    static const int last[] = {0, 5, 300};
    spk_tunables tunables;
    spk_tunables_read(&row, &tunables);
    assert_int_equal(tunables.candidates, 6);
    assert_int_equal(spk_params_count(&row), 6);
    for (int i = 0; i < 6; i++) {
        char text[SPK_MAX_PARAMS_TEXT];
        spk_params back, got;
        const spk_params params = spk_tunables_params(&tunables, i);
        assert_int_equal(params.v[0], i < 3 ? 1 : 20);
        assert_int_equal(params.v[1], 7);
        assert_int_equal(params.v[2], last[i % 3]);
        spk_params_get(&row, i, &got);
        spk_params_text(&row, &params, text, sizeof text);
        assert_int_equal(spk_params_parse(&row, text, &back), SPK_OK);
        assert_memory_equal(&params, &got, sizeof params);
        assert_memory_equal(&params, &back, sizeof params);
    }
    char brief[8];
    const spk_params params = spk_tunables_params(&tunables, 5);
    spk_params_text(&row, &params, brief, sizeof brief);
    assert_string_equal(brief, "A=20 B="); /* as much as there is room for */
    spk_params_text(&row, &params, brief, 1);
    assert_string_equal(brief, "");
    static const spk_kernel none = {.name = "none", .tunables = ""};
    spk_tunables_read(&none, &tunables);
    assert_int_equal(tunables.candidates, 1);
    assert_int_equal(spk_tunables_params(&tunables, 0).v[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_is_whole), cmocka_unit_test(names_are_places),
                                       cmocka_unit_test(candidates_are_combinations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
