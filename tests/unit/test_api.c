/* The public calls as a program uses them: plans, the plan cache, threads, the caller's allocator and parallel-for, fork, failing
 * memory. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

#include "base/executor.h"
#include "base/mem.h"

enum { ROWS = 37, COLS = 50, BLOCK_ROWS = 4, BLOCK_COLS = 6, N = 9 };

/* One problem with its answer. */
typedef struct fixture {
    spk_context *context;
    spk_matrix *matrix;
    spk_pattern *pattern;
    spk_spmm problem;
    const float *values;
    float b[COLS * N];
    double want[ROWS * N], magnitude[ROWS * N];
    double tolerance;
} fixture;

static void fixture_open(fixture *f, const spk_context_options *options)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(spk_context_create(options, &f->context), SPK_OK);
    assert_int_equal(spk_matrix_generate(f->context,
                                         &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = ROWS, .cols = COLS,
                                                         .block_rows = BLOCK_ROWS, .block_cols = BLOCK_COLS, .density = 0.4, .seed = 5},
                                         &f->matrix, NULL),
                     SPK_OK);
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    assert_int_equal(spk_matrix_view(f->matrix, &desc), SPK_OK);
    f->values = desc.values;
    assert_int_equal(spk_pattern_from_matrix(f->context, f->matrix, &f->pattern), SPK_OK);
    assert_int_equal(spk_fill_random(f->context, SPK_F32, COLS * N, 9, f->b), SPK_OK);
    f->problem = (spk_spmm){SPK_SIZED(spk_spmm), .n = N, .activation = SPK_ACT_GELU_ERF};
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = f->values, .b = f->b, .alpha = 1.5};
    assert_int_equal(spk_oracle(f->context, f->pattern, &f->problem, &args, SPK_FIRST_OUTPUT, NULL, 0, f->want, f->magnitude), SPK_OK);
    assert_int_equal(spk_default_tolerance(f->context, f->pattern, &f->problem, SPK_FIRST_OUTPUT, &f->tolerance), SPK_OK);
}

static void fixture_close(fixture *f)
{
    spk_pattern_destroy(&f->pattern);
    spk_matrix_destroy(&f->matrix);
    spk_context_destroy(&f->context);
}

static spk_spmm_args fixture_args(const fixture *f, float *d)
{
    memset(d, 0xff, ROWS * N * sizeof *d); /* NaN everywhere */
    return (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = f->values, .b = f->b, .d = d, .alpha = 1.5};
}

static int is_right(const fixture *f, const float *d)
{
    for (int i = 0; i < ROWS * N; i++)
        if (!(fabs((double)d[i] - f->want[i]) <= f->tolerance * f->magnitude[i] + 1e-300))
            return 0;
    return 1;
}

static const spk_context_options in_memory = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2};
static const spk_tune_options quick = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.05};

static void plan_and_run(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    spk_plan *plan = NULL, *again = NULL;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &quick, &plan), SPK_OK);
    spk_spmm_args args = fixture_args(&f, d);
    assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
    assert_true(is_right(&f, d));
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    assert_int_equal(spk_plan_get_info(plan, &info), SPK_OK);
    assert_false(info.from_store);
    /* The class is known now, and forbidding to tune changes nothing. */
    spk_tune_options never = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_AHEAD_EACH};
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &never, &again), SPK_OK);
    assert_int_equal(spk_plan_get_info(again, &info), SPK_OK);
    assert_true(info.from_store);
    assert_string_equal(spk_plan_choice(plan), spk_plan_choice(again));
    /* The plan keeps the pattern: destroying the handle first is fine. */
    spk_pattern_destroy(&f.pattern);
    args = fixture_args(&f, d);
    assert_int_equal(spk_plan_run_spmm(again, &args, NULL), SPK_OK);
    assert_true(is_right(&f, d));
    spk_plan_destroy(&plan);
    spk_plan_destroy(&again);
    assert_null(plan);
    fixture_close(&f);
}

