/* The search: what is right and fast wins; what is wrong, failing or hopeless does not; time, ties, interruption, samples of large
 * problems. */
#include "test_tune_fake.h"

#include "tune/search/search.h"

static const spk_kernel three[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1,2,3"),
    FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""),
};
static const spk_kernel with_dense[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1,2,3"),
    FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""),
    FAKE_ROW(3, a, SPK_KIND_DENSE, 5, true, ""),
};

static void the_fastest_wins(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 300;
    fakes[1].us = 200;
    fakes[1].param_us[2] = -80;
    fakes[2].us = 150;
    fakes[0].noise = fakes[1].noise = fakes[2].noise = 0.02;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake1");
    assert_string_equal(chosen_params(report), "V=2");
    assert_int_equal(report->count, 6);
    assert_false(report->from_store);
    const spk_evidence *best = &report->candidates[report->chosen];
    assert_int_equal(best->status, SPK_CANDIDATE_OK);
    assert_true(best->median_us > 119 && best->median_us < 130);
    assert_true(best->error >= 0 && best->error <= best->tolerance);
    assert_true(best->sample_count >= 5 && best->samples_us != NULL);
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_PRUNED);
    assert_non_null(report->summary);
    spk_report_release(&report);
    bench_close(&b);
}

/* A library's model that is a hundred times too small keeps no own row from running: seen of cusparse_bsr at N = 4. */
static void a_library_prunes_by_its_time(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 30000;
    fakes[1].us = 26000;
    fakes[1].param_us[1] = -2000;
    fakes[2].us = 150000;
    fakes[2].model_us = 1000;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake1");
    assert_string_equal(chosen_params(report), "V=1");
    spk_report_release(&report);
    fakes[2].us = 1500; /* now it is right, and what has no chance beside it does not run */
    b.options.fresh = 1;
    report = tune(&b);
    assert_string_equal(chosen_name(report), "fake2");
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_PRUNED);
    assert_non_null(strstr(entry_of(report, "fake0", NULL)->why, "the cost model sees it"));
    spk_report_release(&report);
    bench_close(&b);
}

static void check_refused(fake_mode mode, spk_candidate_status status, const char *words)
{
    bench b;
    bench_open(&b, three, 3, "");
    spk_spmm spmm = {.struct_size = sizeof spmm, .n = 150, .ldd = 160, .keep_preact = 1, .activation = SPK_ACT_RELU};
    assert_int_equal(spk_problem_read(&spk_op_spmm, b.pattern, &spmm, NULL, &b.problem), SPK_OK);
    fake_whole_work = fake_work(&b.problem);
    fakes[0].us = 50; /* would win */
    fakes[0].mode = mode;
    fakes[2].us = 80;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake2");
    const spk_evidence *refused = entry_of(report, "fake0", NULL);
    assert_int_equal(refused->status, status);
    if (strstr(refused->why, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", refused->why, words);
    assert_int_equal(b.warnings, status == SPK_CANDIDATE_WRONG ? 1 : 0);
    spk_report_release(&report);
    bench_close(&b);
}

static void the_wrong_never_win(void **state)
{
    (void)state;
    check_refused(FAKE_WRONG, SPK_CANDIDATE_WRONG, "the oracle says");
    check_refused(FAKE_UNWRITTEN, SPK_CANDIDATE_WRONG, "was not written");
    check_refused(FAKE_NAN, SPK_CANDIDATE_WRONG, "not finite");
    check_refused(FAKE_BESIDE, SPK_CANDIDATE_WRONG, "between the rows");
    check_refused(FAKE_NO_PREACT, SPK_CANDIDATE_WRONG, "preact");
    check_refused(FAKE_FAILS, SPK_CANDIDATE_FAILED, "the test makes it fail");
    check_refused(FAKE_NO_MEMORY, SPK_CANDIDATE_FAILED, "out of memory");
    check_refused(FAKE_NO_RIGHT, SPK_CANDIDATE_FAILED, "the test has a limit");
    check_refused(FAKE_PASSES, SPK_CANDIDATE_PRUNED, "the test lets it pass");
}

static void none_left_says_why(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].mode = FAKE_WRONG;
    fakes[1].mode = FAKE_FAILS;
    fakes[2].mode = FAKE_NAN;
    spk_report *report = NULL;
    spk_error_enter(0);
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_ERR_NO_CANDIDATE);
    assert_null(report);
    assert_non_null(strstr(spk_error_last(), "the test makes it fail"));
    assert_non_null(strstr(spk_error_last(), "fake2: wrong"));
    fakes[1].mode = FAKE_NO_MEMORY;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_ERR_OUT_OF_MEMORY);
    bench_close(&b);
}

