/* Tasks on host threads: each runs once, whatever their number and that of the threads, and two threads run two tasks at a time. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/executor.h"

enum { MOST_TASKS = 700 };

static atomic_int runs[MOST_TASKS];

static void count(void *arg, int64_t task)
{
    (void)arg;
    atomic_fetch_add(&runs[task], 1);
}

static void test_each_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 5}, tasks[] = {0, 1, 2, 3, 4, 7, 16, 17, MOST_TASKS};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        for (size_t j = 0; j < sizeof tasks / sizeof tasks[0]; j++) {
            const spk_executor executor = {.threads = threads[i]};
            for (int task = 0; task < MOST_TASKS; task++)
                atomic_store(&runs[task], 0);
            spk_execute(&executor, tasks[j], count, NULL);
            for (int task = 0; task < MOST_TASKS; task++)
                assert_int_equal(atomic_load(&runs[task]), task < tasks[j]);
        }
}

static atomic_int met;

/* Each of two tasks waits for the other to begin. */
static void meet(void *arg, int64_t task)
{
    (void)task;
    atomic_int *begun = arg;
    atomic_fetch_add(begun, 1);
    for (const double end = spk_now_us() + 300e6; atomic_load(begun) < 2 && spk_now_us() < end;)
        continue;
    if (atomic_load(begun) == 2)
        atomic_fetch_add(&met, 1);
}

static void test_side_by_side(void **state)
{
    (void)state;
    const spk_executor executor = {.threads = 2};
    if (!spk_executor_usable(&executor))
        skip();
    spk_executor_steady(true); /* on a busy machine, too */
    for (int i = 0; i < 3; i++) {
        atomic_int begun;
        atomic_init(&begun, 0);
        atomic_store(&met, 0);
        spk_execute(&executor, 2, meet, &begun);
        assert_int_equal(atomic_load(&met), 2);
    }
    spk_executor_steady(false);
}

/* ------------------------------------------------------------------------------------------------ beside other programs */

#ifdef _OPENMP

static atomic_int processors_left, asked;

static int tell_left(int threads)
{
    (void)threads;
    atomic_fetch_add(&asked, 1);
    return atomic_load(&processors_left);
}

typedef struct place {
    pthread_t caller;
    atomic_int done, elsewhere; /* tasks; not on the caller's thread */
    double late_us;             /* how much longer a task takes elsewhere */
} place;

/* The caller waits for the other thread to begin, but not for long: under valgrind, where threads run one at a time, and on a busy machine
 * it would take both tasks at once. */
static void note_place(void *arg, int64_t task)
{
    static const double begins_within_us = 10e3;
    (void)task;
    place *p = arg;
    const bool here = pthread_equal(pthread_self(), p->caller) != 0;
    atomic_fetch_add(&p->elsewhere, !here);
    const double end = spk_now_us() + (here ? begins_within_us : p->late_us);
    while (spk_now_us() < end && !(here && atomic_load(&p->elsewhere) > 0))
        sched_yield();
    atomic_fetch_add(&p->done, 1);
}

/* Of two tasks, those elsewhere. */
static int elsewhere(double late_us)
{
    const spk_executor executor = {.threads = 2};
    place p = {.caller = pthread_self(), .late_us = late_us};
    spk_execute(&executor, 2, note_place, &p);
    assert_int_equal(atomic_load(&p.done), 2);
    return atomic_load(&p.elsewhere);
}

static const double patience_us = 300e6;

/* Whether it comes to that, in calls one after the other. */
static bool comes(int wanted, double late_us)
{
    for (const double end = spk_now_us() + patience_us; spk_now_us() < end;)
        if (elsewhere(late_us) == wanted)
            return true;
    return false;
}

static void test_beside_others(void **state)
{
    (void)state;
    const spk_executor executor = {.threads = 2};
    if (!spk_executor_usable(&executor))
        skip();
    spk_executor_ask(tell_left);
    /* late ends, though nobody else runs: all threads go on, each time that it is asked */
    atomic_store(&processors_left, 2);
    for (const double end = spk_now_us() + patience_us; atomic_load(&asked) < 3 && spk_now_us() < end;)
        (void)elsewhere(3000);
    assert_true(atomic_load(&asked) >= 3);
    assert_true(comes(1, 0));
    /* others run: the caller works alone, and it is asked once in a while */
    atomic_store(&processors_left, 1);
    const int before = atomic_load(&asked);
    for (const double end = spk_now_us() + patience_us; atomic_load(&asked) == before && spk_now_us() < end;)
        (void)elsewhere(3000);
    atomic_store(&asked, 0);
    for (const double end = spk_now_us() + 250e3; spk_now_us() < end || atomic_load(&asked) == 0;)
        assert_int_equal(elsewhere(0), 0);
    assert_in_range(atomic_load(&asked), 1, 4);
    /* but not where it is measured */
    spk_executor_steady(true);
    assert_true(comes(1, 0));
    spk_executor_steady(false);
    assert_int_equal(elsewhere(0), 0);
    /* three threads on two processors */
    atomic_store(&processors_left, 2);
    const spk_executor three = {.threads = 3};
    for (int i = 0; i < MOST_TASKS; i++)
        atomic_store(&runs[i], 0);
    spk_execute(&three, MOST_TASKS, count, NULL);
    for (int i = 0; i < MOST_TASKS; i++)
        assert_int_equal(atomic_load(&runs[i]), 1);
    /* they are gone */
    assert_true(comes(1, 0));
    spk_executor_ask(NULL);
}

#else

static void test_beside_others(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_side_by_side),
                                       cmocka_unit_test(test_beside_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
