/* Trials in place: who runs when, what is chosen, that every run is right, and what becomes of the outcome. */
#include "test_trial_plan.h"

#include <pthread.h>

static double time_of(const bench *b, const spk_contender *c)
{
    return fake_time(fake_number(c->kernel), c->params.v[0], fake_work(&b->problem));
}

/* ------------------------------------------------------------------------------------------------ the schedule */

/* The loss of the choice, of the best of all; *runs: that it took. hiccup: the second run of the best takes so many times as
 * long, and the model knows little; 0: neither. */
static double loss_of_a_trial(uint64_t seed, double noise, double hiccup, int *runs)
{
    spk_rng rng;
    bench b;
    spk_choice first = {.kernel = NULL};
    spk_trial *trial = NULL;
    bool elsewhere = true;
    int seen = -1;
    double best = INFINITY;
    spk_rng_seed(&rng, seed);
    open_trial(&b, &rng);
    for (int i = 0; hiccup > 0 && i < 4; i++)
        fakes[i].model_us = 100 + 20 * spk_rng_uniform(&rng); /* so that the best is not the first to run */
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < (i == 2 ? 0 : i == 3 ? 4 : 8); v++)
            best = fmin(best, fake_time(i, v, fake_work(&b.problem)));
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &first), SPK_OK);
    assert_true(spk_origin_is_estimate(first.origin));
    assert_int_equal(spk_trial_begin(&b.tuner, &b.problem, &b.options, &first, &trial, &elsewhere, &seen), SPK_OK);
    assert_non_null(trial);
    assert_false(elsewhere);
    *runs = 0;
    for (spk_contender *c; (c = spk_trial_next(trial)) != NULL; ++*runs) {
        if (*runs == 0)
            assert_ptr_equal(c->kernel, first.kernel); /* the first run is the estimate's */
        double us = time_of(&b, c) * (1 + noise * fabs(spk_rng_normal(&rng)));
        if (noise > 0 && spk_rng_below(&rng, 20) == 0)
            us *= 10;
        if (!spk_trial_has_run(c))
            us *= hiccup > 0 ? 1 : 3;
        else if (hiccup > 0 && c->sample_count == 0 && us < 1.01 * best)
            us *= hiccup;
        spk_trial_ran(trial, c, us);
        assert_true(*runs < 100);
    }
    assert_non_null(spk_trial_winner(trial));
    const double loss = time_of(&b, spk_trial_winner(trial)) / best - 1;
    spk_trial_end(&trial);
    bench_close(&b);
    return loss;
}

static void schedule(void **state)
{
    (void)state;
    enum { TRIALS = 300 };
    int most = 0, runs, lost = 0;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        if (loss_of_a_trial(seed, 0, 0, &runs) > 0.011) /* a tie is one */
            fail_msg("seed %d: without noise the best is not found", (int)seed);
        most = runs > most ? runs : most;
        lost += loss_of_a_trial(seed, 0.05, 0, &runs) > 0.05;
        most = runs > most ? runs : most;
    }
    if (lost > TRIALS / 20)
        fail_msg("with noise %d of %d choices lose more than 5 %%", lost, TRIALS);
    assert_true(most <= 80);
}

/* The model may be far off: what it puts last of a row is still found, where the row leads. */
static void wrong_model(void **state)
{
    (void)state;
    bench b;
    spk_rng rng;
    spk_choice first = {.kernel = NULL};
    spk_trial *trial = NULL;
    bool elsewhere;
    int seen = -1;
    spk_rng_seed(&rng, 3);
    open_trial(&b, &rng);
    fakes[0].model_us = 10;
    fakes[1].model_us = 20;
    fakes[3].model_us = 30;
    fakes[3].us = 5; /* by far the fastest, and the model's last */
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &first), SPK_OK);
    assert_string_equal(first.kernel->name, "fake0");
    assert_int_equal(spk_trial_begin(&b.tuner, &b.problem, &b.options, &first, &trial, &elsewhere, &seen), SPK_OK);
    for (spk_contender *c; (c = spk_trial_next(trial)) != NULL;)
        spk_trial_ran(trial, c, time_of(&b, c));
    assert_string_equal(spk_trial_winner(trial)->kernel->name, "fake3");
    spk_trial_end(&trial);
    bench_close(&b);
}