static void the_hopeless_cost_little(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 5000; /* 100 times the best: a checked run, and a few samples to be sure */
    fakes[1].us = 50;
    fakes[2].us = 500000;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake1");
    assert_true(atomic_load(&fakes[0].runs) <= 10);
    assert_true(atomic_load(&fakes[2].runs) <= 1);
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_PRUNED);
    spk_candidate_status slow = entry_of(report, "fake2", NULL)->status;
    assert_true(slow == SPK_CANDIDATE_PRUNED || slow == SPK_CANDIDATE_TIMED_OUT);
    spk_report_release(&report);

    fakes[2].model_us = 60; /* the model knows nothing of it: one run shows */
    b.options.fresh = 1;
    fake_runs();
    report = tune(&b);
    assert_int_equal(entry_of(report, "fake2", NULL)->status, SPK_CANDIDATE_TIMED_OUT);
    spk_report_release(&report);
    bench_close(&b);
}

/* The machine was busy when the best had its turn: a second look finds it. */
static void a_bad_moment_is_forgiven(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 50;
    fakes[0].slow_runs = 4;
    fakes[1].us = 80;
    fakes[2].us = 90;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake0");
    assert_true(report->candidates[report->chosen].median_us < 60);
    spk_report_release(&report);
    bench_close(&b);
}

static void ties_are_resolved_alike(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    for (int i = 0; i < 3; i++)
        fakes[i] = (fake){.mode = FAKE_RIGHT, .us = 100, .noise = 0.03};
    fakes[0].us = 100.2;
    fakes[1].us = 100.4; /* the highest priority; its parameters tie too: the first of the table */
    b.options.fresh = 1;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        b.options.seed = seed;
        spk_rng_seed(&fake_rng, seed);
        spk_report *report = tune(&b);
        if (strcmp(chosen_name(report), "fake1") != 0 || strcmp(chosen_params(report), "V=0") != 0)
            fail_msg("seed %d chose %s %s", (int)seed, chosen_name(report), chosen_params(report));
        spk_report_release(&report);
    }
    bench_close(&b);
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    static const spk_kernel many[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7 W=0,1,2,3,4,5,6,7"),
                                      FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7 W=0,1,2,3,4,5,6,7")};
    bench b;
    bench_open(&b, many, 2, "");
    for (int i = 0; i < 2; i++)
        fakes[i] = (fake){.mode = FAKE_RIGHT, .us = 20000, .spends_us = 20000};
    b.options.budget_s = 0.6;
    fake_clock_begin();
    double start = spk_now_us();
    spk_report *report = tune(&b);
    double spent = spk_now_us() - start;
    if (spent > 0.8e6)
        fail_msg("a budget of 0.6 s took %.3f s", 1e-6 * spent);
    assert_true(report->chosen >= 0);
    int pruned = 0;
    for (int i = 0; i < report->count; i++)
        pruned += report->candidates[i].status == SPK_CANDIDATE_PRUNED;
    assert_true(pruned > 64);
    spk_report_release(&report);

    b.options.budget_s = 1e-4; /* one candidate is measured all the same */
    b.options.fresh = 1;
    report = tune(&b);
    fake_clock_end();
    assert_true(report->chosen >= 0);
    spk_report_release(&report);
    bench_close(&b);
}

static void exhaustive_measures_all(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 5000;
    fakes[1].us = 50;
    b.options.effort = SPK_TUNE_EXHAUSTIVE;
    spk_report *report = tune(&b);
    for (int i = 0; i < report->count; i++) {
        assert_int_equal(report->candidates[i].status, SPK_CANDIDATE_OK);
        assert_true(report->candidates[i].median_us > 0);
    }
    assert_string_equal(chosen_name(report), "fake1");
    spk_report_release(&report);
    bench_close(&b);
}

static void the_ineligible_are_marked(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, with_dense, 4, "");
    fakes[3].us = 20;
    spk_report *report = tune(&b);
    const spk_evidence *dense = entry_of(report, "fake3", NULL);
    assert_int_equal(dense->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    assert_string_equal(dense->why, "needs assume_finite");
    assert_true(dense->median_us > 0); /* measured all the same: the summary tells what it would gain */
    assert_string_not_equal(chosen_name(report), "fake3");
    assert_non_null(strstr(report->summary, "assume_finite"));
    spk_report_release(&report);
    b.problem.assume_finite = true;
    report = tune(&b);
    assert_string_equal(chosen_name(report), "fake3");
    spk_report_release(&report);
    bench_close(&b);
}

