/* The race: one entry a row with its best parameters, the same rounds for all, slow rows a few, ineligible rows marked. */
#include "test_tune_fake.h"
#include "base/callback.h"
#include "tune/search/search.h"

static const spk_kernel rows[] = {
    FAKE_ROW(0, a, SPK_KIND_REFERENCE, 0, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1,2,3"),
    FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""),
    FAKE_ROW(3, a, SPK_KIND_DENSE, 5, true, ""),
};

static void open_race(bench *b)
{
    bench_open(b, rows, 4, "");
    fakes[0].us = 4000;
    fakes[1].us = 150;
    fakes[1].param_us[3] = -50;
    fakes[2].us = 120;
    fakes[3].us = 40;
    for (int i = 0; i < 4; i++)
        fakes[i].noise = 0.02;
}

static spk_report *race(bench *b, spk_race_options options)
{
    spk_report *report = NULL;
    options.struct_size = sizeof options;
    assert_int_equal(spk_tune_race(&b->tuner, &b->problem, &b->options, &options, &report), SPK_OK);
    return report;
}

static void every_row_meets(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    spk_report *report = race(&b, (spk_race_options){.rounds = 0});
    assert_int_equal(report->count, 4);
    assert_string_equal(chosen_name(report), "fake1");
    assert_string_equal(chosen_params(report), "V=3");
    const spk_evidence *reference = entry_of(report, "fake0", NULL), *own = entry_of(report, "fake1", NULL),
                       *vendor = entry_of(report, "fake2", NULL);
    const spk_evidence *dense = entry_of(report, "fake3", NULL);
    assert_int_equal(own->sample_count, 20);
    assert_int_equal(vendor->sample_count, 20);
    assert_int_equal(dense->sample_count, 20);
    assert_int_equal(reference->sample_count, 3); /* more than 20 times slower */
    for (int i = 0; i < own->sample_count; i++)
        assert_true(own->least_us > 0 && own->least_us <= own->samples_us[i]);
    assert_int_equal(reference->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    assert_non_null(strstr(reference->why, "reference"));
    assert_int_equal(dense->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    assert_string_equal(dense->why, "needs assume_finite");
    assert_true(fabs(dense->median_us - 40) < 4);
    assert_true(own->error >= 0 && reference->error >= 0 && vendor->error >= 0 && dense->error >= 0);
    spk_report_release(&report);

    fakes[2].us = 4000; /* as slow, but others name it: it has all rounds, as they are cheap */
    report = race(&b, (spk_race_options){.rounds = 0});
    assert_int_equal(entry_of(report, "fake2", NULL)->sample_count, 20);
    assert_int_equal(entry_of(report, "fake0", NULL)->sample_count, 3);
    assert_non_null(strstr(report->summary, " candidates were measured"));
    spk_report_release(&report);
    fakes[2].us = 120;

    /* Nothing was kept; with keep it is, with every candidate. */
    spk_choice choice;
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_ERR_UNKNOWN_CLASS);
    report = race(&b, (spk_race_options){.rounds = 6, .keep = 1});
    assert_int_equal(entry_of(report, "fake1", NULL)->sample_count, 6);
    spk_report_release(&report);
    b.options.tuning = SPK_TUNING_NOW;
    fake_runs();
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_OK);
    assert_string_equal(spk_origin_words(choice.origin), "from the store");
    assert_string_equal(choice.kernel->name, "fake1");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

/* The parameters that a row races with are those that are fastest under load. */
static void a_row_at_its_best_under_load(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    const spk_backend falls = fake_backend_that_falls();
    fakes[1].param_us[2] = -45;
    fakes[1].param_hot[3] = 0.3;
    for (int i = 0; i < 2; i++) {
        b.device.backend = i == 0 ? &fake_backend : &falls;
        spk_report *report = race(&b, (spk_race_options){.rounds = 6});
        assert_string_equal(entry_of(report, "fake1", NULL)->params, i == 0 ? "V=3" : "V=2");
        assert_int_equal(entry_of(report, "fake1", NULL)->sample_count, 6);
        spk_report_release(&report);
    }
    bench_close(&b);
}

/* What this thread lost to other programs before is no time of the race's. */
static void time_lost_before(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    fake_clock_begin();
    fake_clock_pass(2 * 3600e6); /* a machine that runs for longer than what was lost */
    spk_work_allow(INFINITY);
    spk_work_lost(3600e6);
    assert_true(spk_work_allow(0) == 3600e6);
    spk_work_lost(1e6);
    assert_true(spk_work_allow(0) == 0);
    b.options.budget_s = 60;
    spk_report *report = race(&b, (spk_race_options){.rounds = 3});
    for (int i = 0; i < report->count; i++)
        if (report->candidates[i].status == SPK_CANDIDATE_PRUNED)
            assert_null(strstr(report->candidates[i].why, "before its turn"));
    assert_true(entry_of(report, "fake1", NULL)->sample_count == 3);
    assert_true(entry_of(report, "fake2", NULL)->sample_count == 3);
    spk_report_release(&report);
    fake_clock_end();
    bench_close(&b);
}

static void rows_that_cannot(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    fakes[0].forbidden = true;
    fakes[1].mode = FAKE_WRONG;
    fakes[3].mode = FAKE_FAILS;
    spk_report *report = race(&b, (spk_race_options){.rounds = 5});
    assert_int_equal(report->count, 4);
    assert_string_equal(chosen_name(report), "fake2");
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_NOT_APPLICABLE);
    assert_int_equal(entry_of(report, "fake1", NULL)->status, SPK_CANDIDATE_WRONG);
    assert_int_equal(entry_of(report, "fake3", NULL)->status, SPK_CANDIDATE_FAILED);
    spk_report_release(&report);
    bench_close(&b);
}

