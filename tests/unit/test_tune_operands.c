/* Operands and checks: how many sets, what they hold, what a device with memory of its own changes, what samples of a problem are. */
#include "test_tune_fake.h"

#include "tune/search.h"

static const spk_kernel one[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "")};

static void cold_sets_exceed_the_cache(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    b.problem.cache = SPK_COLD;
    spk_operands *o = NULL;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    double touched = (double)(o->bytes[SPK_OPERAND_A] + o->bytes[SPK_OPERAND_B] + o->bytes[SPK_OPERAND_D]);
    assert_true(o->sets > 1 && touched * (double)o->sets > 2.0 * (double)b.device.l3_bytes);
    for (int64_t i = 0; i < o->sets; i++) {
        assert_int_equal((uintptr_t)o->args[i].a % 64, 0);
        assert_int_equal((uintptr_t)o->args[i].b % 64, 0);
        assert_int_equal((uintptr_t)o->args[i].d % 64, 0);
        assert_int_equal(spk_problem_check_args(&b.problem, &o->args[i]), SPK_OK);
        assert_true(i == 0 || o->args[i].a != o->args[i - 1].a);
    }
    assert_memory_not_equal(o->args[0].b, o->args[1].b, 64);
    spk_operands_release(&o);

    b.problem.static_values = true; /* the values stay the same from run to run */
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    assert_true(o->sets > 1 && o->args[1].a == o->args[0].a && o->args[1].b != o->args[0].b);
    spk_operands_release(&o);

    b.problem.cache = SPK_WARM;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    assert_int_equal(o->sets, 1);
    spk_operands_release(&o);
    bench_close(&b);
}

static int copies_in;

static spk_status slow_copy_in(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    memcpy(to, from, bytes);
    return SPK_OK;
}

static spk_status interrupting_copy_in(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (++copies_in == 5)
        atomic_store(&fake_interrupted, 1);
    memcpy(to, from, bytes);
    return SPK_OK;
}

/* Neither the time for cold sets nor an interruption waits until all of them are full; a later stage takes the same memory. */
static void time_is_bounded(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    b.device.l3_bytes = INT64_C(1) << 26;
    b.problem.cache = SPK_COLD;
    spk_backend slow = fake_backend;
    slow.copy_in = slow_copy_in;
    b.device.backend = &slow;
    spk_room room = {.limit_us = 30000};
    spk_operands *o = NULL;
    double start = spk_now_us();
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, &room, &o), SPK_OK);
    assert_true(spk_now_us() - start < 300000);
    assert_true(o->sets >= 1 && o->sets < 100);
    for (int64_t i = 0; i < o->sets; i++)
        assert_int_equal(spk_problem_check_args(&b.problem, &o->args[i]), SPK_OK);
    void *memory = room.memory;
    spk_operands_release(&o);
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 2, &room, &o), SPK_OK);
    assert_ptr_equal(room.memory, memory);
    spk_operands_release(&o);

    slow.copy_in = interrupting_copy_in;
    copies_in = 0;
    room.limit_us = 0;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, &room, &o), SPK_ERR_INTERRUPTED);
    assert_null(o);
    assert_int_equal(copies_in, 5);
    spk_room_release(&b.device, &room);
    assert_null(room.memory);
    bench_close(&b);
}

static int64_t little_memory(spk_device *device)
{
    (void)device;
    return 1 << 18;
}

static void memory_is_bounded(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    spk_backend tight = fake_backend;
    tight.free_memory = little_memory;
    b.device.backend = &tight;
    b.problem.cache = SPK_COLD;
    spk_operands *o = NULL;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    assert_true(o->sets == 1 || (double)spk_operands_set_bytes(&b.problem) * (double)o->sets <= 0.25 * (1 << 18));
    assert_int_equal(spk_operands_workspace(o, 1 << 12), SPK_OK);
    assert_int_equal(spk_operands_workspace(o, 1 << 19), SPK_ERR_OUT_OF_MEMORY);
    spk_operands_release(&o);
    b.problem = fake_problem(b.pattern, 4096); /* one set is more than there is */
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_ERR_OUT_OF_MEMORY);
    assert_null(o);
    bench_close(&b);
}

/* A caller's device memory: what the stream was, and what is still lent. */
static char own_stream;
static size_t lent_bytes;
static int lent, lend_at_most;

static void *fake_own_stream(spk_device *device)
{
    (void)device;
    return &own_stream;
}

