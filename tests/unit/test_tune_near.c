/* Classes that the store does not know: the nearest number of tokens of the same layer decides at once, and so does a bundle. */
#include "test_tune_fake.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/store_internal.h"

enum { SIZES = 119 };

static const spk_kernel table[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
};
static const spk_kernel table_changed[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, b, SPK_KIND_OWN, 30, false, "V=0,1"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
};

static char file[64];

static void open_bench(bench *b, const char *path)
{
    bench_open(b, table, 3, path);
    fakes[0].us = 50;
    fakes[1].us = 40;
    fakes[1].param_us[1] = 20;
    fakes[2].us = 90;
}

static void set_size(bench *b, int64_t n)
{
    b->problem = fake_problem(b->pattern, n);
    b->problem.cache = SPK_WARM;
    fake_whole_work = fake_work(&b->problem);
}

static spk_choice choose(bench *b)
{
    spk_choice choice = {.kernel = NULL};
    spk_error_enter(0);
    if (spk_tune_choose(&b->tuner, &b->problem, &b->options, &choice) != SPK_OK)
        fail_msg("%s", spk_error_last());
    return choice;
}

static void must_be(const spk_choice *choice, const char *words, const char *kernel)
{
    char text[SPK_WHY_BYTES];
    spk_choice_words(choice, text, sizeof text);
    assert_string_equal(text, words);
    assert_string_equal(choice->kernel->name, kernel);
}

/* ------------------------------------------------------------------------------------------------ sizes of one layer */

/* How many of these sizes were measured while a plan was waited for. */
static int stalls(bench *b, const int64_t *sizes)
{
    int count = 0;
    for (int i = 0; i < SIZES; i++) {
        set_size(b, sizes[i]);
        fake_runs();
        const spk_choice choice = choose(b);
        const int runs = fake_runs();
        if ((strcmp(spk_origin_words(choice.origin), "measured") == 0) != (runs > 0))
            fail_msg("n = %d: \"%s\" after %d runs", (int)sizes[i], spk_origin_words(choice.origin), runs);
        count += runs > 0;
    }
    return count;
}

static void many_sizes(void **state)
{
    (void)state;
    int64_t sizes[SIZES];
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    for (int order = 0; order < 12; order++) {
        bench b;
        open_bench(&b, "");
        for (int i = 0; i < SIZES; i++)
            sizes[i] = 1 + 599 * (order == 1 ? SIZES - 1 - i : i) / (SIZES - 1);
        for (int i = SIZES - 1; order > 1 && i > 0; i--) {
            const int other = (int)spk_rng_below(&rng, (uint64_t)i + 1);
            const int64_t mine = sizes[i];
            sizes[i] = sizes[other];
            sizes[other] = mine;
        }
        const int count = stalls(&b, sizes);
        if (count < 1 || count > 4) /* of 1 and 6, and of more than eight twice */
            fail_msg("order %d: %d of %d sizes were measured", order, count, SIZES);
        assert_int_equal(stalls(&b, sizes), 0);
        bench_close(&b);
    }
}

/* Up to eight columns one, two, three or four, and more are kept apart. */
static void few_sizes(void **state)
{
    (void)state;
    static const int64_t orders[][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1}, {4, 8, 2, 1, 6, 3, 7, 5}};
    for (size_t order = 0; order < sizeof orders / sizeof orders[0]; order++) {
        bench b;
        open_bench(&b, "");
        int measured = 0;
        for (int i = 0; i < 8; i++) {
            set_size(&b, orders[order][i]);
            fake_runs();
            const spk_choice choice = choose(&b);
            measured += fake_runs() > 0;
            if (order == 0 && (i == 3 || i == 7))
                assert_string_equal(choice.of, i == 3 ? "n=3" : "n=5");
        }
        assert_int_equal(measured, 4);
        bench_close(&b);
    }
}

/* After a warm-up each class has evidence of its own, and nothing is measured again. */
static void warmed_up(void **state)
{
    (void)state;
    bench b;
    int64_t sizes[SIZES];
    open_bench(&b, "");
    for (int i = 0; i < SIZES; i++) {
        sizes[i] = 1 + 5 * i;
        set_size(&b, sizes[i]);
        spk_report *report = tune(&b);
        assert_string_equal(report->origin, "");
        spk_report_release(&report);
    }
    assert_int_equal(stalls(&b, sizes), 0);
    for (int i = 0; i < SIZES; i++) {
        set_size(&b, sizes[i]);
        assert_string_equal(spk_origin_words(choose(&b).origin), "from the store");
    }
    bench_close(&b);
}