static void a_slow_run_is_no_verdict(void **state)
{
    (void)state;
    int runs;
    for (uint64_t seed = 1; seed <= 100; seed++)
        if (loss_of_a_trial(seed, 0, 10, &runs) > loss_of_a_trial(seed, 0, 1, &runs) + 0.011)
            fail_msg("seed %d: one slow run put the best out", (int)seed);
}

/* All but one fail, each at another moment; then that one too. */
static void who_fails_leaves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        bench b;
        spk_rng rng;
        spk_choice first = {.kernel = NULL};
        spk_trial *trial = NULL;
        bool elsewhere;
        int seen = -1;
        spk_rng_seed(&rng, seed);
        open_trial(&b, &rng);
        assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &first), SPK_OK);
        assert_int_equal(spk_trial_begin(&b.tuner, &b.problem, &b.options, &first, &trial, &elsewhere, &seen), SPK_OK);
        const spk_kernel *survivor = seed % 4 == 0 ? NULL : &table[seed % 4 == 2 ? 0 : seed % 4];
        int runs = 0;
        for (spk_contender *c; (c = spk_trial_next(trial)) != NULL && runs < 1000; runs++)
            if (c->kernel != survivor && spk_rng_below(&rng, 3) == 0)
                spk_trial_out(trial, c, SPK_CANDIDATE_FAILED, "the test makes it fail");
            else
                spk_trial_ran(trial, c, time_of(&b, c));
        assert_true(runs < 100);
        const spk_contender *winner = spk_trial_winner(trial);
        assert_true(winner == NULL || winner->status == SPK_CANDIDATE_OK);
        assert_int_equal(spk_trial_save(trial), SPK_OK);
        spk_trial_end(&trial);
        bench_close(&b);
    }
}

/* ------------------------------------------------------------------------------------------------ a plan */

/* Nothing is measured when the plan is made; every run is right; the fastest stays, and the store knows it. */
static void a_plan_finds_the_fastest(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a), best = INFINITY;
    fakes[1].param_us[5] = 0.5;
    fakes[1].us = 5;
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < 8; v++)
            fakes[i].param_spends_us[v] = fake_time(i, v, fake_work(&made.problem));
    for (int v = 0; v < 8; v++)
        best = fmin(best, fakes[1].param_spends_us[v]);
    (void)fake_runs();
    spk_plan *plan = make_plan();
    assert_int_equal(fake_runs(), 0);
    assert_string_equal(info_of(plan).why, "estimated: cost model; tried in place");
    assert_false(info_of(plan).from_store);
    const int runs = run_until_decided(plan, &a, want);
    assert_true(runs >= 10);
    assert_string_equal(info_of(plan).why, "measured in place");
    assert_string_equal(info_of(plan).kernel, "fake1");
    assert_true(fakes[1].param_spends_us[spk_plan_later_of(plan)->bound->params.v[0]] <= 1.02 * best);
    (void)fake_runs();
    check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[1].runs), 1);
    spk_plan *other = make_plan();
    assert_string_equal(info_of(other).why, "from the store");
    assert_string_equal(spk_plan_choice(other), spk_plan_choice(plan));
    spk_report *report = NULL;
    spk_report_info about = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_explain(context, made.pattern, &product,
                                 &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM}, &report),
                     SPK_OK);
    ok(spk_report_get_info(report, &about));
    assert_true(about.provisional == SPK_PROVISIONAL_IN_PLACE || about.provisional == SPK_PROVISIONAL_LOAD);
    spk_report_destroy(&report);
    spk_plan_destroy(&other);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* The fastest computes something wrong: no run of the caller's shows it, one warning tells, and the store keeps it out. */
