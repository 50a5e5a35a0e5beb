/* The build's own rows: after a race at eight of the size that moves (columns, depth, queries), on a quiet machine and on one that others
 * use, no plan of any size is a reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/rng.h"
#include "matrix/matrix.h"
#include "op/operation.h"
#include "registry/registry.h"
#include "tune/choose/tune.h"

enum { OPERATIONS = 5 };

typedef struct sweep {
    spk_device *device;
    spk_store *store;
    spk_pattern *pattern;
    spk_tuner tuner;
    spk_tune_options options;
    spk_dtype dtype;
    int64_t size; /* what does not move */
    uint64_t seed;
} sweep;

static bool busy;

static bool busy_now(int threads)
{
    (void)threads;
    return busy;
}

/* Two processors, and others use both of them or none. */
static spk_load load_now(void)
{
    static spk_load load = {.cpus = 2};
    load.at_s += 1;
    load.busy_s += busy ? 2 : 0;
    return load;
}

static void ok(const sweep *s, spk_status status)
{
    if (status != SPK_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)s->seed, spk_status_name(status), spk_error_last());
}

static void draw_pattern(sweep *s, spk_rng *rng)
{
    const int64_t block = INT64_C(1) << spk_rng_below(rng, 5);
    spk_generate how = {SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = s->size, .cols = s->size,
                        .block_rows = block,     .block_cols = block,          .density = 0.1,  .seed = s->seed,
                        .dtype = SPK_F32};
    spk_matrix *matrix = NULL;
    ok(s, spk_generate_matrix(&spk_mem_system, &how, &matrix, NULL));
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                               .rows = s->size,
                               .cols = s->size,
                               .block_rows = block,
                               .block_cols = block,
                               .nnzb = matrix->nnz,
                               .row_offsets = matrix->row_offsets,
                               .col_indices = matrix->col_indices,
                               .index_type = SPK_INDEX_I64};
    ok(s, spk_pattern_make(&spk_mem_system, &indices, &s->pattern));
    spk_matrix_release(&matrix);
}

static void open_sweep(sweep *s, uint64_t seed)
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_BF16, SPK_F16};
    spk_rng rng;
    const spk_executor executor = {.threads = 2};
    spk_rng_seed(&rng, seed);
    *s = (sweep){.seed = seed, .dtype = dtypes[spk_rng_below(&rng, 4)], .size = 64 << spk_rng_below(&rng, 3)};
    ok(s, spk_backend_cpu.open(&spk_mem_system, "cpu", &executor, &s->device));
    ok(s, spk_store_open(&spk_mem_system, "", NULL, NULL, &s->store));
    draw_pattern(s, &rng);
    s->tuner = (spk_tuner){.mem = &spk_mem_system, .device = s->device, .store = s->store, .load_now = load_now, .busy_now = busy_now};
    s->options =
        (spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .seed = seed, .cache = SPK_WARM, .budget_s = 0.05};
}

static void close_sweep(sweep *s)
{
    spk_pattern_release(&s->pattern);
    spk_store_close(&s->store);
    s->device->backend->close(&s->device);
}

static spk_problem problem_of(const sweep *s, int operation, int64_t n)
{
    const spk_dtype dtype = s->dtype;
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = n, .dtype_a = dtype};
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm), .k = n, .dtype_x = dtype};
    const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = s->size, .k = s->size, .n = n, .dtype_a = dtype};
    const spk_attention attention = {SPK_SIZED(spk_attention), .dtype = dtype, .queries = n, .keys = s->size, .depth = 32, .heads = 2};
    const spk_attention_backward backward = {
        SPK_SIZED(spk_attention_backward), .dtype = dtype, .queries = n, .keys = s->size, .depth = 32, .heads = 2};
    const struct {
        spk_operation id;
        spk_pattern *pattern;
        const void *problem;
    } all[OPERATIONS] = {{SPK_SPMM, s->pattern, &spmm},
                         {SPK_SDDMM, s->pattern, &sddmm},
                         {SPK_GEMM, NULL, &gemm},
                         {SPK_ATTENTION, NULL, &attention},
                         {SPK_ATTENTION_BACKWARD, NULL, &backward}};
    spk_problem problem;
    ok(s, spk_problem_read(spk_op_get(all[operation].id), all[operation].pattern, all[operation].problem, &s->options, &problem));
    spk_problem_fold(&problem);
    return problem;
}

