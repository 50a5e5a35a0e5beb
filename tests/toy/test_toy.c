/* The toy operations through the public interface, as a program uses any other: planned, run, compared with the oracle, tuned, stored,
 * explained, and refused where they are wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "op/axpy/axpy.h"
#include "op/rowsum/rowsum.h"

enum { M = 37, N = 29, LD = 32 };

static spk_context *context;
static char store[] = "/tmp/sparsek-toy-XXXXXX";
static char store_file[64];
static float x[M * LD], y[M * LD], d[M * LD];

static void ok(spk_status status)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", spk_status_name(status), spk_last_error(context));
}

static void refused(spk_status status, spk_status wanted, const char *why)
{
    assert_int_equal(status, wanted);
    if (strstr(spk_last_error(context), why) == NULL)
        fail_msg("\"%s\" has no \"%s\"", spk_last_error(context), why);
}

static spk_context *open_context(void)
{
    spk_context *made = NULL;
    assert_int_equal(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = store_file}, &made), SPK_OK);
    return made;
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(store) == NULL)
        return -1;
    snprintf(store_file, sizeof store_file, "%s/store.db", store);
    context = open_context();
    ok(spk_fill_random(context, SPK_F32, M * LD, 1, x));
    ok(spk_fill_random(context, SPK_F32, M * LD, 2, y));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char lock[80];
    snprintf(lock, sizeof lock, "%s.lock", store_file);
    spk_context_destroy(&context);
    unlink(lock);
    unlink(store_file);
    return rmdir(store);
}

static const spk_axpy good = {SPK_SIZED(spk_axpy), .m = M, .n = N, .ldx = LD, .ldy = LD, .ldd = LD};
static const spk_axpy_args args = {SPK_SIZED(spk_axpy_args), .x = x, .y = y, .d = d, .alpha = 1.5};

static void is_in_the_table(void **state)
{
    (void)state;
    bool found = false;
    for (int i = 0; i < spk_operation_count(); i++) {
        spk_operation_info info = {SPK_SIZED(spk_operation_info)};
        ok(spk_operation_get_info(i, &info));
        found = found || (info.operation == SPK_AXPY && strcmp(info.name, "axpy") == 0 && !info.takes_pattern && info.operand_count == 3);
    }
    assert_true(found);
}

static void every_candidate_is_right(void **state)
{
    (void)state;
    double want[M * N], magnitude[M * N], tolerance = 0;
    spk_report *list = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    ok(spk_oracle(context, NULL, &good, &args, SPK_FIRST_OUTPUT, NULL, 0, want, magnitude));
    ok(spk_default_tolerance(context, NULL, &good, SPK_FIRST_OUTPUT, &tolerance));
    ok(spk_list_candidates(context, NULL, &good, NULL, &list));
    ok(spk_report_get_info(list, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        spk_plan *plan = NULL;
        ok(spk_report_get_candidate(list, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        ok(spk_plan_create(context, NULL, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan));
        memset(d, 0xff, sizeof d);
        ok(spk_plan_run(plan, &args, NULL));
        for (int e = 0; e < M * LD; e++)
            if (e % LD >= N)
                assert_true(isnan(d[e]));
            else if (!(fabs(d[e] - want[e / LD * N + e % LD]) <= tolerance * magnitude[e / LD * N + e % LD]))
                fail_msg("%s: D[%d,%d] = %.9g, wanted %.9g", choice, e / LD, e % LD, (double)d[e], want[e / LD * N + e % LD]);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&list);
    assert_true(ran >= 1);
}

/* In place: D is Y. */
static void runs_in_place(void **state)
{
    (void)state;
    const spk_axpy tight = {SPK_SIZED(spk_axpy), .m = 2, .n = 2};
    float in[] = {1, 2, 3, 4}, out[] = {10, 20, 30, 40};
    const float wanted[] = {12, 24, 36, 48};
    const spk_axpy_args there = {SPK_SIZED(spk_axpy_args), .x = in, .y = out, .d = out, .alpha = 2};
    ok(spk_compute(context, NULL, &tight, &there, NULL));
    assert_memory_equal(out, wanted, sizeof out);
}

