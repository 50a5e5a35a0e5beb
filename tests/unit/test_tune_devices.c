/* Devices with memory of their own: copies, noise made there, what is prepared and refused, checks that look at outputs there. */
#include "test_tune_fake.h"

#include "tune/search/search.h"

static const spk_kernel one[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "")};

/* A device whose memory the host cannot read: everything passes through copy_out. */
static int copies_out;

static spk_status counted_copy_out(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    copies_out++;
    memcpy(to, from, bytes);
    return SPK_OK;
}

static void memory_of_its_own(void **state)
{
    (void)state;
    spk_kernel row = one[0];
    row.backend = SPK_BACKEND_CUDA;
    bench b;
    bench_open(&b, &row, 1, "");
    spk_backend apart = fake_backend;
    apart.id = SPK_BACKEND_CUDA, apart.host_memory = apart.shares_processors = apart.splits_batches = false;
    apart.copy_out = counted_copy_out;
    b.device.backend = &apart;
    copies_out = 0;
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(chosen_name(report), "fake0");
    assert_true(report->candidates[0].error >= 0 && copies_out >= 3);
    spk_report_release(&report);
    bench_close(&b);
}

/* Where the operands are made on the device, they are the same ones. */
static void noise_is_doubled_there(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 2000; n = 3 * n + 1) {
        bench b;
        bench_open(&b, one, 1, "");
        spk_pattern_release(&b.pattern);
        b.pattern = fake_pattern(2048, 32, 0.3, 1);
        b.problem = fake_problem(b.pattern, n);
        b.problem.cache = SPK_WARM;
        spk_backend apart = fake_backend;
        apart.id = SPK_BACKEND_CUDA, apart.host_memory = apart.shares_processors = apart.splits_batches = false;
        spk_operands *near = NULL, *far = NULL;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, NULL, &near), SPK_OK);
        b.device.backend = &apart;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, NULL, &far), SPK_OK);
        assert_memory_equal(near->args[0].b, far->args[0].b, near->bytes[SPK_B]);
        assert_memory_equal(near->args[0].a, far->args[0].a, near->bytes[SPK_A]);
        spk_operands_release(&near);
        spk_operands_release(&far);
        bench_close(&b);
    }
}

/* A device that prepares: what it refuses is not run; what it does not know of is not tried. */
static int waves, prepared_count;

static spk_status refuse_the_second(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    (void)device, (void)problem, (void)stop;
    waves++;
    for (int i = 0; i < count; i++, prepared_count++)
        if (strcmp(list[i].kernel->name, "fake1") == 0) {
            list[i].status = SPK_ERR_INTERNAL;
            snprintf(list[i].why, sizeof list[i].why, "it hung in the prover");
        }
    return SPK_OK;
}

static void refused_ones_are_out(void **state)
{
    (void)state;
    const spk_kernel rows[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""), FAKE_ROW(1, b, SPK_KIND_OWN, 10, false, "")};
    bench b;
    bench_open(&b, rows, 2, "");
    spk_backend careful = fake_backend;
    careful.prepare = refuse_the_second;
    b.device.backend = &careful;
    waves = prepared_count = 0;
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_string_equal(chosen_name(report), "fake0");
    assert_int_equal(report->candidates[1].status, SPK_CANDIDATE_FAILED);
    assert_string_equal(report->candidates[1].why, "it hung in the prover");
    assert_true(waves == 1 && prepared_count == 2);
    spk_report_release(&report);
    bench_close(&b);
}

/* Three rows of eight candidates: only the promising are prepared, two of each row at least, in one call; the others say why not. */
static int prepared_of[FAKES], told_programs;

static spk_status count_prepared(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    (void)device, (void)problem, (void)stop;
    waves++;
    for (int i = 0; i < count; i++)
        prepared_of[fake_number(list[i].kernel)]++;
    return SPK_OK;
}

static void hear(void *user, int64_t done, int64_t total, const char *what)
{
    (void)user, (void)done;
    if (strncmp(what, "proving ", 8) == 0 || strncmp(what, "compiling ", 10) == 0)
        told_programs = (int)total;
}

static const spk_kernel many[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7 W=0,1"),
    FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7 W=0,1"),
    FAKE_ROW(2, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7"),
    FAKE_ROW(3, a, SPK_KIND_DENSE, 10, true, "V=0,1"),
};

static void open_many(bench *b, spk_backend *careful)
{
    bench_open(b, many, 4, "");
    *careful = fake_backend;
    careful->prepare = count_prepared;
    b->device.backend = careful;
    b->tuner.progress = hear;
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < 8; v++)
            fakes[i].param_us[v] = v;
    fakes[2].us = 400;
    waves = told_programs = 0;
    memset(prepared_of, 0, sizeof prepared_of);
}