/* As callers see it. */
static spk_provisional provisional_of(const spk_report *report)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    return info.provisional;
}

static void interruption_keeps_what_was_measured(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    fakes[0].us = 100;
    fakes[1].us = 120;
    fakes[2].us = 140;
    fake_interrupt_after = 30; /* in the middle of screening */
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_ERR_INTERRUPTED);
    assert_non_null(report);
    assert_string_equal(chosen_name(report), "fake0");
    assert_int_equal(report->candidates[report->chosen].status, SPK_CANDIDATE_OK);
    assert_int_equal(provisional_of(report), SPK_PROVISIONAL_INTERRUPTED);
    spk_report_release(&report);

    /* The next tuning finishes the job. */
    fake_interrupt_after = 0;
    atomic_store(&fake_interrupted, 0);
    fakes[2].us = 30;
    fake_runs();
    report = tune(&b);
    assert_string_equal(chosen_name(report), "fake2");
    assert_true(fake_runs() > 0);
    assert_int_not_equal(provisional_of(report), SPK_PROVISIONAL_INTERRUPTED);
    spk_report_release(&report);
    report = tune(&b);
    assert_true(report->from_store);
    assert_int_equal(fake_runs(), 0);
    spk_report_release(&report);

    /* Interrupted before anything: nothing to keep. */
    atomic_store(&fake_interrupted, 1);
    b.options.fresh = 1;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_ERR_INTERRUPTED);
    assert_null(report);
    bench_close(&b);
}

/* A problem too long for the budget is screened on samples; what every run pays once (fixed) must not mislead. */
static void large_problems_are_sampled(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    spk_pattern_release(&b.pattern);
    b.pattern = fake_pattern(1024, 8, 0.05, 3);
    b.problem = fake_problem(b.pattern, 4);
    b.problem.cache = SPK_WARM;
    fake_whole_work = fake_work(&b.problem);
    fakes[0].us = 400000;
    fakes[1].us = 380000; /* the best, though a sixteenth of it takes longer than that of the others */
    fakes[1].fixed_us = 8000;
    fakes[2].us = 420000;
    fakes[0].noise = fakes[1].noise = fakes[2].noise = 0.005;
    int found = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        b.options.seed = seed;
        b.options.fresh = 1;
        spk_report *report = tune(&b);
        const spk_evidence *best = &report->candidates[report->chosen];
        found += strcmp(best->name, "fake1") == 0;
        assert_true(best->median_us > 375000 && best->median_us < 440000); /* of the whole problem */
        spk_report_release(&report);
    }
    assert_true(found >= 8); /* noise may now and then hide what a sixteenth shows */
    bench_close(&b);
}

static void extrapolates(double first_us, double second_us, const double shares[2], double wanted_us)
{
    const spk_sample_time level[2] = {{first_us, shares[0], 400, 200}, {second_us, shares[1], 500, 200}};
    double got = spk_extrapolate(level);
    if (fabs(got - wanted_us) > 1e-6)
        fail_msg("%g us and %g us make %g us, not %g us", first_us, second_us, got, wanted_us);
}

static void two_samples_make_a_whole(void **state)
{
    (void)state;
    static const double shares[2] = {0.001, 0.004}, turned[2] = {0.004, 0.001};
    extrapolates(1, 4, shares, 1000);    /* grows with the work */
    extrapolates(101, 104, shares, 304); /* hardly grows: the noise of 3 is not multiplied */
    extrapolates(11, 14, shares, 1010);  /* 10, and 1000 that grow */
    extrapolates(14, 11, turned, 1010);
    extrapolates(1, 8, shares, 2000);     /* more than in proportion: noise */
    extrapolates(20, 26, shares, 1626);   /* 2018, if those 6 can be believed: the model bounds it */
    extrapolates(900, 880, shares, 1080); /* not less than the larger sample took */
}

