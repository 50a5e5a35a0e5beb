/* SDDMM and batches: tuned and stored, on samples too; what is refused; without memory. */
#include "operation_case.h"

static void make_square(spk_pattern **pattern, int64_t size, int64_t block)
{
    spk_matrix *matrix = NULL;
    ok(spk_matrix_generate(context,
                           &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = size, .cols = size,
                                           .block_rows = block, .block_cols = block, .density = 0.2, .seed = 5},
                           &matrix, NULL));
    ok(spk_pattern_from_matrix(context, matrix, pattern));
    spk_matrix_destroy(&matrix);
}

/* Every candidate that was measured was right, one was chosen, and the summary tells of it. */
static void check_report(spk_report **report)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_report_get_info(*report, &info));
    assert_true(info.chosen >= 0);
    assert_true(strlen(info.summary) > 10);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(*report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_WRONG || candidate.status == SPK_CANDIDATE_FAILED)
            fail_msg("%s %s: %s", candidate.name, candidate.params, candidate.why);
    }
    spk_report_destroy(report);
}

/* Where a library is found, the whole product by it races, right and eligible. */
static void check_dense(const spk_report *report)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_report_get_info(report, &info));
    int dense = 0;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(report, i, &c));
        if (c.kind != SPK_KIND_DENSE)
            continue;
        dense++;
        if (c.status == SPK_CANDIDATE_NOT_APPLICABLE) {
            assert_non_null(strstr(c.why, "not found"));
            continue;
        }
        if (c.status != SPK_CANDIDATE_OK)
            fail_msg("%s: status %d, %s", c.name, c.status, c.why);
        assert_true(c.median_us > 0 && c.error >= 0 && c.error <= c.tolerance);
    }
    assert_int_equal(dense, 4); /* of OpenBLAS, BLIS, MKL and oneDNN */
}

static void test_tuning(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    spk_plan *plan = NULL;
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    make_square(&pattern, 100, 16);
    for (int cold = 0; cold < 2; cold++) {
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.3,
                                          .cache = cold ? SPK_COLD : SPK_WARM};
        const spk_sddmm sddmm[] = {{SPK_SIZED(spk_sddmm), .k = 64, .use_c = 1},
                                   {SPK_SIZED(spk_sddmm), .k = 64, .batch = 12, .layout_x = SPK_COL_MAJOR},
                                   {SPK_SIZED(spk_sddmm), .k = 64, .batch = 3, .stride_y = SPK_STRIDE_SHARED, .stride_d = 40001}};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(spk_explain(context, pattern, &sddmm[i], &options, &report), SPK_ERR_UNKNOWN_CLASS);
            ok(spk_tune(context, pattern, &sddmm[i], &options, &report));
            check_report(&report);
            ok(spk_explain(context, pattern, &sddmm[i], &options, &report));
            check_report(&report);
            ok(spk_plan_create_sddmm(context, pattern, &sddmm[i], &options, &plan));
            ok(spk_plan_get_info(plan, &info));
            assert_int_equal(info.from_store, 1);
            spk_plan_destroy(&plan);
        }
        const spk_spmm spmm[] = {
            {SPK_SIZED(spk_spmm), .n = 40, .batch = 12, .use_c = 1},
            {SPK_SIZED(spk_spmm), .n = 40, .batch = 3, .stride_a = 120000, .trans_a = SPK_TRANS},
            {SPK_SIZED(spk_spmm), .n = 40, .batch = 4, .ldd = 170, .stride_d = 41, .keep_preact = 1, .layout_b = SPK_COL_MAJOR}};
        for (int i = 0; i < 3; i++) {
            ok(spk_tune(context, pattern, &spmm[i], &options, &report));
            check_report(&report);
            ok(spk_plan_create_spmm(context, pattern, &spmm[i], &options, &plan));
            ok(spk_plan_get_info(plan, &info));
            assert_int_equal(info.from_store, 1);
            spk_plan_destroy(&plan);
        }
    }
    ok(spk_race_kernels(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 30},
                        &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.3},
                        &(spk_race_options){SPK_SIZED(spk_race_options), .rounds = 3}, &report));
    check_dense(report);
    check_report(&report);
    spk_pattern_destroy(&pattern);
}

/* So large that samples of items, of block rows and of K decide. */
static void test_sampling(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    make_square(&pattern, 2048, 32);
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.2};
    ok(spk_tune(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 1024, .dtype_x = SPK_F16}, &options, &report));
    check_report(&report);
    ok(spk_tune(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 128, .batch = 40}, &options, &report));
    check_report(&report);
    ok(spk_tune(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 128, .batch = 40}, &options, &report));
    check_report(&report);
    spk_pattern_destroy(&pattern);
}

