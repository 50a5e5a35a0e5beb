/* A device that keeps proofs: what is not proved there, or was refuted, is never chosen and never bound, whoever names it. */
#include "test_tune_fake.h"

#include "tune/choose/choose.h"

static const spk_kernel rows[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(2, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(3, a, SPK_KIND_OWN, 10, false, "V=0,1"),
};

/* What the device has on record of a row's candidates, and what comes of proving one. */
static spk_proof record[FAKES];
static spk_status verdict[FAKES];
static int proved_now;

static spk_proof look(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                      size_t size)
{
    (void)device, (void)problem, (void)params;
    if (record[fake_number(kernel)] == SPK_PROOF_REFUTED)
        snprintf(why, size, "it hung in the prover");
    return record[fake_number(kernel)];
}

static spk_status prove(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    (void)device, (void)problem, (void)stop;
    for (int i = 0; i < count; i++) {
        const int row = fake_number(list[i].kernel);
        proved_now += record[row] == SPK_PROOF_NONE;
        list[i].status = record[row] == SPK_PROOF_GOOD ? SPK_OK : record[row] == SPK_PROOF_REFUTED ? SPK_ERR_INTERNAL : verdict[row];
        const char *why = list[i].status == SPK_ERR_INTERNAL ? "it hung in the prover" : "there is no prover";
        snprintf(list[i].why, sizeof list[i].why, "%s", list[i].status == SPK_OK ? "" : why);
        if (list[i].status == SPK_OK)
            record[row] = SPK_PROOF_GOOD;
        else if (list[i].status == SPK_ERR_INTERNAL)
            record[row] = SPK_PROOF_REFUTED;
    }
    return SPK_OK;
}

static spk_backend careful;

/* Rows 0 to 3 are the better the lower. Everything is proved at first. */
static void open_careful(bench *b)
{
    bench_open(b, rows, 4, "");
    careful = fake_backend;
    careful.tiles_fit_sizes = true;
    careful.proof = look;
    careful.prepare = prove;
    b->device.backend = &careful;
    for (int i = 0; i < FAKES; i++) {
        fakes[i].us = 50 + 50 * i;
        record[i] = SPK_PROOF_GOOD;
        verdict[i] = SPK_ERR_UNAVAILABLE;
    }
    proved_now = 0;
    spk_prove_again();
}

/* Nothing is proved, and nothing can be. */
static void forget_all(void)
{
    for (int i = 0; i < FAKES; i++)
        record[i] = SPK_PROOF_NONE;
}

static spk_choice choose(bench *b, const char *kernel, const char *why)
{
    spk_choice choice = {.kernel = NULL};
    spk_bound bound;
    spk_error_enter(0);
    if (spk_tune_choose(&b->tuner, &b->problem, &b->options, &choice) != SPK_OK)
        fail_msg("%s", spk_error_last());
    assert_string_equal(choice.kernel->name, kernel);
    assert_string_equal(spk_origin_words(choice.origin), why);
    assert_int_equal(spk_tune_bind(&b->tuner, &b->problem, &choice, &bound), SPK_OK);
    spk_unbind(&bound);
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

/* What the store names: a decision of before, or of an import. */
static void from_the_store(void **state)
{
    (void)state;
    bench b;
    open_careful(&b);
    b.options.effort = SPK_TUNE_EXHAUSTIVE;
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake0");
    spk_report_release(&report);
    b.options.effort = SPK_TUNE_MEASURE;
    fake_runs();
    choose(&b, "fake0", "from the store");
    assert_int_equal(proved_now, 0);

    record[0] = SPK_PROOF_NONE; /* the folder of proofs was emptied: it is proved anew */
    verdict[0] = SPK_OK;
    choose(&b, "fake0", "from the store");
    assert_int_equal(proved_now, 1);
    choose(&b, "fake0", "from the store");
    assert_int_equal(proved_now, 1);

    record[0] = SPK_PROOF_REFUTED; /* the next best of the evidence */
    choose(&b, "fake1", "from the store");
    report = tune(&b);
    assert_string_equal(chosen_name(report), "fake1"); /* reports say what plans do */
    assert_true(report->from_store);
    spk_report_release(&report);
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    choose(&b, "fake1", "from the store");

    record[0] = record[1] = SPK_PROOF_NONE; /* no prover: what is proved */
    verdict[0] = SPK_ERR_UNAVAILABLE;
    choose(&b, "fake2", "from the store");
    const int tried = proved_now;
    choose(&b, "fake2", "from the store");
    assert_int_equal(proved_now, tried); /* not again within the minute */
    assert_int_equal(fake_runs(), 0);

    forget_all();
    check_fails(&b, SPK_ERR_UNKNOWN_CLASS,
                "the store does not know this class of problems, or nothing of it that is proved, and the option tuning wants what was "
                "tuned ahead");
    b.options.tuning = SPK_TUNING_NOW;
    spk_prove_again();
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "no kernel is left: fake0: failed, there is no prover");
    assert_int_equal(fake_runs(), 0);
    bench_close(&b);
}

static void estimates(void **state)
{
    (void)state;
    bench b;
    for (int effort = 0; effort < 2; effort++) {
        open_careful(&b);
        b.options.effort = effort == 0 ? SPK_TUNE_MEASURE : SPK_TUNE_ESTIMATE;
        b.options.tuning = SPK_TUNING_NEVER;
        choose(&b, "fake0", "estimated: cost model");
        record[0] = SPK_PROOF_NONE; /* the model's best is proved for it */
        verdict[0] = SPK_OK;
        choose(&b, "fake0", "estimated: cost model");
        assert_int_equal(proved_now, 1);
        record[0] = SPK_PROOF_REFUTED;
        choose(&b, "fake1", "estimated: cost model");
        record[1] = record[2] = SPK_PROOF_NONE; /* no prover: the best that is proved */
        choose(&b, "fake3", "estimated: cost model");
        forget_all();
        verdict[0] = SPK_ERR_UNAVAILABLE;
        check_fails(&b, SPK_ERR_NO_CANDIDATE,
                    "no candidate is proved for fake, and none can be proved now (fake0: there is no prover): install sparsek-prover");
        check_fails(&b, SPK_ERR_NO_CANDIDATE, "(fake0: proving failed within the last minute)");
        assert_int_equal(fake_runs(), 0);
        bench_close(&b);
    }
}

static void set_columns(bench *b, int64_t n)
{
    b->problem.n = b->problem.b.ld = b->problem.d.ld = n;
    b->problem.op->fit(&b->problem);
}

/* A neighbour's decision, which an estimate takes over. */
static void nearest_class(void **state)
{
    (void)state;
    bench b;
    open_careful(&b);
    spk_report *report = tune(&b);
    spk_report_release(&report);
    set_columns(&b, 8);
    b.options.tuning = SPK_TUNING_NEVER;
    choose(&b, "fake0", "estimated: nearest class");
    record[0] = SPK_PROOF_NONE;
    choose(&b, "fake1", "estimated: cost model");
    record[0] = SPK_PROOF_REFUTED;
    choose(&b, "fake1", "estimated: cost model");
    bench_close(&b);
}

/* Far from what was measured the cost model chooses, among rows that were not measured, too; near it the measured choice stays. */
static void another_size(void **state)
{
    (void)state;
    bench b;
    open_careful(&b);
    fakes[3].forbidden = true; /* nothing is measured of it */
    spk_report *report = tune(&b);
    spk_report_release(&report);
    fakes[3].forbidden = false;
    fakes[0].model_us = 90;
    fakes[2].model_us = 60; /* its row took what the model said */
    fakes[3].model_us = 40; /* as those did on average */
    set_columns(&b, 28);
    choose(&b, "fake0", "nearest class");
    set_columns(&b, 100);
    choose(&b, "fake3", "nearest class");
    record[3] = SPK_PROOF_REFUTED;
    choose(&b, "fake2", "nearest class");
    fakes[2].model_us = 80; /* about as fast as the choice */
    choose(&b, "fake0", "nearest class");
    fakes[0].forbidden = true; /* the choice cannot run here */
    choose(&b, "fake2", "nearest class");
    assert_int_equal(proved_now, 0);
    bench_close(&b);
}

static char told[512];

static void hear(void *user, int level, const char *message)
{
    (void)level;
    ++*(int *)user;
    snprintf(told, sizeof told, "%s", message);
}

static void pinned_choices(void **state)
{
    (void)state;
    bench b;
    int lines = 0;
    open_careful(&b);
    b.tuner.log = hear;
    b.tuner.log_user = &lines;
    b.options.choice = "fake3 V=1";
    choose(&b, "fake3", "pinned");
    record[3] = SPK_PROOF_NONE;
    verdict[3] = SPK_OK;
    choose(&b, "fake3", "pinned");
    assert_true(proved_now == 1 && lines == 0);

    record[3] = SPK_PROOF_NONE; /* only what is pinned runs without a proof, and says so once */
    verdict[3] = SPK_ERR_UNAVAILABLE;
    choose(&b, "fake3", "pinned, not proved");
    choose(&b, "fake3", "pinned, not proved");
    assert_int_equal(lines, 1);
    assert_non_null(strstr(told, "choice = \"fake3 V=1\" is pinned, not proved"));
    assert_non_null(strstr(told, "there is no prover"));

    record[3] = SPK_PROOF_REFUTED;
    check_fails(&b, SPK_ERR_NO_CANDIDATE,
                "choice = \"fake3 V=1\": it never runs in this process, as it did harm in the one that proved it: it hung in the prover");
    record[3] = SPK_PROOF_NONE;
    verdict[3] = SPK_ERR_INTERNAL;
    spk_prove_again();
    check_fails(&b, SPK_ERR_NO_CANDIDATE, "it hung in the prover");
    bench_close(&b);
}

/* The last look, at the place where all are bound. */
static void binding(void **state)
{
    (void)state;
    bench b;
    spk_bound bound = {.kernel = NULL};
    open_careful(&b);
    spk_choice choice = {.kernel = &rows[1], .origin = SPK_ORIGIN_STORE, .from_store = true};
    record[1] = SPK_PROOF_NONE;
    assert_int_equal(spk_tune_bind(&b.tuner, &b.problem, &choice, &bound), SPK_ERR_NO_CANDIDATE);
    assert_non_null(strstr(spk_error_last(), "choice = \"fake1\": it is not proved"));
    choice.pinned = true;
    assert_int_equal(spk_tune_bind(&b.tuner, &b.problem, &choice, &bound), SPK_OK);
    spk_unbind(&bound);
    record[1] = SPK_PROOF_REFUTED;
    assert_int_equal(spk_tune_bind(&b.tuner, &b.problem, &choice, &bound), SPK_ERR_NO_CANDIDATE);
    assert_non_null(
        strstr(spk_error_last(), "it never runs in this process, as it did harm in the one that proved it: it hung in the prover"));
    assert_null(bound.kernel);
    bench_close(&b);
}

static void the_second_candidate(void **state)
{
    (void)state;
    bench b;
    spk_bound bound = {.kernel = NULL};
    spk_choice first = {.kernel = NULL}, other;
    open_careful(&b);
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &other, &bound);
    assert_string_equal(bound.kernel->name, "fake0");
    spk_unbind(&bound);
    record[0] = SPK_PROOF_REFUTED; /* though it is remembered */
    record[1] = SPK_PROOF_NONE;
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &other, &bound);
    assert_string_equal(bound.kernel->name, "fake2");
    spk_unbind(&bound);
    forget_all();
    spk_prove_again();
    spk_tune_bind_fallback(&b.tuner, &b.problem, &b.options, &first, &other, &bound);
    assert_null(bound.kernel);
    bench_close(&b);
}

