/* Evidence that was cut short or disturbed: marked, used, never put in the place of what is finished, and measured anew when that may
 * help. */
#include "test_tune_fake.h"

#include "tune/choose/choose.h"
#include "tune/search/search.h"

static const spk_kernel table[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_REFERENCE, 5, false, ""),
    FAKE_ROW(3, a, SPK_KIND_OWN, 5, false, ""),
};

/* Three rows, then all four. Each test has a class of its own: what a process has tried is remembered by class. */
static void open_at(bench *b, int64_t n)
{
    bench_open(b, table, 3, "");
    b->problem = fake_problem(b->pattern, n);
    b->problem.cache = SPK_WARM;
    fake_whole_work = fake_work(&b->problem);
    fakes[0].us = 50;
    fakes[1].us = 100;
    fakes[2].us = 150;
    fakes[3].us = 20;
}

static void key_of(const bench *b, char key[SPK_MAX_KEY_TEXT])
{
    assert_int_equal(spk_key_make(&b->problem, b->tuner.device, key, SPK_MAX_KEY_TEXT), SPK_OK);
}

static spk_decision stored(const bench *b)
{
    char key[SPK_MAX_KEY_TEXT];
    spk_decision decision;
    bool found = false;
    key_of(b, key);
    assert_int_equal(spk_store_decision(b->store, key, &decision, &found), SPK_OK);
    assert_true(found);
    return decision;
}

static void make_older(const bench *b, int64_t seconds)
{
    char key[SPK_MAX_KEY_TEXT];
    spk_report *report = NULL;
    key_of(b, key);
    assert_int_equal(spk_store_load(b->store, key, &report), SPK_OK);
    report->measured_at -= seconds;
    assert_int_equal(spk_store_save(b->store, report), SPK_OK);
    spk_report_release(&report);
}

/* Tunes; whether something ran. */
static bool tunes(bench *b, const char *winner, spk_provisional provisional)
{
    fake_runs();
    spk_report *report = tune(b);
    assert_string_equal(chosen_name(report), winner);
    if (report->provisional != provisional)
        fail_msg("provisional %d, not %d: %s", (int)report->provisional, (int)provisional, report->summary);
    assert_true((strstr(report->summary, "Provisional: ") != NULL) == (provisional != SPK_PROVISIONAL_NO));
    spk_report_release(&report);
    return fake_runs() > 0;
}

static void finished_evidence_stays(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 8);
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    const spk_decision finished = stored(&b);
    b.options.fresh = 1;
    for (int i = SPK_PROVISIONAL_INTERRUPTED; i <= SPK_PROVISIONAL_LOAD; i++) {
        spk_report *report = NULL;
        fakes[0].us = 500;
        b.options.budget_s = i == SPK_PROVISIONAL_BUDGET ? 1e-4 : 0;
        atomic_store(&fake_total_runs, 0);
        fake_interrupt_after = i == SPK_PROVISIONAL_INTERRUPTED ? 20 : 0;
        fake_others = i == SPK_PROVISIONAL_LOAD ? 2 : 0;
        spk_error_enter(0);
        spk_status status = spk_tune_problem(&b.tuner, &b.problem, &b.options, &report);
        assert_int_equal(status, i == SPK_PROVISIONAL_INTERRUPTED ? SPK_ERR_INTERRUPTED : SPK_OK);
        assert_true(status == SPK_OK || strstr(spk_error_last(), "keeps the better evidence") != NULL);
        assert_int_equal(report->provisional, i);
        assert_non_null(strstr(report->summary, "The store has better evidence"));
        spk_report_release(&report);
        atomic_store(&fake_interrupted, 0);
        const spk_decision now = stored(&b);
        assert_string_equal(now.name, finished.name);
        assert_true(now.median_us == finished.median_us && now.provisional == SPK_PROVISIONAL_NO);
    }
    fake_interrupt_after = 0;
    fake_others = 0;
    b.options.budget_s = 0;
    assert_true(tunes(&b, "fake1", SPK_PROVISIONAL_NO)); /* a finished one does replace it */
    assert_string_equal(stored(&b).name, "fake1");
    bench_close(&b);
}