/* What every run pays, packing B for instance, is nearly all of a small sample's time, and next to nothing of the whole problem's. */
static void a_fixed_part_is_not_multiplied(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    spk_pattern_release(&b.pattern);
    b.pattern = fake_pattern(4096, 4, 0.01, 3);
    b.problem = fake_problem(b.pattern, 4);
    b.problem.cache = SPK_WARM;
    fake_whole_work = fake_work(&b.problem);
    b.options.fresh = 1;
    for (int i = 0; i < 3; i++)
        fakes[i] = (fake){.mode = FAKE_RIGHT, .us = 800000 + 200000 * i, .fixed_us = 30000, .spends_us = 3000};
    fake_clock_begin();
    for (uint64_t seed = 1; seed <= 4; seed++) {
        b.options.seed = seed;
        b.options.budget_s = seed % 2 ? 0.1 : 0.4; /* less than a run */
        spk_report *report = tune(&b);
        for (int i = 0; i < report->count; i++)
            if (report->candidates[i].median_us > 2.5e6)
                fail_msg("a candidate of about 1 s is thought to take %.1f s", 1e-6 * report->candidates[i].median_us);
        assert_true(report->candidates[report->chosen].median_us > 4e5);
        assert_non_null(strstr(report->summary, "estimated"));
        spk_report_release(&report);
    }
    fake_clock_end();
    bench_close(&b);
}

/* Threads that spin after a sample of another library must not slow the next: a run that is not counted comes between. */
static void other_threads_come_to_rest(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    spk_kernel ours = three[0], theirs = three[2];
    theirs.library = "theirs";
    fakes[0].us = fakes[2].us = 5000;
    spk_stage *stage = NULL;
    assert_int_equal(spk_stage_make(&b.tuner, &b.problem, (spk_level){.share = 1}, 1, 0, NULL, &stage), SPK_OK);
    spk_contender pair[2] = {{.kernel = &ours, .run_us = 5000, .batch = 1}, {.kernel = &theirs, .run_us = 5000, .batch = 1}};
    static const int order[] = {0, 0, 1, 1, 0}, runs[] = {1, 1, 2, 1, 2};
    for (int i = 0; i < 2; i++)
        assert_int_equal(spk_contender_bind(&pair[i], stage), SPK_OK);
    for (int i = 0; i < 5; i++) {
        double us = 0;
        fake_runs();
        assert_true(spk_contender_sample(&pair[order[i]], stage, &us));
        assert_int_equal(fake_runs(), runs[i]);
    }
    for (int i = 0; i < 2; i++)
        spk_contender_unbind(&pair[i]);
    spk_stage_release(&stage);
    bench_close(&b);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, with_dense, 4, "");
    const spk_backend falls = fake_backend_that_falls();
    b.device.backend = &falls;
    b.options.fresh = 1;
    for (int i = 0; i < 4; i++)
        fakes[i].hot = 0.1;
    int failures = 0;
    for (int64_t count = 0; count < 2000; count += 1 + count / 20) {
        spk_report *report = NULL;
        spk_mem_fail_after(count);
        spk_status status = spk_tune_problem(&b.tuner, &b.problem, &b.options, &report);
        spk_mem_fail_after(-1);
        if (status == SPK_OK) {
            assert_non_null(report);
            assert_true(report->chosen >= 0);
        } else {
            assert_true(status == SPK_ERR_OUT_OF_MEMORY || status == SPK_ERR_NO_CANDIDATE);
            assert_null(report);
            failures++;
        }
        spk_report_release(&report);
    }
    assert_true(failures > 10);
    bench_close(&b);
}

/* Random fields of candidates under noise: how much slower than the true best is what wins? Only runs take time, so that the budget ends
 * where it would on a quiet machine. */
