/* The store between processes and threads: one tuner a class, sudden death at any moment, fork in the middle. */
#include "test_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"

static void pause_ms(double ms)
{
    struct timespec wait = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    nanosleep(&wait, NULL);
}

/* A child that runs body. A failed assertion aborts it, an alarm ends one that hangs, and a good end is sudden: a checker of leaks would
 * find what the parent's threads owned in this copy of its memory. */
static pid_t start(int (*body)(int), int arg)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        alarm(600);
        int result = body(arg);
        if (result == 0)
            raise(SIGKILL);
        _exit(result);
    }
    return child;
}

static void finish(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("child: status %x", (unsigned)status);
}

/* ------------------------------------------------------------------------------------------------ one tuner a class */

/* Tunes a class as the tuner does: the work is one byte appended to a file. */
static int tune(spk_store *store, int class)
{
    char key[128], work[400];
    int token = -1;
    snprintf(work, sizeof work, "%s/work-%d", folder, class);
    key_of(key, 1, class);
    if (spk_store_lock(store, key, 300, NULL, &token) != SPK_OK || token < 0)
        return 1;
    if (stored_us(store, key) < 0) {
        int file = open(work, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file < 0 || write(file, "x", 1) != 1)
            return 2;
        close(file);
        pause_ms(30);
        save(store, key, class + 1, 5);
    }
    spk_store_unlock(store, token);
    return stored_us(store, key) == class + 1 ? 0 : 3;
}

static void must_have_worked_once(int classes)
{
    for (int i = 0; i < classes; i++) {
        char work[400];
        struct stat about;
        snprintf(work, sizeof work, "%s/work-%d", folder, i);
        assert_int_equal(stat(work, &about), 0);
        assert_int_equal(about.st_size, 1);
    }
}

enum { CLASSES = 4, TUNERS = 6 };

static int tune_all(int who)
{
    spk_store *store = open_store(store_path);
    int result = 0;
    for (int i = 0; i < CLASSES && result == 0; i++)
        result = tune(store, (i + who) % CLASSES);
    spk_store_close(&store);
    return result != 0 ? result : told_count;
}

static void test_processes_tune_once(void **state)
{
    (void)state;
    pid_t children[TUNERS];
    for (int i = 0; i < TUNERS; i++)
        children[i] = start(tune_all, i);
    for (int i = 0; i < TUNERS; i++)
        finish(children[i]);
    must_have_worked_once(CLASSES);
}

typedef struct tuner {
    pthread_t thread;
    spk_store *store; /* NULL: a handle of its own */
    int who, result;
    spk_report *report; /* to save */
} tuner;

static void *tuner_thread(void *arg)
{
    tuner *t = arg;
    if (t->store == NULL)
        t->result = tune_all(t->who);
    for (int i = 0; i < CLASSES && t->store != NULL && t->result == 0; i++)
        t->result = tune(t->store, (i + t->who) % CLASSES);
    return NULL;
}

static void tune_in_threads(spk_store *store)
{
    tuner tuners[TUNERS];
    for (int i = 0; i < TUNERS; i++) {
        tuners[i] = (tuner){.store = store, .who = i};
        assert_int_equal(pthread_create(&tuners[i].thread, NULL, tuner_thread, &tuners[i]), 0);
    }
    for (int i = 0; i < TUNERS; i++) {
        pthread_join(tuners[i].thread, NULL);
        assert_int_equal(tuners[i].result, 0);
    }
    must_have_worked_once(CLASSES);
}

static void test_threads_tune_once(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    tune_in_threads(store);
    spk_store_close(&store);
}

static void test_threads_in_memory_tune_once(void **state)
{
    (void)state;
    spk_store *store = open_store("");
    tune_in_threads(store);
    spk_store_close(&store);
}

static void test_handles_tune_once(void **state)
{
    (void)state;
    tune_in_threads(NULL);
}

static void test_lock_limit(void **state)
{
    (void)state;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        spk_store *a = open_store(in_memory ? "" : store_path), *b = in_memory ? a : open_store(store_path);
        char key[128], other[128];
        int held = -1, token = 7, free_token = -1;
        OK(spk_store_lock(a, key_of(key, 1, 1), 0, NULL, &held));
        assert_true(held >= 0);
        double begun = spk_now_us();
        OK(spk_store_lock(b, key, 0.2, NULL, &token));
        double waited_us = spk_now_us() - begun;
        assert_int_equal(token, -1);
        assert_true(waited_us >= 0.2e6);
        spk_store_unlock(b, token); /* nothing to release */
        OK(spk_store_lock(b, key_of(other, 1, 2), 0, NULL, &free_token));
        assert_true(free_token >= 0);
        spk_store_unlock(a, held);
        OK(spk_store_lock(b, key, 0, NULL, &token));
        assert_true(token >= 0);
        spk_store_unlock(b, token);
        spk_store_unlock(b, free_token);
        if (b != a)
            spk_store_close(&b);
        spk_store_close(&a);
    }
}