static void estimate_runs_nothing(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    spk_plan *plan = NULL;
    spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &estimate, &plan), SPK_OK);
    spk_report *report = NULL;
    assert_int_equal(spk_explain(f.context, f.pattern, &f.problem, NULL, &report), SPK_ERR_UNKNOWN_CLASS);
    spk_spmm_args args = fixture_args(&f, d);
    assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
    assert_true(is_right(&f, d));
    spk_plan_destroy(&plan);
    fixture_close(&f);
}

static void pinned_choice(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    spk_report *report = NULL;
    assert_int_equal(spk_list_candidates(f.context, f.pattern, &f.problem, NULL, &report), SPK_OK);
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    int ran = 0;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        char choice[200];
        snprintf(choice, sizeof choice, "%s%s%s", candidate.name, candidate.params[0] != '\0' ? " " : "", candidate.params);
        spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choice};
        spk_plan *plan = NULL;
        spk_status status = spk_plan_create_spmm(f.context, f.pattern, &f.problem, &pin, &plan);
        if (candidate.status != SPK_CANDIDATE_OK) {
            assert_int_equal(status, SPK_ERR_NO_CANDIDATE);
            continue;
        }
        assert_int_equal(status, SPK_OK);
        assert_string_equal(spk_plan_choice(plan), choice);
        spk_spmm_args args = fixture_args(&f, d);
        assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
        assert_true(is_right(&f, d));
        spk_plan_destroy(&plan);
        ran++;
    }
    assert_true(ran >= 2);
    spk_report_destroy(&report);
    fixture_close(&f);
}

static void matmul_and_its_cache(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    for (int i = 0; i < 3; i++) {
        spk_spmm_args args = fixture_args(&f, d);
        assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick), SPK_OK);
        assert_true(is_right(&f, d));
    }
    /* Another problem on the same pattern must not meet the first one's plan. */
    f.problem.activation = SPK_ACT_NONE;
    spk_spmm_args args = fixture_args(&f, d);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick), SPK_OK);
    assert_false(is_right(&f, d));
    /* More problems than the cache holds. */
    spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    f.problem.activation = SPK_ACT_GELU_ERF;
    float wide[ROWS * (N + 700)];
    for (int slack = 0; slack < 700; slack++) {
        f.problem.ldd = N + slack;
        args = fixture_args(&f, d);
        args.d = wide;
        assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &estimate), SPK_OK);
    }
    fixture_close(&f);
}

/* Whether the call computes act(alpha A B), whatever was asked before. */
static bool computes(fixture *f, spk_pattern *pattern, const float *values, const spk_spmm *problem, const spk_tune_options *options)
{
    static float d[COLS * N];
    static double want[COLS * N], magnitude[COLS * N];
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = f->b, .d = d, .alpha = 1.5};
    memset(d, 0xff, sizeof d);
    if (spk_compute(f->context, pattern, problem, &args, options) != SPK_OK || spk_pattern_get_info(pattern, &info) != SPK_OK ||
        spk_oracle(f->context, pattern, problem, &args, SPK_FIRST_OUTPUT, NULL, 0, want, magnitude) != SPK_OK)
        return false;
    for (int64_t i = 0; i < info.rows * problem->n; i++)
        if (!(fabs(d[i] - want[i]) <= f->tolerance * magnitude[i]))
            return false;
    return true;
}

