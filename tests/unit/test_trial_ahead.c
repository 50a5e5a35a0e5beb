/* Trials in place on a device whose runs go on after they were called, and whose candidates are compiled and proved before they run: that
 * is done while the first choice works, times are read later, and nobody waits. */
#include "test_trial_plan.h"

#include <pthread.h>
#include <time.h>

#include "tune/trial/ahead.h"

/* ------------------------------------------------------------------------------------------------ such a device */

static spk_backend later;
static atomic_int prepared, may_prepare, watches, capturing, stopped;
static const char *refused_row; /* its candidates are not proved */
static int unread;              /* looks at a time before it can be read */

static void pause_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

struct spk_watch {
    double start_us, stop_us;
    int looks;
};

static spk_proof proof(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                       size_t size)
{
    (void)device, (void)problem, (void)params;
    if (size > 0)
        why[0] = '\0';
    return refused_row != NULL && strcmp(kernel->name, refused_row) == 0 ? SPK_PROOF_NONE : SPK_PROOF_GOOD;
}

static void name_proof(const spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params,
                       char name[SPK_PROOF_NAME_BYTES])
{
    (void)device, (void)problem, (void)params;
    snprintf(name, SPK_PROOF_NAME_BYTES, "%s", kernel->name);
}

static bool proof_stands(const spk_device *device, const char *name)
{
    (void)device;
    return refused_row == NULL || strcmp(name, refused_row) != 0;
}

/* Takes as long as the test says, or until it is interrupted. */
static spk_status prepare(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    (void)device, (void)problem;
    while (atomic_load(&may_prepare) == 0 && !spk_stop_asked(stop))
        pause_ms();
    if (spk_stop_asked(stop))
        atomic_fetch_add(&stopped, 1);
    for (int i = 0; i < count; i++)
        if (refused_row != NULL && strcmp(list[i].kernel->name, refused_row) == 0) {
            list[i].status = SPK_ERR_INTERNAL;
            snprintf(list[i].why, sizeof list[i].why, "the test refuses it");
        }
    atomic_fetch_add(&prepared, count);
    return SPK_OK;
}

static spk_status make_watch(spk_device *device, struct spk_watch **watch)
{
    SPK_TRY(spk_calloc(&device->mem, 1, sizeof **watch, watch));
    atomic_fetch_add(&watches, 1);
    return SPK_OK;
}

static void release_watch(spk_device *device, struct spk_watch **watch)
{
    if (*watch != NULL)
        atomic_fetch_sub(&watches, 1);
    spk_free(&device->mem, *watch);
    *watch = NULL;
}

static spk_status start_watch(spk_device *device, struct spk_watch *watch, void *stream)
{
    (void)device, (void)stream;
    assert_int_equal(atomic_load(&capturing), 0);
    *watch = (struct spk_watch){.start_us = spk_now_us()};
    return SPK_OK;
}

static spk_status stop_watch(spk_device *device, struct spk_watch *watch, void *stream)
{
    (void)device, (void)stream;
    watch->stop_us = spk_now_us();
    return SPK_OK;
}

static bool read_watch(spk_device *device, const struct spk_watch *watch, double *us)
{
    (void)device;
    *us = watch->stop_us - watch->start_us;
    return ++((struct spk_watch *)(uintptr_t)watch)->looks > unread;
}

static bool is_capturing(spk_device *device, void *stream)
{
    (void)device, (void)stream;
    return atomic_load(&capturing) != 0;
}

static spk_status synchronize(spk_device *device, void *stream)
{
    (void)device, (void)stream;
    return SPK_OK;
}

static int open_later(void **state)
{
    open_plans(state);
    later = *made.device.backend;
    later.proof = proof;
    later.proof_name = name_proof;
    later.proof_stands = proof_stands;
    later.prepare = prepare;
    later.watch_make = make_watch;
    later.watch_release = release_watch;
    later.watch_start = start_watch;
    later.watch_stop = stop_watch;
    later.watch_read = read_watch;
    later.capturing = is_capturing;
    later.synchronize = synchronize;
    made.device.backend = &later;
    atomic_store(&prepared, 0);
    atomic_store(&may_prepare, 1);
    atomic_store(&capturing, 0);
    atomic_store(&stopped, 0);
    refused_row = NULL;
    unread = 0;
    return 0;
}

static int close_later(void **state)
{
    spk_ahead_wait(&made.device);
    assert_int_equal(atomic_load(&watches), 0);
    return close_plans(state);
}

/* Until all that is done ahead is done: the watch comes last. */
static void wait_until_prepared(int least)
{
    for (int i = 0; i < 300000 && atomic_load(&watches) < 1; i++)
        pause_ms();
    assert_true(atomic_load(&watches) == 1 && atomic_load(&prepared) >= least);
}

/* Runs until it is decided. The thread that prepares may have said so, and not yet have handed over. */
static int run_until_known(spk_plan *plan, const arrays *a, const double *want)
{
    int runs = 0;
    for (; spk_plan_later_of(plan) == NULL && runs < 1000000; runs++) {
        if (atomic_load(&watches) == 0)
            pause_ms();
        check_run(plan, a, a->d, want);
    }
    assert_non_null(spk_plan_later_of(plan));
    return runs;
}