/* A given budget bounds the rounds too. */
static void a_budget_ends_the_race(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    b.options.budget_s = 0.001;
    spk_report *report = race(&b, (spk_race_options){.rounds = 10000});
    assert_true(report->chosen >= 0);
    /* one where the budget leaves one row alone, else three at least */
    assert_in_range(report->candidates[report->chosen].sample_count, 1, 9999);
    spk_report_release(&report);
    bench_close(&b);
}

/* Where one alone may win, and runs for long, what the budget allowed is the answer. */
static void a_budget_ends_the_rounds_of_one_alone(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    b.options.only = "fake0";
    b.options.budget_s = 0.1;
    fakes[0].us = fakes[0].spends_us = 60e3;
    fake_clock_begin();
    spk_report *report = race(&b, (spk_race_options){.rounds = 20});
    assert_string_equal(chosen_name(report), "fake0");
    assert_in_range(report->candidates[report->chosen].sample_count, 1, 2);
    assert_int_equal(report->provisional, SPK_PROVISIONAL_BUDGET);
    spk_report_release(&report);
    b.options.only = NULL; /* with others it is not begun: it is far too slow to win */
    atomic_store(&fakes[0].runs, 0);
    report = race(&b, (spk_race_options){.rounds = 3});
    fake_clock_end();
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_PRUNED);
    assert_non_null(strstr(entry_of(report, "fake0", NULL)->why, "cannot win"));
    spk_report_release(&report);
    bench_close(&b);
}

/* Spent on the fake clock, as the model has it. */
static void takes(int number, double us)
{
    fakes[number].us = fakes[number].model_us = fakes[number].spends_us = us;
}

static double race_s(bench *b, spk_race_options options, spk_report **report)
{
    const double begun = spk_now_us();
    *report = race(b, options);
    return 1e-6 * (spk_now_us() - begun);
}

