/* Block pruning against a plain sort of plain norms: which blocks stay, ties, every source format, extreme values, refusals. */
#include "unit/models.h"

#include <math.h>

typedef struct ranked {
    double norm;
    int64_t index;
} ranked;

static int by_norm_then_index(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->norm != y->norm)
        return x->norm > y->norm ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Norms of all grid blocks (integers: exact), largest first; absent ones of a sparse source are left out. Returns how many there are. */
static int64_t rank_blocks(const model *m, int64_t block_rows, int64_t block_cols, spk_norm norm, int every, ranked *out)
{
    int64_t grid_rows = (m->rows + block_rows - 1) / block_rows, grid_cols = (m->cols + block_cols - 1) / block_cols, count = 0;
    for (int64_t b = 0; b < grid_rows * grid_cols; b++) {
        ranked entry = {0, b};
        int there = every;
        for (int64_t i = 0; i < block_rows; i++)
            for (int64_t j = 0; j < block_cols; j++) {
                int64_t row = b / grid_cols * block_rows + i, col = b % grid_cols * block_cols + j;
                if (row >= m->rows || col >= m->cols)
                    continue;
                double value = fabs(m->at[row * m->cols + col]);
                there |= m->stored[row * m->cols + col];
                entry.norm = norm == SPK_NORM_MAX ? fmax(entry.norm, value) : entry.norm + (norm == SPK_NORM_L1 ? value : value * value);
            }
        if (there)
            out[count++] = entry;
    }
    qsort(out, (size_t)count, sizeof *out, by_norm_then_index);
    return count;
}

static void check_prune(const spk_matrix *in, int64_t block_rows, int64_t block_cols, double density, spk_norm norm)
{
    spk_matrix *out = NULL;
    model source = model_of(in);
    assert_ok(spk_convert_prune(&counted, in, block_rows, block_cols, density, norm, &out));
    int64_t grid_cols = spk_matrix_grid_cols(out), grid = spk_matrix_grid_rows(out) * grid_cols;
    ranked *order = calloc((size_t)grid + 1, sizeof *order);
    unsigned char *keep = calloc((size_t)grid + 1, 1);
    int64_t there = rank_blocks(&source, block_rows, block_cols, norm, in->format == SPK_DENSE, order),
            wanted = llround(density * (double)grid);
    int64_t kept = wanted < there ? wanted : there;
    for (int64_t i = 0; i < kept; i++)
        keep[order[i].index] = 1;
    assert_int_equal(out->format, SPK_BSR);
    assert_int_equal(out->nnz, kept);
    assert_int_equal(out->layout, in->format == SPK_BSR ? in->layout : SPK_ROW_MAJOR);
    int64_t p = 0;
    for (int64_t b = 0; b < grid; b++)
        if (keep[b]) {
            assert_in_range(p, out->row_offsets[b / grid_cols], out->row_offsets[b / grid_cols + 1] - 1);
            assert_int_equal(out->col_indices[p++], b % grid_cols);
        }
    model got = model_of(out);
    for (int64_t row = 0; row < got.rows; row++)
        for (int64_t col = 0; col < got.cols; col++)
            assert_true(got.at[row * got.cols + col] ==
                        (keep[row / block_rows * grid_cols + col / block_cols] ? source.at[row * got.cols + col] : 0));
    free(order);
    free(keep);
    model_free(&got);
    model_free(&source);
    spk_matrix_release(&out);
}

static void test_against_a_sort(void **state)
{
    (void)state;
    static const spk_format formats[] = {SPK_DENSE, SPK_COO, SPK_CSR, SPK_BSR};
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 600; round++) {
        spk_matrix *in =
            random_matrix(&rng, formats[round % 4], pick(&rng, 0, 40), pick(&rng, 0, 40), pick(&rng, 1, 5), pick(&rng, 1, 5), 0);
        double density = round % 10 == 0 ? (double)(round / 10 % 2) : spk_rng_uniform(&rng);
        check_prune(in, pick(&rng, 1, 6), pick(&rng, 1, 6), density, (spk_norm)pick(&rng, SPK_NORM_L1, SPK_NORM_MAX));
        spk_matrix_release(&in);
    }
}

static spk_matrix *dense_of(int64_t rows, int64_t cols, double *values)
{
    spk_matrix_desc desc = {
        SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F64, .rows = rows, .cols = cols, .values = values};
    spk_matrix *made = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &made));
    return made;
}