/* Every allocation of planning, running, the oracle and tuning may fail: an ordinary error, and the next try succeeds. */
static void test_without_memory(void **state)
{
    (void)state;
    static float numbers[3][8 * 1024];
    static double out[8 * 1024];
    spk_pattern *pattern = NULL;
    make_square(&pattern, 48, 8);
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm), .k = 8, .batch = 9};
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 3, .batch = 9};
    const spk_sddmm_args sampled = {SPK_SIZED(spk_sddmm_args), .x = numbers[0], .y = numbers[1], .d = numbers[2], .alpha = 1};
    const spk_spmm_args product = {SPK_SIZED(spk_spmm_args), .values = numbers[0], .b = numbers[1], .d = numbers[2], .alpha = 1};
    const spk_tune_options fresh = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.01, .fresh = 1};
    for (int what = 0; what < 5; what++)
        for (int64_t fail_at = 0;; fail_at += 1 + fail_at / 20) {
            spk_mem_fail_after(fail_at);
            spk_report *report = NULL;
            const spk_status status = what == 0   ? spk_compute_sddmm(context, pattern, &sddmm, &sampled, &fresh)
                                      : what == 1 ? spk_compute_spmm(context, pattern, &spmm, &product, &fresh)
                                      : what == 2 ? spk_oracle(context, pattern, &sddmm, &sampled, SPK_FIRST_OUTPUT, NULL, 0, out, NULL)
                                      : what == 3 ? spk_tune(context, pattern, &sddmm, &fresh, &report)
                                                  : spk_list_candidates(context, pattern, &sddmm, &fresh, &report);
            spk_mem_fail_after(-1);
            spk_report_destroy(&report);
            if (status == SPK_OK && fail_at > 0)
                break;
            if (status != SPK_OK && status != SPK_ERR_OUT_OF_MEMORY && status != SPK_ERR_NO_CANDIDATE)
                fail_msg("call %d, allocation %lld: %s: %s", what, (long long)fail_at, spk_status_name(status), spk_last_error(context));
            assert_true(fail_at < 100000);
        }
    spk_pattern_destroy(&pattern);
}

static void test_errors(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    static float numbers[16 * 1024];
    make_square(&pattern, 32, 16);
    const spk_sddmm good = {SPK_SIZED(spk_sddmm), .k = 8};
    spk_sddmm p;
#define REFUSE(field, value, status, piece)                                             \
    p = good;                                                                           \
    p.field = value;                                                                    \
    assert_int_equal(spk_plan_create_sddmm(context, pattern, &p, NULL, &plan), status); \
    if (strstr(spk_last_error(context), piece) == NULL)                                 \
    fail_msg("\"%s\" lacks \"%s\"", spk_last_error(context), piece)
    REFUSE(struct_size, 0, SPK_ERR_ARGUMENT, "problem.struct_size is 0");
    REFUSE(k, -1, SPK_ERR_ARGUMENT, "k = -1");
    REFUSE(dtype_x, SPK_INT32, SPK_ERR_UNSUPPORTED, "dtype_x = i32");
    REFUSE(dtype_y, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_y = f16 with dtype_x = f32");
    REFUSE(dtype_d, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_d = f16 with dtype_x = f32");
    REFUSE(layout_x, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_x = 2");
    REFUSE(layout_y, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_y = 2");
    REFUSE(block_layout, (spk_layout)2, SPK_ERR_ARGUMENT, "block_layout = 2");
    REFUSE(use_c, 2, SPK_ERR_ARGUMENT, "use_c = 2");
    REFUSE(ldx, 7, SPK_ERR_ARGUMENT, "ldx = 7: a row has 8 elements");
    REFUSE(ldy, 31, SPK_ERR_ARGUMENT, "ldy = 31: a row has 32 elements");
    REFUSE(batch, -1, SPK_ERR_ARGUMENT, "batch = -1");
    REFUSE(stride_x, -2, SPK_ERR_ARGUMENT, "stride_x = -2");
    REFUSE(assume_finite, 2, SPK_ERR_ARGUMENT, "assume_finite = 2: the values are 0..1");
    REFUSE(stride_d, (p.batch = 2, 100), SPK_ERR_ARGUMENT, "stride_d = 100: items of");
    REFUSE(stride_d, (p.batch = 2, SPK_STRIDE_SHARED), SPK_ERR_ARGUMENT, "stride_d = -1");
#undef REFUSE
    assert_int_equal(spk_plan_create_sddmm(context, NULL, &good, NULL, &plan), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_create_sddmm(context, pattern, NULL, NULL, &plan), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_create_sddmm(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    ok(spk_plan_create_sddmm(context, pattern, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "reference_sddmm"},
                             &plan));
    const spk_sddmm_args fine = {SPK_SIZED(spk_sddmm_args), .x = numbers, .y = numbers + 1024, .d = numbers + 4096, .alpha = 1};
    spk_sddmm_args args;
#define REFUSE(field, value, piece)                                            \
    args = fine;                                                               \
    args.field = value;                                                        \
    assert_int_equal(spk_plan_run_sddmm(plan, &args, NULL), SPK_ERR_ARGUMENT); \
    if (strstr(spk_last_error(context), piece) == NULL)                        \
    fail_msg("\"%s\" lacks \"%s\"", spk_last_error(context), piece)
    ok(spk_plan_run_sddmm(plan, &fine, NULL));
    REFUSE(struct_size, 0, "args.struct_size is 0");
    REFUSE(x, NULL, "args.x is NULL: 256 elements of f32");
    REFUSE(y, NULL, "args.y is NULL");
    REFUSE(d, NULL, "args.d is NULL");
    REFUSE(d, numbers + 1024, "args.d [");
    REFUSE(y, (const char *)numbers + 2, "args.y = ");
    REFUSE(alpha, (double)NAN, "args.alpha = nan");
#undef REFUSE
    assert_int_equal(spk_plan_run_sddmm(plan, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_run_sddmm(NULL, &fine, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args)}, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "the plan was made for sddmm"));
    assert_int_equal(spk_oracle(context, pattern, &good, &fine, 3, &(int64_t){1 << 20}, 1, (double[16]){0}, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_oracle(context, pattern, &good, NULL, SPK_FIRST_OUTPUT, NULL, 0, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_compute_sddmm(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_default_tolerance(context, pattern, &good, SPK_FIRST_OUTPUT, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_list_candidates(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_race_kernels(context, pattern, &good, NULL, &(spk_race_options){SPK_SIZED(spk_race_options), .rounds = -1},
                                      &(spk_report *){NULL}),
                     SPK_ERR_ARGUMENT);
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tuning), cmocka_unit_test(test_sampling), cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
