/* The caller's log and progress callbacks: their time is not measuring time, and they may not call the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/callback.h"

#include "fake_clock.h"

enum { ROWS = 128, BLOCK = 16, GRID = ROWS / BLOCK, N = 32 };

static spk_context *context;
static spk_pattern *pattern;
static spk_plan *plan;
static int calls, wrong;
static char wrong_text[256];
static double budget_s = 1;

static void (*visit)(void); /* what the progress callback does */

static void progress(void *user, int64_t done, int64_t total, const char *what)
{
    (void)user, (void)done, (void)total, (void)what;
    calls++;
    if (visit != NULL)
        visit();
}

static int set_up(void **state)
{
    int64_t offsets[GRID + 1], columns[GRID];
    (void)state;
    for (int i = 0; i < GRID; i++)
        offsets[i] = columns[i] = i;
    offsets[GRID] = GRID;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1, .progress = progress};
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = ROWS,           .cols = ROWS,
                                     .block_rows = BLOCK,        .block_cols = BLOCK,    .nnzb = GRID,
                                     .row_offsets = offsets,     .col_indices = columns, .index_type = SPK_INDEX_I64};
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    return spk_context_create(&options, &context) != SPK_OK || spk_pattern_create(context, &indices, &pattern) != SPK_OK ||
           spk_plan_create_spmm(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = N}, &estimate, &plan) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    return 0;
}

/* Tunes a class within the budget and returns what tuning says. */
static spk_status tune(int64_t n, void (*during)(void), double *tuning_s)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    calls = wrong = 0;
    visit = during;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options),
                                      .tuning = SPK_TUNING_NOW,
                                      .budget_s = budget_s,
                                      .only = "reference_spmm,spmm_portable",
                                      .seed = 1,
                                      .fresh = 1};
    const spk_status status = spk_tune(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = n}, &options, &report);
    visit = NULL;
    if (report != NULL)
        assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    *tuning_s = info.tuning_s;
    spk_report_destroy(&report);
    return status;
}

enum { SLOW_CALLS = 10 };
static const double slow_call = 0.2; /* of the budget */

static void wait_first_calls(void)
{
    if (calls <= SLOW_CALLS)
        fake_clock_pass(1e6 * slow_call * budget_s);
}

/* Enough for more than ten calls. */
static void find_budget(void)
{
    double tuning_s = 0;
    const int enough = SLOW_CALLS + SLOW_CALLS / 2;
    assert_int_equal(tune(N, NULL, &tuning_s), SPK_OK);
    for (; calls < enough && budget_s < 60; assert_int_equal(tune(N, NULL, &tuning_s), SPK_OK))
        budget_s *= 2;
}

/* Ten calls take twice the budget, and measuring goes on. */
static void slow_callbacks_do_not_count(void **state)
{
    double tuning_s = 0;
    (void)state;
    fake_clock_begin();
    find_budget();
    const double begun_us = spk_now_us();
    assert_int_equal(tune(N, wait_first_calls, &tuning_s), SPK_OK);
    const double spent_s = 1e-6 * (spk_now_us() - begun_us);
    fake_clock_end();
    if (calls <= SLOW_CALLS)
        fail_msg("%d calls of progress: the budget ended in them", calls);
    if (tuning_s > spent_s - slow_call * budget_s * SLOW_CALLS)
        fail_msg("tuning_s = %.2f of %.2f s, of which callbacks took %.1f", tuning_s, spent_s, slow_call * budget_s * SLOW_CALLS);
}

static void expect_refused(spk_status status, const char *call)
{
    if (status == SPK_ERR_ARGUMENT && strstr(spk_last_error(context), "callback") != NULL)
        return;
    wrong++;
    snprintf(wrong_text, sizeof wrong_text, "%s: %s, \"%s\"", call, spk_status_name(status), spk_last_error(context));
}

