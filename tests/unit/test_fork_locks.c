/* Locks while the process splits. A program's own, under which it calls the library and which it holds while it forks, as the library does
 * its own: neither waits for the other. And the library's, which a thread may hold that is not there in the child. A deadlock ends by the
 * alarm. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

enum { FORKS = 300, SIZES = 16 };

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static atomic_int over, calls;
static sem_t next; /* one a fork */

static void take(void)
{
    pthread_mutex_lock(&own);
}

static void give(void)
{
    pthread_mutex_unlock(&own);
}

static void *use_library(void *unused)
{
    (void)unused;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1};
    const spk_gemm problem = {SPK_SIZED(spk_gemm), .m = 4, .n = 4, .k = 4, .batch = 1};
    const spk_tune_options tuning = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    while (!atomic_load(&over)) {
        spk_context *context = NULL;
        spk_plan *plan = NULL;
        take();
        if (spk_context_create(&options, &context) == SPK_OK && spk_plan_create(context, NULL, &problem, &tuning, &plan) == SPK_OK)
            atomic_fetch_add(&calls, 1);
        spk_plan_destroy(&plan);
        spk_context_destroy(&context);
        give();
        sem_wait(&next); /* a mutex is not fair: whoever gives it back gets it again */
    }
    return NULL;
}

static void a_lock_of_the_programs_own(void **state)
{
    (void)state;
    pthread_t thread;
    alarm(600);
    assert_int_equal(sem_init(&next, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, use_library, NULL), 0);
    for (int i = 0; i < FORKS || atomic_load(&calls) < FORKS / 10; i++) {
        sem_post(&next);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(0);
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&over, 1);
    sem_post(&next);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static spk_context *shared;

/* By way of what the context remembers of earlier questions. */
static bool multiplies(int64_t m)
{
    const spk_gemm problem = {SPK_SIZED(spk_gemm), .m = m, .n = 1, .k = 1, .batch = 1};
    const spk_tune_options tuning = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    float a[SIZES], d[SIZES], b = 1;
    for (int i = 0; i < SIZES; i++)
        a[i] = 1;
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = a, .b = &b, .d = d, .alpha = 1};
    return spk_compute_gemm(shared, &problem, &args, &tuning) == SPK_OK && d[m - 1] == 1;
}

static void *multiply(void *unused)
{
    (void)unused;
    for (int64_t m = 1; !atomic_load(&over); m = m % (SIZES / 2) + 1)
        if (multiplies(m))
            atomic_fetch_add(&calls, 1);
    return NULL;
}

static void a_context_that_another_thread_uses(void **state)
{
    (void)state;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1};
    pthread_t thread;
    alarm(600);
    atomic_store(&over, 0);
    atomic_store(&calls, 0);
    assert_int_equal(spk_context_create(&options, &shared), SPK_OK);
    assert_int_equal(pthread_create(&thread, NULL, multiply, NULL), 0);
    for (int i = 0; i < FORKS || atomic_load(&calls) < FORKS / 10; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(600);
            if (!multiplies(1) || !multiplies(SIZES))
                _exit(1);
            raise(SIGKILL); /* not _exit: what the other thread held is nobody's here, and a leak checker would say so */
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    atomic_store(&over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    spk_context_destroy(&shared);
}

/* In a child of a process of several threads ThreadSanitizer looks at no lock; here it does. */
static void a_process_of_one_thread(void **state)
{
    (void)state;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1};
    alarm(600);
    assert_int_equal(spk_context_create(&options, &shared), SPK_OK);
    assert_true(multiplies(1));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(multiplies(1) && multiplies(2) ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    spk_context_destroy(&shared);
}

enum { SIDE = 256, SPLITS = 12 };
static spk_plan *trying;
static atomic_int splits;
static int bad_children;
static float left[SIDE * SIDE], right[SIDE * SIDE], product[SIDE * SIDE];

static bool runs_trying(void)
{
    memset(product, 0xff, sizeof product);
    return spk_plan_run_gemm(trying, &(spk_gemm_args){SPK_SIZED(spk_gemm_args), .a = left, .b = right, .d = product, .alpha = 1}, NULL) ==
               SPK_OK &&
           product[0] == SIDE && product[SIDE * SIDE - 1] == SIDE;
}

static sem_t inside, outside;

/* A run waits in the middle, while the other thread forks. */
static void wait_inside(void *user, int64_t tasks, spk_parallel_body body, void *arg)
{
    (void)user;
    if (atomic_load(&splits) < SPLITS) {
        sem_post(&inside);
        sem_wait(&outside);
    }
    for (int64_t i = 0; i < tasks; i++)
        body(arg, i);
}

static void *split(void *unused)
{
    (void)unused;
    while (atomic_load(&splits) < SPLITS) {
        sem_wait(&inside);
        if (atomic_load(&splits) >= SPLITS) /* it is over */
            break;
        const pid_t child = fork();
        if (child == 0) {
            alarm(600);
            atomic_store(&splits, SPLITS);
            if (!runs_trying() || !runs_trying())
                _exit(1);
            raise(SIGKILL);
        }
        int status = -1;
        bad_children += child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
        atomic_fetch_add(&splits, 1);
        sem_post(&outside);
    }
    return NULL;
}

/* A plan that tries candidates in place, whose run holds its lock. */
static void a_trial_that_runs(void **state)
{
    (void)state;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .parallel_for = wait_inside};
    const spk_gemm problem = {SPK_SIZED(spk_gemm), .m = SIDE, .n = SIDE, .k = SIDE, .batch = 1};
    const spk_tune_options in_place = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    pthread_t thread;
    alarm(600);
    for (int i = 0; i < SIDE * SIDE; i++)
        left[i] = right[i] = 1;
    assert_int_equal(sem_init(&inside, 0, 0), 0);
    assert_int_equal(sem_init(&outside, 0, 0), 0);
    atomic_store(&splits, SPLITS);
    assert_int_equal(spk_context_create(&options, &shared), SPK_OK);
    if (spk_plan_create(shared, NULL, &problem, &in_place, &trying) != SPK_OK)
        fail_msg("%s", spk_last_error(shared));
    atomic_store(&splits, 0);
    assert_int_equal(pthread_create(&thread, NULL, split, NULL), 0);
    for (int i = 0; i < 100; i++)
        assert_true(runs_trying());
    assert_true(atomic_load(&splits) > 0); /* what wins may be serial: then there are fewer */
    atomic_store(&splits, SPLITS);
    sem_post(&inside);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(bad_children, 0);
    spk_plan_destroy(&trying);
    spk_context_destroy(&shared);
}

int main(void)
{
    /* before the library's first use, as a module does that opens a context when it is asked for one */
    if (pthread_atfork(take, give, give) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_process_of_one_thread), cmocka_unit_test(a_lock_of_the_programs_own),
                                       cmocka_unit_test(a_context_that_another_thread_uses), cmocka_unit_test(a_trial_that_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
