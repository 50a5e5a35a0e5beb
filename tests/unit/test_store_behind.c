/* Saving behind the caller: what is saved is known at once, nobody waits for a file that another has, and the file gets everything. */
#include "test_store.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

enum { CLASSES = 40 };

/* A child of a process with threads may not allocate under the address sanitizer, whose allocator a thread may hold, nor start a thread
 * under the thread sanitizer. */
#ifdef __SANITIZE_ADDRESS__
static const bool children_allocate = false, children_have_threads = true;
#elif defined(__SANITIZE_THREAD__)
static const bool children_allocate = true, children_have_threads = false;
#else
static const bool children_allocate = true, children_have_threads = true;
#endif

static void save_behind(spk_store *store, const char *key, double median_us, int64_t measured_at)
{
    spk_report *report = make_report(key, 5, median_us, measured_at);
    OK(spk_store_save_behind(store, &report, measured_at));
    assert_null(report);
}

/* As another process sees it. */
static double in_file(const char *key)
{
    spk_store *other = open_store(store_path);
    other->read_ms = SPK_STORE_BUSY_MS; /* a disk may be slow, and the writer writes many */
    const double us = stored_us(other, key);
    spk_store_close(&other);
    return us;
}

/* Another connection with the file's lock: as far as SQLite is concerned, another process. */
static sqlite3 *hold_file(const char *how)
{
    sqlite3 *holder = NULL;
    assert_int_equal(sqlite3_open(store_path, &holder), SQLITE_OK);
    assert_int_equal(sqlite3_exec(holder, how, NULL, NULL, NULL), SQLITE_OK);
    return holder;
}

static void let_go(sqlite3 *holder)
{
    assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(holder);
}

static void wait_for_file(const char *key, double us)
{
    for (int i = 0; i < 6000 && in_file(key) != us; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(in_file(key) == us);
}

static void is_known_at_once(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(store_path);
    for (int i = 0; i < CLASSES; i++) {
        save_behind(store, key_of(key, 1, i), 40 + i, 1000);
        assert_true(stored_us(store, key) == 40 + i);
        spk_report *back = NULL;
        OK(spk_store_load(store, key, &back));
        assert_non_null(back);
        assert_int_equal(back->count, 5);
        spk_report_release(&back);
    }
    wait_for_file(key, 40 + CLASSES - 1);
    save_behind(store, key_of(key, 1, 0), 7, 1001); /* the newer one */
    assert_true(stored_us(store, key) == 7);
    spk_store_close(&store);
    for (int i = 0; i < CLASSES; i++)
        assert_true(in_file(key_of(key, 1, i)) == (i == 0 ? 7 : 40 + i));
    must_tell(0, "");
}

/* Somebody reads and writes meanwhile; the file is free again before anybody has waited in vain. */
static void a_held_file_keeps_nobody(void **state)
{
    (void)state;
    static const char *const how[] = {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"};
    char key[128], other[128];
    for (int i = 0; i < 2; i++) {
        spk_store *store = open_store(store_path);
        save(store, key_of(key, 2, 0), 50, 1000);
        sqlite3 *holder = hold_file(how[i]);
        save_behind(store, key_of(other, 2, 1 + i), 60 + i, 1000);
        assert_true(stored_us(store, other) == 60 + i);
        let_go(holder);
        wait_for_file(other, 60 + i);
        spk_store_close(&store);
        must_tell(0, "");
    }
}

/* A held file is waited for by the writer alone: one that is asked for what is in memory answers, however long that lasts. */
static void it_stays_where_the_file_stays_held(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(store_path);
    save(store, key_of(key, 2, 0), 50, 1000);
    sqlite3 *holder = hold_file("BEGIN IMMEDIATE");
    save_behind(store, key_of(key, 2, 9), 61, 1000);
    assert_true(stored_us(store, key) == 61);
    spk_store_close(&store); /* says so, after some seconds */
    must_tell(1, "is held by another process");
    let_go(holder);
    assert_true(in_file(key) == -1);
}

/* What somebody wrote since stays; what was there before does not. */
static void newer_evidence_stays(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(store_path), *other = open_store(store_path);
    save(other, key_of(key, 3, 0), 50, 999);
    save_behind(store, key, 51, 1000);
    spk_store_close(&store);
    assert_true(in_file(key) == 51);
    store = open_store(store_path);
    save(other, key, 52, 1005);
    spk_report *report = make_report(key, 5, 53, 1006);
    OK(spk_store_save_behind(store, &report, 1004));
    spk_store_close(&store);
    assert_true(in_file(key) == 52);
    spk_store_close(&other);
}

static void an_emptied_store_stays_empty(void **state)
{
    (void)state;
    char key[128];
    int64_t removed = 0;
    spk_store *store = open_store(store_path);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5; i++)
            save_behind(store, key_of(key, 4, i), 40, 1000);
        OK(spk_store_empty(store, &removed));
        for (int i = 0; i < 5; i++)
            assert_true(stored_us(store, key_of(key, 4, i)) == -1);
    }
    spk_store_close(&store);
    for (int i = 0; i < 5; i++)
        assert_true(in_file(key_of(key, 4, i)) == -1);
}

