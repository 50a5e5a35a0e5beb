/* Tasks on host threads: each runs once, whatever their number and that of the threads, and two threads run two tasks at a time. */
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

/* Each of two tasks waits for the other to begin. */
static void meet(void *arg, int64_t task)
{
    (void)task;
    atomic_int *begun = arg;
    atomic_fetch_add(begun, 1);
    for (const double end = spk_now_us() + 20e6; atomic_load(begun) < 2 && spk_now_us() < end;)
        continue;
}

static void test_side_by_side(void **state)
{
    (void)state;
    const spk_executor executor = {.threads = 2};
    if (!spk_executor_usable(&executor))
        skip();
    for (int i = 0; i < 3; i++) {
        atomic_int begun;
        atomic_init(&begun, 0);
        const double start = spk_now_us();
        spk_execute(&executor, 2, meet, &begun);
        assert_true(spk_now_us() - start < 19e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
