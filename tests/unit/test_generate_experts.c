/* Mixtures of experts: who has which blocks, where the sizes come from, what is refused. */
#include "test_generate.h"

#include <string.h>

static const spk_generate three = {.generator = SPK_GEN_EXPERTS, .cols = 80, .block_rows = 4, .block_cols = 16, .experts = 3, .seed = 1};

static void test_groups(void **state)
{
    (void)state;
    static const int64_t tokens[] = {3, 0, 9};
    spk_generate options = three;
    options.tokens = tokens;
    int64_t shortfall = -1;
    spk_matrix *matrix = generate(options, &shortfall);
    grid g = grid_of(matrix);
    /* of five block columns the first two experts have two */
    static const int64_t offsets[] = {0, 2, 3, 4, 5}, columns[] = {0, 1, 4, 4, 4};
    CHECK(matrix->rows == 16 && matrix->cols == 80 && g.rows == 4 && g.count == 5 && shortfall == 0);
    CHECK(memcmp(g.offsets, offsets, sizeof offsets) == 0 && memcmp(g.columns, columns, sizeof columns) == 0);
    spk_matrix_release(&matrix);
    options.tokens = (const int64_t[]){0, 0, 0};
    matrix = generate(options, NULL);
    CHECK(matrix->rows == 0 && matrix->nnz == 0);
    spk_matrix_release(&matrix);
}

/* The overhang of the last column is zero, as everywhere. */
static void test_overhang(void **state)
{
    (void)state;
    spk_generate options = three;
    options.cols = 70;
    options.tokens = (const int64_t[]){0, 0, 1};
    spk_matrix *matrix = generate(options, NULL);
    for (int row = 0; row < 4; row++)
        for (int col = 0; col < 16; col++)
            CHECK((((const float *)matrix->values)[row * 16 + col] == 0) == (col >= 6));
    spk_matrix_release(&matrix);
}

static void test_drawn(void **state)
{
    (void)state;
    int64_t fewest = 1 << 20, most = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        spk_generate options = three;
        options.block_rows = 1;
        options.seed = seed;
        options.experts = 1;
        spk_matrix *matrix = generate(options, NULL);
        fewest = matrix->rows < fewest ? matrix->rows : fewest;
        most = matrix->rows > most ? matrix->rows : most;
        spk_matrix_release(&matrix);
    }
    CHECK(fewest >= 16 && fewest < 22 && most <= 256 && most > 250);
    spk_generate options = three;
    options.tokens_least = options.tokens_most = 5;
    options.experts = 0;
    options.cols = 16 * 8;
    spk_matrix *matrix = generate(options, NULL);
    grid g = grid_of(matrix);
    CHECK(g.rows == 16 && g.count == 16 && g.columns[15] == 7); /* eight experts of two block rows */
    spk_matrix_release(&matrix);
}

#define REFUSE(message, ...)                                                                           \
    do {                                                                                               \
        spk_generate bad = three;                                                                      \
        __VA_ARGS__;                                                                                   \
        spk_matrix *matrix = NULL;                                                                     \
        assert_int_equal(spk_generate_matrix(&spk_mem_system, &bad, &matrix, NULL), SPK_ERR_ARGUMENT); \
        assert_string_equal(spk_error_message(0), message);                                            \
        assert_null(matrix);                                                                           \
    } while (0)

static void test_refusals(void **state)
{
    (void)state;
    const int64_t negative[] = {1, -1, 1}, huge[] = {INT64_C(1) << 30, INT64_C(1) << 30, INT64_C(1) << 30};
    REFUSE("rows = 8, density = 0: of experts they follow from their number and their tokens; leave them 0", bad.rows = 8);
    REFUSE("rows = 0, density = 0.5: of experts they follow from their number and their tokens; leave them 0", bad.density = 0.5);
    REFUSE("block_rows = 4, block_cols = 0: must be in 1 .. 256", bad.block_cols = 0);
    REFUSE("experts = 6: each needs a block column, of which cols = 80 has 5", bad.experts = 6);
    REFUSE("experts = -1: each needs a block column, of which cols = 80 has 5", bad.experts = -1);
    REFUSE("tokens_least = 9, tokens_most = 8: must be 0 .. 1073741824, the first no more than the second", bad.tokens_least = 9,
           bad.tokens_most = 8);
    REFUSE("tokens[1] = -1: must be in 0 .. 1073741824", bad.tokens = negative);
    REFUSE("tokens: those of the first 2 experts make 2147483648 block rows, limit 1073741824", bad.tokens = huge, bad.block_rows = 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_overhang), cmocka_unit_test(test_drawn),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