/* Closing the handle releases what it held; more classes than the table has are not refused. */
static void test_lock_table(void **state)
{
    (void)state;
    spk_store *a = open_store(store_path), *b = open_store(store_path);
    char key[128];
    int token = -1;
    for (int i = 0; i < SPK_STORE_LOCKS; i++) {
        OK(spk_store_lock(a, key_of(key, 1, i), 0, NULL, &token));
        assert_int_equal(token, i);
    }
    OK(spk_store_lock(a, key_of(key, 1, 1000), 0, NULL, &token));
    assert_int_equal(token, -1);
    OK(spk_store_lock(b, key_of(key, 1, 5), 0, NULL, &token));
    assert_int_equal(token, -1);
    spk_store_close(&a);
    OK(spk_store_lock(b, key, 0, NULL, &token));
    assert_int_equal(token, 0);
    spk_store_close(&b);
    must_tell(0, "");
}

static int ready[2], over[2]; /* pipes: "I hold it", and closed by the test when it is over */

static int hold_and_wait(int with_child)
{
    char key[128];
    int token = -1;
    spk_store *store = open_store(store_path);
    if (spk_store_lock(store, key_of(key, 1, 1), 0, NULL, &token) != SPK_OK || token < 0)
        return 1;
    close(over[1]);
    if (with_child && fork() == 0) { /* a worker that outlives us must not keep our lock */
        char byte;
        _exit(read(over[0], &byte, 1) != 0);
    }
    if (write(ready[1], "r", 1) != 1)
        return 2;
    pause();
    return 0;
}

static void test_death_releases(void **state)
{
    (void)state;
    for (int with_child = 0; with_child < 2; with_child++) {
        char byte, key[128];
        int token = -1, status;
        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(over), 0);
        pid_t child = start(hold_and_wait, with_child);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        spk_store *store = open_store(store_path);
        OK(spk_store_lock(store, key_of(key, 1, 1), 0.05, NULL, &token));
        assert_int_equal(token, -1);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        OK(spk_store_lock(store, key, 300, NULL, &token));
        assert_true(token >= 0);
        spk_store_close(&store);
        close(ready[0]);
        close(ready[1]);
        close(over[0]);
        close(over[1]);
    }
}

/* ------------------------------------------------------------------------------------------------ kill -9 */

static int save_for_ever(int seed)
{
    spk_store *store = open_store(store_path);
    char key[128];
    for (int i = 0;; i++) {
        save(store, key_of(key, seed % 3, seed * 1000 + i % 50), i, i);
        if (i == 0 && write(ready[1], "r", 1) != 1)
            return 1;
    }
    return 0;
}

static void test_kill_during_saves(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 2026);
    int64_t before = 0;
    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < 100; i++) {
        char byte;
        pid_t children[2] = {start(save_for_ever, i), start(save_for_ever, i + 1000)};
        if (i >= 30) /* the first ones are killed while they make the file */
            assert_int_equal(read(ready[0], &byte, 1), 1);
        pause_ms(25 * spk_rng_uniform(&rng));
        for (int j = 0; j < 2; j++) {
            int status;
            kill(children[j], SIGKILL);
            assert_int_equal(waitpid(children[j], &status, 0), children[j]);
        }
        spk_store *store = open_store(store_path);
        int64_t good = -1, bad = -1;
        OK(spk_store_check(store, &good, &bad));
        if (bad != 0 || good < before)
            fail_msg("after kill %d: %d good (%d before), %d bad", i, (int)good, (int)before, (int)bad);
        before = good;
        spk_store_close(&store);
    }
    assert_true(before >= 70);
    must_tell(0, "");
    close(ready[0]);
    close(ready[1]);
}

/* ------------------------------------------------------------------------------------------------ fork and threads */

static atomic_int stop, failures, running;

/* Looks up and saves on one shared handle. Allocates nothing outside of it: an allocator of a sanitizer is not safe across fork. */
static void *hammer(void *arg)
{
    tuner *t = arg;
    char key[128];
    spk_rng rng;
    spk_rng_seed(&rng, (uint64_t)t->who);
    for (int i = 0; !atomic_load(&stop); i++) {
        int class = (int)spk_rng_below(&rng, 40), token = -1;
        spk_decision decision;
        bool found = false;
        spk_status status = spk_store_decision(t->store, key_of(key, class % 4, class), &decision, &found);
        if (status == SPK_OK && i % 7 == 0)
            status = spk_store_nearest(t->store, key, &decision, &found);
        if (status == SPK_OK && i % 11 == 0)
            status = spk_store_lock(t->store, key, 0.001, NULL, &token);
        spk_store_unlock(t->store, token);
        if (status == SPK_OK && t->who == 0) { /* one that saves as fast as the disk lets it would keep the children out for seconds */
            status = spk_store_save(t->store, t->report);
            pause_ms(5);
        }
        if (status != SPK_OK)
            atomic_fetch_add(&failures, 1);
        if (i == 0)
            atomic_fetch_add(&running, 1);
    }
    return NULL;
}

