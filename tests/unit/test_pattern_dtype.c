/* A pattern that was made of a matrix knows its dtype: its values are read as that or not at all. One that was made of indices takes any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "context_case.h"

static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, SIDE = 24, BLOCK = 4 };

static const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE, .tuning = SPK_TUNING_NEVER};

static spk_matrix *make_matrix(spk_dtype dtype)
{
    spk_matrix *made = NULL;
    ok(spk_matrix_generate(context,
                           &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = SIDE, .cols = SIDE,
                                           .block_rows = BLOCK, .block_cols = BLOCK, .density = 0.4, .seed = 3, .dtype = dtype},
                           &made, NULL));
    return made;
}

static void must_say(spk_status status, spk_dtype of_matrix, spk_dtype of_plan)
{
    char says[64];
    snprintf(says, sizeof says, "dtype_a = %s: the pattern was made of a matrix of %s", spk_dtype_name(of_plan), spk_dtype_name(of_matrix));
    assert_int_equal(status, SPK_ERR_ARGUMENT);
    if (strstr(spk_last_error(context), says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", spk_last_error(context), says);
}

/* By a plan, in one call, and by the oracle. */
static void check_pair(const spk_matrix *matrix, spk_dtype of_matrix, spk_dtype of_plan)
{
    static double values[SIDE * SIDE], b[SIDE], d[SIDE];
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = 1, .dtype_a = of_plan};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1};
    ok(spk_pattern_from_matrix(context, matrix, &pattern));
    if (of_matrix == of_plan) {
        ok(spk_plan_create(context, pattern, &problem, &estimate, &plan));
        ok(spk_plan_run(plan, &args, NULL));
    } else {
        must_say(spk_plan_create(context, pattern, &problem, &estimate, &plan), of_matrix, of_plan);
        assert_null(plan);
        must_say(spk_compute(context, pattern, &problem, &args, &estimate), of_matrix, of_plan);
        must_say(spk_oracle(context, pattern, &problem, &args, SPK_FIRST_OUTPUT, NULL, 0, d, NULL), of_matrix, of_plan);
    }
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
}

static void values_are_read_as_they_are(void **unused)
{
    (void)unused;
    for (int i = 0; i < DTYPES; i++) {
        spk_matrix *matrix = make_matrix(dtypes[i]);
        for (int j = 0; j < DTYPES; j++)
            check_pair(matrix, dtypes[i], dtypes[j]);
        if (dtypes[i] != SPK_F32) { /* which is what a description means that says nothing */
            spk_pattern *pattern = NULL;
            spk_plan *plan = NULL;
            ok(spk_pattern_from_matrix(context, matrix, &pattern));
            must_say(spk_plan_create(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 1}, &estimate, &plan), dtypes[i], SPK_F32);
            spk_pattern_destroy(&pattern);
        }
        spk_matrix_destroy(&matrix);
    }
}

static void plan_of(spk_pattern *pattern, const void *problem)
{
    spk_plan *plan = NULL;
    ok(spk_plan_create(context, pattern, problem, &estimate, &plan));
    spk_plan_destroy(&plan);
}

/* What the message says: a cast, or the indices alone. And an operation that reads none of the matrix's values. */
static void there_are_ways(void **unused)
{
    (void)unused;
    spk_matrix *matrix = make_matrix(SPK_F64), *cast = NULL;
    spk_matrix_desc d = {SPK_SIZED(spk_matrix_desc)};
    spk_pattern *of_cast = NULL, *of_matrix = NULL, *of_indices = NULL;
    ok(spk_matrix_cast(context, matrix, SPK_F16, &cast));
    ok(spk_matrix_view(matrix, &d));
    ok(spk_pattern_from_matrix(context, cast, &of_cast));
    ok(spk_pattern_from_matrix(context, matrix, &of_matrix));
    ok(spk_pattern_create(context,
                          &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = d.rows, .cols = d.cols, .block_rows = d.block_rows,
                                             .block_cols = d.block_cols, .nnzb = d.nnz, .row_offsets = d.row_offsets,
                                             .col_indices = d.col_indices, .index_type = SPK_INDEX_I64},
                          &of_indices));
    plan_of(of_cast, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 1, .dtype_a = SPK_F16});
    plan_of(of_matrix, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 8, .dtype_x = SPK_BF16});
    plan_of(of_matrix, &(spk_attention){SPK_SIZED(spk_attention), .queries = SIDE, .keys = SIDE, .depth = 8});
    for (int i = 0; i < DTYPES; i++)
        plan_of(of_indices, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 1, .dtype_a = dtypes[i]});
    spk_pattern_destroy(&of_cast);
    spk_pattern_destroy(&of_matrix);
    spk_pattern_destroy(&of_indices);
    spk_matrix_destroy(&matrix);
    spk_matrix_destroy(&cast);
}

/* A file of a pattern has no values, and no dtype that anybody chose, in whatever form its matrix is kept since. */
static void a_file_without_values_has_no_dtype(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"2, 4, 3\n0 2 3\n0 3 1\n",
                                        "%%MatrixMarket matrix coordinate pattern general\n2 4 3\n1 1\n1 4\n2 2\n"};
    static const char *const names[] = {"p.smtx", "p.mtx"};
    for (int i = 0; i < 2; i++) {
        char path[512];
        spk_matrix *read = NULL, *csr = NULL, *bsr = NULL, *turned = NULL;
        snprintf(path, sizeof path, "%s/sparsek-%ld-%s", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (long)getpid(), names[i]);
        FILE *file = fopen(path, "w");
        assert_true(file != NULL && fputs(texts[i], file) >= 0 && fclose(file) == 0);
        ok(spk_matrix_read(context, path, NULL, &read));
        assert_int_equal(remove(path), 0);
        ok(spk_matrix_to_csr(context, read, &csr));
        ok(spk_matrix_to_bsr(context, csr, 2, 2, SPK_ROW_MAJOR, &bsr));
        ok(spk_matrix_transpose(context, bsr, &turned));
        spk_matrix *const made[] = {bsr, turned};
        for (int j = 0; j < 2; j++) {
            spk_pattern *pattern = NULL;
            if (spk_pattern_from_matrix(context, made[j], &pattern) != SPK_OK)
                fail_msg("%s", spk_last_error(context));
            for (int k = 0; k < DTYPES; k++)
                plan_of(pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 1, .dtype_a = dtypes[k]});
            spk_pattern_destroy(&pattern);
        }
        spk_matrix_destroy(&read);
        spk_matrix_destroy(&csr);
        spk_matrix_destroy(&bsr);
        spk_matrix_destroy(&turned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_read_as_they_are), cmocka_unit_test(there_are_ways),
                                       cmocka_unit_test(a_file_without_values_has_no_dtype)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