static void keeps(double *values, int64_t count, double density, spk_norm norm, int64_t expected_nnz, const int64_t *expected)
{
    spk_matrix *in = dense_of(1, count, values), *out = NULL;
    assert_ok(spk_convert_prune(&counted, in, 1, 1, density, norm, &out));
    assert_int_equal(out->nnz, expected_nnz);
    for (int64_t p = 0; p < expected_nnz; p++)
        assert_int_equal(out->col_indices[p], expected[p]);
    spk_matrix_release(&in);
    spk_matrix_release(&out);
}

static void test_particular(void **state)
{
    (void)state;
    keeps((double[]){1, 2, 2, -2}, 4, 0.5, SPK_NORM_L1, 2, (int64_t[]){1, 2});                    /* ties: the lower index */
    keeps((double[]){0, 0, 0, 0}, 4, 0.5, SPK_NORM_L2, 2, (int64_t[]){0, 1});                     /* dense zeros are blocks too */
    keeps((double[]){1e300, 3e300, -2e300, 1}, 4, 0.5, SPK_NORM_L2, 2, (int64_t[]){1, 2});        /* squares that would overflow */
    keeps((double[]){1e-300, 3e-300, -2e-300, 0}, 4, 0.5, SPK_NORM_L2, 2, (int64_t[]){1, 2});     /* squares that would vanish */
    keeps((double[]){5e-324, 1.5e-323, -1e-323, 0}, 4, 0.5, SPK_NORM_L2, 2, (int64_t[]){1, 2});   /* subnormals */
    keeps((double[]){1.7e308, 1.6e308, -1.75e308, 0}, 4, 0.5, SPK_NORM_L1, 2, (int64_t[]){0, 2}); /* near the largest double */
    keeps((double[]){1, 2, 3}, 3, 0.5, SPK_NORM_MAX, 2, (int64_t[]){1, 2});                       /* 1.5 rounds to 2 */
    keeps((double[]){1, 2, 3}, 3, 0.1, SPK_NORM_MAX, 0, NULL);
}

static void test_refusals(void **state)
{
    (void)state;
    double values[] = {1, 2, 3, NAN, 5, INFINITY};
    spk_matrix *in = dense_of(2, 3, values), *out = NULL;
    assert_fails(spk_convert_prune(&counted, in, 1, 1, 0.5, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT,
                 "row 1, column 0 is nan: norms need finite values");
    values[3] = 4;
    spk_matrix_release(&in);
    in = dense_of(2, 3, values);
    assert_fails(spk_convert_prune(&counted, in, 1, 1, 1, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "row 1, column 2 is inf");
    assert_fails(spk_convert_prune(&counted, in, 1, 1, -0.1, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "density = -0.1 is not in [0, 1]");
    assert_fails(spk_convert_prune(&counted, in, 1, 1, 1.5, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "density = 1.5 is not in [0, 1]");
    assert_fails(spk_convert_prune(&counted, in, 1, 1, NAN, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "density = nan");
    assert_fails(spk_convert_prune(&counted, in, 1, 1, 0.5, (spk_norm)0, &out), SPK_ERR_ARGUMENT, "norm = 0");
    assert_fails(spk_convert_prune(&counted, in, 0, 1, 0.5, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "block_rows = 0 is not in 1..256");
    assert_fails(spk_convert_prune(&counted, in, 1, 1000, 0.5, SPK_NORM_L1, &out), SPK_ERR_ARGUMENT, "block_cols = 1000 is not in 1..256");
    assert_null(out);
    spk_matrix_release(&in);
}

static void test_failing_memory(void **state)
{
    (void)state;
    static const spk_format formats[] = {SPK_DENSE, SPK_COO, SPK_CSR, SPK_BSR};
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int i = 0; i < 4; i++) {
        spk_matrix *in = NULL, *out = NULL;
        do {
            spk_matrix_release(&in);
            in = random_matrix(&rng, formats[i], 30, 30, 3, 3, 0);
        } while (in->nnz < 20);
        assert_survives_injection(spk_convert_prune(&counted, in, 4, 4, 0.05, SPK_NORM_L2, &out), out);
        spk_matrix_release(&out);
        spk_matrix_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_against_a_sort, no_leaks),
        cmocka_unit_test_teardown(test_particular, no_leaks),
        cmocka_unit_test_teardown(test_refusals, no_leaks),
        cmocka_unit_test_teardown(test_failing_memory, no_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