/* A race ends within twice its budget: what would not is predicted, and not begun. */
static void a_race_keeps_to_its_budget(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    fake_clock_begin();
    for (int i = 0; i < 5; i++) {
        bench b;
        open_race(&b);
        b.options.budget_s = 0.3 + 0.3 * spk_rng_uniform(&rng);
        for (int row = 0; row < 4; row++)
            takes(row, 200 * pow(10, 3 * spk_rng_uniform(&rng))); /* 0.2 to 200 ms */
        memset(fakes[1].param_us, 0, sizeof fakes[1].param_us);
        spk_report *report = NULL;
        const double took_s = race_s(&b, (spk_race_options){.rounds = 20}, &report);
        if (took_s > 2 * b.options.budget_s)
            fail_msg("try %d: %.2f s of a budget of %.2f s; rows of %.0f, %.0f, %.0f, %.0f us", i, took_s, b.options.budget_s, fakes[0].us,
                     fakes[1].us, fakes[2].us, fakes[3].us);
        assert_true(report->chosen >= 0);
        spk_report_release(&report);
        bench_close(&b);
    }
    fake_clock_end();
}

/* A row that is predicted at many times the best, and would take seconds, is listed with the reason; not where it was asked for, and one
 * that might win, or that costs little, runs. */
static void what_cannot_win_is_not_run(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        bench b;
        open_race(&b);
        b.options.budget_s = given ? 2 : 0;
        fakes[3].model_us = given ? 150e3 : 900e3;
        spk_report *report = race(&b, (spk_race_options){.rounds = 3});
        const spk_evidence *dense = entry_of(report, "fake3", NULL);
        assert_int_equal(atomic_load(&fakes[3].runs), 0);
        assert_int_equal(dense->status, SPK_CANDIDATE_PRUNED);
        assert_true(dense->median_us <= 0 && strstr(dense->why, "cannot win") != NULL && strstr(dense->why, " times the best") != NULL);
        spk_report_release(&report);
        for (int way = 0; way < 4; way++) {
            b.options.only = way == 1 ? "fake1,fake3" : NULL;
            fakes[3].model_us = way == 2 ? 10e3 : way == 3 ? 19 * fakes[2].us : fakes[3].model_us;
            report = race(&b, (spk_race_options){.rounds = 3, .all = way == 0});
            assert_int_equal(entry_of(report, "fake3", NULL)->sample_count, 3);
            spk_report_release(&report);
            fakes[3].model_us = given ? 150e3 : 900e3;
        }
        b.options.only = NULL;
        report = race(&b, (spk_race_options){.rounds = 3, .choices = "fake1 V=3;fake3"});
        assert_int_equal(entry_of(report, "fake3", NULL)->sample_count, 3);
        spk_report_release(&report);
        bench_close(&b);
    }
}

static int overruns;

static void count_overruns(void *user, int level, const char *message)
{
    (void)user;
    overruns += level == 1 && strstr(message, "of a budget of") != NULL;
}

/* What nobody could predict is told of, in one line. */
static void an_overrun_is_told(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    b.tuner.log = count_overruns;
    overruns = 0;
    b.options.budget_s = 0.5;
    spk_report *report = race(&b, (spk_race_options){.rounds = 3});
    spk_report_release(&report);
    assert_int_equal(overruns, 0);
    b.options.budget_s = 0.05;
    fakes[2].spends_us = 1600e3;
    fake_clock_begin();
    report = race(&b, (spk_race_options){.rounds = 3});
    fake_clock_end();
    spk_report_release(&report);
    assert_int_equal(overruns, 1);
    bench_close(&b);
}