static void *lend(void *user, size_t bytes, void *stream)
{
    assert_true(user == &lent && stream == &own_stream);
    if (lent == lend_at_most)
        return NULL;
    lent++;
    lent_bytes += bytes;
    return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

static void take_back(void *user, void *memory, size_t bytes, void *stream)
{
    assert_true(user == &lent && stream == &own_stream && memory != NULL && bytes <= lent_bytes);
    lent--;
    lent_bytes -= bytes;
    free(memory);
}

static void a_caller_gives_the_memory(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    spk_backend tight = fake_backend;
    tight.free_memory = little_memory; /* not asked: the caller may have more */
    tight.own_stream = fake_own_stream;
    b.device.backend = &tight;
    b.device.device_mem = (spk_device_mem){lend, take_back, &lent};
    b.problem.cache = SPK_COLD;
    lend_at_most = 3;
    spk_operands *o = NULL;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    assert_int_equal(lent, 1);
    assert_int_equal(spk_operands_workspace(o, 1 << 19), SPK_OK);
    assert_int_equal(spk_operands_workspace(o, 1 << 20), SPK_OK); /* the smaller one is given back */
    assert_int_equal(lent, 2);
    lend_at_most = 2;
    assert_int_equal(spk_operands_workspace(o, 1 << 21), SPK_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(spk_error_last(), "device_allocate gave no 2097152 bytes"));
    spk_operands_release(&o);
    assert_true(lent == 0 && lent_bytes == 0);
    bench_close(&b);
}

/* Values look normal, and no two operands hold the same. */
static void the_noise_is_noise(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    spk_pattern_release(&b.pattern);
    b.pattern = fake_pattern(2048, 32, 0.3, 1);
    b.problem = fake_problem(b.pattern, 200);
    spk_operands *o = NULL;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, NULL, &o), SPK_OK);
    const float *values = o->args[0].a, *dense = o->args[0].b;
    int64_t count = spk_problem_operand_elements(&b.problem, SPK_OPERAND_B), equal = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += dense[i];
        squares += dense[i] * dense[i];
        equal += dense[i] == values[i];
    }
    assert_true(fabs(sum / (double)count) < 0.02 && fabs(squares / (double)count - 1) < 0.02);
    assert_true(equal < count / 100);
    for (int64_t shift = 200; shift < 20000; shift += 200) /* rows of B differ */
        assert_memory_not_equal(dense, dense + shift, 200 * sizeof(float));
    spk_operands_release(&o);
    bench_close(&b);
}

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
    apart.id = SPK_BACKEND_CUDA;
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
        apart.id = SPK_BACKEND_CUDA;
        spk_operands *near = NULL, *far = NULL;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, NULL, &near), SPK_OK);
        b.device.backend = &apart;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, NULL, &far), SPK_OK);
        assert_memory_equal(near->args[0].b, far->args[0].b, near->bytes[SPK_OPERAND_B]);
        assert_memory_equal(near->args[0].a, far->args[0].a, near->bytes[SPK_OPERAND_A]);
        spk_operands_release(&near);
        spk_operands_release(&far);
        bench_close(&b);
    }
}

/* A device that prepares: what it refuses is not run; what it does not know of is not tried. */
static int waves, prepared_count;

static spk_status refuse_the_second(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const atomic_int *interrupted)
{
    (void)device, (void)problem, (void)interrupted;
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

static spk_status count_prepared(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const atomic_int *interrupted)
{
    (void)device, (void)problem, (void)interrupted;
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
    assert_int_equal(prepared_of[0] + prepared_of[1] + prepared_of[2], 24);
    assert_int_equal(prepared_of[2], 2); /* four times as long: its best two */
    assert_int_equal(prepared_of[3], 1); /* what assume_finite would gain */
    assert_int_equal(told_programs, 25);
    const spk_evidence *left_out = entry_of(report, "fake2", "V=5");
    assert_int_equal(left_out->status, SPK_CANDIDATE_PRUNED);
    assert_string_equal(left_out->why, "not tried: 24 others look more promising");
    assert_true(entry_of(report, "fake3", "V=0")->median_us > 0);
    spk_report_release(&report);

    for (int i = 0; i < 4; i++)
        fakes[i].model_us = 1e8; /* all of them are thought to take long: that leaves none out */
    b.options.fresh = 1;
    memset(prepared_of, 0, sizeof prepared_of);
    assert_int_equal(spk_tune_problem(&b.tuner, &b.problem, &b.options, &report), SPK_OK);
    assert_int_equal(prepared_of[0] + prepared_of[1] + prepared_of[2], 24);
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

/* A device that looks through outputs: where it says that all is whole, samples are compared all the same; where not, the host has the last word. */
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

static void check_scan(spk_status (*scan)(spk_device *, const spk_scan *, bool *), bool says, fake_mode mode, spk_candidate_status status, const char *why)
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
        b.problem.layout_d = by_column ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
        b.problem.ldd = by_column ? 300 : 40;
        spk_operands *operands = NULL;
        const void *view = NULL;
        assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 7, NULL, &operands), SPK_OK);
        b.device.backend = &far;
        far.id = SPK_BACKEND_CUDA;
        copied_pieces = 0;
        gather_fails = false;
        const float *d = operands->args[0].d;
        assert_int_equal(spk_operands_view_rows(operands, SPK_OPERAND_D, b.problem.ldd, rows, 3, &view), SPK_OK);
        assert_int_equal(copied_pieces, by_column ? 0 : 3);
        for (int i = 0; i < 3; i++)
            for (int64_t column = 0; column < 24; column++) {
                const int64_t at = by_column ? column * 300 + rows[i] : rows[i] * 40 + column;
                assert_true(view != d && memcmp((const float *)view + at, d + at, sizeof(float)) == 0);
            }
        gather_fails = true;
        assert_int_equal(spk_operands_view_rows(operands, SPK_OPERAND_D, b.problem.ldd, rows, 3, &view), by_column ? SPK_ERR_UNAVAILABLE : SPK_OK);
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

