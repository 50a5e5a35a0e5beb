/* A class that several plans, contexts or processes meet while it is tried in place: whoever makes runs comes to a decision, whatever
 * becomes of the plan that began. And whose memory the runs use when it is decided. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "context_case.h"

enum { SIDE = 128, N = 32 };

static spk_matrix *matrix;
static float b[SIDE * N], d[SIDE * N];
static atomic_int allocations;

static void *count_allocation(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    atomic_fetch_add(&allocations, 1);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static int begin(void **state)
{
    const spk_generate how = {SPK_SIZED(spk_generate),
                              .generator = SPK_GEN_UNIFORM,
                              .rows = SIDE,
                              .cols = SIDE,
                              .block_rows = 16,
                              .block_cols = 16,
                              .density = 0.3,
                              .seed = 5};
    alarm(600);
    for (int i = 0; i < SIDE * N; i++)
        b[i] = (float)(i % 7);
    return set_up(state) || spk_matrix_generate(context, &how, &matrix, NULL) != SPK_OK;
}

static int end(void **state)
{
    spk_matrix_destroy(&matrix);
    return tear_down(state);
}

static spk_plan *plan_in(spk_context *of)
{
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    ok(spk_pattern_from_matrix(of, matrix, &pattern));
    ok(spk_plan_create_spmm(of, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = N}, NULL, &plan));
    spk_pattern_destroy(&pattern);
    return plan;
}

static void run(spk_plan *plan, void *workspace, size_t bytes)
{
    spk_matrix_desc of = {SPK_SIZED(spk_matrix_desc)};
    ok(spk_matrix_view(matrix, &of));
    ok(spk_plan_run_spmm(plan,
                         &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = of.values, .b = b, .d = d, .alpha = 1, .workspace = workspace,
                                          .workspace_bytes = bytes},
                         NULL));
}

static spk_plan_info info_of(const spk_plan *plan)
{
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    ok(spk_plan_get_info(plan, &info));
    return info;
}

static bool is_decided(const spk_plan *plan)
{
    const char *why = info_of(plan).why;
    return strstr(why, "measured in place") != NULL || strstr(why, "from the store") != NULL;
}

/* Or the alarm ends it. */
static void run_until_decided(spk_plan *plan)
{
    while (!is_decided(plan))
        run(plan, NULL, 0);
}

static void the_first_plan_is_idle(void **state)
{
    (void)state;
    for (int runs = 0; runs < 7; runs += 3) {
        int64_t removed = 0;
        spk_plan *idle = plan_in(context), *used = plan_in(context), *third = plan_in(context);
        for (int i = 0; i < runs; i++)
            run(idle, NULL, 0);
        run_until_decided(used);
        run_until_decided(third);
        assert_true(info_of(third).from_store == (strstr(info_of(third).why, "from the store") != NULL));
        spk_plan_destroy(&third);
        spk_plan_destroy(&used);
        run_until_decided(idle);
        spk_plan_destroy(&idle);
        ok(spk_store_clear(context, &removed));
    }
}

static void another_context_is_idle(void **state)
{
    (void)state;
    spk_context *other = NULL;
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &other));
    spk_plan *idle = plan_in(other), *used = plan_in(context);
    run_until_decided(used);
    spk_plan_destroy(&used);
    spk_plan_destroy(&idle);
    spk_context_destroy(&other);
}

/* First runs at a single size, made beside an idle trial, leave one candidate: later plans try all the same. */
static void many_single_first_runs(void **state)
{
    (void)state;
    spk_plan *idle = plan_in(context);
    for (int i = 0; i < 60; i++) {
        spk_plan *plan = plan_in(context);
        run(plan, NULL, 0);
        spk_plan_destroy(&plan);
    }
    spk_plan_destroy(&idle);
    spk_plan *plan = plan_in(context);
    run_until_decided(plan);
    spk_plan_destroy(&plan);
}

static void a_forked_child(void **state)
{
    (void)state;
    spk_plan *parents = plan_in(context);
    for (int i = 0; i < 8; i++)
        run(parents, NULL, 0);
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(600);
        spk_plan *plan = plan_in(context);
        run_until_decided(plan);
        raise(SIGKILL); /* a leak checker would look at what is the parent's */
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    spk_plan_destroy(&parents);
}

/* Once it is decided, runs with the workspace that the plan then asks for allocate nothing. */
static void the_callers_workspace(void **state)
{
    (void)state;
    spk_context *counting = NULL;
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2,
                                                 .allocate = count_allocation, .release = release},
                          &counting));
    spk_plan *plan = plan_in(counting);
    const size_t before = spk_plan_workspace_bytes(plan);
    run_until_decided(plan);
    const size_t after = spk_plan_workspace_bytes(plan);
    assert_true(after >= before && after == info_of(plan).workspace_bytes);
    void *workspace = after > 0 ? aligned_alloc(64, (after + 63) / 64 * 64) : NULL;
    run(plan, workspace, after);
    atomic_store(&allocations, 0);
    for (int i = 0; i < 50; i++)
        run(plan, workspace, after);
    assert_int_equal(atomic_load(&allocations), 0);
    free(workspace);
    spk_plan_destroy(&plan);
    spk_context_destroy(&counting);
}

static void who_asks_for_a_tuning_gets_one(void **state)
{
    (void)state;
    for (int tuning = SPK_TUNING_IN_PLACE; tuning <= SPK_TUNING_AHEAD_EACH; tuning++) {
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = (spk_tuning)tuning, .budget_s = 0.05,
                                          .only = "reference_spmm,spmm_portable"};
        spk_pattern *pattern = NULL;
        spk_report *report = NULL;
        spk_report_info info = {SPK_SIZED(spk_report_info)};
        int64_t removed = 0;
        ok(spk_pattern_from_matrix(context, matrix, &pattern));
        ok(spk_tune(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = N}, &options, &report));
        ok(spk_report_get_info(report, &info));
        assert_false(info.from_store);
        assert_true(info.tuning_s > 0);
        spk_report_destroy(&report);
        ok(spk_explain(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = N}, &options, &report));
        spk_report_destroy(&report);
        spk_pattern_destroy(&pattern);
        ok(spk_store_clear(context, &removed));
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_first_plan_is_idle), TEST(another_context_is_idle), TEST(many_single_first_runs),
        TEST(a_forked_child),         TEST(the_callers_workspace),   TEST(who_asks_for_a_tuning_gets_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
