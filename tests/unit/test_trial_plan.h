/* Plans of a context on the fake device, whose classes are tried in place. */
#ifndef TEST_TRIAL_PLAN_H
#define TEST_TRIAL_PLAN_H

#include "test_tune_fake.h"

#include "api/context.h"
#include "store/store_internal.h"
#include "tune/trial/family.h"
#include "tune/trial/trial.h"

static const spk_kernel table[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, "V=0,1,2,3,4,5,6,7"),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1,2,3,4,5,6,7"),
    FAKE_ROW(2, a, SPK_KIND_DENSE, 5, true, ""),
    FAKE_ROW(3, a, SPK_KIND_OWN, 20, false, "V=0,1,2,3"),
};

static inline void open_trial(bench *b, spk_rng *rng)
{
    bench_open(b, table, 4, "");
    spk_family_forget(NULL);
    b->options.tuning = SPK_TUNING_IN_PLACE;
    for (int i = 0; i < 4; i++) {
        fakes[i].us = 50 + 200 * spk_rng_uniform(rng);
        for (int v = 0; v < 8; v++)
            fakes[i].param_us[v] = 60 * spk_rng_uniform(rng);
        fakes[i].model_us = 0;
    }
}

static spk_context *context;
static bench made;
static spk_device *real_device;
static atomic_int warned;

static inline void note(void *user, int level, const char *message)
{
    (void)user;
    if (level == 1 && strstr(message, "wrong result") != NULL)
        atomic_fetch_add(&warned, 1);
}

/* A context on the fake device, with the fakes' table; its store in memory. */
static inline int open_plans(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 9);
    open_trial(&made, &rng);
    atomic_store(&warned, 0);
    assert_int_equal(
        spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .log = note}, &context),
        SPK_OK);
    real_device = context->device;
    made.pattern->owner = context;
    context->device = &made.device;
    context->table = table;
    context->table_count = 4;
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < 8; v++)
            fakes[i].param_spends_us[v] = fake_time(i, v, fake_work(&made.problem));
    fake_clock_begin();
    return 0;
}

static inline int close_plans(void **state)
{
    (void)state;
    fake_clock_end();
    context->device = real_device;
    spk_context_destroy(&context);
    bench_close(&made);
    return 0;
}

enum { SIZE = 256, COLUMNS = 5 };

typedef struct arrays {
    float *values, *b, *d, *c;
} arrays;

static inline arrays make_arrays(void)
{
    const size_t count = (size_t)made.pattern->nnzb * 256;
    arrays a = {malloc(count * sizeof(float)), malloc(sizeof(float) * SIZE * COLUMNS), malloc(sizeof(float) * SIZE * COLUMNS),
                malloc(sizeof(float) * SIZE * COLUMNS)};
    spk_rng rng;
    spk_rng_seed(&rng, 4);
    for (size_t i = 0; i < count; i++)
        a.values[i] = (float)spk_rng_normal(&rng);
    for (int i = 0; i < SIZE * COLUMNS; i++)
        a.b[i] = a.c[i] = (float)spk_rng_normal(&rng);
    return a;
}

static inline void free_arrays(arrays *a)
{
    free(a->values);
    free(a->b);
    free(a->d);
    free(a->c);
}

static inline void ok(spk_status status)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", spk_status_name(status), spk_last_error(context));
}

static const spk_spmm product = {SPK_SIZED(spk_spmm), .n = COLUMNS};

static inline double *make_want(const arrays *a)
{
    double *want = malloc(sizeof *want * SIZE * COLUMNS);
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a->values, .b = a->b, .d = a->d, .alpha = 0.75};
    ok(spk_oracle(context, made.pattern, &product, &args, SPK_FIRST_OUTPUT, NULL, SIZE, want, NULL));
    return want;
}

static inline void check_run(spk_plan *plan, const arrays *a, float *d, const double *want)
{
    for (int i = 0; i < SIZE * COLUMNS; i++)
        d[i] = NAN;
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a->values, .b = a->b, .d = d, .alpha = 0.75};
    if (spk_plan_run(plan, &args, NULL) != SPK_OK)
        fail_msg("%s", spk_last_error(context));
    for (int i = 0; i < SIZE * COLUMNS; i++)
        if (!(fabs(d[i] - want[i]) < 1e-4))
            fail_msg("element %d is %g in place of %g: %s", i, d[i], want[i], spk_plan_choice(plan));
}

static inline spk_plan_info info_of(const spk_plan *plan)
{
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    ok(spk_plan_get_info(plan, &info));
    return info;
}

static inline spk_plan *make_plan(void)
{
    spk_plan *plan = NULL;
    volatile int *cancel = calloc(1, sizeof *cancel); /* gone when the trial runs */
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE, .cache = SPK_WARM, .cancel = cancel};
    if (spk_plan_create(context, made.pattern, &product, &options, &plan) != SPK_OK)
        fail_msg("%s", spk_last_error(context));
    *cancel = 1;
    free((void *)cancel);
    return plan;
}

/* Runs until it is decided; how many runs that took. */
static inline int run_until_decided(spk_plan *plan, const arrays *a, const double *want)
{
    int runs = 0;
    for (; spk_plan_later_of(plan) == NULL && runs < 100; runs++)
        check_run(plan, a, a->d, want);
    assert_true(runs < 100);
    return runs;
}

#endif