/* One candidate measured in a hundredth of a second does not take the place of many, though nothing was left to decide between. */
static void a_smaller_budget_tells_less(void **state)
{
    (void)state;
    spk_evidence many[] = {{.median_us = 5}, {.median_us = 7}, {.median_us = 9}}, one[] = {{.median_us = 4}, {.median_us = 0}};
    spk_report before = {.candidates = many, .count = 3, .budget_s = 3}, made = {.candidates = one, .count = 2, .budget_s = 0.01};
    const spk_provisional all[] = {SPK_PROVISIONAL_NO, SPK_PROVISIONAL_LOAD, SPK_PROVISIONAL_BUDGET};
    for (int i = 0; i < 3; i++) {
        before.provisional = all[i];
        assert_false(spk_evidence_replaces(&made, &before, true));
        assert_true(spk_evidence_replaces(&made, &before, false)); /* nothing of it can be chosen any more */
        assert_true(spk_evidence_replaces(&made, NULL, true));
    }
    before.provisional = SPK_PROVISIONAL_INTERRUPTED;
    assert_true(spk_evidence_replaces(&made, &before, true));
    before.provisional = SPK_PROVISIONAL_NO;
    made.budget_s = 3;
    assert_true(spk_evidence_replaces(&made, &before, true)); /* as much time: what is measured now is what holds now */
    made.budget_s = 0;
    assert_true(spk_evidence_replaces(&made, &before, true));
    made = (spk_report){.candidates = many, .count = 3, .budget_s = 0.01};
    assert_true(spk_evidence_replaces(&made, &before, true)); /* as many candidates */
    before.budget_s = 0;
    made.count = 1;
    assert_false(spk_evidence_replaces(&made, &before, true));
}

/* However little was measured: a choice that was found wrong is not kept because its evidence is complete. */
static void a_wrong_choice_does_not_stay(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 9);
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    b.options.fresh = 1;
    b.options.budget_s = 1e-4;
    fakes[0].mode = FAKE_WRONG;
    assert_true(tunes(&b, "fake1", SPK_PROVISIONAL_BUDGET));
    assert_string_equal(stored(&b).name, "fake1");
    bench_close(&b);
}

static void a_larger_budget_measures_anew(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 9);
    b.options.budget_s = 1e-4;
    spk_report *report = tune(&b);
    assert_int_equal(report->provisional, SPK_PROVISIONAL_BUDGET);
    spk_report_release(&report);
    assert_int_equal(stored(&b).provisional, SPK_PROVISIONAL_BUDGET);
    assert_true(fabs(stored(&b).budget_s - 1e-4) < 1e-12);
    fake_runs();
    report = tune(&b); /* with the same budget it would end the same */
    assert_true(report->from_store && report->provisional == SPK_PROVISIONAL_BUDGET);
    spk_report_release(&report);
    b.options.budget_s = 0;
    b.options.tuning = SPK_TUNING_AHEAD_EACH; /* better than nothing, where tuning is forbidden */
    spk_choice choice;
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_OK);
    assert_true(choice.from_store);
    assert_int_equal(fake_runs(), 0);
    b.options.tuning = SPK_TUNING_NOW;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    bench_close(&b);
}

/* What a trial in place found beside other programs is no tuning: whoever asks for one has it at once. */
static void a_trial_beside_others_is_no_tuning(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 12);
    spk_decision decision = {.provisional = SPK_PROVISIONAL_LOAD, .measured_at = spk_unix_time_s(), .budget_s = 0.01};
    const uint64_t hash = 12345;
    assert_true(spk_evidence_due(&b.tuner, &b.options, &decision, hash));
    b.options.tuning = SPK_TUNING_IN_PLACE;
    assert_false(spk_evidence_due(&b.tuner, &b.options, &decision, hash));
    b.options.tuning = SPK_TUNING_NOW_EACH;
    decision.budget_s = b.tuner.device->backend->budget_s; /* of a tuning */
    assert_false(spk_evidence_due(&b.tuner, &b.options, &decision, hash));
    decision.budget_s = 0; /* of one without a limit */
    assert_false(spk_evidence_due(&b.tuner, &b.options, &decision, hash));
    bench_close(&b);
}

static void load_passes(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 10);
    fake_others = 2;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD));
    assert_int_equal(stored(&b).provisional, SPK_PROVISIONAL_LOAD);
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD)); /* just now */
    make_older(&b, 400);
    fake_busy = true;
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD)); /* as busy still */
    fake_busy = false;
    b.options.effort = SPK_TUNE_ESTIMATE;
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD)); /* nothing is to be run */
    b.options.effort = SPK_TUNE_MEASURE;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD)); /* it came back: once a process is enough */
    make_older(&b, 400);
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD));
    fake_others = 0;
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD));
    b.options.fresh = 1;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    b.options.fresh = 0;
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    bench_close(&b);
    /* On a quiet machine once is enough to be done. */
    open_at(&b, 11);
    fake_others = 2;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD));
    make_older(&b, 400);
    fake_others = 0;
    fakes[0].us = 300; /* all run again, not only what is new */
    assert_true(tunes(&b, "fake1", SPK_PROVISIONAL_NO));
    assert_int_equal(stored(&b).provisional, SPK_PROVISIONAL_NO);
    bench_close(&b);
}

/* A new row under load: the finished choice stays with its evidence, and is marked; when the load has passed all meet. */
static void a_new_row_under_load(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 12);
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    const double before_us = stored(&b).median_us;
    b.tuner.table_count = 4;
    fakes[0].us = 90;
    fake_others = 2;
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD));
    assert_true(stored(&b).median_us == before_us);
    assert_false(tunes(&b, "fake0", SPK_PROVISIONAL_LOAD)); /* the new row is known now: plans do not stall */
    make_older(&b, 400);
    fake_others = 0;
    assert_true(tunes(&b, "fake3", SPK_PROVISIONAL_NO));
    bench_close(&b);
}

