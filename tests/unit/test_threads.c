/* The number of threads follows the work: small products run on the calling thread, those between are measured both ways, large ones take
 * all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

#include "base/executor.h"
#include "kernel/threads.h"
#include "tune/search/search.h"

enum { THREADS = 3, BLOCK = 16 };

static void count_calls(void *calls, int64_t tasks, spk_parallel_body body, void *arg)
{
    atomic_fetch_add((atomic_int *)calls, 1);
    for (int64_t task = 0; task < tasks; task++)
        body(arg, task);
}

/* An m x m matrix, every fourth block of it, times n columns of ones. */
typedef struct product {
    spk_context *context;
    spk_pattern *pattern;
    spk_spmm problem;
    int64_t m, n;
    float *values, *b, *d;
    atomic_int calls;
} product;

static void make(product *p, int64_t m, int64_t n)
{
    const int64_t grid = m / BLOCK, nnzb = grid * ((grid + 3) / 4);
    int32_t *offsets = calloc((size_t)grid + 1, sizeof *offsets), *columns = calloc((size_t)nnzb, sizeof *columns);
    assert_non_null(offsets);
    assert_non_null(columns);
    for (int64_t row = 0, at = 0; row < grid; row++) {
        for (int64_t column = row % 4; column < grid; column += 4)
            columns[at++] = (int32_t)column;
        offsets[row + 1] = (int32_t)at;
    }
    const int64_t stored = offsets[grid];
    *p = (product){.m = m, .n = n, .problem = {SPK_SIZED(spk_spmm), .n = n}};
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = THREADS, .parallel_for = count_calls,
                                         .parallel_user = &p->calls};
    assert_int_equal(spk_context_create(&options, &p->context), SPK_OK);
    assert_int_equal(
        spk_pattern_create(p->context,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = m, .cols = m, .block_rows = BLOCK, .block_cols = BLOCK,
                                              .nnzb = stored, .row_offsets = offsets, .col_indices = columns},
                           &p->pattern),
        SPK_OK);
    p->values = calloc((size_t)(stored * BLOCK * BLOCK), sizeof *p->values);
    p->b = calloc((size_t)(m * n), sizeof *p->b);
    p->d = calloc((size_t)(m * n), sizeof *p->d);
    assert_true(p->values != NULL && p->b != NULL && p->d != NULL);
    for (int64_t i = 0; i < stored * BLOCK * BLOCK; i++)
        p->values[i] = 1;
    for (int64_t i = 0; i < m * n; i++)
        p->b[i] = 1;
    free(offsets);
    free(columns);
}

static void drop(product *p)
{
    spk_pattern_destroy(&p->pattern);
    spk_context_destroy(&p->context);
    free(p->values);
    free(p->b);
    free(p->d);
}

/* How often a run of the choice calls for the context's threads; every element of D is checked. */
static int calls_of(product *p, const char *choice)
{
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice};
    spk_spmm finite = p->problem;
    spk_plan *plan = NULL;
    finite.assume_finite = 1;
    assert_int_equal(spk_plan_create_spmm(p->context, p->pattern, &finite, &options, &plan), SPK_OK);
    atomic_store(&p->calls, 0);
    spk_executor_steady(true); /* on a busy machine, too */
    assert_int_equal(
        spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = p->values, .b = p->b, .d = p->d, .alpha = 1}, NULL),
        SPK_OK);
    spk_executor_steady(false);
    const int64_t grid = p->m / BLOCK;
    for (int64_t i = 0; i < p->m * p->n; i++)
        assert_true(p->d[i] == (float)(BLOCK * ((grid - i / p->n / BLOCK % 4 + 3) / 4)));
    spk_plan_destroy(&plan);
    return atomic_load(&p->calls);
}

/* Applicable candidates, all or with SERIAL=1, whose kernels work on the context's threads. */
static int count_candidates(product *p, bool serial, int *calls)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int count = 0;
    assert_int_equal(spk_list_candidates(p->context, p->pattern, &p->problem, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        char choice[160];
        assert_int_equal(spk_report_get_candidate(report, i, &c), SPK_OK);
        if (c.status != SPK_CANDIDATE_OK || strstr(c.params, serial ? "SERIAL=1" : "SERIAL=0") == NULL)
            continue;
        snprintf(choice, sizeof choice, "%s %s", c.name, c.params);
        *calls += calls_of(p, choice);
        count++;
    }
    spk_report_destroy(&report);
    return count;
}

static void little_work_wakes_nobody(void **state)
{
    (void)state;
    product p;
    int calls = 0;
    make(&p, 128, 16); /* some 130 kFLOP */
    assert_int_equal(count_candidates(&p, true, &calls), 0);
    assert_true(count_candidates(&p, false, &calls) > 0);
    assert_int_equal(calls, 0);
    assert_int_equal(calls_of(&p, "spmm_portable"), 0);
    drop(&p);
}

static void work_between_is_done_both_ways(void **state)
{
    (void)state;
    product p;
    int alone = 0, together = 0;
    make(&p, 512, 32); /* some 4 MFLOP */
    const int serial = count_candidates(&p, true, &alone), parallel = count_candidates(&p, false, &together);
    assert_true(serial > 0);
    assert_int_equal(serial, parallel);
    assert_int_equal(alone, 0);
    assert_true(together >= parallel);
    drop(&p);
}

static void much_work_takes_all_threads(void **state)
{
    (void)state;
    product p;
    int calls = 0;
    make(&p, 1024, 256); /* some 130 MFLOP */
    assert_int_equal(count_candidates(&p, true, &calls), 0);
    assert_true(calls_of(&p, "spmm_portable") > 0);
    drop(&p);
}

