/* A reference row is there to be compared with: it is chosen where nothing else can run, or where the caller names it, and nowhere else,
 * whatever was measured of it, by whom, and on how busy a machine. */
#include "test_tune_fake.h"

#include "tune/choose/choose.h"

static const spk_kernel table[] = {
    FAKE_ROW(0, a, SPK_KIND_REFERENCE, 0, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""),
};

/* The reference is by far the fastest, as measured and by the model. */
static void open_bench(bench *b, int64_t n)
{
    bench_open(b, table, 3, "");
    b->problem = fake_problem(b->pattern, n);
    b->problem.cache = SPK_WARM;
    fake_whole_work = fake_work(&b->problem);
    fakes[0].us = 5;
    fakes[1].us = 50;
    fakes[2].us = 70;
}

static void set_size(bench *b, int64_t n)
{
    b->problem = fake_problem(b->pattern, n);
    b->problem.cache = SPK_WARM;
}

static spk_choice choose(bench *b)
{
    spk_choice choice = {.kernel = NULL};
    spk_error_enter(0);
    if (spk_tune_choose(&b->tuner, &b->problem, &b->options, &choice) != SPK_OK)
        fail_msg("%s", spk_error_last());
    return choice;
}

/* At every number of columns up to 64, by the class's own evidence, the nearest one's or the model's. */
static void never_chosen(bench *b, const char *how)
{
    const spk_tuning tunings[] = {SPK_TUNING_NOW, SPK_TUNING_NEVER, SPK_TUNING_NOW_EACH};
    for (size_t i = 0; i < sizeof tunings / sizeof tunings[0]; i++)
        for (int64_t n = 1; n <= 64; n += n < 10 ? 1 : 9) {
            set_size(b, n);
            b->options.tuning = tunings[i];
            const spk_choice choice = choose(b);
            if (choice.kernel->kind == SPK_KIND_REFERENCE)
                fail_msg("%s: n=%d, tuning=%d: %s, %s", how, (int)n, (int)tunings[i], choice.kernel->name, spk_origin_words(choice.origin));
        }
    b->options.tuning = SPK_TUNING_NOW;
}

static spk_report *race(bench *b, spk_race_options options)
{
    spk_report *report = NULL;
    spk_error_enter(0);
    if (spk_tune_race(&b->tuner, &b->problem, &b->options, &options, &report) != SPK_OK)
        fail_msg("%s", spk_error_last());
    return report;
}

static void a_race_measures_it_and_chooses_another(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool busy = i % 2 == 1;
        bench b;
        open_bench(&b, i < 2 ? 8 : 24); /* up to 8 columns are for other kernels than more: neither is near the other */
        fake_others = busy ? 2 : 0;
        fake_busy = busy;
        spk_report *report = race(&b, (spk_race_options){.rounds = 6, .keep = 1});
        const spk_evidence *reference = entry_of(report, "fake0", NULL);
        assert_string_equal(chosen_name(report), "fake1");
        assert_true(reference->median_us > 0 && reference->median_us < 10);
        assert_int_equal(reference->status, SPK_CANDIDATE_NOT_ELIGIBLE);
        assert_non_null(strstr(reference->why, "reference"));
        assert_int_equal(report->provisional, busy ? SPK_PROVISIONAL_LOAD : SPK_PROVISIONAL_NO);
        spk_report_release(&report);
        never_chosen(&b, busy ? "after a race under load" : "after a race");
        bench_close(&b);
    }
}

static void a_tuning_does_not_run_it(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 8);
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake1");
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    assert_int_equal(entry_of(report, "fake0", NULL)->status, SPK_CANDIDATE_NOT_ELIGIBLE);
    spk_report_release(&report);
    never_chosen(&b, "after a tuning");
    bench_close(&b);
    open_bench(&b, 8);
    never_chosen(&b, "with an empty store");
    bench_close(&b);
}

/* Rewrites what the store has of the problem's class as an earlier version had it: the reference measured, ok and chosen. others: their
 * status. */