static spk_status explain(int64_t n, spk_report **report)
{
    const spk_spmm asked = {SPK_SIZED(spk_spmm), .n = n};
    return spk_explain(context, made.pattern, &asked,
                       &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM}, report);
}

/* ------------------------------------------------------------------------------------------------ sizes that come once */

enum { FEWEST = 12, SIZES = 98, RIGHT = 5 };

/* A product of n columns, by a plan of its own that runs once, and is kept or destroyed. What it says of its choice. */
static spk_plan_info run_once(int64_t n, float *memory, double *want, spk_plan **kept)
{
    float *b = memory, *d = memory + SIZE * (FEWEST + SIZES), *values = d + SIZE * (FEWEST + SIZES);
    const spk_spmm asked = {SPK_SIZED(spk_spmm), .n = n};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE, .cache = SPK_WARM};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 0.75};
    spk_plan *plan = NULL;
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < 8; v++)
            fakes[i].param_spends_us[v] = fake_time(i, v, fake_work(&made.problem) * (double)n / COLUMNS);
    for (int i = 0; i < 4; i++)
        fakes[i].model_us = (i == 0 ? 20 : 22) * (double)n; /* fake0 first, the others alike */
    ok(spk_plan_create(context, made.pattern, &asked, &options, &plan));
    static char kernel[64], why[300]; /* the plan's strings end with it */
    spk_plan_info info = info_of(plan);
    snprintf(kernel, sizeof kernel, "%s", info.kernel);
    snprintf(why, sizeof why, "%s", info.why);
    info = (spk_plan_info){.kernel = kernel, .why = why};
    ok(spk_oracle(context, made.pattern, &asked, &args, SPK_FIRST_OUTPUT, NULL, SIZE, want, NULL));
    for (int64_t i = 0; i < SIZE * n; i++)
        d[i] = NAN;
    ok(spk_plan_run(plan, &args, NULL));
    for (int64_t i = 0; i < SIZE * n; i++)
        assert_true(fabs(d[i] - want[i]) < 1e-4);
    if (kept != NULL)
        *kept = plan;
    else
        spk_plan_destroy(&plan);
    return info;
}

/* A hundred sizes of one layer, each of which comes once: their first runs decide together, though the model does not know the best. From
 * then on the others run on that choice, and nobody tries; but what a busy machine decided is for nobody else. */
static void sizes_decide(bool keep)
{
    spk_plan *kept[SIZES] = {NULL};
    const size_t count = (size_t)made.pattern->nnzb * 256;
    float *memory = malloc(sizeof *memory * (2 * SIZE * (FEWEST + SIZES) + count));
    double *want = malloc(sizeof *want * SIZE * (FEWEST + SIZES));
    int order[SIZES], decided = -1;
    spk_rng rng;
    assert_true(memory != NULL && want != NULL);
    spk_rng_seed(&rng, 11);
    for (size_t i = 0; i < 2 * SIZE * (FEWEST + SIZES) + count; i++)
        memory[i] = (float)spk_rng_normal(&rng);
    for (int i = 0; i < SIZES; i++) {
        const int at = (int)spk_rng_below(&rng, (uint64_t)i + 1);
        order[i] = order[at];
        order[at] = FEWEST + i;
    }
    fakes[1].us = 5;
    fakes[1].param_us[RIGHT] = 0.5;
    spk_report_info about = {SPK_SIZED(spk_report_info)};
    for (int i = 0; i < SIZES; i++) {
        const spk_plan_info info = run_once(order[i], memory, want, keep ? &kept[i] : NULL);
        if (decided < 0) {
            spk_report *report = NULL;
            if (explain(order[i], &report) != SPK_OK) /* the class is not known */
                continue;
            ok(spk_report_get_info(report, &about));
            decided = about.from_store != 0 ? i : -1; /* else it is tried */
            if (decided >= 0 && (strcmp(chosen_name(report), "fake1") != 0 || strcmp(chosen_params(report), "V=5") != 0))
                fail_msg("%d sizes decided for %s %s", i, chosen_name(report), chosen_params(report));
            spk_report_destroy(&report);
        } else if (about.provisional == SPK_PROVISIONAL_IN_PLACE &&
                   (strstr(info.why, "tried in place") != NULL || strcmp(info.kernel, "fake1") != 0)) {
            fail_msg("decided after %d sizes; size %d is %s: %s", decided, order[i], info.kernel, info.why);
        }
    }
    assert_true(decided > 10 && decided < 80);
    assert_int_equal(atomic_load(&warned), 0);
    for (int i = 0; i < SIZES; i++)
        spk_plan_destroy(&kept[i]);
    free(memory);
    free(want);
}