/* spk_compute remembers what it was asked: each byte of it counts. */
static void recent_questions(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    for (int round = 0; round < 2; round++)
        for (int activation = SPK_ACT_NONE; activation <= SPK_ACT_SILU; activation++)
            for (int n = 1; n <= N; n++) {
                const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = n, .activation = (spk_activation)activation};
                assert_true(computes(&f, f.pattern, f.values, &problem, round == 0 ? &quick : NULL));
            }
    /* A wrong question is wrong each time, and so are wrong arguments of a right one. */
    float d[ROWS * N];
    spk_spmm_args args = fixture_args(&f, d);
    spk_spmm wrong = f.problem;
    wrong.layout_b = (spk_layout)7;
    for (int round = 0; round < 2; round++) {
        assert_true(computes(&f, f.pattern, f.values, &f.problem, &quick));
        assert_int_equal(spk_compute(f.context, f.pattern, &wrong, &args, &quick), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_compute(f.context, NULL, &f.problem, &args, &quick), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_compute(f.context, f.pattern, NULL, &args, &quick), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_compute(f.context, f.pattern, &f.problem, NULL, &quick), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_compute(f.context, f.pattern, &f.problem, &(spk_gemm_args){SPK_SIZED(spk_gemm_args)}, &quick),
                         SPK_ERR_ARGUMENT);
        assert_non_null(strstr(spk_last_error(f.context), "the problem is one of"));
    }
    /* A struct of another version: shorter, and longer with zeros; no size that a struct can have. */
    struct {
        spk_tune_options options;
        uint64_t more;
    } longer = {{sizeof longer, .effort = SPK_TUNE_ESTIMATE}, 0};
    spk_tune_options shorter = {.struct_size = 16, .effort = SPK_TUNE_ESTIMATE};
    for (int round = 0; round < 2; round++) {
        assert_true(computes(&f, f.pattern, f.values, &f.problem, &longer.options));
        assert_true(computes(&f, f.pattern, f.values, &f.problem, &shorter));
        longer.more = 1;
        assert_int_equal(spk_compute(f.context, f.pattern, &f.problem, &args, &longer.options), SPK_ERR_UNSUPPORTED);
        longer.more = 0;
    }
    for (size_t size = 0; size < 16; size++) {
        shorter.struct_size = size;
        assert_int_equal(spk_compute(f.context, f.pattern, &f.problem, &args, &shorter), SPK_ERR_ARGUMENT);
    }
    /* Text that changes where it stands. */
    char choice[64] = "reference_spmm";
    const spk_tune_options pinned = {SPK_SIZED(spk_tune_options), .choice = choice};
    assert_true(computes(&f, f.pattern, f.values, &f.problem, &pinned));
    snprintf(choice, sizeof choice, "no_such_kernel");
    assert_int_not_equal(spk_compute(f.context, f.pattern, &f.problem, &args, &pinned), SPK_OK);
    /* Patterns that come and go at one address. */
    for (int i = 0; i < 60; i++) {
        spk_matrix *matrix = NULL;
        spk_pattern *pattern = NULL;
        spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
        const spk_generate generate = {SPK_SIZED(spk_generate),  .generator = SPK_GEN_UNIFORM, .rows = ROWS,   .cols = COLS,
                                       .block_rows = BLOCK_ROWS, .block_cols = BLOCK_COLS,     .density = 0.4, .seed = (uint64_t)i};
        assert_int_equal(spk_matrix_generate(f.context, &generate, &matrix, NULL), SPK_OK);
        assert_int_equal(spk_matrix_view(matrix, &desc), SPK_OK);
        assert_int_equal(spk_pattern_from_matrix(f.context, matrix, &pattern), SPK_OK);
        assert_true(computes(&f, pattern, desc.values, &f.problem, &quick));
        assert_true(computes(&f, pattern, desc.values, &f.problem, &quick));
        spk_pattern_destroy(&pattern);
        spk_matrix_destroy(&matrix);
    }
    fixture_close(&f);
}