/* Many threads that wait for each other lose most of their samples to other programs, one thread does not: what is quickest undisturbed is
 * chosen. */
static void the_disturbed_are_not_passed_over(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 13);
    fakes[0].us = 50;
    fakes[0].disturbed = 0.8;
    fakes[1].forbidden = true;
    fakes[2].us = 160;
    fake_others = 2;
    spk_race_options options = {.struct_size = sizeof options, .rounds = 40, .keep = 1};
    spk_report *report = NULL;
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_OK);
    assert_true(entry_of(report, "fake0", NULL)->median_us > entry_of(report, "fake2", NULL)->median_us);
    assert_string_equal(chosen_name(report), "fake0");
    assert_true(entry_of(report, "fake0", NULL)->least_us < entry_of(report, "fake2", NULL)->least_us); /* what decided is told */
    assert_int_equal(report->provisional, SPK_PROVISIONAL_LOAD);
    assert_int_equal(stored(&b).provisional, SPK_PROVISIONAL_LOAD);
    assert_non_null(strstr(report->summary, "the least time of each"));
    spk_report_release(&report);
    bench_close(&b);
}

static void samples_tell_of_disturbance(void **state)
{
    (void)state;
    double calm[] = {100, 101, 99, 102, 130, 100, 98, 100}, torn[] = {50, 2000, 51, 2100, 1900, 2000, 50, 2500},
           lost[] = {2000, 2100, 2200, 2050, 1900, 2000, 2100, 2500};
    spk_contender a = {.kernel = &table[0], .eligible = true, .samples = calm, .sample_count = 8, .median_us = 100, .least_us = 98};
    spk_contender c = {
        .kernel = &table[2], .eligible = true, .samples = torn, .sample_count = 8, .median_us = 1950, .least_us = 50, .order = 1};
    spk_contender *list[] = {&a, &c};
    assert_true(spk_rounds_disturbed(list, 2, false));
    assert_int_equal(spk_rounds_winner(list, 2, false, NULL), 0);
    assert_int_equal(spk_rounds_briefest(list, 2, false), 1);
    c.median_us = 3500; /* one lucky run in so many slow ones */
    assert_int_equal(spk_rounds_briefest(list, 2, false), 0);
    c.samples = lost; /* slow all the time: that is no disturbance */
    c.median_us = 2075;
    assert_false(spk_rounds_disturbed(list, 2, false));
    assert_false(spk_rounds_disturbed(list, 1, false));
    c.samples = torn;
    c.median_us = 1950;
    c.eligible = false; /* may not win */
    assert_false(spk_rounds_disturbed(list, 2, false));
    assert_int_equal(spk_rounds_briefest(list, 2, false), 0);
}

static void races(void **state)
{
    (void)state;
    bench b;
    open_at(&b, 15);
    assert_true(tunes(&b, "fake0", SPK_PROVISIONAL_NO));
    const double before_us = stored(&b).median_us;
    fakes[0].us = 70;
    for (int i = 0; i < 4; i++) {
        spk_race_options options = {.struct_size = sizeof options, .rounds = 10, .keep = 1, .choices = i == 1 ? "fake0;fake2" : NULL};
        spk_report *report = NULL;
        fake_others = i < 2 ? 2 : 0;
        atomic_store(&fake_total_runs, 0);
        fake_interrupt_after = i == 2 ? 60 : 0;
        assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), i == 2 ? SPK_ERR_INTERRUPTED : SPK_OK);
        assert_int_equal(report->provisional, i < 2 ? SPK_PROVISIONAL_LOAD : i == 2 ? SPK_PROVISIONAL_INTERRUPTED : SPK_PROVISIONAL_NO);
        assert_true((strstr(report->summary, "The store has better") != NULL) == (i != 3));
        assert_int_equal(stored(&b).provisional, SPK_PROVISIONAL_NO);
        assert_true((stored(&b).median_us == before_us) == (i != 3));
        atomic_store(&fake_interrupted, 0);
        spk_report_release(&report);
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finished_evidence_stays),
        cmocka_unit_test(a_smaller_budget_tells_less),
        cmocka_unit_test(a_wrong_choice_does_not_stay),
        cmocka_unit_test(a_larger_budget_measures_anew),
        cmocka_unit_test(a_trial_beside_others_is_no_tuning),
        cmocka_unit_test(load_passes),
        cmocka_unit_test(a_new_row_under_load),
        cmocka_unit_test(the_disturbed_are_not_passed_over),
        cmocka_unit_test(samples_tell_of_disturbance),
        cmocka_unit_test(races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