static void sizes_that_come_once(void **state)
{
    (void)state;
    sizes_decide(false);
}

/* Several sizes are of one class: the first plan of each class tries, and a first run of the others counts as well. */
static void sizes_whose_plans_stay(void **state)
{
    (void)state;
    sizes_decide(true);
}

/* Who has the class tuned amid its trial gets that choice from the next run on. */
static void a_tuning_ends_the_trial(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    fakes[1].us = 5;
    spk_plan *plan = make_plan();
    for (int i = 0; i < 3; i++)
        check_run(plan, &a, a.d, want);
    assert_null(spk_plan_later_of(plan));
    spk_report *report = NULL;
    ok(spk_tune(context, made.pattern, &product,
                &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM}, &report));
    check_run(plan, &a, a.d, want);
    assert_non_null(spk_plan_later_of(plan));
    assert_string_equal(info_of(plan).kernel, chosen_name(report));
    assert_string_equal(info_of(plan).why, "from the store");
    spk_report_destroy(&report);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* Asked before it is decided, explain tells how far the trial is. */
static void what_is_known_meanwhile(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    spk_plan *plan = make_plan();
    for (int runs = 0; runs < 5; runs++) {
        spk_report *report = NULL;
        spk_report_info about = {SPK_SIZED(spk_report_info)};
        char origin[80];
        snprintf(origin, sizeof origin, "tried in place: %d run%s in turn so far", runs, runs == 1 ? "" : "s");
        ok(explain(COLUMNS, &report));
        ok(spk_report_get_info(report, &about));
        assert_string_equal(about.origin, origin);
        assert_non_null(strstr(about.summary, origin));
        assert_int_equal(about.from_store, 0);
        assert_int_equal(about.chosen >= 0, runs > 0);
        int timed = 0;
        for (int i = 0; i < about.candidate_count; i++) {
            spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
            ok(spk_report_get_candidate(report, i, &candidate));
            timed += candidate.median_us > 0;
            assert_true(candidate.median_us <= 0 || i == about.chosen);
        }
        assert_int_equal(timed, runs > 0);
        spk_report_destroy(&report);
        assert_int_equal(explain(2 * COLUMNS, &report), SPK_ERR_UNKNOWN_CLASS);
        check_run(plan, &a, a.d, want);
    }
    spk_plan_destroy(&plan);
    spk_report *report = NULL;
    assert_int_equal(explain(COLUMNS, &report), SPK_ERR_UNKNOWN_CLASS);
    free(want);
    free_arrays(&a);
}

static void what_is_wrong_is_computed_again(void **state)
{
    (void)state;
    static const fake_mode modes[] = {FAKE_WRONG, FAKE_UNWRITTEN, FAKE_NAN, FAKE_FAILS, FAKE_NO_MEMORY, FAKE_PASSES};
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        arrays a = make_arrays();
        double *want = make_want(&a);
        fakes[1].us = fakes[0].us = fakes[3].us = 100;
        fakes[1].model_us = 1; /* and it is the plan's first choice */
        fakes[1].mode = modes[m] == FAKE_PASSES ? FAKE_RIGHT : modes[m];
        fakes[3].mode = modes[m];
        fakes[3].model_us = 2;
        spk_plan *plan = make_plan();
        (void)run_until_decided(plan, &a, want);
        for (int i = 0; i < 5; i++)
            check_run(plan, &a, a.d, want);
        assert_true(strcmp(info_of(plan).kernel, "fake3") != 0);
        assert_true(modes[m] == FAKE_PASSES || strcmp(info_of(plan).kernel, "fake1") != 0);
        assert_true(modes[m] > FAKE_NAN || atomic_load(&warned) >= 2);
        spk_plan_destroy(&plan);
        free(want);
        free_arrays(&a);
        close_plans(state);
        open_plans(state);
    }
}