/* The library says the version of its headers, as a number and as text. */
static void version(void **state)
{
    (void)state;
    char text[32];
    const int number = spk_version_number();
    assert_int_equal(number, SPK_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    assert_string_equal(spk_version(), text);
    snprintf(text, sizeof text, "%d.%d.%d", SPK_VERSION_MAJOR, SPK_VERSION_MINOR, SPK_VERSION_PATCH);
    assert_string_equal(spk_version(), text);
}

/* Whether some candidate of a list is not eligible for want of the promise; key: gets the list's class. */
static bool wants_the_promise(const fixture *f, const spk_spmm *problem, bool *dense, char key[512])
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    bool wants = false;
    *dense = false;
    assert_int_equal(spk_list_candidates(f->context, f->pattern, problem, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    snprintf(key, 512, "%s", info.class_key);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        wants = wants || (candidate.why != NULL && strcmp(candidate.why, "needs assume_finite") == 0);
        *dense = *dense || (candidate.kind == SPK_KIND_DENSE && candidate.status == SPK_CANDIDATE_OK);
    }
    spk_report_destroy(&report);
    return wants;
}

/* Promises belong to the problem: with them it is one of another class, whose candidates and plans are its own. Which libraries multiply
 * filled-in zeros here depends on the machine; test_trial.c has a row that does. */
static void promises_of_the_problem(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    char key[3][512];
    bool dense = false, dense_with = false, dense_fixed = false;
    spk_spmm finite = f.problem, fixed = f.problem;
    finite.assume_finite = 1;
    fixed.static_values = 1;
    const bool wants = wants_the_promise(&f, &f.problem, &dense, key[0]);
    assert_false(wants_the_promise(&f, &finite, &dense_with, key[1]));
    assert_int_equal(wants_the_promise(&f, &fixed, &dense_fixed, key[2]), wants);
    assert_false(dense);
    assert_int_equal(dense_with, wants);
    assert_false(dense_fixed);
    assert_string_not_equal(key[0], key[1]);
    assert_string_not_equal(key[0], key[2]);
    for (int round = 0; round < 2; round++) {
        assert_true(computes(&f, f.pattern, f.values, &f.problem, &quick));
        assert_true(computes(&f, f.pattern, f.values, &finite, &quick));
    }
    fixture_close(&f);
}

/* Every row of the library's own with values that its plan takes once: each update counts, and no run takes those of its arguments. */
static void static_values_of_every_row(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    static const float zeros[4096];
    spk_spmm fixed = f.problem;
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_pattern_info about = {SPK_SIZED(spk_pattern_info)};
    int ran = 0;
    fixed.static_values = 1;
    assert_int_equal(spk_pattern_get_info(f.pattern, &about), SPK_OK);
    assert_true(about.nnzb * BLOCK_ROWS * BLOCK_COLS <= 4096);
    assert_int_equal(spk_list_candidates(f.context, f.pattern, &fixed, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        spk_plan *plan = NULL;
        char choice[200];
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        if (candidate.status != SPK_CANDIDATE_OK || (candidate.kind != SPK_KIND_OWN && candidate.kind != SPK_KIND_REFERENCE))
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choice};
        assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &fixed, &pin, &plan), SPK_OK);
        spk_spmm_args args = fixture_args(&f, d);
        assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_plan_update_values(plan, zeros, NULL), SPK_OK);
        assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
        for (int e = 0; e < ROWS * N; e++)
            assert_true(d[e] == 0);
        assert_int_equal(spk_plan_update_values(plan, f.values, NULL), SPK_OK);
        args = fixture_args(&f, d);
        args.values = NULL;
        assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
        assert_true(is_right(&f, d));
        spk_plan_destroy(&plan);
        ran++;
    }
    assert_true(ran >= 2);
    spk_report_destroy(&report);
    fixture_close(&f);
}

static void static_values(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N], changed[4096];
    spk_plan *plan = NULL;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.05};
    spk_spmm fixed = f.problem;
    fixed.static_values = fixed.assume_finite = 1;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &fixed, &options, &plan), SPK_OK);
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    assert_int_equal(spk_pattern_get_info(f.pattern, &info), SPK_OK);
    int64_t count = info.nnzb * BLOCK_ROWS * BLOCK_COLS;
    assert_true(count <= 4096);
    memset(changed, 0, sizeof changed);
    assert_int_equal(spk_plan_update_values(plan, changed, NULL), SPK_OK);
    memcpy(changed, f.values, (size_t)count * sizeof changed[0]);
    assert_int_equal(spk_plan_update_values(plan, changed, NULL), SPK_OK);
    spk_spmm_args args = fixture_args(&f, d);
    args.values = NULL;
    assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_OK);
    assert_true(is_right(&f, d));
    spk_plan_destroy(&plan);
    fixture_close(&f);
}

/* ---- threads */

typedef struct worker {
    const fixture *f;
    spk_plan *plan; /* NULL: through spk_compute_spmm */
    int own_workspace;
    int failures;
} worker;

