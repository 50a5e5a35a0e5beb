/* Block-size advice against a plain count of blocks, and the order that the rule of thumb must give on clear cases. */
#include "unit/models.h"

#include <math.h>
#include <time.h>

static const int64_t natural[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 128};
enum { SIZES = sizeof natural / sizeof natural[0] };

static void check_entry(const spk_block_advice *advice, const model *m)
{
    int64_t block = advice->block_rows, grid_rows = (m->rows + block - 1) / block, grid_cols = (m->cols + block - 1) / block;
    unsigned char *there = calloc((size_t)(grid_rows * grid_cols), 1);
    int64_t entries = 0, nnzb = 0, elements = 0;
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t col = 0; col < m->cols; col++)
            if (m->stored[row * m->cols + col]) {
                entries++;
                there[row / block * grid_cols + col / block] = 1;
            }
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t col = 0; col < m->cols; col++)
            elements += there[row / block * grid_cols + col / block];
    for (int64_t b = 0; b < grid_rows * grid_cols; b++)
        nnzb += there[b];
    assert_int_equal(advice->nnzb, nnzb);
    assert_true(fabs(advice->density - (double)nnzb / (double)(grid_rows * grid_cols)) < 1e-12);
    assert_true(fabs(advice->fill - (entries > 0 ? (double)elements / (double)entries : 1)) < 1e-9);
    assert_true(advice->fill >= 1 && advice->score >= 1);
    assert_int_equal(advice->struct_size, sizeof *advice);
    free(there);
}

static void test_against_model(void **state)
{
    (void)state;
    static const spk_format formats[] = {SPK_DENSE, SPK_COO, SPK_CSR, SPK_BSR};
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 120; round++) {
        spk_matrix *in =
            random_matrix(&rng, formats[round % 4], pick(&rng, 0, 140), pick(&rng, 0, 140), pick(&rng, 1, 7), pick(&rng, 1, 7), 0);
        model m = model_of(in);
        spk_block_advice advice[SIZES + 1] = {{SPK_SIZED(spk_block_advice)}};
        int count = SIZES + 1, best = 0, expected = 0;
        assert_ok(spk_advise_blocks(&counted, in, advice, &count));
        for (int k = 0; k < SIZES; k++)
            expected += natural[k] <= in->rows && natural[k] <= in->cols;
        assert_int_equal(count, expected);
        for (int k = 0; k < count; k++) {
            assert_int_equal(advice[k].block_rows, natural[k]);
            assert_int_equal(advice[k].block_cols, natural[k]);
            check_entry(&advice[k], &m);
            best += advice[k].score == 1;
        }
        assert_true(count == 0 || best >= 1);
        model_free(&m);
        spk_matrix_release(&in);
    }
}

static spk_matrix *bsr_diagonal(int64_t blocks, int64_t block)
{
    int64_t *offsets = calloc((size_t)blocks + 1, 8), *columns = calloc((size_t)blocks, 8);
    for (int64_t i = 0; i < blocks; i++) {
        offsets[i + 1] = i + 1;
        columns[i] = i;
    }
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),  .format = SPK_BSR,      .dtype = SPK_F32,      .rows = blocks * block,
                            .cols = blocks * block,      .block_rows = block,    .block_cols = block,   .nnz = blocks,
                            .index_type = SPK_INDEX_I64, .row_offsets = offsets, .col_indices = columns};
    spk_matrix *made = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &made));
    free(offsets);
    free(columns);
    return made;
}

