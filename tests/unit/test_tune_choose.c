/* Choosing: pinned, from the store, estimated, measured; and what a change of the table, of the options or of the hour makes of the
 * store. */
#include "test_tune_fake.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "store/store_internal.h"

static const spk_kernel table_a[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
};
static const spk_kernel table_changed[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, b, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
};
static const spk_kernel table_more[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
    FAKE_ROW(3, a, SPK_KIND_OWN, 5, false, ""),
};
static const spk_kernel table_less[] = {
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
};

static void open_a(bench *b)
{
    bench_open(b, table_a, 3, "");
    fakes[0].us = 50;
    fakes[1].us = 100;
    fakes[1].param_us[0] = 60;
    fakes[2].us = 30;
}

static spk_choice choose(bench *b, const char *why)
{
    spk_choice choice = {.kernel = NULL};
    spk_error_enter(0);
    spk_status status = spk_tune_choose(&b->tuner, &b->problem, &b->options, &choice);
    if (status != SPK_OK)
        fail_msg("%s", spk_error_last());
    assert_string_equal(spk_origin_words(choice.origin), why);
    return choice;
}

static void check_fails(bench *b, spk_status wanted, const char *words)
{
    spk_choice choice = {.kernel = NULL};
    spk_error_enter(0);
    assert_int_equal(spk_tune_choose(&b->tuner, &b->problem, &b->options, &choice), wanted);
    assert_null(choice.kernel);
    if (strstr(spk_error_last(), words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", spk_error_last(), words);
}

static void pinned_choices(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    b.options.choice = "fake1 V=1";
    spk_choice choice = choose(&b, "pinned");
    assert_string_equal(choice.kernel->name, "fake1");
    assert_int_equal(choice.params.v[0], 1);
    b.options.choice = "fake2";
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "needs assume_finite");
    b.problem.assume_finite = true;
    assert_string_equal(choose(&b, "pinned").kernel->name, "fake2");
    b.options.choice = "nothing";
    check_fails(&b, SPK_ERR_ARGUMENT, "nothing");
    b.options.choice = "fake1 V=7";
    check_fails(&b, SPK_ERR_ARGUMENT, "V");
    fakes[0].forbidden = true;
    b.options.choice = "fake0";
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "the test forbids it");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

/* What a choice leaves out has its first value, but SERIAL: that fits the work and the machine. */
static void threads_of_choices(void **state)
{
    (void)state;
    static const spk_kernel serial[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "SERIAL=0,1"),
                                        FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, "V=0,1")};
    static const struct {
        const char *choice; /* NULL: an estimate */
        bool busy;
        double alone_us; /* that SERIAL=1 takes longer, or (below 0) less long */
        int wanted;
    } cases[] = {{"fake0", false, 20, 0},          {"fake0", false, -20, 1}, {"fake0", true, 20, 1}, {"fake0 SERIAL=0", true, -20, 0},
                 {"fake0 SERIAL=1", false, 20, 1}, {NULL, false, 20, 0},     {NULL, false, -20, 1},  {NULL, true, 20, 1},
                 {"fake1", true, -20, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b;
        bench_open(&b, serial, 2, "");
        fakes[0].us = 50;
        fakes[0].param_us[1] = cases[i].alone_us;
        fakes[1].param_us[1] = cases[i].alone_us;
        fake_busy = cases[i].busy;
        b.options.choice = cases[i].choice;
        b.options.effort = SPK_TUNE_ESTIMATE;
        const spk_choice choice = choose(&b, cases[i].choice != NULL ? "pinned" : "estimated: cost model");
        if (choice.params.v[0] != cases[i].wanted)
            fail_msg("case %zu: %s %d", i, choice.kernel->name, choice.params.v[0]);
        assert_int_equal(fake_runs(), 0);
        bench_close(&b);
    }
}