static void *work(void *pointer)
{
    worker *w = pointer;
    float d[ROWS * N];
    size_t bytes = w->plan != NULL ? spk_plan_workspace_bytes(w->plan) : 0;
    void *workspace = w->own_workspace && bytes > 0 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    for (int i = 0; i < 50; i++) {
        spk_spmm_args args = fixture_args(w->f, d);
        args.workspace = workspace;
        args.workspace_bytes = bytes;
        spk_status status = w->plan != NULL ? spk_plan_run_spmm(w->plan, &args, NULL)
                                            : spk_compute_spmm(w->f->context, w->f->pattern, &w->f->problem, &args, &quick);
        w->failures += status != SPK_OK || !is_right(w->f, d);
        /* Messages belong to the thread: a wrong call here disturbs nobody. */
        args.alpha = NAN;
        if (w->plan != NULL)
            w->failures +=
                spk_plan_run_spmm(w->plan, &args, NULL) != SPK_ERR_ARGUMENT || strstr(spk_last_error(w->f->context), "alpha") == NULL;
    }
    free(workspace);
    return NULL;
}

static void run_workers(const fixture *f, spk_plan *plan)
{
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.f = f, .plan = plan, .own_workspace = i % 2};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
}

static void many_threads(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 1});
    f.problem.layout_b = SPK_ROW_MAJOR;
    run_workers(&f, NULL); /* all tune the same class at first */
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &quick, &plan), SPK_OK);
    run_workers(&f, plan);
    spk_plan_destroy(&plan);
    /* And a plan that needs a workspace, if there is one. */
    spk_tune_options pack = {SPK_SIZED(spk_tune_options), .choice = "spmm_portable NV=2 PACK=1"};
    if (spk_plan_create_spmm(f.context, f.pattern, &f.problem, &pack, &plan) == SPK_OK)
        run_workers(&f, plan);
    spk_plan_destroy(&plan);
    fixture_close(&f);
}

/* ---- the caller's own allocator and parallel-for */

typedef struct counters {
    atomic_llong live_bytes, allocations, calls;
} counters;

static void *count_allocate(void *user, size_t bytes, size_t alignment)
{
    counters *c = user;
    atomic_fetch_add(&c->live_bytes, (long long)bytes);
    atomic_fetch_add(&c->allocations, 1);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void count_release(void *user, void *memory, size_t bytes)
{
    counters *c = user;
    atomic_fetch_sub(&c->live_bytes, (long long)bytes);
    free(memory);
}

static void backwards(void *user, int64_t tasks, spk_parallel_body body, void *arg)
{
    atomic_fetch_add(&((counters *)user)->calls, 1);
    for (int64_t task = tasks - 1; task >= 0; task--)
        body(arg, task);
}

static void callers_memory_and_threads(void **state)
{
    (void)state;
    counters c = {0};
    fixture f;
    fixture_open(&f,
                 &(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 3, .parallel_for = backwards,
                                        .parallel_user = &c, .allocate = count_allocate, .release = count_release, .allocate_user = &c});
    float d[ROWS * N];
    spk_spmm_args args = fixture_args(&f, d);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick), SPK_OK);
    assert_true(is_right(&f, d));
    /* Small products run in the calling thread, larger ones too where the machine is busy: this one is for all threads. */
    spk_matrix *matrix = NULL;
    spk_pattern *pattern = NULL;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_generate large = {
        SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = 512, .cols = 512, .block_rows = 16, .block_cols = 16,
        .density = 0.5};
    assert_int_equal(spk_matrix_generate(f.context, &large, &matrix, NULL), SPK_OK);
    assert_int_equal(spk_matrix_view(matrix, &desc), SPK_OK);
    assert_int_equal(spk_pattern_from_matrix(f.context, matrix, &pattern), SPK_OK);
    float *b = calloc(512 * 64, sizeof *b), *result = calloc(512 * 64, sizeof *result);
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = 64};
    const spk_tune_options portable = {SPK_SIZED(spk_tune_options), .choice = "spmm_portable SERIAL=0"};
    args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = desc.values, .b = b, .d = result, .alpha = 1};
    spk_executor_steady(true); /* on a busy machine, too */
    assert_int_equal(spk_compute_spmm(f.context, pattern, &problem, &args, &portable), SPK_OK);
    spk_executor_steady(false);
    free(b);
    free(result);
    spk_pattern_destroy(&pattern);
    spk_matrix_destroy(&matrix);
    fixture_close(&f);
    assert_true(atomic_load(&c.allocations) > 0);
    assert_true(atomic_load(&c.calls) > 0);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
}