/* Beside other programs, too, where a tuning leaves out what has no chance. */
static const spk_tune_options every_one = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_EXHAUSTIVE, .budget_s = 60};

/* What is tuned is stored: another context knows it, and tells. */
static void is_tuned_and_stored(void **state)
{
    (void)state;
    const spk_axpy large = {SPK_SIZED(spk_axpy), .m = 256, .n = 200};
    const spk_tune_options brief = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.2},
                           never = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_AHEAD_EACH};
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_plan *plan = NULL;
    refused(spk_plan_create(context, NULL, &large, &never, &plan), SPK_ERR_UNKNOWN_CLASS, "");
    ok(spk_tune(context, NULL, &large, &brief, &report));
    ok(spk_report_get_info(report, &info));
    assert_true(info.candidate_count >= 2 && info.chosen >= 0);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(report, i, &candidate));
        assert_true(candidate.status != SPK_CANDIDATE_WRONG && candidate.error <= candidate.tolerance);
    }
    spk_report_destroy(&report);

    spk_context *other = open_context();
    spk_plan_info of = {SPK_SIZED(spk_plan_info)};
    assert_int_equal(spk_plan_create(other, NULL, &large, &never, &plan), SPK_OK);
    assert_int_equal(spk_plan_get_info(plan, &of), SPK_OK);
    assert_true(of.from_store && strncmp(of.kernel, "axpy_", 5) == 0);
    spk_plan_destroy(&plan);
    assert_int_equal(spk_explain(other, NULL, &large, NULL, &report), SPK_OK);
    ok(spk_report_get_info(report, &info));
    assert_true(info.chosen >= 0);
    spk_report_destroy(&report);
    spk_context_destroy(&other);
}

static void wrong_descriptions_are_refused(void **state)
{
    (void)state;
    spk_plan *plan = NULL;
#define REFUSE(field, value, status, why)                                          \
    do {                                                                           \
        spk_axpy wrong = good;                                                     \
        wrong.field = value;                                                       \
        refused(spk_plan_create(context, NULL, &wrong, NULL, &plan), status, why); \
    } while (0)
    REFUSE(m, -1, SPK_ERR_ARGUMENT, "m = -1: it cannot be negative");
    REFUSE(n, INT64_C(1) << 41, SPK_ERR_ARGUMENT, "the limit is 2^40");
    REFUSE(ldx, 3, SPK_ERR_ARGUMENT, "ldx = 3: a row has 29 elements");
    REFUSE(dtype, (spk_dtype)99, SPK_ERR_ARGUMENT, "dtype = 99 is not a dtype");
    REFUSE(dtype, SPK_INT32, SPK_ERR_UNSUPPORTED, "dtype = i32: this version computes with");
    REFUSE(struct_size, 12, SPK_ERR_ARGUMENT, "struct_size");
    REFUSE(operation, (spk_operation)99, SPK_ERR_ARGUMENT, "problem.operation = 99: this version has no such operation");
#undef REFUSE
    refused(spk_plan_create(context, (spk_pattern *)context, &good, NULL, &plan), SPK_ERR_ARGUMENT, "axpy has none, give NULL");
    refused(spk_oracle(context, NULL, &good, &args, 0, NULL, 0, (double[1]){0}, NULL), SPK_ERR_ARGUMENT, "x is no output of axpy");
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    spk_plan *plan = NULL;
    ok(spk_plan_create(context, NULL, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "axpy_reference"}, &plan));
#define REFUSE(field, value, why)                                         \
    do {                                                                  \
        spk_axpy_args wrong = args;                                       \
        wrong.field = value;                                              \
        refused(spk_plan_run(plan, &wrong, NULL), SPK_ERR_ARGUMENT, why); \
    } while (0)
    REFUSE(x, NULL, "args.x is NULL: ");
    REFUSE(d, NULL, "args.d is NULL: ");
    REFUSE(d, x, "overlaps args.x");
    REFUSE(d, y + 1, "overlaps args.y");
    REFUSE(y, (const char *)y + 2, "is not aligned to its elements of 4 bytes");
    REFUSE(alpha, (double)NAN, "args.alpha = nan: it must be finite");
    REFUSE(reserved, 1, "args.reserved = 1");
    REFUSE(operation, SPK_SPMM, "the plan was made for axpy");
