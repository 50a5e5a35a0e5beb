/* A program's own lock, under which it calls the library and which it holds while it forks, as the library does its own: neither waits for
 * the other. A deadlock ends by the alarm. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

enum { FORKS = 300 };

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static atomic_int over, calls;

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
    }
    return NULL;
}

static void a_lock_of_the_programs_own(void **state)
{
    (void)state;
    pthread_t thread;
    alarm(600);
    assert_int_equal(pthread_create(&thread, NULL, use_library, NULL), 0);
    for (int i = 0; i < FORKS || atomic_load(&calls) < FORKS / 10; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(0);
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    /* before the library's first use, as a module does that opens a context when it is asked for one */
    if (pthread_atfork(take, give, give) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lock_of_the_programs_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