/* Large full blocks: their own size is advised, no smaller one, and nothing that stores zeros. */
static void test_clear_cases(void **state)
{
    (void)state;
    spk_matrix *in = bsr_diagonal(6, 64);
    spk_block_advice advice[SIZES] = {{SPK_SIZED(spk_block_advice)}};
    int count = SIZES;
    assert_ok(spk_advise_blocks(&counted, in, advice, &count));
    assert_int_equal(count, SIZES);
    assert_int_equal(advice[12].block_rows, 64);
    assert_true(advice[12].score == 1 && advice[12].fill == 1);
    assert_true(advice[13].score > 1.5 && advice[13].fill == 2); /* 128 would store as many zeros again */
    assert_true(advice[0].score > 3 && advice[0].fill == 1);
    spk_matrix_release(&in);

    /* Three unknowns a node: multiples of 3 keep the blocks whole, but do not pay for the zeros that they store. */
    in = bsr_diagonal(64, 3);
    count = SIZES;
    assert_ok(spk_advise_blocks(&counted, in, advice, &count));
    assert_int_equal(advice[2].block_rows, 3);
    assert_true(advice[2].score == 1 && advice[5].score > 1.4 && advice[7].score > 2);
    spk_matrix_release(&in);
}

static void test_room(void **state)
{
    (void)state;
    spk_matrix *in = bsr_diagonal(4, 8);
    spk_block_advice advice[3] = {{SPK_SIZED(spk_block_advice)}};
    int count = 3;
    assert_ok(spk_advise_blocks(&counted, in, advice, &count));
    assert_int_equal(count, 3);
    assert_int_equal(advice[2].block_rows, 3);
    count = 0;
    assert_ok(spk_advise_blocks(&counted, in, advice, &count));
    assert_int_equal(count, 0);
    count = -1;
    assert_fails(spk_advise_blocks(&counted, in, advice, &count), SPK_ERR_ARGUMENT, "*count = -1 is negative");
    assert_int_equal(count, -1);
    spk_matrix_release(&in);
}

/* A few entries in a very wide matrix: counted without anything as long as it is wide. */
static void test_wide(void **state)
{
    (void)state;
    enum { ROWS = 130, COUNT = 900 };
    const int64_t cols = INT64_C(1) << 28;
    spk_matrix *in = NULL;
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    assert_ok(spk_matrix_make(&counted, SPK_COO, SPK_F32, ROWS, cols, 1, 1, SPK_ROW_MAJOR, COUNT, &in));
    for (int i = 0; i < COUNT; i++) {
        in->row_indices[i] = pick(&rng, 0, ROWS - 1);
        in->col_indices[i] = i % 2 ? cols - 1 - pick(&rng, 0, 300) : pick(&rng, 0, cols - 1);
        ((float *)in->values)[i] = 1;
    }
    spk_block_advice advice[SIZES] = {{SPK_SIZED(spk_block_advice)}};
    int count = SIZES;
    const clock_t begun = clock(); /* this process's time, however many others share the machine */
    assert_ok(spk_advise_blocks(&counted, in, advice, &count));
    assert_true(clock() - begun < 2 * CLOCKS_PER_SEC);
    assert_int_equal(count, SIZES);
    for (int k = 0; k < count; k++) {
        int64_t nnzb = 0, block = advice[k].block_rows;
        for (int i = 0; i < COUNT; i++) {
            bool first = true;
            for (int j = 0; j < i && first; j++)
                first =
                    in->row_indices[i] / block != in->row_indices[j] / block || in->col_indices[i] / block != in->col_indices[j] / block;
            nnzb += first;
        }
        assert_int_equal(advice[k].nnzb, nnzb);
    }
    spk_matrix_release(&in);
}

static void test_failing_memory(void **state)
{
    (void)state;
    spk_matrix *in = bsr_diagonal(4, 8);
    spk_block_advice advice[SIZES] = {{SPK_SIZED(spk_block_advice)}};
    spk_status status = SPK_ERR_OUT_OF_MEMORY;
    for (int64_t after = 0; status != SPK_OK; after++) {
        int count = SIZES;
        assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        spk_mem_fail_after(after);
        status = spk_advise_blocks(&counted, in, advice, &count);
        spk_mem_fail_after(-1);
        assert_int_equal(count, status == SPK_OK ? 11 : SIZES); /* sizes up to 32 */
    }
    spk_matrix_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_against_model, no_leaks),  cmocka_unit_test_teardown(test_clear_cases, no_leaks),
        cmocka_unit_test_teardown(test_room, no_leaks),           cmocka_unit_test_teardown(test_wide, no_leaks),
        cmocka_unit_test_teardown(test_failing_memory, no_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