static void store_as_before(bench *b, spk_candidate_status others, spk_provisional provisional)
{
    char key[SPK_MAX_KEY_TEXT];
    spk_report *report = race(b, (spk_race_options){.rounds = 4, .keep = 1});
    spk_report_release(&report);
    assert_int_equal(spk_key_make(&b->problem, b->tuner.device, key, sizeof key), SPK_OK);
    assert_int_equal(spk_store_load(b->store, key, &report), SPK_OK);
    for (int i = 0; i < report->count; i++) {
        spk_evidence *e = &report->candidates[i];
        const bool reference = strcmp(e->name, "fake0") == 0;
        e->status = reference ? SPK_CANDIDATE_OK : others;
        if (reference)
            report->chosen = i;
        else if (others != SPK_CANDIDATE_OK)
            e->median_us = 0;
    }
    report->provisional = provisional;
    assert_int_equal(spk_store_save(b->store, report), SPK_OK);
    spk_report_release(&report);
}

static void a_store_that_names_it(void **state)
{
    (void)state;
    const spk_candidate_status others[] = {SPK_CANDIDATE_OK, SPK_CANDIDATE_PRUNED, SPK_CANDIDATE_TIMED_OUT};
    for (int i = 0; i < 12; i++) {
        bench b;
        open_bench(&b, i < 6 ? 8 : 24);
        store_as_before(&b, others[i % 3], i / 3 % 2 == 0 ? SPK_PROVISIONAL_NO : SPK_PROVISIONAL_LOAD);
        fake_busy = i / 3 % 2 == 1;
        never_chosen(&b, "of a store that names it");
        bench_close(&b);
    }
}

/* Where the others are forbidden, wrong or failing, it does the work, here and at other sizes, and nobody is measured twice for that. */
static void nothing_else_runs(void **state)
{
    (void)state;
    const fake_mode modes[] = {FAKE_RIGHT, FAKE_WRONG, FAKE_FAILS, FAKE_NO_MEMORY};
    for (int i = 0; i < 4; i++) {
        bench b;
        open_bench(&b, 8);
        for (int other = 1; other < 3; other++) {
            fakes[other].mode = modes[i];
            fakes[other].forbidden = i == 0;
        }
        spk_choice choice = choose(&b);
        assert_string_equal(choice.kernel->name, "fake0");
        fake_runs();
        choice = choose(&b);
        assert_string_equal(choice.kernel->name, "fake0");
        assert_string_equal(spk_origin_words(choice.origin), "from the store");
        set_size(&b, 7);
        choice = choose(&b);
        assert_string_equal(choice.kernel->name, "fake0");
        if (fake_runs() > 0)
            fail_msg("others of mode %d: n=7 was measured, as \"%s\"", (int)modes[i], spk_origin_words(choice.origin));
        set_size(&b, 8);
        b.options.effort = SPK_TUNE_ESTIMATE;
        assert_string_equal(choose(&b).kernel->name, "fake0");
        b.options.effort = SPK_TUNE_MEASURE;
        spk_report *report = race(&b, (spk_race_options){.rounds = 4, .keep = 1});
        assert_string_equal(chosen_name(report), "fake0");
        spk_report_release(&report);
        bench_close(&b);
    }
}

static void who_names_it_gets_it(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 8);
    b.options.choice = "fake0";
    spk_choice choice = choose(&b);
    assert_true(choice.pinned && choice.kernel->kind == SPK_KIND_REFERENCE);
    b.options.choice = NULL;
    b.options.only = "fake0";
    assert_string_equal(choose(&b).kernel->name, "fake0");
    b.options.only = NULL;
    b.options.exclude = "fake1,fake2";
    assert_string_equal(choose(&b).kernel->name, "fake0");
    b.options.exclude = "fake1";
    assert_string_equal(choose(&b).kernel->name, "fake2");
    bench_close(&b);
}

/* A plan's second candidate: libraries are none. */
static void a_second_candidate_is_another_too(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 8);
    const spk_choice first = choose(&b);
    spk_choice second;
    spk_bound bound;
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &second, &bound);
    assert_non_null(bound.kernel);
    assert_true(bound.kernel->kind != SPK_KIND_REFERENCE);
    spk_unbind(&bound);
    bench_close(&b);
}