static void the_choice_is_near_the_best(void **state)
{
    (void)state;
    static const spk_kernel field[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 60, false, "V=0,1,2,3,4,5,6,7 W=0,1"),
                                       FAKE_ROW(1, a, SPK_KIND_OWN, 40, false, "V=0,1,2,3,4,5,6,7 W=0,1"),
                                       FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""), FAKE_ROW(3, a, SPK_KIND_VENDOR, 20, false, "")};
    enum { PROBLEMS = 60 };
    const int problems = getenv("SPARSEK_TEST_QUICK") != NULL ? 12 : PROBLEMS;
    double regret[PROBLEMS], scratch[PROBLEMS];
    bench b;
    bench_open(&b, field, 4, "");
    b.options.fresh = 1;
    fake_clock_begin();
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    for (int k = 0; k < problems; k++) {
        double scale = exp(2 + 6 * spk_rng_uniform(&rng)), best = INFINITY; /* 7 us to 3 ms */
        for (int i = 0; i < 4; i++) {
            double noise = 0.01 + 0.05 * spk_rng_uniform(&rng);
            fakes[i] = (fake){.mode = FAKE_RIGHT, .us = scale * (1 + spk_rng_uniform(&rng)), .noise = noise};
            for (int v = 0; v < 8; v++)
                fakes[i].param_us[v] = i < 2 ? 0.4 * scale * spk_rng_uniform(&rng) : 0;
            for (int v = 0; v < (i < 2 ? 8 : 1); v++)
                best = fmin(best, fakes[i].us + fakes[i].param_us[v]);
            fakes[i].model_us = fakes[i].us * (0.5 + spk_rng_uniform(&rng));
            for (int v = 0; v < 8; v++)
                fakes[i].param_spends_us[v] = fakes[i].us + fakes[i].param_us[v];
        }
        b.options.seed = (uint64_t)k + 1;
        spk_report *report = tune(&b);
        int number = -1, v = 0;
        assert_int_equal(sscanf(chosen_name(report), "fake%d", &number), 1);
        if (number < 2)
            assert_int_equal(sscanf(chosen_params(report), "V=%d", &v), 1);
        regret[k] = (fakes[number].us + fakes[number].param_us[v]) / best - 1;
        spk_report_release(&report);
    }
    double median = spk_median(regret, problems, scratch);
    print_message("median regret %.4f, worst %.4f, 95th percentile %.4f\n", median, scratch[problems - 1], scratch[problems * 95 / 100]);
    assert_true(median <= 0.01);
    assert_true(scratch[problems * 95 / 100] <= 0.03);
    fake_clock_end();
    bench_close(&b);
}

/* Of much work one thread is no candidate on a quiet machine; where others use the processors it meets the others, and may win. */
static void one_thread_for_much_work_under_load(void **state)
{
    (void)state;
    const spk_kernel rows[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "SERIAL=0,1"), FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, "")};
    fake_clock_begin(); /* checking takes its time, and no budget is to end meanwhile */
    for (int busy = 0; busy < 2; busy++)
        for (int racing = 0; racing < 2; racing++) {
            bench b;
            bench_open(&b, rows, 2, "");
            spk_pattern_release(&b.pattern);
            b.pattern = fake_pattern(2048, 32, 0.3, 1);
            b.problem = fake_problem(b.pattern, 24); /* some 60 MFLOP */
            b.problem.cache = SPK_WARM;
            fake_whole_work = fake_work(&b.problem);
            fakes[0].us = 900;
            fakes[0].param_us[1] = -500;
            fakes[0].model_us = 500;
            fakes[1].us = 700;
            fake_busy = busy;
            fake_others = busy ? 2 : 0;
            spk_report *report = NULL;
            const spk_race_options options = {.rounds = 4, .keep = 1};
            if (racing)
                assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_OK);
            else
                report = tune(&b);
            assert_string_equal(chosen_name(report), busy ? "fake0" : "fake1");
            assert_string_equal(chosen_params(report), busy ? "SERIAL=1" : "");
            spk_report_release(&report);
            /* its own class goes on with it, and others do not expect it */
            spk_choice choice = {.kernel = NULL};
            assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_OK);
            assert_string_equal(spk_origin_words(choice.origin), "from the store");
            assert_string_equal(choice.kernel->name, busy ? "fake0" : "fake1");
            b.problem = fake_problem(b.pattern, 32);
            b.problem.cache = SPK_WARM;
            b.options.effort = SPK_TUNE_ESTIMATE;
            assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_OK);
            assert_true(strcmp(choice.kernel->name, "fake0") != 0 || choice.params.v[0] == 0);
            bench_close(&b);
        }
    fake_clock_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_wins),
        cmocka_unit_test(a_library_prunes_by_its_time),
        cmocka_unit_test(the_wrong_never_win),
        cmocka_unit_test(none_left_says_why),
        cmocka_unit_test(the_hopeless_cost_little),
        cmocka_unit_test(a_bad_moment_is_forgiven),
        cmocka_unit_test(ties_are_resolved_alike),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(exhaustive_measures_all),
        cmocka_unit_test(the_ineligible_are_marked),
        cmocka_unit_test(interruption_keeps_what_was_measured),
        cmocka_unit_test(large_problems_are_sampled),
        cmocka_unit_test(two_samples_make_a_whole),
        cmocka_unit_test(a_fixed_part_is_not_multiplied),
        cmocka_unit_test(other_threads_come_to_rest),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(the_choice_is_near_the_best),
        cmocka_unit_test(one_thread_for_much_work_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
