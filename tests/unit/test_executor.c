/* Tasks on host threads: each runs once, whatever their number and that of the threads, and two threads run two tasks at a time. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

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
static int elsewhere(const spk_executor *executor, double late_us)
{
    place p = {.caller = pthread_self(), .late_us = late_us};
    spk_execute(executor, 2, note_place, &p);
    assert_int_equal(atomic_load(&p.done), 2);
    return atomic_load(&p.elsewhere);
}

static const double patience_us = 300e6;

/* Whether it comes to that, in calls one after the other. */
static bool comes(const spk_executor *executor, int wanted, double late_us)
{
    for (const double end = spk_now_us() + patience_us; spk_now_us() < end;)
        if (elsewhere(executor, late_us) == wanted)
            return true;
    return false;
}

static void beside_others(spk_executor executor)
{
    executor.threads = 2;
    spk_executor_ask(tell_left);
    /* late ends, though nobody else runs: all threads go on, each time that it is asked */
    atomic_store(&processors_left, 2);
    atomic_store(&asked, 0);
    for (const double end = spk_now_us() + patience_us; atomic_load(&asked) < 3 && spk_now_us() < end;)
        (void)elsewhere(&executor, 3000);
    assert_true(atomic_load(&asked) >= 3);
    assert_true(comes(&executor, 1, 0));
    /* others run: the caller works alone, and it is asked once in a while */
    atomic_store(&processors_left, 1);
    const int before = atomic_load(&asked);
    for (const double end = spk_now_us() + patience_us; atomic_load(&asked) == before && spk_now_us() < end;)
        (void)elsewhere(&executor, 3000);
    atomic_store(&asked, 0);
    for (const double end = spk_now_us() + 250e3; spk_now_us() < end || atomic_load(&asked) == 0;)
        assert_int_equal(elsewhere(&executor, 0), 0);
    assert_in_range(atomic_load(&asked), 1, 4);
    /* but not where it is measured */
    spk_executor_steady(true);
    assert_true(comes(&executor, 1, 0));
    spk_executor_steady(false);
    assert_int_equal(elsewhere(&executor, 0), 0);
    /* three threads on two processors */
    atomic_store(&processors_left, 2);
    executor.threads = 3;
    for (int i = 0; i < MOST_TASKS; i++)
        atomic_store(&runs[i], 0);
    spk_execute(&executor, MOST_TASKS, count, NULL);
    for (int i = 0; i < MOST_TASKS; i++)
        assert_int_equal(atomic_load(&runs[i]), 1);
    /* they are gone */
    executor.threads = 2;
    assert_true(comes(&executor, 1, 0));
    spk_executor_ask(NULL);
}

static void test_beside_others(void **state)
{
    (void)state;
    if (!spk_executor_usable(&(spk_executor){.threads = 2}))
        skip();
    beside_others((spk_executor){.parallel_for = NULL});
}

/* ------------------------------------------------------------------------------------------------ the caller's parallel-for */

typedef struct lent {
    spk_parallel_body body;
    void *arg;
    int64_t task;
} lent;

static void *run_lent(void *arg)
{
    const lent *l = arg;
    l->body(l->arg, l->task);
    return NULL;
}

static atomic_int most_lent;

/* The first task on the calling thread, each other one on a thread of its own. */
static void on_threads(void *user, int64_t tasks, spk_parallel_body body, void *arg)
{
    (void)user;
    pthread_t threads[8];
    lent all[8];
    assert_in_range(tasks, 1, 8);
    if (tasks > atomic_load(&most_lent))
        atomic_store(&most_lent, (int)tasks);
    for (int64_t i = 1; i < tasks; i++) {
        all[i] = (lent){body, arg, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_lent, &all[i]), 0);
    }
    body(arg, 0);
    for (int64_t i = 1; i < tasks; i++)
        pthread_join(threads[i], NULL);
}

