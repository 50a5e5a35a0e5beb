/* Kernels and a device that behave as a test says: right or wrong, failing, slow, flaky, with times of the test's making. */
#ifndef TEST_TUNE_FAKE_H
#define TEST_TUNE_FAKE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "matrix/matrix.h"
#include "tune/choose/tune.h"
#include "op/product.h"

#include "fake_clock.h"

typedef enum fake_mode {
    FAKE_RIGHT,
    FAKE_WRONG,     /* one element in a hundred is off */
    FAKE_UNWRITTEN, /* leaves one element as it was */
    FAKE_NAN,
    FAKE_BESIDE, /* writes between the rows of D */
    FAKE_NO_PREACT,
    FAKE_FAILS,
    FAKE_NO_MEMORY,
    FAKE_NO_RIGHT, /* a limit of the process keeps it from running */
    FAKE_PASSES    /* when it is bound */
} fake_mode;

enum { FAKES = 8 };

/* What kernel row i does; read by its run and by the device's clock. */
typedef struct fake {
    fake_mode mode;
    double us;                 /* of a run of the whole problem */
    double fixed_us;           /* of it, what does not shrink with a sample */
    double param_us[8];        /* added for the first tunable's value v (0..7) */
    double model_us;           /* what the cost model says; 0: us */
    double spends_us;          /* on the fake clock, by each run */
    double param_spends_us[8]; /* likewise, for the first tunable's value */
    double noise;              /* relative, one-sided, now and then much more */
    double off;                /* added to every element of D, where it is right otherwise */
    int slow_runs;             /* the first runs take 15 ms: the machine was busy */
    double hot;                /* relative, added under load: samples of 2 ms and more, one after the other (of the test's time) */
    double param_hot[8];       /* likewise, for the first tunable's value */
    double disturbed;          /* share of the runs that other programs disturb: they take 40 times as long */
    bool forbidden;            /* not applicable */
    int forbidden_values;      /* likewise with these values of the first tunable: bits */
    atomic_int runs;
} fake;

static fake fakes[FAKES];
static double fake_whole_work; /* blocks times columns of the whole problem */
static atomic_int fake_total_runs;
static atomic_int fake_interrupted;
static int fake_interrupt_after; /* runs; 0: never */
static spk_rng fake_rng;
static double fake_load_us; /* how long the load has gone on */
static int fake_long_samples;
static double fake_others;       /* processors that other programs use while something is measured, of two */
static void (*fake_visit)(void); /* what each run does besides; NULL: nothing */
static bool fake_busy;           /* what the system says at a moment */

static inline int fake_number(const spk_kernel *kernel)
{
    return kernel->name[4] - '0'; /* "fake0".. */
}

static inline double fake_work(const spk_problem *problem)
{
    return (double)problem->pattern->nnzb * (double)problem->n;
}

static inline double fake_time(int number, int param, double work)
{
    const fake *f = &fakes[number];
    double share = fake_whole_work > 0 ? work / fake_whole_work : 1;
    return f->fixed_us + (f->us - f->fixed_us + f->param_us[param & 7]) * share;
}