static void without_a_file_it_stays_in_memory(void **state)
{
    (void)state;
    char key[128], nowhere[320];
    spk_store *store = open_store("");
    save_behind(store, key_of(key, 5, 0), 40, 1000);
    assert_true(stored_us(store, key) == 40);
    spk_store_close(&store);
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/store.db", folder);
    store = open_store(nowhere);
    save_behind(store, key, 41, 1000);
    for (int i = 0; i < 3000 && told_count == 0; i++) { /* the next call says what the writer met */
        assert_true(stored_us(store, key) == 41);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    must_tell(1, "its folder does not exist");
    assert_true(stored_us(store, key) == 41);
    spk_store_close(&store);
}

/* Children begin while the writer is anywhere. What they were told of by their parent they know, and either may write it. */
static void children_and_the_end_of_a_process(void **state)
{
    (void)state;
    char key[128];
    if (!children_allocate || !children_have_threads)
        skip();
    for (int i = 0; i < CLASSES; i++) {
        spk_store *store = open_store(store_path);
        save_behind(store, key_of(key, 6, i), 40 + i, 1000);
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(600);
            const bool knows = stored_us(store, key) == 40 + i;
            save_behind(store, key_of(key, 7, i), 90 + i, 1000);
            if (i % 2 == 0)
                spk_store_close(&store);
            _exit(knows ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        spk_store_close(&store);
        assert_true(in_file(key) == 40 + i);
        if (i % 2 == 0)
            assert_true(in_file(key_of(key, 7, i)) == 90 + i);
    }
}

static atomic_bool closing_is_over;

static void *open_and_close(void *unused)
{
    char key[128];
    (void)unused;
    key_of(key, 9, 1);
    while (!atomic_load(&closing_is_over)) {
        spk_store *store = open_store(store_path);
        (void)stored_us(store, key);
        spk_store_close(&store);
    }
    return NULL;
}

/* A process splits while a thread opens and closes a store: SQLite's own locks are nobody's then. The alarm ends a child that hangs. */
static void a_store_closes_while_a_process_splits(void **state)
{
    (void)state;
    char key[128];
    pthread_t thread;
    if (!children_allocate || !children_have_threads)
        skip();
    spk_store *mine = open_store(store_path);
    save(mine, key_of(key, 9, 1), 40, 1000);
    spk_store_close(&mine);
    fflush(NULL);
    atomic_store(&closing_is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    for (int i = 0; i < 600; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(600);
            spk_store *store = NULL;
            spk_decision decision;
            bool found = false;
            const bool good = spk_store_open(&spk_mem_system, store_path, NULL, NULL, &store) == SPK_OK &&
                              spk_store_decision(store, key, &decision, &found) == SPK_OK && found;
            _exit(good ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&closing_is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A process that exits with its store open has written all by then. */
static void exit_writes(void **state)
{
    (void)state;
    char key[128];
    if (!children_have_threads)
        skip();
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(600);
        spk_store *store = open_store(store_path);
        for (int i = 0; i < CLASSES; i++)
            save_behind(store, key_of(key, 8, i), 40 + i, 1000);
        if (freopen("/dev/null", "w", stdout) == NULL)
            _exit(2);
        exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < CLASSES; i++)
        assert_true(in_file(key_of(key, 8, i)) == 40 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_known_at_once, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_held_file_keeps_nobody, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(it_stays_where_the_file_stays_held, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(newer_evidence_stays, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(an_emptied_store_stays_empty, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(without_a_file_it_stays_in_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(children_and_the_end_of_a_process, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(exit_writes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_store_closes_while_a_process_splits, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