/* A batch of small products is much work together. */
static void a_batch_counts_as_a_whole(void **state)
{
    (void)state;
    product p;
    make(&p, 128, 16);
    const spk_kernel *kernel = spk_kernel_by_name("spmm_portable");
    spk_params params;
    assert_int_equal(spk_params_parse(kernel, "", &params), SPK_OK);
    spk_report *report = NULL;
    for (int batch = 1; batch <= 1000; batch *= 1000) {
        spk_spmm problem = p.problem;
        problem.batch = batch;
        problem.stride_b = p.m * p.n;
        problem.stride_d = p.m * p.n;
        spk_plan *plan = NULL;
        float *b = calloc((size_t)(batch * p.m * p.n), sizeof *b), *d = calloc((size_t)(batch * p.m * p.n), sizeof *d);
        assert_true(b != NULL && d != NULL);
        assert_int_equal(spk_plan_create_spmm(p.context, p.pattern, &problem,
                                              &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "spmm_portable"}, &plan),
                         SPK_OK);
        atomic_store(&p.calls, 0);
        assert_int_equal(
            spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = p.values, .b = b, .d = d, .alpha = 1}, NULL),
            SPK_OK);
        assert_int_equal(atomic_load(&p.calls) > 0, batch > 1);
        spk_plan_destroy(&plan);
        free(b);
        free(d);
    }
    spk_report_destroy(&report);
    drop(&p);
}

/* The estimate: what is expected of one thread and of all, with what it costs to wake them. */
static void the_model_knows_both(void **state)
{
    (void)state;
    product p;
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    make(&p, 512, 32);
    assert_int_equal(spk_list_candidates(p.context, p.pattern, &p.problem, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    double serial = 0, parallel = 0;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        assert_int_equal(spk_report_get_candidate(report, i, &c), SPK_OK);
        if (strcmp(c.name, "spmm_portable") == 0 && strncmp(c.params, "NV=2 PACK=1 GROUP=1", 19) == 0)
            *(strstr(c.params, "SERIAL=1") != NULL ? &serial : &parallel) = c.predicted_us;
    }
    assert_true(parallel > 0 && serial > 1.2 * parallel && serial < THREADS * parallel);
    spk_report_destroy(&report);
    drop(&p);
}

/* Of two that are as fast, the one that leaves the other processors alone. */
static void a_tie_goes_to_one_thread(void **state)
{
    (void)state;
    const spk_kernel *wide = spk_kernel_by_name("spmm_f32_avx512"), *narrow = spk_kernel_by_name("spmm_portable");
    double faster[] = {100, 101, 100, 99, 100}, slower[] = {100.4, 100.9, 100.2, 99.1, 100.5}, slow[] = {180, 181, 180, 179, 180};
    spk_contender all = {.kernel = wide, .samples = faster, .sample_count = 5, .median_us = 100, .predicted_us = 50, .eligible = true};
    spk_contender alone = {
        .kernel = narrow, .samples = slower, .sample_count = 5, .median_us = 100.4, .predicted_us = 80, .eligible = true, .order = 1};
    spk_contender *list[] = {&all, &alone};
    assert_int_equal(spk_params_parse(wide, "SERIAL=0", &all.params), SPK_OK);
    assert_int_equal(spk_params_parse(narrow, "SERIAL=1", &alone.params), SPK_OK);
    assert_int_equal(spk_rounds_winner(list, 2, false, NULL), 1);
    alone.samples = slow;
    alone.median_us = 180;
    assert_int_equal(spk_rounds_winner(list, 2, false, NULL), 0);
}

static void parameters_may_be_left_out(void **state)
{
    (void)state;
    const spk_kernel *kernel = spk_kernel_by_name("spmm_portable"), *reference = spk_kernel_by_name("reference_spmm");
    static const struct {
        const char *text, *means, *wrong;
    } cases[] = {{"", "NV=2 PACK=0 GROUP=1 SERIAL=0", NULL},
                 {" NV=3  PACK=1 ", "NV=3 PACK=1 GROUP=1 SERIAL=0", NULL},
                 {"SERIAL=1 NV=6", "NV=6 PACK=0 GROUP=1 SERIAL=1", NULL},
                 {"NV=3 PACK=2 GROUP=4 SERIAL=1", "NV=3 PACK=2 GROUP=4 SERIAL=1", NULL},
                 {"NV=3 NV=3", NULL, "twice"},
                 {"NV=5", NULL, "no such value"},
                 {"NV=3x", NULL, "no such value"},
                 {"NV=", NULL, "no such value"},
                 {"NV", NULL, "\"NV\" is none of its tunables"},
                 {"NVX=3", NULL, "\"NVX=3\" is none of its tunables"},
                 {"DEPTH=4 NV=2", NULL, "\"DEPTH=4\" is none"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_params params;
        char text[SPK_MAX_PARAMS_TEXT];
        const spk_status status = spk_params_parse(kernel, cases[i].text, &params);
        assert_int_equal(status, cases[i].means != NULL ? SPK_OK : SPK_ERR_ARGUMENT);
        if (status != SPK_OK) {
            assert_non_null(strstr(spk_error_message(0), cases[i].wrong));
            continue;
        }
        spk_params_text(kernel, &params, text, sizeof text);
        assert_string_equal(text, cases[i].means);
    }
    spk_params none;
    assert_int_equal(spk_params_parse(reference, "", &none), SPK_OK);
    assert_int_equal(spk_params_parse(reference, "NV=2", &none), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_error_message(0), "it has none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_work_wakes_nobody),    cmocka_unit_test(work_between_is_done_both_ways),
        cmocka_unit_test(much_work_takes_all_threads), cmocka_unit_test(a_batch_counts_as_a_whole),
        cmocka_unit_test(the_model_knows_both),        cmocka_unit_test(parameters_may_be_left_out),
        cmocka_unit_test(a_tie_goes_to_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