static void set_spends(void)
{
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < 8; v++)
            fakes[i].param_spends_us[v] = fake_time(i, v, fake_work(&made.problem));
}

/* ------------------------------------------------------------------------------------------------ tests */

static void the_first_choice_works_until_others_may(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    fakes[1].param_us[1] = 0.5;
    fakes[1].us = 5;
    fakes[0].model_us = 10; /* the model's favourite is another */
    fakes[1].model_us = 15;
    set_spends();
    atomic_store(&may_prepare, 0);
    unread = 3;
    spk_plan *plan = make_plan();
    assert_string_equal(info_of(plan).why, "estimated: cost model; tried in place");
    assert_string_equal(info_of(plan).kernel, "fake0");
    (void)fake_runs();
    for (int i = 0; i < 50; i++)
        check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[0].runs), 50);
    assert_null(spk_plan_later_of(plan));
    atomic_store(&may_prepare, 1);
    wait_until_prepared(2);
    (void)run_until_known(plan, &a, want);
    assert_string_equal(info_of(plan).kernel, "fake1");
    assert_string_equal(info_of(plan).why, "measured in place");
    spk_plan *other = make_plan();
    assert_string_equal(info_of(other).why, "from the store");
    assert_string_equal(info_of(other).kernel, "fake1");
    spk_plan_destroy(&other);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* A row that the prover refuses never runs here, though it would be the fastest; and the store says why. */
static void what_is_not_proved_never_runs(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    fakes[3].us = 1;
    fakes[0].model_us = 1;
    fakes[3].model_us = 2;
    set_spends();
    refused_row = "fake3";
    spk_plan *plan = make_plan();
    (void)fake_runs();
    (void)run_until_known(plan, &a, want);
    assert_int_equal(atomic_load(&fakes[3].runs), 0);
    assert_string_not_equal(info_of(plan).kernel, "fake3");
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* Nor what computes something wrong: it is compared before it has a turn. The first choice may have run before that was known. */
static void what_is_wrong_has_no_turn(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 4; wrong += 1 + (wrong == 1)) {
        arrays a = make_arrays();
        double *want = make_want(&a);
        fakes[0].model_us = 10;
        fakes[1].model_us = 12;
        fakes[3].model_us = 14;
        fakes[wrong].us = 1;
        fakes[wrong].mode = FAKE_WRONG;
        set_spends();
        spk_plan *plan = make_plan();
        wait_until_prepared(2);
        (void)fake_runs();
        (void)run_until_known(plan, &a, want);
        assert_int_equal(atomic_load(&fakes[wrong].runs), 0);
        assert_int_equal(atomic_load(&warned), wrong == 0);
        assert_int_not_equal(info_of(plan).kernel[4] - '0', wrong);
        spk_plan_destroy(&plan);
        free(want);
        free_arrays(&a);
        close_later(state);
        open_later(state);
    }
}

/* While a graph is captured nothing is tried: what the graph holds is one candidate. */
static void a_capture_holds_one_candidate(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    fakes[0].model_us = 1;
    set_spends();
    spk_plan *plan = make_plan();
    wait_until_prepared(2);
    atomic_store(&capturing, 1);
    (void)fake_runs();
    for (int i = 0; i < 100; i++)
        check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[0].runs), 100);
    assert_null(spk_plan_later_of(plan));
    atomic_store(&capturing, 0);
    (void)run_until_known(plan, &a, want);
    atomic_store(&capturing, 1);
    check_run(plan, &a, a.d, want);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* A plan that goes, and a context that is closed, stop what is done ahead; another plan of the class takes over. */
static void what_is_under_way_stops(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    set_spends();
    atomic_store(&may_prepare, 0);
    spk_plan *first = make_plan(), *second = make_plan();
    check_run(first, &a, a.d, want);
    spk_plan_destroy(&first);
    atomic_store(&may_prepare, 1);
    (void)run_until_known(second, &a, want);
    spk_plan_destroy(&second);
    ok(spk_store_clear(context, NULL));
    atomic_store(&may_prepare, 0);
    first = make_plan();
    spk_plan_destroy(&first);
    spk_ahead_wait(&made.device); /* as a context does that is closed */
    assert_true(atomic_load(&stopped) >= 1);
    free(want);
    free_arrays(&a);
}