static void whose_evidence(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    must_be(&(spk_choice){.origin = SPK_ORIGIN_PINNED, .kernel = &table[0]}, "pinned", "fake0");
    spk_choice choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    set_size(&b, 64);
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake1");
    assert_false(choice.from_store);
    assert_true(choice.until_write && choice.stable);
    spk_report *report = NULL;
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(report->origin, "nearest class, of n=23");
    assert_non_null(strstr(report->summary, "nearest class, of n=23"));
    char key[SPK_MAX_KEY_TEXT];
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_key_make(&b.problem, &b.device, key, sizeof key), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    assert_true(report->foreign && info.foreign == 1); /* its times are not this problem's, and nothing says that they are */
    assert_string_equal(info.origin, report->origin);
    assert_string_equal(info.class_key, key);
    assert_non_null(strstr(report->summary, " there, which says nothing of the time here"));
    assert_null(strstr(report->summary, " takes "));
    spk_report_release(&report);
    /* another number of rows, another pattern: another layer */
    spk_pattern *other = fake_pattern(512, 16, 0.2, 7), *mine = b.pattern;
    b.pattern = other;
    set_size(&b, 24);
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    b.pattern = mine;
    spk_pattern_release(&other);
    /* too far */
    set_size(&b, 24 * 40);
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);
}

/* A library's product with a vector is no measure of its product with two columns. */
static void far_slower_is_not_taken(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    spk_choice choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    set_size(&b, 48);
    fakes[1].model_us = 2 * fakes[1].us;
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake1"); /* the model may err so far */
    set_size(&b, 64);
    fakes[1].model_us = 50 * fakes[1].us;
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake0");
    bench_close(&b);
}

static void who_wants_more_gets_it(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    choose(&b);
    set_size(&b, 64);
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    spk_choice choice = {.kernel = NULL};
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_ERR_UNKNOWN_CLASS);
    b.options.tuning = SPK_TUNING_AHEAD;
    assert_string_equal(spk_origin_words(choose(&b).origin), "nearest class");
    set_size(&b, 24 * 40);
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_ERR_UNKNOWN_CLASS);
    set_size(&b, 64);
    b.options.tuning = SPK_TUNING_NOW_EACH;
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    b.options.tuning = SPK_TUNING_NOW;
    assert_string_equal(spk_origin_words(choose(&b).origin), "from the store");
    set_size(&b, 40);
    b.options.effort = SPK_TUNE_EXHAUSTIVE;
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    b.options.effort = SPK_TUNE_MEASURE;
    set_size(&b, 90);
    b.options.fresh = 1;
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);
}

/* What cannot do this size is passed over for the next best of the same evidence, and what is known to be wrong here is never taken. */
static void what_cannot_is_not_taken(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    spk_choice choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    set_size(&b, 64);
    fakes[1].forbidden = true;
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake0");
    fakes[0].forbidden = true; /* nobody: it is measured, which says why */
    assert_int_equal(spk_tune_choose(&b.tuner, &b.problem, &b.options, &choice), SPK_ERR_NO_CANDIDATE);
    fakes[0].forbidden = fakes[1].forbidden = false;
    bench_close(&b);

    open_bench(&b, "");
    fakes[1].mode = FAKE_WRONG;
    set_size(&b, 64);
    choice = choose(&b);
    must_be(&choice, "measured", "fake0");
    fakes[1].mode = FAKE_RIGHT;
    set_size(&b, 24);
    choice = choose(&b); /* it was wrong at 64 */
    must_be(&choice, "nearest class, of n=64", "fake0");
    bench_close(&b);
}