static void fork_after_threads(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    float d[ROWS * N];
    spk_spmm_args args = fixture_args(&f, d);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick), SPK_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(600); /* a hang must end the child */
        args = fixture_args(&f, d);
        int ok = spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick) == SPK_OK && is_right(&f, d);
        f.problem.ldd = N + 3; /* a new plan in the child, too */
        float wide[ROWS * (N + 3)];
        args.d = wide;
        ok = ok && spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick) == SPK_OK;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fixture_close(&f);
}

/* ---- failing memory: every allocation of a whole use fails once */

static spk_status whole_use(void)
{
    spk_status status;
    spk_context *context = NULL;
    spk_matrix *matrix = NULL, *bsr = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    spk_report *report = NULL;
    float b[24 * 3], d[20 * 3];
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_spmm problem = {SPK_SIZED(spk_spmm), .n = 3, .layout_b = SPK_COL_MAJOR};
    spk_generate generate = {
        SPK_SIZED(spk_generate), .generator = SPK_GEN_POWER_LAW, .rows = 20, .cols = 24, .block_rows = 4, .block_cols = 4, .density = 0.5};
    spk_tune_options options = {SPK_SIZED(spk_tune_options),
                                .tuning = SPK_TUNING_NOW,
                                .only = "reference_spmm,spmm_portable",
                                .budget_s = 0.01,
                                .seed = 3,
                                .cache = SPK_WARM};
    SPK_GOTO(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 1}, &context));
    SPK_GOTO(spk_fill_random(context, SPK_F32, 24 * 3, 1, b));
    SPK_GOTO(spk_matrix_generate(context, &generate, &matrix, NULL));
    SPK_GOTO(spk_matrix_to_bsr(context, matrix, 5, 3, SPK_ROW_MAJOR, &bsr));
    SPK_GOTO(spk_matrix_view(bsr, &desc));
    SPK_GOTO(spk_pattern_from_matrix(context, bsr, &pattern));
    SPK_GOTO(spk_tune(context, pattern, &problem, &options, &report));
    SPK_GOTO(spk_plan_create_spmm(context, pattern, &problem, &options, &plan));
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = desc.values, .b = b, .d = d, .alpha = 1};
    SPK_GOTO(spk_plan_run_spmm(plan, &args, NULL));
    SPK_GOTO(spk_compute_spmm(context, pattern, &problem, &args, &options));
done:
    spk_report_destroy(&report);
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_matrix_destroy(&bsr);
    spk_matrix_destroy(&matrix);
    spk_context_destroy(&context);
    return status;
}

static void failing_memory(void **state)
{
    (void)state;
    spk_mem_fail_after(-1);
    assert_int_equal(whole_use(), SPK_OK);
    int64_t allocations = spk_mem_fail_after(-1);
    assert_true(allocations > 20);
    int64_t step = allocations > 400 ? allocations / 400 : 1;
    for (int64_t i = 0; i < allocations; i += step) {
        spk_mem_fail_after(i);
        spk_status status = whole_use();
        spk_mem_fail_after(-1);
        /* Some memory is for comfort only (the plan cache, the store): the use may succeed without. */
        if (status != SPK_OK && status != SPK_ERR_OUT_OF_MEMORY && status != SPK_ERR_NO_CANDIDATE)
            fail_msg("allocation %lld of %lld failing gave status %s", (long long)i, (long long)allocations, spk_status_name(status));
    }
}

/* ---- nothing to multiply */