/* While a thread tunes, nothing else comes to the device's own stream: it would end up in the graphs that are timed there. */
static void it_waits_for_a_tuning(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    set_spends();
    const bool held = spk_measuring_begin(&made.tuner, 60);
    assert_true(held);
    (void)fake_runs();
    spk_plan *plan = make_plan();
    for (int i = 0; i < 300000 && atomic_load(&prepared) == 0; i++)
        pause_ms();
    assert_true(atomic_load(&prepared) > 0);
    for (int i = 0; i < 50; i++)
        pause_ms();
    assert_int_equal(fake_runs(), 0);
    spk_measuring_end(held);
    (void)run_until_known(plan, &a, want);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* Nobody else may run: the first choice stays, and nothing is told of as measured. */
static void alone_nothing_is_measured(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    for (int i = 0; i < 4; i++)
        fakes[i].forbidden = i != 1 && i != 3;
    fakes[1].forbidden_values = 0xfe;
    fakes[1].model_us = 1;
    set_spends();
    refused_row = "fake3";
    spk_plan *plan = make_plan();
    for (int i = 0; i < 500; i++)
        check_run(plan, &a, a.d, want);
    assert_string_equal(info_of(plan).kernel, "fake1");
    assert_null(spk_plan_later_of(plan));
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

/* The first choice, and others, fail when they are launched. */
static void who_fails_is_followed_by_another(void **state)
{
    (void)state;
    for (int failing = 0; failing < 4; failing++) {
        arrays a = make_arrays();
        double *want = make_want(&a);
        fakes[(failing + 1) % 4].model_us = 1;
        set_spends();
        spk_plan *plan = make_plan();
        wait_until_prepared(2);
        fakes[failing].mode = failing % 2 != 0 ? FAKE_FAILS : FAKE_NO_MEMORY;
        (void)run_until_known(plan, &a, want);
        assert_int_not_equal(info_of(plan).kernel[4] - '0', failing);
        spk_plan_destroy(&plan);
        free(want);
        free_arrays(&a);
        close_later(state);
        open_later(state);
    }
}

static atomic_int odd; /* the first choice takes no pointers */

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    (void)bound, (void)args;
    return atomic_load(&odd) == 0;
}

static bool ready(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params)
{
    (void)device, (void)problem, (void)kernel, (void)params;
    return true;
}

/* A second candidate, for pointers that the first choice does not take, is bound when such pointers come: before, while and after others
 * are tried. */
static void the_second_candidate_comes_when_wanted(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    spk_kernel_ops of_first = *table[0].ops;
    spk_kernel rows[4];
    memcpy(rows, table, sizeof rows);
    of_first.accepts = accepts;
    rows[0].ops = &of_first;
    context->table = rows;
    fakes[0].model_us = 10;
    fakes[0].us = 3;
    set_spends();
    atomic_store(&may_prepare, 0);
    atomic_store(&odd, 1);
    later.ready = ready;
    spk_plan *plan = make_plan();
    assert_string_equal(info_of(plan).kernel, "fake0");
    assert_null(plan->fallback.kernel);
    (void)fake_runs();
    for (int i = 0; i < 10; i++)
        check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    atomic_store(&may_prepare, 1);
    wait_until_prepared(2);
    (void)fake_runs(); /* when they were compared */
    for (int i = 0; i < 10; i++)
        check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    atomic_store(&odd, 0);
    (void)run_until_known(plan, &a, want);
    assert_string_equal(info_of(plan).kernel, "fake0");
    atomic_store(&odd, 1);
    (void)fake_runs();
    check_run(plan, &a, a.d, want);
    assert_int_equal(atomic_load(&fakes[0].runs), 0);
    spk_plan_destroy(&plan);
    context->table = table;
    free(want);
    free_arrays(&a);
}

typedef struct worker {
    spk_plan *plan;
    const arrays *a;
    const double *want;
    atomic_bool *stop;
} worker;

static void *work(void *user)
{
    const worker *w = user;
    float *d = malloc(sizeof *d * SIZE * COLUMNS);
    while (!atomic_load(w->stop)) {
        check_run(w->plan, w->a, d, w->want);
        (void)info_of(w->plan);
    }
    free(d);
    return NULL;
}

static void several_threads(void **state)
{
    (void)state;
    arrays a = make_arrays();
    double *want = make_want(&a);
    atomic_bool stop = false;
    pthread_t threads[3];
    set_spends();
    spk_plan *plan = make_plan();
    worker w = {plan, &a, want, &stop};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w), 0);
    (void)run_until_known(plan, &a, want);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    spk_plan_destroy(&plan);
    free(want);
    free_arrays(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_choice_works_until_others_may, open_later, close_later),
        cmocka_unit_test_setup_teardown(what_is_not_proved_never_runs, open_later, close_later),
        cmocka_unit_test_setup_teardown(what_is_wrong_has_no_turn, open_later, close_later),
        cmocka_unit_test_setup_teardown(a_capture_holds_one_candidate, open_later, close_later),
        cmocka_unit_test_setup_teardown(what_is_under_way_stops, open_later, close_later),
        cmocka_unit_test_setup_teardown(it_waits_for_a_tuning, open_later, close_later),
        cmocka_unit_test_setup_teardown(alone_nothing_is_measured, open_later, close_later),
        cmocka_unit_test_setup_teardown(who_fails_is_followed_by_another, open_later, close_later),
        cmocka_unit_test_setup_teardown(the_second_candidate_comes_when_wanted, open_later, close_later),
        cmocka_unit_test_setup_teardown(several_threads, open_later, close_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