static void call_library(void)
{
    static float values[GRID * BLOCK * BLOCK], b[ROWS * N], d[ROWS * N];
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = N};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1};
    spk_plan *other = NULL;
    spk_report *report = NULL;
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    expect_refused(spk_compute_spmm(context, pattern, &problem, &args, NULL), "spk_compute_spmm");
    expect_refused(spk_plan_run_spmm(plan, &args, NULL), "spk_plan_run_spmm");
    expect_refused(spk_plan_create_spmm(context, pattern, &problem, NULL, &other), "spk_plan_create_spmm");
    expect_refused(spk_tune(context, pattern, &problem, NULL, &report), "spk_tune");
    expect_refused(spk_pattern_get_info(pattern, &info), "spk_pattern_get_info");
    expect_refused(spk_store_clear(context, NULL), "spk_store_clear");
    if (spk_context_create(NULL, &context) != SPK_ERR_ARGUMENT || strstr(spk_last_error(NULL), "callback") == NULL)
        wrong++;
}

static void callbacks_call_nothing(void **state)
{
    double tuning_s = 0;
    static float values[GRID * BLOCK * BLOCK], b[ROWS * N], d[ROWS * N];
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1};
    (void)state;
    assert_int_equal(tune(2 * N, call_library, &tuning_s), SPK_OK);
    if (calls == 0 || wrong != 0)
        fail_msg("%d calls, %d wrong: %s", calls, wrong, wrong_text);
    assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK); /* afterwards all is allowed */
}

static void interrupt(void)
{
    spk_context_interrupt(context);
}

static void callbacks_may_interrupt(void **state)
{
    double tuning_s = 0;
    (void)state;
    assert_int_equal(tune(4 * N, interrupt, &tuning_s), SPK_ERR_INTERRUPTED);
    assert_non_null(strstr(spk_last_error(context), "interrupted"));
    spk_context_resume(context);
}

static int logged;

static void create_another(void *user, int level, const char *message)
{
    spk_context *other = NULL;
    (void)user, (void)level, (void)message;
    logged++;
    wrong += spk_context_create(NULL, &other) != SPK_ERR_ARGUMENT || strstr(spk_last_error(NULL), "callback") == NULL;
}

static void log_calls_nothing(void **state)
{
    spk_context *made = NULL;
    (void)state;
    wrong = 0;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "/no/such/folder/store.db", .threads = 1,
                                         .log = create_another};
    assert_int_equal(spk_context_create(&options, &made), SPK_OK);
    spk_report *report = NULL;
    spk_pattern *empty = NULL;
    const int64_t offsets[] = {0, 0};
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = 4, .block_cols = 4, .row_offsets = offsets, .col_indices = offsets,
        .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_create(made, &indices, &empty), SPK_OK);
    const spk_tune_options options_of_tuning = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.1,
                                                .only = "reference_spmm"};
    assert_int_equal(spk_tune(made, empty, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 1}, &options_of_tuning, &report), SPK_OK);
    assert_true(logged > 0);
    assert_int_equal(wrong, 0);
    spk_report_destroy(&report);
    spk_pattern_destroy(&empty);
    spk_context_destroy(&made);
}

static double before_us, inside_us;

static void look_at_clock(void)
{
    inside_us = spk_work_us();
    fake_clock_pass(20000);
    if (spk_work_us() != inside_us || !spk_in_callback())
        wrong++;
}

static void clock_stands_still(void **state)
{
    (void)state;
    wrong = 0;
    visit = look_at_clock;
    fake_clock_begin();
    const double real_us = spk_now_us(); /* around the other clock, as each look takes a moment */
    before_us = spk_work_us();
    spk_tell_progress(progress, NULL, 0, 0, "");
    visit = NULL;
    const double work_us = spk_work_us() - before_us;
    const double passed_us = spk_now_us() - real_us;
    fake_clock_end();
    assert_int_equal(wrong, 0);
    assert_false(spk_in_callback());
    assert_true(inside_us >= before_us && work_us >= 0 && work_us <= passed_us - 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_stands_still),      cmocka_unit_test(slow_callbacks_do_not_count), cmocka_unit_test(callbacks_call_nothing),
        cmocka_unit_test(callbacks_may_interrupt), cmocka_unit_test(log_calls_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