static void empty_problems(void **state)
{
    (void)state;
    spk_context *context = NULL;
    assert_int_equal(spk_context_create(&in_memory, &context), SPK_OK);
    static const struct {
        int64_t rows, cols, n;
    } shapes[] = {{0, 0, 0}, {0, 5, 3}, {5, 0, 3}, {5, 7, 0}, {5, 7, 3}};
    const int64_t zeros[8] = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        spk_pattern *pattern = NULL;
        assert_int_equal(
            spk_pattern_create(context,
                               &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = shapes[i].rows, .cols = shapes[i].cols,
                                                  .block_rows = 2, .block_cols = 2, .row_offsets = zeros, .index_type = SPK_INDEX_I64},
                               &pattern),
            SPK_OK);
        float b[64] = {0}, d[64], bias[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        for (int j = 0; j < 64; j++)
            d[j] = 99;
        spk_spmm problem = {SPK_SIZED(spk_spmm), .n = shapes[i].n, .bias = SPK_BIAS_PER_ROW};
        spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .b = b, .d = d, .bias = bias, .alpha = 1};
        assert_int_equal(spk_compute_spmm(context, pattern, &problem, &args, &quick), SPK_OK);
        for (int64_t row = 0; row < shapes[i].rows; row++)
            for (int64_t col = 0; col < shapes[i].n; col++)
                assert_true(d[row * shapes[i].n + col] == bias[row]);
        assert_true(d[shapes[i].rows * shapes[i].n] == 99);
        spk_pattern_destroy(&pattern);
    }
    spk_context_destroy(&context);
}

static void interrupted(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    spk_context_interrupt(f.context);
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &quick, &plan), SPK_ERR_INTERRUPTED);
    assert_null(plan);
    spk_context_resume(f.context);
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &quick, &plan), SPK_OK);
    spk_plan_destroy(&plan);
    fixture_close(&f);
}

/* What is known needs no tuning, whatever would cancel it. */
static void cancelled_before(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f, &in_memory);
    volatile int cancel = 1;
    spk_tune_options options = quick;
    spk_plan *plan = NULL;
    spk_report *report = NULL;
    float d[ROWS * N];
    const spk_spmm_args args = fixture_args(&f, d);
    options.cancel = &cancel;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &options, &plan), SPK_ERR_INTERRUPTED);
    assert_null(plan);
    assert_non_null(strstr(spk_last_error(f.context), "interrupted"));
    assert_int_equal(spk_tune(f.context, f.pattern, &f.problem, &options, &report), SPK_ERR_INTERRUPTED);
    spk_report_destroy(&report);
    assert_int_equal(spk_race_kernels(f.context, f.pattern, &f.problem, &options, NULL, &report), SPK_ERR_INTERRUPTED);
    spk_report_destroy(&report);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &options), SPK_ERR_INTERRUPTED);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &quick), SPK_OK);
    assert_int_equal(spk_compute_spmm(f.context, f.pattern, &f.problem, &args, &options), SPK_OK);
    assert_true(is_right(&f, d));
    cancel = 0;
    options.fresh = 1;
    assert_int_equal(spk_plan_create_spmm(f.context, f.pattern, &f.problem, &options, &plan), SPK_OK);
    spk_plan_destroy(&plan);
    fixture_close(&f);
}

static volatile int cancel_one;
static atomic_int steps_told;

static void cancel_at_the_fourth(void *user, int64_t done, int64_t total, const char *what)
{
    (void)user, (void)done, (void)total, (void)what;
    if (atomic_fetch_add(&steps_told, 1) == 3)
        __atomic_store_n(&cancel_one, 1, __ATOMIC_RELAXED);
}

static void *tune_another(void *of)
{
    const fixture *f = of;
    spk_spmm problem = f->problem;
    spk_report *report = NULL;
    problem.n = N + 1;
    const spk_status status = spk_tune(f->context, f->pattern, &problem, &quick, &report);
    spk_report_destroy(&report);
    return (void *)(intptr_t)status;
}

/* One call is cancelled while it tunes, and not its neighbour in another thread. */
static void cancelled_amid(void **state)
{
    (void)state;
    fixture f;
    const spk_context_options telling = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1, .progress = cancel_at_the_fourth};
    fixture_open(&f, &telling);
    spk_tune_options patient = {SPK_SIZED(spk_tune_options), .budget_s = 600, .effort = SPK_TUNE_EXHAUSTIVE, .cancel = &cancel_one};
    spk_report *report = NULL;
    pthread_t thread;
    void *status = NULL;
    assert_int_equal(pthread_create(&thread, NULL, tune_another, &f), 0);
    assert_int_equal(spk_tune(f.context, f.pattern, &f.problem, &patient, &report), SPK_ERR_INTERRUPTED);
    spk_report_destroy(&report);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, SPK_OK);
    fixture_close(&f);
}