/* Where it can be a reference alone, the next plan of the problem is told of it as well. */
static void a_second_candidate_that_is_a_reference_is_told(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 8);
    b.options.exclude = "fake1,fake2";
    const spk_choice first = choose(&b);
    for (int turn = 0; turn < 2; turn++) {
        spk_choice second;
        spk_bound bound;
        spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &second, &bound);
        assert_non_null(bound.kernel);
        assert_ptr_equal(second.kernel, bound.kernel);
        assert_int_equal(bound.kernel->kind, SPK_KIND_REFERENCE);
        spk_unbind(&bound);
    }
    bench_close(&b);
}

static void make_older(const bench *b, int64_t seconds)
{
    char key[SPK_MAX_KEY_TEXT];
    spk_report *report = NULL;
    assert_int_equal(spk_key_make(&b->problem, b->tuner.device, key, sizeof key), SPK_OK);
    assert_int_equal(spk_store_load(b->store, key, &report), SPK_OK);
    report->measured_at -= seconds;
    assert_int_equal(spk_store_save(b->store, report), SPK_OK);
    spk_report_release(&report);
}

/* What a busy machine made of one size decides for no other: the model does at first, and some minutes later a measurement, if it is quiet
 * then. */
static void load_does_not_spread(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 24);
    fakes[1].model_us = 20;
    fakes[2].model_us = 40;
    fakes[1].us = 500; /* disturbed */
    fake_others = 2;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake2");
    assert_int_equal(report->provisional, SPK_PROVISIONAL_LOAD);
    spk_report_release(&report);
    fakes[1].us = 50;
    fake_busy = true;
    fake_runs();
    set_size(&b, 32);
    spk_choice choice = choose(&b);
    assert_string_equal(spk_origin_words(choice.origin), "estimated: cost model");
    assert_string_equal(choice.kernel->name, "fake1");
    assert_true(choice.until_write && fake_runs() == 0);
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(chosen_name(report), "fake1");
    assert_false(report->from_store);
    assert_non_null(strstr(report->summary, "busy machine"));
    spk_report_release(&report);
    b.options.tuning = SPK_TUNING_NEVER;
    assert_string_equal(choose(&b).kernel->name, "fake1");
    b.options.tuning = SPK_TUNING_NOW;
    fake_busy = false;
    fake_others = 0;
    assert_string_equal(spk_origin_words(choose(&b).origin), "estimated: cost model"); /* a moment's quiet is none */
    set_size(&b, 24);
    make_older(&b, 600);
    set_size(&b, 32);
    fake_busy = true;
    assert_string_equal(spk_origin_words(choose(&b).origin), "estimated: cost model");
    fake_busy = false;
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);
}

/* ------------------------------------------------------------------------------------------------ the warning */

static int warnings;
static char last_warning[1024];

static void keep_warning(void *user, int level, const char *message)
{
    (void)user;
    warnings += level == 1;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

/* Once a class, where it is far slower than a tuned kernel would be; not where the caller wants it, or where it is about as fast. */
static void a_slow_last_resort_is_told_of_once(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, 40);
    b.tuner.log = keep_warning;
    warnings = 0;
    fakes[1].forbidden = fakes[2].forbidden = true;
    b.options.effort = SPK_TUNE_ESTIMATE;
    fakes[0].model_us = 500;
    choose(&b);
    assert_int_equal(warnings, 0);
    fakes[0].model_us = 5e6;
    for (int i = 0; i < 3; i++)
        choose(&b);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "fake0"));
    assert_non_null(strstr(last_warning, "the test forbids it"));
    set_size(&b, 4000);
    choose(&b);
    assert_int_equal(warnings, 2);
    fakes[1].forbidden = false;
    set_size(&b, 17);
    choose(&b);
    b.options.only = "fake0";
    choose(&b);
    assert_int_equal(warnings, 2);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_race_measures_it_and_chooses_another),
        cmocka_unit_test(a_tuning_does_not_run_it),
        cmocka_unit_test(a_store_that_names_it),
        cmocka_unit_test(nothing_else_runs),
        cmocka_unit_test(who_names_it_gets_it),
        cmocka_unit_test(a_second_candidate_is_another_too),
        cmocka_unit_test(a_second_candidate_that_is_a_reference_is_told),
        cmocka_unit_test(load_does_not_spread),
        cmocka_unit_test(a_slow_last_resort_is_told_of_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
