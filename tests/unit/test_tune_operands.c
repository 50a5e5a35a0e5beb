/* Operands and checks: how many sets, what they hold, whose memory they take, what samples of a problem are. */
#include "test_tune_fake.h"

#include "op/attention/attention.h"
#include "tune/search/search.h"

static const spk_kernel one[] = {FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "")};

static void cold_sets_exceed_the_cache(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, one, 1, "");
    b.problem.cache = SPK_COLD;
    spk_operands *o = NULL;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, NULL, &o), SPK_OK);
    double touched = (double)(o->bytes[SPK_A] + o->bytes[SPK_B] + o->bytes[SPK_D]);
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

/* LSE is a number of the tuner's own: no weight that follows from it is so large that 2^12 times it is none in f16, however few keys there
 * are. */
static void weights_of_gradients_stay_small(void **state)
{
    (void)state;
    spk_rng rng;
    bench b;
    bench_open(&b, one, 1, "");
    for (uint64_t seed = 1; seed <= 40; seed++) {
        spk_rng_seed(&rng, seed);
        const spk_attention_backward asked = {SPK_SIZED(spk_attention_backward),
                                              .dtype = SPK_F16,
                                              .heads = 2,
                                              .heads_kv = 2,
                                              .queries = 1 + (int64_t)spk_rng_below(&rng, 160),
                                              .keys = 1 + (int64_t)spk_rng_below(&rng, seed % 2 != 0 ? 160 : 4),
                                              .depth = 8 * (int64_t)(2 + spk_rng_below(&rng, 31))};
        spk_problem problem;
        spk_operands *o = NULL;
        assert_int_equal(spk_problem_read(&spk_op_attention_backward, NULL, &asked, &b.options, &problem), SPK_OK);
        assert_int_equal(spk_operands_make(&b.tuner, &problem, seed, NULL, &o), SPK_OK);
        double most = -INFINITY;
        for (int64_t row = 0; row < 2 * problem.m; row++)
            for (int64_t key = 0; key < problem.n; key++) {
                double score = 0;
                for (int64_t d = 0; d < problem.k; d++)
                    score +=
                        spk_operand_get(&problem.operand[ATTENTION_Q], o->args[0].at[ATTENTION_Q], row, d) *
                        spk_operand_get(&problem.operand[ATTENTION_K], o->args[0].at[ATTENTION_K], row / problem.m * problem.n + key, d);
                most = fmax(most, SPK_ATTENTION_TUNED_SCALE * score -
                                      spk_operand_get(&problem.operand[ATTENTION_LSE], o->args[0].at[ATTENTION_LSE], row, 0));
            }
        if (most > log(16))
            fail_msg("seed %d: a score is %g above its LSE", (int)seed, most);
        spk_operands_release(&o);
    }
    bench_close(&b);
}

/* The score of a row with itself is far above that of two random rows, and a weight that follows from it may be infinite in f16. */
static void no_row_of_an_operand_is_one_of_another(void **state)
{
    (void)state;
    enum { ROWS = 128, DEPTH = 16 };
    const spk_attention_backward asked = {SPK_SIZED(spk_attention_backward), .dtype = SPK_F16, .queries = ROWS, .keys = ROWS,
                                          .depth = DEPTH};
    const int operands[] = {ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O};
    spk_problem problem;
    bench b;
    bench_open(&b, one, 1, "");
    assert_int_equal(spk_problem_read(&spk_op_attention_backward, NULL, &asked, &b.options, &problem), SPK_OK);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        spk_operands *o = NULL;
        assert_int_equal(spk_operands_make(&b.tuner, &problem, seed, NULL, &o), SPK_OK);
        for (int one_of = 0; one_of < 4; one_of++)
            for (int other = 0; other < one_of; other++)
                for (int i = 0; i < ROWS * ROWS; i++) {
                    const size_t bytes = DEPTH * spk_dtype_bytes(SPK_F16);
                    const char *x = o->args[0].at[operands[one_of]], *y = o->args[0].at[operands[other]];
                    if (memcmp(x + (size_t)(i / ROWS) * bytes, y + (size_t)(i % ROWS) * bytes, bytes) == 0)
                        fail_msg("seed %d: row %d of operand %d is row %d of operand %d", (int)seed, i / ROWS, operands[one_of], i % ROWS,
                                 operands[other]);
                }
        spk_operands_release(&o);
    }
    bench_close(&b);
}

static int copies_in;