/* Everything at once on one handle, with classes that come and go. */
static void *use_everything(void *arg)
{
    tuner *t = arg;
    char key[128], path[400];
    snprintf(path, sizeof path, "%s/%d.json", folder, t->who);
    for (int i = 0; i < 30 && t->result == 0; i++) {
        spk_report *report = NULL;
        int64_t good = 0, bad = 0, count = 0;
        spk_status status = spk_store_save(t->store, t->report);
        if (status == SPK_OK)
            status = spk_store_load(t->store, key_of(key, 1, (t->who + 1) % 4), &report);
        spk_report_release(&report);
        if (status == SPK_OK && i % 5 == 0)
            status = spk_store_check(t->store, &good, &bad);
        if (status == SPK_OK && i % 7 == 0)
            status = spk_store_export_json(t->store, path, &count);
        if (status == SPK_OK && i % 14 == 0)
            status = spk_store_import_json(t->store, path, &count);
        if (status == SPK_OK && i % 15 == t->who)
            status = spk_store_empty(t->store, &count);
        t->result = status != SPK_OK || bad != 0;
    }
    return NULL;
}

static void share_a_handle(const char *path)
{
    enum { THREADS = 4 };
    tuner tuners[THREADS];
    char key[128];
    spk_store *store = open_store(path);
    for (int i = 0; i < THREADS; i++) {
        tuners[i] = (tuner){.store = store, .who = i, .report = make_report(key_of(key, 1, i), 5, i, i)};
        assert_int_equal(pthread_create(&tuners[i].thread, NULL, use_everything, &tuners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(tuners[i].thread, NULL);
        assert_int_equal(tuners[i].result, 0);
        spk_report_release(&tuners[i].report);
    }
    spk_store_close(&store);
    must_tell(0, "");
}

static void test_threads_share_a_handle(void **state)
{
    (void)state;
    share_a_handle("");
    share_a_handle(store_path);
}

static spk_store *shared;

static int use_after_fork(int i)
{
    char key[128];
    if (shared->disk != NULL) /* the parent's connection */
        return 5;
    if (stored_us(shared, key_of(key, 9, 9)) != 99)
        return 1;
    save(shared, key_of(key, 8, i), i, i);
    if (stored_us(shared, key) != i)
        return 2;
    int token = -1;
    OK(spk_store_lock(shared, key_of(key, 7, 7), 0, NULL, &token)); /* the parent holds this one, in the file where there is one */
    if ((token >= 0) != (shared->path[0] == '\0'))
        return 3;
    OK(spk_store_lock(shared, key_of(key, 7, 100 + i), 0, NULL, &token));
    if (token < 0)
        return 4;
    spk_store_close(&shared);
    return told_count;
}

static void fork_amid_threads(const char *path)
{
    enum { THREADS = 3, FORKS = 20 };
    tuner tuners[THREADS];
    char key[128];
    int token = -1;
    atomic_store(&stop, 0);
    atomic_store(&failures, 0);
    atomic_store(&running, 0);
    shared = open_store(path);
    save(shared, key_of(key, 9, 9), 99, 5);
    OK(spk_store_lock(shared, key_of(key, 7, 7), 0, NULL, &token));
    for (int i = 0; i < THREADS; i++) {
        tuners[i] = (tuner){.store = shared, .who = i, .report = make_report(key_of(key, i, i), 5, i, i)};
        assert_int_equal(pthread_create(&tuners[i].thread, NULL, hammer, &tuners[i]), 0);
    }
    while (atomic_load(&running) < THREADS) /* a thread that starts allocates, so a sanitizer's allocator may be locked meanwhile */
        pause_ms(1);
    for (int i = 0; i < FORKS; i++) {
        finish(start(use_after_fork, i));
        pause_ms(1);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(tuners[i].thread, NULL);
        spk_report_release(&tuners[i].report);
    }
    assert_int_equal(atomic_load(&failures), 0);
    spk_store_unlock(shared, token);
    for (int i = 0; i < FORKS; i++)
        assert_true(stored_us(shared, key_of(key, 8, i)) == (path[0] != '\0' ? i : -1)); /* a child's memory is its own */
    int64_t good, bad;
    OK(spk_store_check(shared, &good, &bad));
    assert_int_equal(bad, 0);
    spk_store_close(&shared);
    must_tell(0, "");
}

static void test_fork_amid_threads(void **state)
{
    (void)state;
    fork_amid_threads(store_path);
}

static void test_fork_amid_threads_in_memory(void **state)
{
    (void)state;
    fork_amid_threads("");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_processes_tune_once),
        TEST(test_threads_tune_once),
        TEST(test_threads_in_memory_tune_once),
        TEST(test_handles_tune_once),
        TEST(test_lock_limit),
        TEST(test_lock_table),
        TEST(test_death_releases),
        TEST(test_kill_during_saves),
        TEST(test_threads_share_a_handle),
        TEST(test_fork_amid_threads),
        TEST(test_fork_amid_threads_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