static void only_the_promising_are_prepared(void **state)
{
    (void)state;
    bench b;
    spk_backend careful;
    spk_report *report = NULL;
    open_many(&b, &careful);
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(waves, 1);
    assert_int_equal(prepared_of[0] + prepared_of[1] + prepared_of[2], 28);
    assert_int_equal(prepared_of[2], 2); /* four times as long: its best two */
    assert_int_equal(prepared_of[3], 1); /* what assume_finite would gain */
    assert_int_equal(told_programs, 29);
    const spk_evidence *left_out = entry_of(report, "fake2", "V=5");
    assert_int_equal(left_out->status, SPK_CANDIDATE_PRUNED);
    assert_string_equal(left_out->why, "not tried: 28 others look more promising");
    assert_true(entry_of(report, "fake3", "V=0")->median_us > 0);
    spk_report_release(&report);

    for (int i = 0; i < 4; i++)
        fakes[i].model_us = 1e8; /* all of them are thought to take long: that leaves none out */
    b.options.fresh = 1;
    memset(prepared_of, 0, sizeof prepared_of);
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(prepared_of[0] + prepared_of[1] + prepared_of[2], 28);
    spk_report_release(&report);

    b.options.effort = SPK_TUNE_EXHAUSTIVE;
    waves = 0;
    memset(prepared_of, 0, sizeof prepared_of);
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(waves, 1);
    assert_int_equal(prepared_of[0] + prepared_of[1] + prepared_of[2], 40);
    spk_report_release(&report);
    bench_close(&b);
}

static void a_race_prepares_some_of_each_row(void **state)
{
    (void)state;
    bench b;
    spk_backend careful;
    spk_report *report = NULL;
    open_many(&b, &careful);
    fakes[2].model_us = 1e9; /* a run of minutes could pass for one that hangs */
    spk_race_options options = {.struct_size = sizeof options, .rounds = 3};
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_OK);
    assert_int_equal(waves, 1);
    assert_true(prepared_of[0] == 6 && prepared_of[1] == 6 && prepared_of[2] == 0 && prepared_of[3] == 2);
    assert_int_equal(entry_of(report, "fake2", NULL)->status, SPK_CANDIDATE_PRUNED);
    assert_string_equal(entry_of(report, "fake2", NULL)->why, "not tried: one run is expected to take 1000 s");
    assert_int_equal(atomic_load(&fakes[2].runs), 0);
    assert_true(entry_of(report, "fake0", NULL)->sample_count == 3 && entry_of(report, "fake3", NULL)->sample_count == 3);
    spk_report_release(&report);

    waves = 0;
    memset(prepared_of, 0, sizeof prepared_of);
    options.choices = "fake0 V=7 W=1;fake2 V=3"; /* whoever is named meets */
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_OK);
    assert_true(waves == 1 && prepared_of[0] == 1 && prepared_of[2] == 1);
    assert_int_equal(entry_of(report, "fake2", NULL)->sample_count, 3);
    spk_report_release(&report);
    bench_close(&b);
}

/* A device that looks through outputs: where it says that all is whole, samples are compared all the same; where not, the host has the last
 * word. */
static int scans;
static bool scan_says;

static spk_status say_whole(spk_device *device, const spk_scan *scan, bool *clean)
{
    (void)device;
    assert_true(scan->lines == 256 && scan->length == 24 && scan->ld >= 24 && scan->dtype == SPK_F32);
    scans++;
    *clean = scan_says;
    return SPK_OK;
}

static spk_status cannot_scan(spk_device *device, const spk_scan *scan, bool *clean)
{
    (void)device, (void)scan;
    scans++;
    *clean = true;
    return SPK_ERR_UNAVAILABLE;
}

static void check_scan(spk_status (*scan)(spk_device *, const spk_scan *, bool *), bool says, fake_mode mode, spk_candidate_status status,
                       const char *why)
{
    bench b;
    bench_open(&b, many + 2, 2, "");
    spk_backend looking = fake_backend;
    looking.scan = scan;
    b.device.backend = &looking;
    scans = 0;
    scan_says = says;
    fakes[2].mode = mode;
    spk_report *report = NULL;
    spk_race_options options = {.struct_size = sizeof options, .rounds = 3, .choices = "fake2 V=0"};
    spk_status result = spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report);
    assert_int_equal(result, SPK_OK);
    assert_int_equal(scans, 1);
    assert_int_equal(report->candidates[0].status, status);
    assert_non_null(strstr(report->candidates[0].why, why));
    spk_report_release(&report);
    bench_close(&b);
}