/* Right but for the mode: the oracle's own result in the problem's dtype. */
static inline spk_status fake_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const spk_problem *p = &bound->problem;
    fake *f = &fakes[fake_number(bound->kernel)];
    atomic_fetch_add(&f->runs, 1);
    if (fake_interrupt_after > 0 && atomic_fetch_add(&fake_total_runs, 1) + 1 >= fake_interrupt_after)
        atomic_store(&fake_interrupted, 1);
    fake_clock_pass(f->spends_us + f->param_spends_us[bound->params.v[0] & 7]);
    if (fake_visit != NULL)
        fake_visit();
    if (f->mode == FAKE_FAILS)
        return spk_fail(SPK_ERR_INTERNAL, "the test makes it fail");
    if (f->mode == FAKE_NO_MEMORY)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "the test leaves it no memory");
    if (f->mode == FAKE_NO_RIGHT)
        return spk_fail(SPK_ERR_UNAVAILABLE, "the test has a limit");
    if (args->alpha == 1 && args->beta == 1) /* only the checked run is looked at */
        return SPK_OK;
    size_t count = (size_t)(p->m * p->n);
    double *d = malloc(count * sizeof *d), *preact = malloc(count * sizeof *preact);
    spk_status status =
        p->op->oracle(&spk_mem_system, p, args, &(spk_oracle_ask){.output = SPK_D, .row_count = p->m, .cols = p->n, .want = d});
    if (status == SPK_OK && p->epilogue.keep_preact)
        status = p->op->oracle(&spk_mem_system, p, args,
                               &(spk_oracle_ask){.output = SPK_PREACT, .row_count = p->m, .cols = p->n, .want = preact});
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            bool row = p->d.layout == SPK_ROW_MAJOR;
            int64_t at = row ? i * p->d.ld + j : j * p->d.ld + i, at_preact = row ? i * p->preact.ld + j : j * p->preact.ld + i;
            double value = d[i * p->n + j] + f->off;
            if (f->mode == FAKE_UNWRITTEN && i == p->m / 2 && j == p->n / 2)
                continue;
            if (f->mode == FAKE_WRONG && (i * p->n + j) % 7 == 3)
                value += 0.5;
            if (f->mode == FAKE_NAN && i == p->m - 1)
                value = NAN;
            spk_value_set(args->d, p->d.dtype, at, value);
            if (p->epilogue.keep_preact && f->mode != FAKE_NO_PREACT)
                spk_value_set(args->preact, p->d.dtype, at_preact, preact[i * p->n + j]);
        }
    if (f->mode == FAKE_BESIDE)
        spk_value_set(args->d, p->d.dtype, p->n, 1.0); /* needs ldd > n */
    free(d);
    free(preact);
    return status;
}

static inline spk_status fake_bind(spk_bound *bound)
{
    return fakes[fake_number(bound->kernel)].mode == FAKE_PASSES ? spk_fail(SPK_ERR_UNSUPPORTED, "the test lets it pass") : SPK_OK;
}

#define FAKE_OPS(number, hash)                                                                                                           \
    static inline double fake_predict_##number##_##hash(const spk_problem *problem, const spk_device *device, const spk_params *params)  \
    {                                                                                                                                    \
        (void)device;                                                                                                                    \
        double us = fakes[number].model_us > 0 ? fakes[number].model_us : fake_time(number, params->v[0], fake_work(problem));           \
        return problem->n > 0 ? us : 1;                                                                                                  \
    }                                                                                                                                    \
    static inline bool fake_applicable_##number##_##hash(const spk_problem *problem, const spk_device *device, const spk_params *params, \
                                                         const char **why)                                                               \
    {                                                                                                                                    \
        (void)problem, (void)device;                                                                                                     \
        const bool forbidden = fakes[number].forbidden || (fakes[number].forbidden_values >> (params->v[0] & 7) & 1) != 0;               \
        if (forbidden)                                                                                                                   \
            *why = "the test forbids it";                                                                                                \
        return !forbidden;                                                                                                               \
    }                                                                                                                                    \
    static const spk_kernel_ops fake_ops_##number##_##hash = {.applicable = fake_applicable_##number##_##hash,                           \
                                                              .predict_us = fake_predict_##number##_##hash,                              \
                                                              .bind = fake_bind,                                                         \
                                                              .run = fake_run,                                                           \
                                                              .source_hash = #hash}

FAKE_OPS(0, a);
FAKE_OPS(1, a);
FAKE_OPS(2, a);
FAKE_OPS(3, a);
FAKE_OPS(1, b); /* kernel 1 after a change */

#define FAKE_ROW(number, hash, kind_, priority_, fills, tunables_)                                                       \
    {                                                                                                                    \
        .operation = SPK_SPMM, .name = "fake" #number, .backend = SPK_BACKEND_CPU, .kind = kind_, .priority = priority_, \
        .fills_zeros = fills, .tunables = tunables_, .ops = &fake_ops_##number##_##hash                                  \
    }

/* ------------------------------------------------------------------------------------------------ the device */

static inline spk_status fake_allocate(spk_device *device, size_t bytes, void **memory)
{
    return spk_alloc(&device->mem, bytes, 1, memory);
}

