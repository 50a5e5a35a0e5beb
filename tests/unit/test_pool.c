/* The pool of threads: each number once, whatever the number of threads, how long they slept, and who calls at the same time. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/pool.h"

enum { MOST = 40 };

typedef struct seen {
    atomic_int runs[MOST];
    atomic_int begun;
    int plain[MOST]; /* written by the threads, read by the caller */
    atomic_bool failed;
} seen;

static void note(void *arg, int thread)
{
    seen *s = arg;
    atomic_fetch_add(&s->runs[thread], 1);
    s->plain[thread] = thread + 1;
}

/* What is wrong after a call, or "". Another of its threads takes part for each that the system gave. */
static bool each_once(int threads)
{
    seen s = {.begun = 0};
    spk_pool_run(threads, note, &s);
    bool ended = false, fine = atomic_load(&s.runs[0]) == 1;
    for (int thread = 0; thread < MOST; thread++) {
        const int runs = atomic_load(&s.runs[thread]);
        fine = fine && runs == (ended || thread >= threads ? 0 : runs) && runs <= 1 && s.plain[thread] == (runs ? thread + 1 : 0);
        ended = ended || runs == 0;
    }
    return fine;
}

static void test_any_number(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5, 2, 3, 8, 1, 4, MOST, 2};
    for (int round = 0; round < 60; round++)
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
            assert_true(each_once(threads[i]));
}

/* Longer than threads wait busily. */
static void test_after_sleep(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        assert_true(each_once(4));
        nanosleep(&(struct timespec){.tv_nsec = round % 2 ? 3000000 : 900000}, NULL);
    }
}

static void meet(void *arg, int thread)
{
    (void)thread;
    seen *s = arg;
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 300;
    atomic_fetch_add(&s->begun, 1);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (atomic_load(&s->begun) < 3 && now.tv_sec < end.tv_sec);
}

/* Each of three waits for the others to begin. */
static void test_all_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        seen s = {.begun = 0};
        spk_pool_run(3, meet, &s);
        assert_int_equal(atomic_load(&s.begun), 3);
    }
}

static void nest(void *arg, int thread)
{
    seen *s = arg;
    if (!each_once(2 + thread))
        atomic_store(&s->failed, true);
    atomic_fetch_add(&s->begun, 1);
}

static void test_nested(void **state)
{
    (void)state;
    seen s = {.begun = 0};
    spk_pool_run(3, nest, &s);
    assert_true(!atomic_load(&s.failed) && atomic_load(&s.begun) == 3);
}

static void *call_often(void *failed)
{
    for (int i = 0; i < 200; i++)
        if (!each_once(1 + i % 6))
            atomic_store((atomic_int *)failed, 1);
    return NULL;
}

static void test_several_callers(void **state)
{
    (void)state;
    atomic_int failed;
    pthread_t callers[3];
    atomic_init(&failed, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &failed), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i], NULL);
    assert_int_equal(atomic_load(&failed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_number), cmocka_unit_test(test_after_sleep),
                                       cmocka_unit_test(test_all_at_once), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_several_callers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