/* Work for one thread, and work for all: SERIAL=1 is not offered. */
static void threads_of_other_work(void **state)
{
    (void)state;
    static const spk_kernel serial[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "SERIAL=0,1")};
    for (int64_t n = 2; n <= 2000; n += 1998) {
        bench b;
        bench_open(&b, serial, 1, "");
        b.problem = fake_problem(b.pattern, n);
        fakes[0].param_us[1] = -50;
        fake_busy = true;
        b.options.choice = "fake0";
        assert_int_equal(choose(&b, "pinned").params.v[0], 0);
        bench_close(&b);
    }
}

static void estimates_run_nothing(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    fakes[1].model_us = 10;
    b.options.effort = SPK_TUNE_ESTIMATE;
    spk_choice choice = choose(&b, "estimated: cost model");
    assert_string_equal(choice.kernel->name, "fake1");
    assert_int_equal(fake_runs(), 0);

    /* With a class known, its neighbour answers, and the class itself better still. */
    b.options.effort = SPK_TUNE_MEASURE;
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    b.options.effort = SPK_TUNE_ESTIMATE;
    fake_runs();
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    spk_problem other = b.problem;
    b.problem.n = 8;
    b.problem.op->fit(&b.problem);
    b.problem.b.ld = b.problem.c.ld = b.problem.d.ld = b.problem.residual.ld = b.problem.preact.ld = 8;
    assert_string_equal(choose(&b, "estimated: nearest class").kernel->name, "fake0");
    fakes[0].forbidden = true; /* the neighbour's choice cannot do it: the model */
    assert_string_equal(choose(&b, "estimated: cost model").kernel->name, "fake1");
    b.problem = other;
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

/* What was found wrong is chosen by nobody who does not measure, however good the model thinks it. */
static void the_wrong_is_not_estimated(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    fakes[0].mode = FAKE_WRONG;
    assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
    b.options.exclude = "fake1";
    b.options.effort = SPK_TUNE_ESTIMATE;
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "fake0: wrong, ");
    b.options.effort = SPK_TUNE_MEASURE;
    b.options.tuning = SPK_TUNING_NEVER;
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "the oracle says");
    fake_runs();
    b.options.tolerance = 100; /* not wrong by this one */
    assert_string_equal(choose(&b, "estimated: cost model").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);

    open_a(&b);
    fakes[1].mode = FAKE_WRONG;
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    b.options.only = "fake1";
    b.options.effort = SPK_TUNE_ESTIMATE;
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "fake1: wrong, ");
    b.tuner.table = table_changed; /* another fake1, of which nothing is known */
    assert_string_equal(choose(&b, "estimated: cost model").kernel->name, "fake1");
    bench_close(&b);
}

/* A store that was tampered with: its choice is on record as wrong. */
static void the_wrong_is_not_chosen_again(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    assert_int_equal(
        sqlite3_exec(b.store->memory->sql, "UPDATE candidate SET status = 1 WHERE rank = (SELECT chosen FROM class)", NULL, NULL, NULL),
        SQLITE_OK);
    b.options.effort = SPK_TUNE_ESTIMATE;
    assert_string_equal(choose(&b, "estimated: cost model").kernel->name, "fake1");
    bench_close(&b);
}

/* Nor is it a restricted class's, because its neighbour among all has it. */
static void the_wrong_is_not_the_nearest(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    b.problem = fake_problem(b.pattern, 8);
    b.problem.cache = SPK_WARM;
    fakes[0].mode = FAKE_WRONG;
    b.options.only = "fake0,fake1";
    assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
    fakes[1].forbidden = true;
    b.options.effort = SPK_TUNE_ESTIMATE;
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "fake0: wrong, ");
    bench_close(&b);
}

