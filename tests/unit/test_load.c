/* Whether others took the processors while something was measured. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/load.h"

static bool crowded(int cpus, int threads, double time_s, double own, double others)
{
    spk_load from = {.at_s = 100, .cpus = cpus, .busy_s = 5000, .own_s = 7}, to = from;
    to.at_s += time_s;
    to.own_s += own * time_s;
    to.busy_s += (own + others) * time_s;
    return spk_load_crowded(&from, &to, threads);
}

static void test_judgement(void **state)
{
    (void)state;
    assert_false(crowded(2, 2, 2, 2, 0.1));
    assert_true(crowded(2, 2, 2, 1, 1));
    assert_true(crowded(64, 64, 2, 63, 1)); /* one that comes late holds up all */
    assert_false(crowded(64, 32, 2, 32, 30));
    assert_false(crowded(2, 1, 2, 1, 1));
    assert_false(crowded(2, 2, 0.05, 1, 1)); /* too short to tell */
    assert_false(crowded(0, 2, 2, 1, 1));
}

static void test_this_machine(void **state)
{
    (void)state;
    spk_load from = spk_load_now(), to;
    volatile double work = 0;
    do {
        for (int i = 0; i < 1000000; i++)
            work += i;
        to = spk_load_now();
    } while (to.at_s - from.at_s < 0.3);
    (void)work;
    assert_int_equal(from.cpus, to.cpus);
    assert_true(from.cpus == 0 || to.busy_s > from.busy_s);
    assert_true(from.cpus == 0 || to.own_s > from.own_s);
}

static void *spin(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        ;
    return NULL;
}

/* Threads begin and end in their own time. */
static bool reaches_own(int wanted)
{
    for (int i = 0; i < 60000; i++) {
        if (spk_load_own() == wanted)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* Threads of this process are not others, though the system counts them in. */
static void test_own_threads(void **state)
{
    (void)state;
    pthread_t threads[5];
    atomic_bool stop = false;
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spin, &stop), 0);
    const bool spinning = reaches_own(6);
    atomic_store(&stop, true);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(spinning);
    assert_true(reaches_own(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judgement),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_own_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