static void a_device_may_look_itself(void **state)
{
    (void)state;
    check_scan(say_whole, true, FAKE_RIGHT, SPK_CANDIDATE_OK, "");
    check_scan(say_whole, true, FAKE_WRONG, SPK_CANDIDATE_WRONG, "the oracle says");
    check_scan(say_whole, true, FAKE_NAN, SPK_CANDIDATE_WRONG, "the oracle says");
    check_scan(say_whole, false, FAKE_RIGHT, SPK_CANDIDATE_OK, "");
    check_scan(say_whole, false, FAKE_UNWRITTEN, SPK_CANDIDATE_WRONG, "was not written");
    check_scan(cannot_scan, true, FAKE_UNWRITTEN, SPK_CANDIDATE_WRONG, "was not written");
}

/* A device whose memory the host cannot read, though it is the host's here. */
static int copied_pieces;
static bool gather_fails;

static spk_status copy_piece(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    copied_pieces++;
    memcpy(to, from, bytes);
    return SPK_OK;
}

static spk_status gather_here(spk_device *device, const spk_scan *scan, const int64_t *at, int count, void *to)
{
    (void)device;
    assert_true(scan->dtype == SPK_F32 && scan->lines == 24 && scan->length == 256 && scan->ld == 300);
    for (int i = 0; i < count; i++)
        for (int64_t line = 0; line < scan->lines; line++)
            ((float *)to)[i * scan->lines + line] = ((const float *)scan->array)[line * scan->ld + at[i]];
    return gather_fails ? SPK_ERR_UNAVAILABLE : SPK_OK;
}

static void rows_of_a_far_output(void **state)
{
    (void)state;
    const int64_t rows[] = {255, 0, 17};
    for (int by_column = 0; by_column < 2; by_column++) {
        bench b;
        bench_open(&b, one, 1, "");
        spk_backend far = fake_backend;
        far.copy_out = copy_piece;
        far.gather = gather_here;
        b.problem.d.layout = by_column ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
        b.problem.d.ld = by_column ? 300 : 40;
        spk_operands *operands = NULL;
        const void *view = NULL;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 7, NULL, &operands), SPK_OK);
        b.device.backend = &far;
        far.id = SPK_BACKEND_CUDA, far.host_memory = false;
        copied_pieces = 0;
        gather_fails = false;
        const float *d = operands->args[0].d;
        assert_int_equal(spk_operands_view_rows(operands, SPK_D, rows, 3, &view), SPK_OK);
        assert_int_equal(copied_pieces, by_column ? 0 : 3);
        for (int i = 0; i < 3; i++)
            for (int64_t column = 0; column < 24; column++) {
                const int64_t at = by_column ? column * 300 + rows[i] : rows[i] * 40 + column;
                assert_true(view != d && memcmp((const float *)view + at, d + at, sizeof(float)) == 0);
            }
        gather_fails = true;
        assert_int_equal(spk_operands_view_rows(operands, SPK_D, rows, 3, &view), by_column ? SPK_ERR_UNAVAILABLE : SPK_OK);
        b.device.backend = &fake_backend;
        spk_operands_release(&operands);
        bench_close(&b);
    }
}

static void rows_of_other_devices_are_not_listed(void **state)
{
    (void)state;
    spk_kernel rows[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "V=0,1"), FAKE_ROW(1, a, SPK_KIND_OWN, 10, false, "V=0,1,2")};
    rows[1].backend = SPK_BACKEND_CUDA;
    bench b;
    bench_open(&b, rows, 2, "");
    spk_report *report = NULL;
    assert_int_equal(spk_tune_list(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(report->count, 2);
    assert_null(entry_of(report, "fake1", NULL));
    spk_report_release(&report);
    spk_race_options options = {.struct_size = sizeof options, .choices = "fake1 V=0"};
    assert_int_equal(spk_tune_race(&b.tuner, &b.problem, &b.options, &options, &report), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_error_last(), "another kind of device"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_its_own),
        cmocka_unit_test(noise_is_doubled_there),
        cmocka_unit_test(refused_ones_are_out),
        cmocka_unit_test(only_the_promising_are_prepared),
        cmocka_unit_test(a_race_prepares_some_of_each_row),
        cmocka_unit_test(a_device_may_look_itself),
        cmocka_unit_test(rows_of_a_far_output),
        cmocka_unit_test(rows_of_other_devices_are_not_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