#undef REFUSE
    spk_plan_destroy(&plan);
}

/* Two outputs of different shapes: each has rows, magnitudes and a tolerance of its own. */
static void outputs_have_their_own_shapes(void **state)
{
    (void)state;
    enum { ROWSUM_D = 1, ROWSUM_S = 2, ITEMS = 2, ROWS = 3, COLUMNS = 4 };
    const spk_rowsum problem = {SPK_SIZED(spk_rowsum), .m = ROWS, .n = COLUMNS, .batch = ITEMS, .layout_d = SPK_COL_MAJOR};
    float of_x[ITEMS * ROWS * COLUMNS], of_d[ITEMS * ROWS * COLUMNS], of_s[ITEMS * ROWS];
    double want[ITEMS * ROWS * COLUMNS], sums[ITEMS * ROWS], magnitude[ITEMS * ROWS], tolerance_d = 0, tolerance_s = 0;
    for (int e = 0; e < ITEMS * ROWS * COLUMNS; e++)
        of_x[e] = (float)(e % 2 ? -e : e);
    const spk_rowsum_args all = {SPK_SIZED(spk_rowsum_args), .x = of_x, .d = of_d, .s = of_s, .alpha = 2};
    ok(spk_compute(context, NULL, &problem, &all, NULL));
    ok(spk_oracle(context, NULL, &problem, &all, ROWSUM_D, NULL, 0, want, NULL));
    ok(spk_oracle(context, NULL, &problem, &all, ROWSUM_S, NULL, 0, sums, magnitude));
    for (int r = 0; r < ITEMS * ROWS; r++) {
        double sum = 0, size = 0;
        for (int j = 0; j < COLUMNS; j++) {
            assert_true(want[r * COLUMNS + j] == 2 * (double)of_x[r * COLUMNS + j]);
            assert_true(want[r * COLUMNS + j] == of_d[r / ROWS * ROWS * COLUMNS + j * ROWS + r % ROWS]);
            sum += want[r * COLUMNS + j];
            size += fabs(want[r * COLUMNS + j]);
        }
        assert_true(sums[r] == sum && magnitude[r] == size && of_s[r] == sum);
    }
    const int64_t last = ITEMS * ROWS - 1;
    ok(spk_oracle(context, NULL, &problem, &all, ROWSUM_S, &last, 1, magnitude, NULL));
    assert_true(magnitude[0] == sums[last]);
    refused(spk_oracle(context, NULL, &problem, &all, ROWSUM_S, &(int64_t){ITEMS * ROWS}, 1, magnitude, NULL), SPK_ERR_ARGUMENT,
            "rows[0] = 6: the rows are 0..5");
    ok(spk_default_tolerance(context, NULL, &problem, ROWSUM_D, &tolerance_d));
    ok(spk_default_tolerance(context, NULL, &problem, ROWSUM_S, &tolerance_s));
    assert_true(tolerance_s > tolerance_d && tolerance_d > 0);
}