/* D is C: what was computed wrong could not be computed again, so nobody runs there for the first time. */
static void where_d_is_c(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = malloc(sizeof *want * SIZE * COLUMNS);
    const spk_spmm with_c = {SPK_SIZED(spk_spmm), .n = COLUMNS, .use_c = 1};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a.values, .b = a.b, .c = a.c, .d = a.d, .alpha = 0.75, .beta = 0.5};
    spk_plan *plan = NULL;
    for (int i = 0; i < 4; i++)
        fakes[i].mode = i == 1 ? FAKE_WRONG : FAKE_RIGHT;
    fakes[0].model_us = 1;
    ok(spk_plan_create(context, made.pattern, &with_c, &options, &plan));
    for (int run = 0; run < 150; run++) {
        const bool same = run % 3 != 0;
        ok(spk_oracle(context, made.pattern, &with_c, &args, SPK_FIRST_OUTPUT, NULL, SIZE, want, NULL));
        memcpy(a.d, a.c, sizeof(float) * SIZE * COLUMNS);
        args.c = same ? a.d : a.c;
        ok(spk_plan_run(plan, &args, NULL));
        args.c = a.c;
        for (int i = 0; i < SIZE * COLUMNS; i++)
            if (!(fabs(a.d[i] - want[i]) < 1e-4))
                fail_msg("run %d, element %d is %g in place of %g", run, i, a.d[i], want[i]);
    }
    assert_non_null(spk_plan_later_of(plan));
    assert_true(strcmp(info_of(plan).kernel, "fake1") != 0);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* Once the first choice is ruled out nobody computes with it: not where D is C, nor a thread that another one's run keeps from its turn. */
static void what_is_ruled_out_never_runs(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = malloc(sizeof *want * SIZE * COLUMNS);
    const spk_spmm with_c = {SPK_SIZED(spk_spmm), .n = COLUMNS, .use_c = 1};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a.values, .b = a.b, .c = a.c, .d = a.d, .alpha = 0.75, .beta = 0.5};
    spk_plan *plan = NULL;
    fakes[0].mode = FAKE_WRONG;
    fakes[0].model_us = 1;
    ok(spk_plan_create(context, made.pattern, &with_c, &options, &plan));
    assert_string_equal(info_of(plan).kernel, "fake0");
    for (int run = 0; run < 40; run++) {
        ok(spk_oracle(context, made.pattern, &with_c, &args, SPK_FIRST_OUTPUT, NULL, SIZE, want, NULL));
        memcpy(a.d, a.c, sizeof(float) * SIZE * COLUMNS);
        args.c = run == 0 ? a.c : a.d;
        ok(spk_plan_run(plan, &args, NULL));
        args.c = a.c;
        for (int i = 0; i < SIZE * COLUMNS; i++)
            if (!(fabs(a.d[i] - want[i]) < 1e-4))
                fail_msg("run %d, element %d is %g in place of %g", run, i, a.d[i], want[i]);
    }
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* Of the plans of a class one tries; the class is free again when that plan goes before it is decided. Plans of spk_compute follow. */
static void one_plan_of_a_class_tries(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    spk_plan *first = make_plan(), *second = make_plan();
    assert_string_equal(info_of(first).why, "estimated: cost model; tried in place");
    assert_string_equal(info_of(second).why, "estimated: cost model");
    for (int i = 0; i < 40; i++)
        check_run(second, &a, a.d, want);
    assert_null(spk_plan_later_of(second));
    for (int i = 0; i < 5; i++)
        check_run(first, &a, a.d, want);
    spk_plan_destroy(&first); /* the second one goes on */
    assert_true(run_until_decided(second, &a, want) > 10);
    assert_string_equal(info_of(second).why, "measured in place");
    spk_plan_destroy(&second);
    ok(spk_store_clear(context, NULL));
    first = make_plan();
    second = make_plan();
    (void)run_until_decided(first, &a, want);
    check_run(second, &a, a.d, want);
    assert_string_equal(info_of(second).why, "from the store");
    assert_string_equal(spk_plan_choice(second), spk_plan_choice(first));
    check_run(second, &a, a.d, want);
    spk_plan_destroy(&first);
    spk_plan_destroy(&second);
    ok(spk_store_clear(context, NULL));
    first = make_plan();
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE, .cache = SPK_WARM};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a.values, .b = a.b, .d = a.d, .alpha = 0.75};
    ok(spk_compute(context, made.pattern, &product, &args, &options));
    (void)run_until_decided(first, &a, want);
    char name[48];
    snprintf(name, sizeof name, "%s", info_of(first).kernel);
    (void)fake_runs();
    ok(spk_compute(context, made.pattern, &product, &args, &options));
    assert_int_equal(atomic_load(&fakes[name[4] - '0'].runs), 1);
    spk_plan_destroy(&first);
    free(want);
    free_arrays(&a);
}