/* A thousand fresh patterns of one class: tuned once. */
static void fresh_patterns_of_a_known_class(void **state)
{
    (void)state;
    spk_context *context = NULL;
    assert_int_equal(spk_context_create(&in_memory, &context), SPK_OK);
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.05};
    int tuned = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        spk_matrix *matrix = NULL;
        spk_pattern *pattern = NULL;
        spk_plan *plan = NULL;
        spk_generate g = {SPK_SIZED(spk_generate),
                          .generator = SPK_GEN_UNIFORM,
                          .rows = 256,
                          .cols = 256,
                          .block_rows = 16,
                          .block_cols = 16,
                          .density = 0.25,
                          .seed = seed};
        assert_int_equal(spk_matrix_generate(context, &g, &matrix, NULL), SPK_OK);
        assert_int_equal(spk_pattern_from_matrix(context, matrix, &pattern), SPK_OK);
        assert_int_equal(spk_plan_create_spmm(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 16}, &options, &plan), SPK_OK);
        spk_plan_info info = {SPK_SIZED(spk_plan_info)};
        assert_int_equal(spk_plan_get_info(plan, &info), SPK_OK);
        tuned += !info.from_store;
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
        spk_matrix_destroy(&matrix);
    }
    spk_context_destroy(&context);
    assert_int_equal(tuned, 1);
}

/* A report from the store tells of as many candidates, and why, as the tuning did. */
static void explained_as_tuned(void **state)
{
    (void)state;
    spk_context *context = NULL;
    spk_report *tuned = NULL, *explained = NULL;
    const spk_gemm problem = {SPK_SIZED(spk_gemm), .m = 24, .n = 16, .k = 40, .batch = 1};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .budget_s = 0.05};
    spk_report_info of_tuning = {SPK_SIZED(spk_report_info)}, of_store = {SPK_SIZED(spk_report_info)};
    int inapplicable[2] = {0};
    assert_int_equal(spk_context_create(&in_memory, &context), SPK_OK);
    assert_int_equal(spk_tune(context, NULL, &problem, &options, &tuned), SPK_OK);
    assert_int_equal(spk_explain(context, NULL, &problem, &options, &explained), SPK_OK);
    assert_int_equal(spk_report_get_info(tuned, &of_tuning), SPK_OK);
    assert_int_equal(spk_report_get_info(explained, &of_store), SPK_OK);
    assert_true(of_store.from_store);
    assert_int_equal(of_store.candidate_count, of_tuning.candidate_count);
    for (int i = 0; i < of_tuning.candidate_count; i++) {
        spk_candidate_info one = {SPK_SIZED(spk_candidate_info)}, other = {SPK_SIZED(spk_candidate_info)};
        assert_int_equal(spk_report_get_candidate(tuned, i, &one), SPK_OK);
        assert_int_equal(spk_report_get_candidate(explained, i, &other), SPK_OK);
        inapplicable[0] += one.status == SPK_CANDIDATE_NOT_APPLICABLE;
        inapplicable[1] += other.status == SPK_CANDIDATE_NOT_APPLICABLE && other.why[0] != '\0';
    }
    assert_true(inapplicable[0] > 0); /* AMX or NEON, at least */
    assert_int_equal(inapplicable[1], inapplicable[0]);
    spk_report_destroy(&explained);
    spk_report_destroy(&tuned);
    spk_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version),
        cmocka_unit_test(plan_and_run),
        cmocka_unit_test(estimate_runs_nothing),
        cmocka_unit_test(explained_as_tuned),
        cmocka_unit_test(pinned_choice),
        cmocka_unit_test(matmul_and_its_cache),
        cmocka_unit_test(recent_questions),
        cmocka_unit_test(promises_of_the_problem),
        cmocka_unit_test(static_values),
        cmocka_unit_test(static_values_of_every_row),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(callers_memory_and_threads),
        cmocka_unit_test(fork_after_threads),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(empty_problems),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(cancelled_before),
        cmocka_unit_test(cancelled_amid),
        cmocka_unit_test(fresh_patterns_of_a_known_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