static inline void fake_release(spk_device *device, void *memory)
{
    spk_free(&device->mem, memory);
}

static inline spk_status fake_copy(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
    return SPK_OK;
}

static inline spk_status fake_fill(spk_device *device, void *to, unsigned char byte, size_t bytes)
{
    (void)device;
    if (bytes > 0)
        memset(to, byte, bytes);
    return SPK_OK;
}

static inline int64_t fake_free_memory(spk_device *device)
{
    (void)device;
    return INT64_C(1) << 32;
}

/* Runs the kernel and tells the time that the test wants. */
static inline spk_status fake_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs,
                                        double *out_us)
{
    (void)device;
    int number = fake_number(bound->kernel);
    double heat = fakes[number].hot + fakes[number].param_hot[bound->params.v[0] & 7];
    double sample_us = runs * fake_time(number, bound->params.v[0], fake_work(&bound->problem));
    bool lasting = sample_us > 2000, hot = lasting && fake_load_us > 10000;
    fake_load_us = lasting || runs == 1 ? fake_load_us + sample_us : 0; /* single runs come between: they wake threads */
    fake_long_samples += lasting;
    for (int i = 0; i < runs; i++) {
        SPK_TRY(bound->kernel->ops->run(bound, &args[i % count], NULL));
        if (fakes[number].slow_runs > 0) {
            fakes[number].slow_runs--;
            out_us[i] = 15000;
            continue;
        }
        double noise = fakes[number].noise, factor = 1 + noise * fabs(spk_rng_normal(&fake_rng));
        if (noise > 0 && spk_rng_below(&fake_rng, 40) == 0)
            factor += 3 * spk_rng_uniform(&fake_rng);
        out_us[i] = fake_time(number, bound->params.v[0], fake_work(&bound->problem)) * factor * (hot ? 1 + heat : 1);
        if (fakes[number].disturbed > 0 && spk_rng_uniform(&fake_rng) < fakes[number].disturbed)
            out_us[i] *= 40;
    }
    return SPK_OK;
}

static inline spk_status fake_key_text(spk_device *device, char *buffer, size_t size)
{
    (void)device;
    snprintf(buffer, size, "fake:t2");
    return SPK_OK;
}

static inline void fake_model_text(spk_device *device, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", device->name);
}

static const spk_backend fake_backend = {.id = SPK_BACKEND_CPU,
                                         .host_memory = true,
                                         .shares_processors = true,
                                         .splits_batches = true,
                                         .kind = "cpu",
                                         .budget_s = 2,
                                         .allocate = fake_allocate,
                                         .release = fake_release,
                                         .copy_in = fake_copy,
                                         .copy_out = fake_copy,
                                         .copy_within = fake_copy,
                                         .fill = fake_fill,
                                         .free_memory = fake_free_memory,
                                         .time_runs = fake_time_runs,
                                         .key_text = fake_key_text,
                                         .model_text = fake_model_text};

/* A device whose clock falls under load. */
static inline spk_backend fake_backend_that_falls(void)
{
    spk_backend made = fake_backend;
    made.settle_us = 15000; /* really spent, in which the test's time flies */
    return made;
}

static inline spk_load fake_load_now(void)
{
    static spk_load load = {.cpus = 2};
    load.at_s += 1;
    load.busy_s += fake_others;
    return load;
}

static inline bool fake_busy_now(int threads)
{
    (void)threads;
    return fake_busy;
}

/* ------------------------------------------------------------------------------------------------ a bench for a test */

typedef struct bench {
    spk_device device;
    spk_store *store;
    spk_pattern *pattern;
    spk_problem problem;
    spk_tuner tuner;
    spk_tune_options options;
    int warnings;
} bench;

static inline void count_warning(void *user, int level, const char *message)
{
    *(int *)user += level == 1 && strstr(message, "other programs") == NULL; /* a busy machine is no matter here */
}