static void must_not_be_reference(sweep *s, int operation, int64_t n)
{
    const spk_problem problem = problem_of(s, operation, n);
    for (int i = 0; i < 2; i++) {
        spk_choice choice = {.kernel = NULL};
        s->options.tuning = i == 0 ? SPK_TUNING_NOW : SPK_TUNING_NEVER;
        spk_error_enter(0);
        ok(s, spk_tune_choose(&s->tuner, &problem, &s->options, &choice));
        if (choice.kernel->kind == SPK_KIND_REFERENCE)
            fail_msg("seed %llu, %s, %s, size %d, %d: %s, %s %s", (unsigned long long)s->seed, problem.op->name, busy ? "busy" : "quiet",
                     (int)s->size, (int)n, choice.kernel->name, spk_origin_words(choice.origin), choice.of);
    }
}

static void no_plan_is_a_reference(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * OPERATIONS; i++) {
        const int operation = i / 4;
        sweep s;
        busy = i % 2 == 1;
        open_sweep(&s, (uint64_t)time(NULL) * 10 + (uint64_t)i);
        const spk_problem eight = problem_of(&s, operation, 8);
        const spk_race_options racing = {SPK_SIZED(spk_race_options), .rounds = 3, .keep = 1};
        spk_report *report = NULL;
        spk_error_enter(0);
        ok(&s, spk_tune_race(&s.tuner, &eight, &s.options, &racing, &report));
        assert_true(report->chosen >= 0 && report->candidates[report->chosen].kind != SPK_KIND_REFERENCE);
        spk_report_release(&report);
        for (int64_t n = 1; n <= 64; n++)
            must_not_be_reference(&s, operation, n);
        close_sweep(&s);
    }
}

/* The operands of one column cost what they cost: no model of a reference or a library has it at an eighth of eight columns, and none below
 * what memory gives. */
static void no_model_forgets_the_traffic(void **state)
{
    (void)state;
    sweep s;
    int rows = 0, looked_at = 0;
    const spk_kernel *table = NULL;
    const int count = spk_kernels(&table);
    open_sweep(&s, (uint64_t)time(NULL));
    s.dtype = SPK_F32;
    s.device->stream_gbs = 10;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        spk_problem one = problem_of(&s, operation, 1), eight = problem_of(&s, operation, 8);
        one.cache = eight.cache = SPK_COLD;
        for (rows = 0; rows < count; rows++) {
            const char *why = NULL;
            spk_params params = {{0}};
            if (table[rows].kind == SPK_KIND_OWN || table[rows].backend != SPK_BACKEND_CPU || table[rows].operation != one.op->id ||
                !spk_candidate_applicable(&table[rows], &params, &one, s.device, &why))
                continue;
            const double us = spk_candidate_predict_us(&table[rows], &params, &one, s.device),
                         eight_us = spk_candidate_predict_us(&table[rows], &params, &eight, s.device);
            const bool reference = table[rows].kind == SPK_KIND_REFERENCE, product = one.op->id == SPK_SPMM || one.op->id == SPK_GEMM;
            if (us < 0.59 * spk_problem_bytes(&one) / 10e3 || (reference && product && us < 0.18 * eight_us))
                fail_msg("seed %llu, size %d: %s is predicted at %.3g us, at eight times as much %.3g us", (unsigned long long)s.seed,
                         (int)s.size, table[rows].name, us, eight_us);
            looked_at++;
        }
    }
    assert_true(looked_at >= OPERATIONS);
    close_sweep(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_plan_is_a_reference), cmocka_unit_test(no_model_forgets_the_traffic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