/* An interruption says nothing of a candidate. */
static spk_status interrupted_prove(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    (void)device, (void)problem, (void)stop;
    for (int i = 0; i < count; i++)
        list[i].status = SPK_ERR_INTERRUPTED;
    return SPK_OK;
}

static void interruptions(void **state)
{
    (void)state;
    bench b;
    spk_choice choice = {.kernel = NULL};
    open_careful(&b);
    careful.prepare = interrupted_prove;
    forget_all();
    b.options.effort = SPK_TUNE_ESTIMATE;
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_ERR_INTERRUPTED);
    careful.prepare = prove;
    verdict[0] = SPK_OK;
    choose(&b, "fake0", "estimated: cost model");
    bench_close(&b);
}

/* Of an empty product nothing runs, so that it needs no proof. */
static void empty_problems(void **state)
{
    (void)state;
    bench b;
    open_careful(&b);
    b.problem.n = 0;
    b.problem.op->fit(&b.problem);
    forget_all();
    choose(&b, "fake0", "estimated: cost model");
    assert_int_equal(proved_now, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_store), cmocka_unit_test(estimates),      cmocka_unit_test(nearest_class),
        cmocka_unit_test(pinned_choices), cmocka_unit_test(binding),        cmocka_unit_test(the_second_candidate),
        cmocka_unit_test(interruptions),  cmocka_unit_test(empty_problems), cmocka_unit_test(another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