typedef struct worker {
    spk_plan *plan;
    const arrays *a;
    const double *want;
    atomic_bool *stop;
} worker;

static void *work(void *user)
{
    const worker *w = user;
    float *d = malloc(sizeof *d * SIZE * COLUMNS);
    while (!atomic_load(w->stop)) {
        check_run(w->plan, w->a, d, w->want);
        (void)info_of(w->plan);
        (void)spk_plan_choice(w->plan);
    }
    free(d);
    return NULL;
}

static void try_with_threads(int wrong)
{
    arrays a = make_arrays();
    double *want = make_want(&a);
    atomic_bool stop = false;
    pthread_t threads[3];
    fakes[wrong].mode = FAKE_WRONG;
    spk_plan *plan = make_plan();
    worker w = {plan, &a, want, &stop};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w), 0);
    for (int i = 0; i < 100000 && spk_plan_later_of(plan) == NULL; i++)
        check_run(plan, &a, a.d, want);
    assert_non_null(spk_plan_later_of(plan));
    check_run(plan, &a, a.d, want);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

static void several_threads(void **state)
{
    try_with_threads(3);
    close_plans(state);
    open_plans(state);
    fakes[0].model_us = 1; /* the first choice */
    try_with_threads(0);
}

/* Where the device has no such runs, or values are static, it is the usual tuning; and spk_tune measures as ever. */
static void elsewhere_it_is_tuning(void **state)
{
    (void)state;
    spk_plan *plan = NULL;
    fake_clock_end();
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE, .cache = SPK_WARM, .budget_s = 0.2};
    spk_spmm fixed = product;
    fixed.static_values = 1;
    ok(spk_plan_create(context, made.pattern, &fixed, &options, &plan));
    assert_string_equal(info_of(plan).why, "measured");
    spk_plan_destroy(&plan);
    spk_report *report = NULL;
    (void)fake_runs();
    ok(spk_tune(context, made.pattern, &product, &options, &report));
    assert_true(fake_runs() > 10);
    spk_report_destroy(&report);
    fake_clock_begin();
}

