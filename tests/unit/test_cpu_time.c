/* How long runs take beside other programs: what those took does not count, for the calling thread, for parallel regions, and as far as it
 * can be known for a library's threads. A thread that sleeps stands for one that has no processor. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/time.h"
#include "base/clock.h"
#include "base/executor.h"

static const double work_us = 5e3, away_us = 40e3;

static void work(double us)
{
    for (const double end = spk_thread_cpu_us() + us; spk_thread_cpu_us() < end;)
        continue;
}

static void stay_away(void)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e3 * away_us)}, NULL);
}

static void task_of_two(void *arg, int64_t task)
{
    (void)arg;
    work(work_us);
    if (task == 1)
        stay_away();
}

static spk_status run_alone(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)bound, (void)args, (void)stream;
    work(work_us);
    stay_away();
    return SPK_OK;
}

/* 5 ms alone, 5 ms on both threads. */
static spk_status run_region(const spk_bound *bound, const spk_args *args, void *stream)
{
    spk_status status = run_alone(bound, args, stream);
    spk_execute(&bound->device->executor, 2, task_of_two, NULL);
    return status;
}

static void *work_twice(void *arg)
{
    (void)arg;
    work(2 * work_us);
    return NULL;
}

/* A thread of its own works for 10 ms, the calling one for 5. */
static spk_status run_threads(const spk_bound *bound, const spk_args *args, void *stream)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_twice, NULL), 0);
    spk_status status = run_alone(bound, args, stream);
    pthread_join(thread, NULL);
    return status;
}

static spk_status refuse(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)bound, (void)args, (void)stream;
    return SPK_ERR_UNSUPPORTED;
}

static int one_left(int threads)
{
    (void)threads;
    return 1;
}

static spk_status (*timed)(const spk_bound *, const spk_args *, void *);
static double walls_us[3];
static int walls;

static spk_status run_timed(const spk_bound *bound, const spk_args *args, void *stream)
{
    const double begin_us = spk_now_us();
    spk_status status = timed(bound, args, stream);
    walls_us[walls++] = spk_now_us() - begin_us;
    return status;
}

/* What is said is no less than the work, and less than the clock shows by what threads were away without any doubt: how long a thread waits
 * for a processor on a busy machine, nobody knows. */
static void time_three(spk_status (*run)(const spk_bound *, const spk_args *, void *), const char *library, double least_us, double gone_us)
{
    const spk_kernel_ops ops = {.run = run_timed};
    const spk_kernel row = {.name = "test", .backend = SPK_BACKEND_CPU, .library = library, .ops = &ops};
    spk_device device = {.backend = &spk_backend_cpu, .executor.threads = 2};
    const spk_bound bound = {.kernel = &row, .device = &device, .problem.batch = 1};
    const spk_args args[2] = {{.at = {NULL}}, {.at = {NULL}}};
    double us[3] = {-1, -1, -1};
    timed = run;
    walls = 0;
    assert_int_equal(spk_cpu_time_runs(&device, &bound, args, 2, 3, us), SPK_OK);
    assert_int_equal(walls, 3);
    for (int i = 0; i < 3; i++)
        if (us[i] < 0.95 * least_us || us[i] > walls_us[i] - 0.9 * gone_us)
            fail_msg("%.0f us of %.0f are not between %.0f and that less %.0f", us[i], walls_us[i], least_us, gone_us);
}

static void test_beside_others(void **state)
{
    (void)state;
    spk_executor_ask(one_left);
    if (spk_executor_usable(&(spk_executor){.threads = 2})) {
        time_three(run_alone, NULL, work_us, away_us);
        time_three(run_region, NULL, 2 * work_us, 1.5 * away_us);      /* of the region's, half: the other thread may have worked on */
        time_three(run_threads, "test", 1.5 * work_us, 0.5 * away_us); /* 15 ms of two threads; likewise */
        time_three(run_alone, "test", work_us, 0.5 * away_us);         /* a library that does with one thread */
        time_three(run_region, "test", 2 * work_us, 1.5 * away_us);    /* one that has our threads work */
    }
    spk_executor_ask(NULL);
}

static void test_failure(void **state)
{
    (void)state;
    const spk_kernel_ops ops = {.run = refuse};
    const spk_kernel row = {.name = "test", .backend = SPK_BACKEND_CPU, .ops = &ops};
    spk_device device = {.backend = &spk_backend_cpu, .executor.threads = 2};
    const spk_bound bound = {.kernel = &row, .device = &device, .problem.batch = 1};
    double us[2];
    spk_executor_ask(one_left);
    assert_int_equal(spk_cpu_time_runs(&device, &bound, &(spk_args){.at = {NULL}}, 1, 2, us), SPK_ERR_UNSUPPORTED);
    spk_executor_ask(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_others), cmocka_unit_test(test_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