/* What nobody can do is told of those that the options leave, in whole reasons. */
static void reasons_are_of_those_left(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    spk_contender *contenders = NULL;
    int count = 0;
    b.options.only = "fake3";
    assert_int_equal(spk_contenders_make(&b.tuner, &b.problem, &b.options, &contenders, &count), SPK_OK);
    assert_int_equal(spk_no_candidate(contenders, count, &b.options), SPK_ERR_NO_CANDIDATE);
    assert_string_equal(spk_error_message(0),
                        "no kernel is left (only = \"fake3\", exclude = \"\"): fake3: not eligible, needs assume_finite");
    b.options.only = NULL;
    for (int i = 0; i < count; i++)
        memset(contenders[i].why, 'x', sizeof contenders[i].why - 1);
    assert_int_equal(spk_no_candidate(contenders, count, &b.options), SPK_ERR_NO_CANDIDATE);
    assert_non_null(strstr(spk_error_message(0), "; and 2 others"));
    spk_contenders_release(&b.tuner, &contenders, count);
    bench_close(&b);
}

static void given_choices_only(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    spk_report *report = race(&b, (spk_race_options){.rounds = 8, .choices = "fake1 V=0; fake1 V=3;fake0"});
    assert_int_equal(report->count, 3);
    assert_string_equal(chosen_params(report), "V=3");
    assert_int_equal(entry_of(report, "fake1", "V=0")->sample_count, 8);
    assert_int_equal(atomic_load(&fakes[2].runs) + atomic_load(&fakes[3].runs), 0);
    spk_report_release(&report);
    spk_race_options bad = {.struct_size = sizeof bad, .choices = "fake1 V=0;nobody"};
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &bad, &report), SPK_ERR_ARGUMENT);
    bad.choices = ";";
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &bad, &report), SPK_ERR_ARGUMENT);
    bench_close(&b);
}

static void dense_is_the_yardstick(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    b.options.only = "fake2";
    spk_report *report = race(&b, (spk_race_options){.rounds = 5});
    assert_string_equal(chosen_name(report), "fake2");
    assert_true(entry_of(report, "fake3", NULL)->median_us > 0);
    assert_int_equal(entry_of(report, "fake3", NULL)->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    assert_int_equal(atomic_load(&fakes[1].runs), 0);
    spk_report_release(&report);
    b.options.only = NULL;
    b.options.exclude = "fake3,fake0";
    fake_runs();
    report = race(&b, (spk_race_options){.rounds = 5});
    assert_int_equal(atomic_load(&fakes[3].runs), 0);
    assert_int_equal(entry_of(report, "fake3", NULL)->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    spk_report_release(&report);
    bench_close(&b);
}

static void interruption(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    fake_interrupt_after = 600;
    spk_report *report = NULL;
    spk_race_options options = {.struct_size = sizeof options, .rounds = 1000, .keep = 1};
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_ERR_INTERRUPTED);
    assert_non_null(report);
    assert_true(entry_of(report, "fake1", NULL)->median_us > 0);
    spk_report_release(&report);
    bench_close(&b);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    bench b;
    open_race(&b);
    spk_race_options options = {.struct_size = sizeof options, .rounds = 3, .keep = 1};
    int failures = 0;
    for (int64_t count = 0; count < 1000; count += 1 + count / 15) {
        spk_report *report = NULL;
        spk_mem_fail_after(count);
        spk_status status = spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report);
        spk_mem_fail_after(-1);
        assert_true(status == SPK_OK ? report != NULL : status == SPK_ERR_OUT_OF_MEMORY && report == NULL);
        failures += status != SPK_OK;
        spk_report_release(&report);
    }
    assert_true(failures > 5);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_meets),
        cmocka_unit_test(a_row_at_its_best_under_load),
        cmocka_unit_test(rows_that_cannot),
        cmocka_unit_test(a_budget_ends_the_race),
        cmocka_unit_test(a_budget_ends_the_rounds_of_one_alone),
        cmocka_unit_test(a_race_keeps_to_its_budget),
        cmocka_unit_test(what_cannot_win_is_not_run),
        cmocka_unit_test(an_overrun_is_told),
        cmocka_unit_test(reasons_are_of_those_left),
        cmocka_unit_test(given_choices_only),
        cmocka_unit_test(dense_is_the_yardstick),
        cmocka_unit_test(interruption),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(time_lost_before), /* last: it stays lost to this thread */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