/* Nothing that was measured at the other size can run here: its row's other candidates can, and nobody waits. */
static void a_sibling_decides(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    fakes[0].forbidden = true;
    fakes[1].forbidden_values = 2;
    spk_choice choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    assert_int_equal(choice.params.v[0], 0);
    set_size(&b, 64);
    fakes[0].forbidden = false; /* the model likes it better, and nothing was measured of it */
    fakes[0].model_us = 1;
    fakes[1].forbidden_values = 1;
    fake_runs();
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake1");
    assert_int_equal(choice.params.v[0], 1);
    assert_true(choice.stable && !choice.from_store);
    assert_int_equal(fake_runs(), 0);
    spk_report *report = NULL;
    assert_int_equal(spk_tune_explain(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(report->origin, "nearest class, of n=23");
    spk_report_release(&report);
    set_size(&b, 100);
    fakes[1].forbidden_values = 3; /* no candidate of the row: a race */
    choice = choose(&b);
    must_be(&choice, "measured", "fake0");
    bench_close(&b);
}

/* The choice cannot run here, another candidate of its row can: that one, where the model has it ahead of the next best. */
static void a_sibling_is_ahead(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    fakes[1].forbidden_values = 2;
    fakes[1].param_us[1] = 5;
    spk_choice choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    assert_int_equal(choice.params.v[0], 0);
    fakes[1].forbidden_values = 1;
    for (int64_t n = 30; n <= 60; n += 30) { /* near and far */
        set_size(&b, n);
        fake_runs();
        choice = choose(&b);
        must_be(&choice, "nearest class, of n=23", "fake1");
        assert_int_equal(choice.params.v[0], 1);
        assert_int_equal(fake_runs(), 0);
    }
    fakes[1].param_us[1] = 20; /* 60: the next best takes 50 */
    set_size(&b, 90);
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake0");
    bench_close(&b);
}

/* Evidence of the class itself that a change has made incomplete meets the incumbent, as before: no neighbour hides that. */
static void a_changed_kernel_is_measured(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "");
    choose(&b);
    b.tuner.table = table_changed;
    fake_runs();
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    assert_true(fake_runs() > 0);
    bench_close(&b);
}

/* ------------------------------------------------------------------------------------------------ bundles */

/* A bundle of the bench's class, as bench/bundle.py makes one: under the model's name. */
static void make_bundle(const char *path, const char *model)
{
    bench b;
    char key[SPK_MAX_KEY_TEXT], own[SPK_MAX_KEY_TEXT];
    spk_store *bundle = NULL;
    open_bench(&b, "");
    spk_report *report = tune(&b);
    b.device.name[0] = '\0';
    snprintf(b.device.name, sizeof b.device.name, "%s", model);
    assert_int_equal(spk_key_make(&b.problem, &b.device, own, sizeof own), SPK_OK);
    assert_int_equal(spk_key_of_bundle(own, &b.device, key, sizeof key), SPK_OK);
    spk_free(&spk_mem_system, report->class_key);
    assert_int_equal(spk_strdup(&spk_mem_system, key, &report->class_key), SPK_OK);
    assert_int_equal(spk_store_open(&spk_mem_system, path, NULL, NULL, &bundle), SPK_OK);
    assert_int_equal(spk_store_save(bundle, report), SPK_OK);
    spk_store_close(&bundle);
    spk_report_release(&report);
    bench_close(&b);
}

static void open_with_bundle(bench *b, const char *path)
{
    open_bench(b, "");
    setenv("SPARSEK_BUNDLE", path, 1);
    assert_int_equal(spk_store_open_layers(b->store), SPK_OK);
    unsetenv("SPARSEK_BUNDLE");
    fake_runs();
}

static void a_bundle_decides(void **state)
{
    (void)state;
    bench b;
    make_bundle(file, "fake");
    open_with_bundle(&b, file);
    spk_choice choice = choose(&b);
    must_be(&choice, "from the bundle of fake", "fake1");
    assert_true(choice.from_store && choice.until_write);
    set_size(&b, 64);
    choice = choose(&b);
    must_be(&choice, "nearest class, of n=23", "fake1");
    assert_int_equal(fake_runs(), 0);
    set_size(&b, 24);
    spk_report *report = tune(&b); /* known, so that nothing is measured */
    assert_string_equal(report->origin, "from the bundle of fake");
    assert_int_equal(fake_runs(), 0);
    spk_report_release(&report);
    b.options.tuning = SPK_TUNING_AHEAD_EACH;
    choice = choose(&b);
    must_be(&choice, "from the bundle of fake", "fake1");
    b.options.tuning = SPK_TUNING_NOW;
    b.options.fresh = 1; /* asked for: raced again, and the store goes before the bundle from then on */
    fakes[0].us = 10;
    choice = choose(&b);
    must_be(&choice, "measured", "fake0");
    b.options.fresh = 0;
    choice = choose(&b);
    must_be(&choice, "from the store", "fake0");
    bench_close(&b);
}

static void another_machine_has_no_part_in_it(void **state)
{
    (void)state;
    bench b;
    make_bundle(file, "another card, or driver");
    open_with_bundle(&b, file);
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);

    unlink(file);
    make_bundle(file, "fake");
    open_with_bundle(&b, file);
    b.tuner.table = table_changed; /* the winner's source is another one: the next best of the evidence */
    spk_choice choice = choose(&b);
    must_be(&choice, "from the bundle of fake", "fake0");
    fakes[0].forbidden = true; /* and where there is none, a race */
    choice = choose(&b);
    must_be(&choice, "measured", "fake1");
    bench_close(&b);
}