static void one_after_the_other(void *user, int64_t tasks, spk_parallel_body body, void *arg)
{
    (void)user;
    for (int64_t i = tasks - 1; i >= 0; i--)
        body(arg, i);
}

static void test_of_the_caller(void **state)
{
    (void)state;
    const spk_executor executors[] = {{.threads = 3, .parallel_for = on_threads}, {.threads = 3, .parallel_for = one_after_the_other}};
    for (int which = 0; which < 2; which++)
        for (int tasks = 1; tasks <= MOST_TASKS; tasks = 3 * tasks + 1) {
            for (int task = 0; task < MOST_TASKS; task++)
                atomic_store(&runs[task], 0);
            spk_execute(&executors[which], tasks, count, NULL);
            for (int task = 0; task < MOST_TASKS; task++)
                assert_int_equal(atomic_load(&runs[task]), task < tasks);
        }
    assert_int_equal(atomic_load(&most_lent), 3); /* however many tasks there are */
    beside_others((spk_executor){.parallel_for = on_threads});
}

/* ------------------------------------------------------------------------------------------------ what others took */

static const double work_us = 5e3, away_us = 40e3;

static void work_here(double us)
{
    for (const double end = spk_thread_cpu_us() + us; spk_thread_cpu_us() < end;)
        continue;
}

/* The second of two tasks has no processor for a while: it sleeps. */
static void work_and_wait(void *arg, int64_t task)
{
    (void)arg;
    work_here(work_us);
    if (task == 1)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e3 * away_us)}, NULL);
}

static void work_alone(void *arg, int64_t task)
{
    (void)arg, (void)task;
    work_here(work_us);
}

/* How long a region of two tasks takes, and without what it lost. */
static double undisturbed_us(const spk_executor *executor, spk_parallel_body body, double *took_us)
{
    spk_preempted note = {0};
    spk_executor_steady(true);
    spk_executor_note(&note);
    const double begin = spk_now_us();
    spk_execute(executor, 2, body, NULL);
    *took_us = spk_now_us() - begin;
    spk_executor_note(NULL);
    spk_executor_steady(false);
    assert_true(note.lost_us >= 0 && note.lost_us <= note.regions_us && note.regions_us <= *took_us);
    assert_true(note.regions_cpu_us <= note.regions_us + 100);
    return *took_us - note.lost_us;
}

static void test_what_others_took(void **state)
{
    (void)state;
    const spk_executor own = {.threads = 2}, lent_threads = {.threads = 2, .parallel_for = on_threads},
                       one_thread = {.threads = 2, .parallel_for = one_after_the_other};
    double took_us;
    if (!spk_executor_usable(&own))
        skip();
    for (int i = 0; i < 3; i++) {
        /* two tasks of 5 ms of work: on two threads 5 ms at least, and the 40 ms away are not counted; how much else takes, such as
         * valgrind, is the machine's */
        double us = undisturbed_us(&own, work_and_wait, &took_us);
        assert_true(took_us >= away_us);
        assert_true(us >= 0.9 * work_us && us <= took_us - 0.75 * away_us);
        us = undisturbed_us(&lent_threads, work_and_wait, &took_us);
        assert_true(took_us >= away_us);
        assert_true(us >= 0.9 * work_us && us <= took_us - 0.75 * away_us);
        /* one thread does both: no second one is made up */
        us = undisturbed_us(&one_thread, work_and_wait, &took_us);
        assert_true(us >= 1.9 * work_us && us <= took_us - 0.75 * away_us);
        us = undisturbed_us(&one_thread, work_alone, &took_us);
        assert_true(us >= 1.9 * work_us);
        /* nothing is lost where nothing else happens; on a busy machine there may be */
        us = undisturbed_us(&own, work_alone, &took_us);
        assert_true(us >= 0.9 * work_us && us <= took_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_side_by_side),
                                       cmocka_unit_test(test_beside_others), cmocka_unit_test(test_of_the_caller),
                                       cmocka_unit_test(test_what_others_took)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