/* Heads side by side in each line (item, row, head, column): computed, tuned with its gaps watched, and refused where lines would meet. */
static void heads_lie_anyhow(void **state)
{
    (void)state;
    enum { ITEMS = 2, ROWS = 5, HEADS = 3, COLUMNS = 4, LD_X = HEADS * COLUMNS + 1 };
    const spk_rowsum problem = {SPK_SIZED(spk_rowsum),
                                .m = ROWS,
                                .n = COLUMNS,
                                .batch = ITEMS,
                                .heads = HEADS,
                                .ldx = LD_X,
                                .head_stride_x = COLUMNS,
                                .ldd = HEADS * COLUMNS + 2,
                                .head_stride_d = COLUMNS};
    static float of_x[ITEMS * ROWS * LD_X], of_d[ITEMS * ROWS * (HEADS * COLUMNS + 2)], of_s[ITEMS * HEADS * ROWS];
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_fill_random(context, SPK_F32, ITEMS * ROWS * LD_X, 3, of_x));
    memset(of_d, 0xff, sizeof of_d);
    const spk_rowsum_args all = {SPK_SIZED(spk_rowsum_args), .x = of_x, .d = of_d, .s = of_s, .alpha = 2};
    ok(spk_compute(context, NULL, &problem, &all, NULL));
    for (int line = 0; line < ITEMS * ROWS; line++)
        for (int e = 0; e < HEADS * COLUMNS + 2; e++) {
            const float got = of_d[line * (HEADS * COLUMNS + 2) + e];
            assert_true(e < HEADS * COLUMNS ? got == 2 * of_x[line * LD_X + e] : isnan(got));
        }
    for (int r = 0; r < ITEMS * HEADS * ROWS; r++) {
        const float *line = of_x + (r / (HEADS * ROWS) * ROWS + r % ROWS) * LD_X + r / ROWS % HEADS * COLUMNS;
        assert_true(fabsf(of_s[r] - 2 * (line[0] + line[1] + line[2] + line[3])) < 1e-5F);
    }
    setenv("SPARSEK_TEST_ROWS", "1", 1);
    ok(spk_tune(context, NULL, &problem, &every_one, &report));
    unsetenv("SPARSEK_TEST_ROWS");
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(report, i, &candidate));
        if ((candidate.status == SPK_CANDIDATE_WRONG) != (strcmp(candidate.name, "rowsum_wrong") == 0))
            fail_msg("%s: status %d, error %g, tolerance %g, median %g us: %s", candidate.name, (int)candidate.status, candidate.error,
                     candidate.tolerance, candidate.median_us, candidate.why);
    }
    spk_report_destroy(&report);
    spk_array_info array = {SPK_SIZED(spk_array_info)};
    ok(spk_problem_get_array(context, NULL, &problem, 0, &array));
    assert_true(array.heads == HEADS && array.head_stride == COLUMNS && array.stride == ROWS * LD_X);
    spk_rowsum wrong = problem;
    wrong.head_stride_d = COLUMNS - 1;
    refused(spk_compute(context, NULL, &wrong, &all, NULL), SPK_ERR_ARGUMENT, "head_stride_d = 3: heads of 60 elements would overlap");
    wrong.head_stride_d = -1;
    refused(spk_compute(context, NULL, &wrong, &all, NULL), SPK_ERR_ARGUMENT, "head_stride_d = -1: it cannot be negative");
    wrong = problem;
    wrong.stride_d = ROWS * LD_X;
    refused(spk_compute(context, NULL, &wrong, &all, NULL), SPK_ERR_ARGUMENT, "stride_d = 65: items of 68 elements would overlap");
    wrong = problem;
    wrong.heads = -2;
    refused(spk_compute(context, NULL, &wrong, &all, NULL), SPK_ERR_ARGUMENT, "heads = -2: it cannot be negative");
    /* Rows of D that interleave with those of X. */
    const spk_rowsum_args meeting = {SPK_SIZED(spk_rowsum_args), .x = of_d, .d = of_d + COLUMNS, .s = of_s, .alpha = 2};
    refused(spk_compute(context, NULL, &problem, &meeting, NULL), SPK_ERR_ARGUMENT, "overlaps args.x");
}

/* A candidate whose second output alone is wrong, a little, is found out. */
static void every_output_is_compared(void **state)
{
    (void)state;
    const spk_rowsum problem = {SPK_SIZED(spk_rowsum), .m = 300, .n = 40};
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    bool found = false;
    setenv("SPARSEK_TEST_ROWS", "1", 1);
    ok(spk_tune(context, NULL, &problem, &every_one, &report));
    unsetenv("SPARSEK_TEST_ROWS");
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(report, i, &candidate));
        if (strcmp(candidate.name, "rowsum_wrong") != 0)
            continue;
        found = true;
        assert_int_equal(candidate.status, SPK_CANDIDATE_WRONG);
        assert_non_null(strstr(candidate.why, "S[299,0] is "));
        assert_true(i != info.chosen);
    }
    assert_true(found);
    spk_report_destroy(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_in_the_table),
        cmocka_unit_test(every_candidate_is_right),
        cmocka_unit_test(runs_in_place),
        cmocka_unit_test(is_tuned_and_stored),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(outputs_have_their_own_shapes),
        cmocka_unit_test(heads_lie_anyhow),
        cmocka_unit_test(every_output_is_compared),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