static void bundles_that_are_none(void **state)
{
    (void)state;
    bench b;
    open_with_bundle(&b, "/nowhere/bundle.db");
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);
    open_with_bundle(&b, "");
    assert_null(spk_store_bundle(b.store));
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);

    static const char text[] = "this is no database, but long enough to be looked at as one";
    FILE *out = fopen(file, "w");
    assert_true(out != NULL && fwrite(text, sizeof text, 1, out) == 1 && fclose(out) == 0 && chmod(file, 0600) == 0);
    open_with_bundle(&b, file);
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    bench_close(&b);

    unlink(file);
    make_bundle(file, "fake");
    out = fopen(file, "r+");
    assert_true(out != NULL && fseek(out, 4096, SEEK_SET) == 0);
    for (int i = 0; i < 4096 * 6; i++)
        fputc(0x5a, out);
    fclose(out);
    open_with_bundle(&b, file);
    assert_string_equal(spk_origin_words(choose(&b).origin), "measured");
    assert_int_equal(access(file, F_OK), 0); /* it is never set aside, nor written to */
    bench_close(&b);
}

/* ------------------------------------------------------------------------------------------------ a store below */

static void a_store_below(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, file);
    choose(&b);
    bench_close(&b);
    assert_int_equal(chmod(file, 0444), 0);
    char above[80];
    snprintf(above, sizeof above, "%s.above", file);
    for (int turn = 0; turn < 2; turn++) {
        open_bench(&b, above);
        setenv("SPARSEK_STORE_BELOW", file, 1);
        assert_int_equal(spk_store_open_layers(b.store), SPK_OK);
        unsetenv("SPARSEK_STORE_BELOW");
        assert_string_equal(spk_store_below(b.store), file);
        fake_runs();
        spk_choice choice = choose(&b);
        must_be(&choice, turn == 0 ? "from the store" : "from the store", turn == 0 ? "fake1" : "fake0");
        set_size(&b, 64);
        choice = choose(&b);
        must_be(&choice, "nearest class, of n=23", turn == 0 ? "fake1" : "fake0");
        assert_int_equal(fake_runs(), 0);
        set_size(&b, 24);
        fakes[0].us = 10; /* what is learned afresh goes into the one above, which is asked first */
        b.options.fresh = 1;
        choice = choose(&b);
        must_be(&choice, "measured", "fake0");
        bench_close(&b);
    }
    open_bench(&b, file);
    spk_choice choice = choose(&b);
    must_be(&choice, "from the store", "fake1");
    bench_close(&b);
    unlink(above);
    snprintf(above, sizeof above, "%s.above.lock", file);
    unlink(above);
}

static int begin(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "/tmp/sparsek-near-XXXXXX");
    const int made = mkstemp(file);
    if (made < 0)
        return -1;
    close(made);
    return unlink(file);
}

static int end(void **state)
{
    (void)state;
    char lock[80];
    snprintf(lock, sizeof lock, "%s.lock", file);
    unlink(file);
    unlink(lock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_sizes),
        cmocka_unit_test(few_sizes),
        cmocka_unit_test(warmed_up),
        cmocka_unit_test(whose_evidence),
        cmocka_unit_test(far_slower_is_not_taken),
        cmocka_unit_test(who_wants_more_gets_it),
        cmocka_unit_test(what_cannot_is_not_taken),
        cmocka_unit_test(a_sibling_decides),
        cmocka_unit_test(a_sibling_is_ahead),
        cmocka_unit_test(a_changed_kernel_is_measured),
        cmocka_unit_test_setup_teardown(a_bundle_decides, begin, end),
        cmocka_unit_test_setup_teardown(another_machine_has_no_part_in_it, begin, end),
        cmocka_unit_test_setup_teardown(bundles_that_are_none, begin, end),
        cmocka_unit_test_setup_teardown(a_store_below, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