static void every_option_is_checked(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        bench b;
        bench_open(&b, one, 1, "");
        spk_spmm spmm = {.struct_size = sizeof spmm, .n = i % 3 == 0 ? 17 : 130, .dtype_a = i & 1 ? SPK_F64 : SPK_F32, .trans_a = i & 2 ? SPK_TRANS : SPK_NO_TRANS,
                         .layout_b = i & 4 ? SPK_COL_MAJOR : SPK_ROW_MAJOR, .layout_d = i & 8 ? SPK_COL_MAJOR : SPK_ROW_MAJOR, .use_c = (i >> 4) & 1,
                         .bias = (spk_bias)(i % 3), .activation = (spk_activation)(i % 5), .residual = (spk_residual)((i >> 5) % 3), .keep_preact = (i >> 1) & 1,
                         .ldb = i % 5 == 0 ? 300 : 0, .ldd = i % 7 == 0 ? 301 : 0};
        assert_int_equal(spk_problem_from_spmm(b.pattern, &spmm, &b.options, &b.problem), SPK_OK);
        fake_whole_work = fake_work(&b.problem);
        spk_report *report = NULL;
        spk_status status = spk_tune_problem(&b.tuner, &b.problem, &b.options, &report);
        if (status != SPK_OK)
            fail_msg("case %d: %s", i, spk_error_last());
        assert_true(report->candidates[0].error >= 0 && report->candidates[0].error <= report->candidates[0].tolerance);
        spk_report_release(&report);
        bench_close(&b);
    }
}

static void samples_keep_the_proportions(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    spk_pattern_release(&b.pattern);
    spk_generate how = {.struct_size = sizeof how, .generator = SPK_GEN_POWER_LAW, .rows = 4096, .cols = 4096, .block_rows = 16, .block_cols = 16, .density = 0.1, .seed = 2,
                        .dtype = SPK_F32};
    spk_matrix *matrix = NULL;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, &how, &matrix, NULL), SPK_OK);
    spk_bsr_indices indices = {.struct_size = sizeof indices, .rows = 4096, .cols = 4096, .block_rows = 16, .block_cols = 16, .nnzb = matrix->nnz,
                               .row_offsets = matrix->row_offsets, .col_indices = matrix->col_indices, .index_type = SPK_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &b.pattern), SPK_OK);
    spk_matrix_release(&matrix);
    for (int trans = 0; trans < 2; trans++)
        for (int64_t rows = 8; rows < 256; rows *= 2) {
            b.problem = fake_problem(b.pattern, 32);
            b.problem.trans_a = trans ? SPK_TRANS : SPK_NO_TRANS;
            spk_stage *stage = NULL;
            assert_int_equal(spk_stage_make(&b.tuner, &b.problem, (spk_level){.rows = rows, .cols = 16}, (uint64_t)rows, 1000, NULL, &stage), SPK_OK);
            assert_int_equal(stage->problem.n, 16);
            assert_true(stage->problem.m >= 16 * rows && stage->problem.m < 16 * (rows + 4));
            if (fabs(stage->share / stage->row_share - 1) > 0.35)
                fail_msg("%d of 256 rows hold %.3f of the blocks", (int)rows, 2 * stage->share);
            spk_stage_release(&stage);
        }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_sets_exceed_the_cache), cmocka_unit_test(memory_is_bounded),       cmocka_unit_test(a_caller_gives_the_memory), cmocka_unit_test(the_noise_is_noise),
        cmocka_unit_test(time_is_bounded),            cmocka_unit_test(memory_of_its_own),       cmocka_unit_test(every_option_is_checked),
        cmocka_unit_test(samples_keep_the_proportions), cmocka_unit_test(noise_is_doubled_there), cmocka_unit_test(refused_ones_are_out),
        cmocka_unit_test(only_the_promising_are_prepared), cmocka_unit_test(a_race_prepares_some_of_each_row), cmocka_unit_test(rows_of_a_far_output),
        cmocka_unit_test(rows_of_other_devices_are_not_listed),
        cmocka_unit_test(a_device_may_look_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