static inline spk_pattern *fake_pattern(int64_t size, int block, double density, uint64_t seed)
{
    spk_generate how = {.struct_size = sizeof how,
                        .generator = SPK_GEN_UNIFORM,
                        .rows = size,
                        .cols = size,
                        .block_rows = block,
                        .block_cols = block,
                        .density = density,
                        .seed = seed,
                        .dtype = SPK_F32};
    spk_matrix *matrix = NULL;
    spk_pattern *pattern = NULL;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, &how, &matrix, NULL), SPK_OK);
    spk_bsr_indices indices = {.struct_size = sizeof indices,
                               .rows = size,
                               .cols = size,
                               .block_rows = block,
                               .block_cols = block,
                               .nnzb = matrix->nnz,
                               .row_offsets = matrix->row_offsets,
                               .col_indices = matrix->col_indices,
                               .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &pattern), SPK_OK);
    spk_matrix_release(&matrix);
    return pattern;
}

static inline spk_problem fake_problem(spk_pattern *pattern, int64_t n)
{
    spk_spmm spmm = {.struct_size = sizeof spmm, .n = n};
    spk_problem problem;
    assert_int_equal(spk_problem_read(&spk_op_spmm, pattern, &spmm, NULL, &problem), SPK_OK);
    return problem;
}

/* A new store (in memory for path ""), a problem of 256 x 256 x 24, and the table. */
static inline void bench_open(bench *b, const spk_kernel *table, int count, const char *store_path)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < FAKES; i++)
        fakes[i] = (fake){.mode = FAKE_RIGHT, .us = 100};
    fake_interrupt_after = 0;
    fake_load_us = 0;
    fake_long_samples = 0;
    fake_others = 0;
    fake_busy = false;
    atomic_store(&fake_total_runs, 0);
    atomic_store(&fake_interrupted, 0);
    spk_rng_seed(&fake_rng, 1);
    b->device = (spk_device){.backend = &fake_backend,
                             .executor = {.threads = 2},
                             .name = "fake",
                             .isa = ~0u,
                             .l2_bytes = 1 << 18,
                             .l3_bytes = 1 << 20,
                             .peak_gflops_f32 = 100,
                             .stream_gbs = 10};
    assert_int_equal(spk_store_open(&spk_mem_system, store_path, NULL, NULL, &b->store), SPK_OK);
    b->pattern = fake_pattern(256, 16, 0.2, 7);
    b->problem = fake_problem(b->pattern, 24);
    fake_whole_work = fake_work(&b->problem);
    b->tuner = (spk_tuner){.mem = &spk_mem_system,
                           .device = &b->device,
                           .store = b->store,
                           .stop = {.all = &fake_interrupted},
                           .log = count_warning,
                           .log_user = &b->warnings,
                           .table = table,
                           .table_count = count,
                           .load_now = fake_load_now,
                           .busy_now = fake_busy_now};
    b->options = (spk_tune_options){.struct_size = sizeof b->options, .tuning = SPK_TUNING_NOW, .seed = 11, .cache = SPK_WARM};
    b->problem.cache = SPK_WARM;
}

static inline void bench_close(bench *b)
{
    spk_pattern_release(&b->pattern);
    spk_store_close(&b->store);
}

static inline int fake_runs(void)
{
    int runs = 0;
    for (int i = 0; i < FAKES; i++)
        runs += atomic_exchange(&fakes[i].runs, 0);
    return runs;
}

static inline const spk_evidence *entry_of(const spk_report *report, const char *name, const char *params)
{
    for (int i = 0; i < report->count; i++)
        if (strcmp(report->candidates[i].name, name) == 0 && (params == NULL || strcmp(report->candidates[i].params, params) == 0))
            return &report->candidates[i];
    return NULL;
}

static inline const char *chosen_name(const spk_report *report)
{
    return report->chosen >= 0 ? report->candidates[report->chosen].name : "";
}

static inline const char *chosen_params(const spk_report *report)
{
    return report->chosen >= 0 ? report->candidates[report->chosen].params : "";
}

/* The report of tuning the bench's problem. */
static inline spk_report *tune(bench *b)
{
    spk_report *report = NULL;
    assert_int_equal(spk_tune_problem(&b->tuner, &b->problem, &b->options, &report), SPK_OK);
    assert_non_null(report);
    return report;
}

#endif