static spk_status slow_copy_in(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    fake_clock_pass(2000);
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
    spk_operand_memory operand_memory = {.limit_us = 30000};
    spk_operands *o = NULL;
    fake_clock_begin();
    double start = spk_now_us();
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, &operand_memory, &o), SPK_OK);
    assert_true(spk_now_us() - start < 300000);
    assert_true(o->sets >= 1 && o->sets < 100);
    for (int64_t i = 0; i < o->sets; i++)
        assert_int_equal(spk_problem_check_args(&b.problem, &o->args[i]), SPK_OK);
    void *memory = operand_memory.memory;
    spk_operands_release(&o);
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 2, &operand_memory, &o), SPK_OK);
    assert_ptr_equal(operand_memory.memory, memory);
    spk_operands_release(&o);

    /* nor is memory taken, and written to, that no set would fill in time: a gigabyte of cache takes a second */
    b.device.l3_bytes = INT64_C(1) << 30;
    spk_operand_memory_release(&b.device, &operand_memory);
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 3, &operand_memory, &o), SPK_OK);
    assert_true(operand_memory.bytes > 0 && operand_memory.bytes <= 32 << 20);
    spk_operands_release(&o);
    b.device.l3_bytes = INT64_C(1) << 26;
    spk_operand_memory_release(&b.device, &operand_memory);

    slow.copy_in = interrupting_copy_in;
    copies_in = 0;
    operand_memory.limit_us = 0;
    assert_int_equal(spk_operands_make(&b.tuner, &b.problem, 1, &operand_memory, &o), SPK_ERR_INTERRUPTED);
    assert_null(o);
    assert_int_equal(copies_in, 5);
    spk_operand_memory_release(&b.device, &operand_memory);
    assert_null(operand_memory.memory);
    fake_clock_end();
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
    int64_t count = spk_problem_operand_elements(&b.problem, SPK_B), equal = 0;
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

static void every_option_is_checked(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        bench b;
        bench_open(&b, one, 1, "");
        spk_spmm spmm = {.struct_size = sizeof spmm,
                         .n = i % 3 == 0 ? 17 : 130,
                         .dtype_a = i & 1 ? SPK_F64 : SPK_F32,
                         .trans_a = i & 2 ? SPK_TRANS : SPK_NO_TRANS,
                         .layout_b = i & 4 ? SPK_COL_MAJOR : SPK_ROW_MAJOR,
                         .layout_d = i & 8 ? SPK_COL_MAJOR : SPK_ROW_MAJOR,
                         .use_c = (i >> 4) & 1,
                         .bias = (spk_bias)(i % 3),
                         .activation = (spk_activation)(i % 5),
                         .residual = (spk_residual)((i >> 5) % 3),
                         .keep_preact = (i >> 1) & 1,
                         .ldb = i % 5 == 0 ? 300 : 0,
                         .ldd = i % 7 == 0 ? 301 : 0};
        assert_int_equal(spk_problem_read(&spk_op_spmm, b.pattern, &spmm, &b.options, &b.problem), SPK_OK);
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
    spk_generate how = {.struct_size = sizeof how,
                        .generator = SPK_GEN_POWER_LAW,
                        .rows = 4096,
                        .cols = 4096,
                        .block_rows = 16,
                        .block_cols = 16,
                        .density = 0.1,
                        .seed = 2,
                        .dtype = SPK_F32};
    spk_matrix *matrix = NULL;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, &how, &matrix, NULL), SPK_OK);
    spk_bsr_indices indices = {.struct_size = sizeof indices,
                               .rows = 4096,
                               .cols = 4096,
                               .block_rows = 16,
                               .block_cols = 16,
                               .nnzb = matrix->nnz,
                               .row_offsets = matrix->row_offsets,
                               .col_indices = matrix->col_indices,
                               .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &b.pattern), SPK_OK);
    spk_matrix_release(&matrix);
    for (int trans = 0; trans < 2; trans++)
        for (int64_t rows = 8; rows < 256; rows *= 2) {
            b.problem = fake_problem(b.pattern, 32);
            b.problem.trans_a = trans ? SPK_TRANS : SPK_NO_TRANS;
            spk_stage *stage = NULL;
            assert_int_equal(
                spk_stage_make(&b.tuner, &b.problem, (spk_level){.rows = rows, .cols = 16}, (uint64_t)rows, 1000, NULL, &stage), SPK_OK);
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
        cmocka_unit_test(weights_of_gradients_stay_small),
        cmocka_unit_test(no_row_of_an_operand_is_one_of_another),
        cmocka_unit_test(cold_sets_exceed_the_cache),
        cmocka_unit_test(time_is_bounded),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_caller_gives_the_memory),
        cmocka_unit_test(the_noise_is_noise),
        cmocka_unit_test(every_option_is_checked),
        cmocka_unit_test(samples_keep_the_proportions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