/* fake2 multiplies zeros that it filled in: it may win where the problem promises finite numbers. */
static void a_promise_admits_a_row(void **state)
{
    (void)state;
    for (int finite = 0; finite <= 1; finite++) {
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = "fake2"};
        spk_spmm problem = product;
        spk_report *report = NULL;
        spk_report_info about = {SPK_SIZED(spk_report_info)};
        spk_plan *plan = NULL;
        int found = 0;
        problem.assume_finite = finite;
        ok(spk_list_candidates(context, made.pattern, &problem, NULL, &report));
        ok(spk_report_get_info(report, &about));
        assert_non_null(strstr(about.class_key, finite ? ";finite=1" : ";finite=0"));
        for (int i = 0; i < about.candidate_count; i++) {
            spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
            ok(spk_report_get_candidate(report, i, &candidate));
            const bool fills_zeros = strcmp(candidate.name, "fake2") == 0;
            assert_int_equal(candidate.status, fills_zeros && !finite ? SPK_CANDIDATE_NOT_ELIGIBLE : SPK_CANDIDATE_OK);
            if (fills_zeros && !finite)
                assert_string_equal(candidate.why, "needs assume_finite");
            found += fills_zeros;
        }
        assert_int_equal(found, 1);
        spk_report_destroy(&report);
        assert_int_equal(spk_plan_create_spmm(context, made.pattern, &problem, &pin, &plan), finite ? SPK_OK : SPK_ERR_NO_CANDIDATE);
        spk_plan_destroy(&plan);
    }
}

/* ------------------------------------------------------------------------------------------------ the build's own rows */

static atomic_int allocations, fails_at; /* 0: none fails */

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    const int number = atomic_fetch_add(&allocations, 1) + 1;
    return number == atomic_load(&fails_at) ? NULL : aligned_alloc(alignment, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

/* How many runs were refused for want of memory; all others are right. */
static int run_short_of_memory(spk_pattern *pattern, const arrays *a, const double *want)
{
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a->values, .b = a->b, .d = a->d, .alpha = 0.75};
    spk_plan *plan = NULL;
    int refused = 0;
    spk_status status = spk_plan_create(context, pattern, &product, &options, &plan);
    assert_true(status == SPK_OK || status == SPK_ERR_OUT_OF_MEMORY);
    for (int run = 0; run < 90 && status == SPK_OK; run++) {
        const spk_status ran = spk_plan_run(plan, &args, NULL);
        assert_true(ran == SPK_OK || ran == SPK_ERR_OUT_OF_MEMORY);
        refused += ran != SPK_OK;
        for (int i = 0; i < SIZE * COLUMNS && ran == SPK_OK; i++)
            if (!(fabs(a->d[i] - want[i]) < 1e-4))
                fail_msg("allocation %d fails, run %d: element %d is %g in place of %g: %s", atomic_load(&fails_at), run, i, a->d[i],
                         want[i], spk_plan_choice(plan));
    }
    spk_plan_destroy(&plan);
    return refused + (status != SPK_OK);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    int most = 1;
    for (int number = 0; number <= most; number += number < 30 ? 1 : 29) {
        bench b;
        atomic_store(&fails_at, 0);
        bench_open(&b, table, 4, "");
        made.pattern = b.pattern;
        arrays a = make_arrays();
        const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .allocate = allocate,
                                             .release = release};
        assert_int_equal(spk_context_create(&options, &context), SPK_OK);
        b.pattern->owner = context;
        double *want = make_want(&a);
        const int before = atomic_load(&allocations);
        atomic_store(&fails_at, number > 0 ? before + number : 0);
        const int refused = run_short_of_memory(b.pattern, &a, want);
        assert_true(refused <= 1);
        if (number == 0)
            most = atomic_load(&allocations) - before;
        spk_context_destroy(&context);
        bench_close(&b);
        free(want);
        free_arrays(&a);
    }
    assert_true(most > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule),
        cmocka_unit_test(a_slow_run_is_no_verdict),
        cmocka_unit_test(wrong_model),
        cmocka_unit_test(who_fails_leaves),
        cmocka_unit_test_setup_teardown(a_plan_finds_the_fastest, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(a_tuning_ends_the_trial, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(sizes_that_come_once, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(sizes_whose_plans_stay, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(what_is_known_meanwhile, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_computed_again, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(where_d_is_c, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(what_is_ruled_out_never_runs, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(one_plan_of_a_class_tries, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(several_threads, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(elsewhere_it_is_tuning, open_plans, close_plans),
        cmocka_unit_test_setup_teardown(a_promise_admits_a_row, open_plans, close_plans),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