/* The candidate for pointers that the first does not take, found before the class was measured and after. */
static void the_wrong_is_no_second_candidate(void **state)
{
    (void)state;
    bench b;
    spk_bound bound = {.kernel = NULL};
    spk_choice first = {.kernel = NULL}, other;
    open_a(&b);
    b.problem = fake_problem(b.pattern, 40);
    b.problem.cache = SPK_WARM;
    fakes[0].mode = FAKE_WRONG;
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &other, &bound);
    assert_string_equal(bound.kernel->name, "fake0");
    spk_unbind(&bound);
    assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &other, &bound);
    assert_string_equal(bound.kernel->name, "fake1");
    spk_unbind(&bound);
    bench_close(&b);
}

static void unknown_classes(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    check_fails(&b, SPK_ERR_UNKNOWN_CLASS, "wants what was tuned ahead");
    b.options.tuning = SPK_TUNING_NEVER;
    choose(&b, "estimated: cost model");
    assert_int_equal(fake_runs(), 0);
    b.options.tuning = SPK_TUNING_NOW;
    choose(&b, "measured");
    assert_true(fake_runs() > 0);
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    assert_true(choose(&b, "from the store").from_store);
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

static void the_store_answers(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    fake_runs();
    for (int i = 0; i < 3; i++)
        assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    b.options.fresh = 1;
    choose(&b, "measured");
    assert_true(fake_runs() > 0);
    bench_close(&b);
}

/* How long the tuner takes for a plan's choice from a warm store. */
static void a_hit_is_quick(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    choose(&b, "from the store");
    double least = INFINITY;
    for (int i = 0; i < 200; i++) {
        double start = spk_now_us();
        choose(&b, "from the store");
        least = fmin(least, spk_now_us() - start);
    }
    print_message("a choice from the store takes %.1f us\n", least);
    assert_true(least < 20000); /* the bar is 100; sanitizers, valgrind and busy machines are slower */
    bench_close(&b);
}

static void a_changed_kernel_meets_the_incumbent_only(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    fake_runs();
    b.tuner.table = table_changed;
    fakes[1].us = 20; /* it has become faster */
    fakes[1].param_us[0] = 5;
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_false(report->from_store);
    assert_string_equal(chosen_name(report), "fake1");
    assert_string_equal(chosen_params(report), "V=1");
    assert_true(atomic_load(&fakes[0].runs) > 0 && atomic_load(&fakes[1].runs) > 0);
    assert_non_null(entry_of(report, "fake0", NULL));
    assert_true(entry_of(report, "fake2", NULL)->median_us > 0); /* the old evidence is still there */
    spk_report_release(&report);
    fake_runs();
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
    assert_int_equal(fake_runs(), 0);

    /* A new row: only it and the incumbent run. */
    b.tuner.table = table_more;
    b.tuner.table_count = 4;
    fakes[3].us = 18;                                                  /* fake1 at 20 reaches the finals */
    assert_string_equal(choose(&b, "measured").kernel->name, "fake3"); /* fake1 went back to its old source: it runs, too */
    fake_runs();
    b.tuner.table = table_less; /* the winner is gone: the best of the rest, without a run */
    b.tuner.table_count = 2;
    fakes[1].us = 20;
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

static void a_new_row_runs_against_one(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    fake_runs();
    b.tuner.table = table_more;
    b.tuner.table_count = 4;
    fakes[3].us = 80;
    b.options.tuning = SPK_TUNING_AHEAD_EACH; /* tuning forbidden: the old answer will do */
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    b.options.tuning = SPK_TUNING_NOW;
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    assert_int_equal(atomic_load(&fakes[1].runs), 0);
    assert_true(atomic_load(&fakes[0].runs) > 0 && atomic_load(&fakes[3].runs) > 0);
    fake_runs();
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

static void only_and_exclude(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    b.options.only = "fake1,fake2";
    assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    b.options.only = NULL; /* nothing was decided for the unrestricted class */
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    fake_runs();
    b.options.only = "fake1,fake2"; /* remembered apart */
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
    b.options.only = NULL;
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    b.options.exclude = "fake2"; /* the class's own answer does */
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    spk_report *report = NULL;
    b.options.exclude = "fake0";
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(chosen_name(report), "fake1");
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    spk_report_release(&report);
    b.options.exclude = "fake0,fake1";
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "exclude = \"fake0,fake1\"");
    bench_close(&b);
}

/* What won within the usual tolerance is not bound for a caller who asks for less error than it had. */
static void a_strict_caller_is_heard(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    fakes[0].off = 1e-5; /* the fastest, and the worst */
    assert_string_equal(choose(&b, "measured").kernel->name, "fake0");
    spk_report *report = NULL;
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    double error = report->candidates[report->chosen].error;
    assert_true(error > 2e-7);
    spk_report_release(&report);

    b.options.tolerance = 1.5 * error; /* good enough: no need to measure */
    fake_runs();
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    assert_int_equal(fake_runs(), 0);
    b.options.tolerance = 0.5 * error;
    b.options.tuning = SPK_TUNING_AHEAD_EACH; /* no tuning: the best of those that were measured and right enough, or none */
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
    b.options.tolerance = 1e-15;
    check_fails(&b, SPK_ERR_UNKNOWN_CLASS, "wants what was tuned ahead");
    b.options.tolerance = 0.5 * error;
    b.options.tuning = SPK_TUNING_NOW;
    assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
    b.options.tolerance = 1e-15; /* nobody */
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "wrong");
    b.options.tolerance = 0; /* the others' decision stands */
    assert_string_equal(choose(&b, "from the store").kernel->name, "fake0");
    bench_close(&b);
}

static void listing_and_explaining(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    fakes[0].forbidden = true;
    spk_report *report = NULL;
    assert_int_equal(spk_tune_list(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(report->count, 4);
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_NOT_APPLICABLE);
    assert_string_equal(entry_of(report, "fake0", NULL)->why, "the test forbids it");
    assert_int_equal(entry_of(report, "fake1", "V=1")->status, SPK_CANDIDATE_OK);
    assert_true(entry_of(report, "fake1", "V=1")->predicted_us > 0);
    assert_int_equal(entry_of(report, "fake2", NULL)->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    assert_int_equal(report->chosen, -1);
    assert_int_equal(fake_runs(), 0);
    spk_report_release(&report);
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_ERR_UNKNOWN_CLASS);
    assert_null(report);
    choose(&b, "measured");
    fake_runs();
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_true(report->from_store);
    assert_string_equal(chosen_name(report), "fake1");
    assert_non_null(report->summary);
    assert_int_equal(fake_runs(), 0);
    spk_report_release(&report);
    bench_close(&b);
}

static void empty_problems(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    b.problem.n = 0;
    b.problem.op->fit(&b.problem);
    choose(&b, "estimated: cost model");
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_true(report->chosen >= 0);
    assert_int_equal(fake_runs(), 0);
    spk_report_release(&report);
    bench_close(&b);
}

typedef struct worker {
    bench *b;
    spk_status status;
    spk_choice choice;
} worker;

static atomic_int workers_begun;

/* Whoever measures first goes on when both have begun. */
static void wait_for_both(void)
{
    while (atomic_load(&workers_begun) < 2)
        sched_yield();
}

static void *work(void *arg)
{
    worker *w = arg;
    atomic_fetch_add(&workers_begun, 1);
    w->status = spk_tune_choose(&w->b->tuner, &w->b->problem, &w->b->options, &w->choice);
    return NULL;
}

static void two_threads_measure_once(void **state)
{
    (void)state;
    bench b;
    char path[] = "/tmp/sparsek_choose_XXXXXX", lock[sizeof path + 8];
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    bench_open(&b, table_a, 3, path);
    fakes[0].us = 50;
    atomic_store(&workers_begun, 0);
    fake_visit = wait_for_both;
    worker workers[2] = {{.b = &b}, {.b = &b}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fake_visit = NULL;
    int measured = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(workers[i].status, SPK_OK);
        assert_string_equal(workers[i].choice.kernel->name, "fake0");
        measured += strcmp(spk_origin_words(workers[i].choice.origin), "measured") == 0;
    }
    assert_int_equal(measured, 1);
    bench_close(&b);
    unlink(path);
    snprintf(lock, sizeof lock, "%s.lock", path);
    unlink(lock);
}

/* What a limit of one process kept from running is tried by the next, against the incumbent; within the process, it is not tried again. */
static void limits_of_a_process_settle_nothing(void **state)
{
    (void)state;
    static const fake_mode modes[] = {FAKE_NO_MEMORY, FAKE_NO_RIGHT};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char path[] = "/tmp/sparsek_choose_XXXXXX", lock[sizeof path + 8];
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        bench b;
        bench_open(&b, table_a, 3, path);
        fakes[0] = (fake){.mode = modes[i], .us = 50};
        fakes[1].param_us[0] = 60;
        assert_string_equal(choose(&b, "measured").kernel->name, "fake1");
        fake_runs();
        for (int k = 0; k < 2; k++)
            assert_string_equal(choose(&b, "from the store").kernel->name, "fake1");
        assert_int_equal(fake_runs(), 0);
        spk_store *others[3] = {NULL}; /* as many processes see it */
        for (int k = 0; k < 3; k++) {
            assert_int_equal(spk_store_open(&spk_mem_system, path, NULL, NULL, &others[k]), SPK_OK);
            b.tuner.store = others[k];
            if (k == 1)
                fakes[0].mode = FAKE_RIGHT;
            assert_string_equal(choose(&b, k < 2 ? "measured" : "from the store").kernel->name, k == 0 ? "fake1" : "fake0");
            assert_int_equal(atomic_load(&fakes[0].runs) > 0, k < 2);
            assert_string_equal(choose(&b, "from the store").kernel->name, k == 0 ? "fake1" : "fake0");
            fake_runs();
        }
        for (int k = 0; k < 3; k++)
            spk_store_close(&others[k]);
        bench_close(&b);
        unlink(path);
        snprintf(lock, sizeof lock, "%s.lock", path);
        unlink(lock);
    }
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    bench b;
    open_a(&b);
    choose(&b, "measured");
    int failures = 0;
    for (int count = 0; count < 300; count += count < 30 ? 1 : 7) { /* the first come on a busy machine, too, where less is measured */
        spk_choice choice = {.kernel = NULL};
        b.tuner.table = count % 2 != 0 ? table_changed : table_a; /* so that evidence is compared, too */
        b.options.fresh = count % 3 == 0;
        spk_mem_fail_after(count);
        spk_status status = spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice);
        spk_mem_fail_after(-1);
        assert_true(status == SPK_OK ? choice.kernel != NULL : status == SPK_ERR_OUT_OF_MEMORY || status == SPK_ERR_NO_CANDIDATE);
        failures += status != SPK_OK;
    }
    assert_true(failures > 3);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_choices),
        cmocka_unit_test(threads_of_choices),
        cmocka_unit_test(threads_of_other_work),
        cmocka_unit_test(estimates_run_nothing),
        cmocka_unit_test(the_wrong_is_not_estimated),
        cmocka_unit_test(the_wrong_is_not_chosen_again),
        cmocka_unit_test(the_wrong_is_not_the_nearest),
        cmocka_unit_test(the_wrong_is_no_second_candidate),
        cmocka_unit_test(unknown_classes),
        cmocka_unit_test(the_store_answers),
        cmocka_unit_test(a_hit_is_quick),
        cmocka_unit_test(a_changed_kernel_meets_the_incumbent_only),
        cmocka_unit_test(a_new_row_runs_against_one),
        cmocka_unit_test(only_and_exclude),
        cmocka_unit_test(a_strict_caller_is_heard),
        cmocka_unit_test(listing_and_explaining),
        cmocka_unit_test(empty_problems),
        cmocka_unit_test(two_threads_measure_once),
        cmocka_unit_test(limits_of_a_process_settle_nothing),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
