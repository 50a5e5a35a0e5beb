/* The store's file where the system refuses it: locked, full, read-only, unreadable. Lookups and saves go on, one warning says so. */
#include "test_store_files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void test_locked_by_another(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(direct_path);
    save(store, key_of(key, 1, 1), 9, 9);
    assert_int_equal(store->disk->busy_ms, SPK_STORE_BUSY_MS);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(direct_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_true(stored_us(store, key) == -1);
    assert_int_equal(store->disk->busy_ms, SPK_STORE_READ_MS); /* whoever plans waits shortly */
    must_tell(1, "held by another process");
    assert_true(spk_store_is_held(store));
    assert_true(stored_us(store, key) == -1);
    assert_true(store->disk->busy_ms < 10); /* no second time */
    go_on(store);
    must_tell(0, "");
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_true(stored_us(store, key_of(key, 1, 1)) == 9); /* used again as soon as it is free */
    assert_false(spk_store_is_held(store));
    save(store, key_of(key, 77, 77), 4, 9);
    spk_store_close(&store);
    store = open_store(direct_path);
    assert_true(stored_us(store, key) == 4);
    expect_sound(store, 2, 0);
    spk_store_close(&store);
}

/* The database may grow no more. */
static void test_full(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(direct_path);
    save(store, key_of(key, 1, 0), 9, 9);
    int64_t pages = 0;
    assert_int_equal(spk_db_integer(store->disk, "PRAGMA max_page_count = 1", &pages), SQLITE_OK); /* as many as there are */
    for (int i = 1; i < 40; i++) {
        save(store, key_of(key, 1, i), i, i);
        assert_true(stored_us(store, key) == i); /* from memory */
    }
    must_tell(1, "cannot grow");
    char json[300];
    int64_t count = 0;
    snprintf(json, sizeof json, "%s/x.json", folder);
    OK(spk_store_export_json(store, json, &count));
    assert_int_equal(count, 40);
    expect_sound(store, 40, 0);
    assert_int_equal(spk_db_integer(store->disk, "PRAGMA max_page_count = 100000", &pages), SQLITE_OK);
    save(store, key_of(key, 1, 39), 3900, 39);
    assert_true(stored_us(store, key) == 3900);
    spk_store_close(&store);
    store = open_store(direct_path);
    assert_true(stored_us(store, key) == 3900);
    int64_t good, bad;
    OK(spk_store_check(store, &good, &bad));
    assert_int_equal(bad, 0);
    spk_store_close(&store);
    /* An import into a full store fails as a whole. */
    store = open_store(store_path);
    save(store, key_of(key, 1, 0), 9, 9);
    assert_int_equal(spk_db_integer(store->disk, "PRAGMA max_page_count = 1", &pages), SQLITE_OK);
    assert_int_equal(spk_store_import_json(store, json, &count), SPK_ERR_NO_SPACE);
    expect_sound(store, 1, 0);
    spk_store_close(&store);
    must_tell(1, "cannot grow");
}

/* ------------------------------------------------------------------------------------------------ in a child of its own */

/* Runs body in a child, as nobody where this is root: root may write everywhere. */
static void in_child(void (*body)(void), bool as_nobody)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion must not run on into the next test */
        if (as_nobody && geteuid() == 0 && setuid(65534) != 0)
            _exit(3);
        body();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void give_to_nobody(void)
{
    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chown(direct_path, 65534, 65534), 0);
    assert_int_equal(chown(folder, 65534, 65534), 0);
}

static void prepare_file(void)
{
    char key[128];
    spk_store *store = open_store(direct_path);
    save(store, key_of(key, 1, 1), 9, 9);
    spk_store_close(&store);
    give_to_nobody();
}

static void reads_but_keeps_in_memory(void)
{
    char key[128];
    spk_store *store = open_store(direct_path);
    if (stored_us(store, key_of(key, 1, 1)) != 9 || told_count != 0)
        _exit(4);
    save(store, key_of(key, 1, 2), 5, 5);
    save(store, key_of(key, 1, 3), 6, 5);
    save(store, key_of(key, 1, 1), 8, 10);
    if (stored_us(store, key_of(key, 1, 2)) != 5 || stored_us(store, key_of(key, 1, 1)) != 8)
        _exit(5);
    must_tell(1, "cannot be written");
    go_on(store);
    int token = -1;
    OK(spk_store_lock(store, key, 1, NULL, &token));
    if (token < 0 || told_count != 0)
        _exit(6);
    /* As soon as it can be written again, it is. */
    if (chmod(folder, 0700) != 0 || chmod(direct_path, 0600) != 0)
        _exit(7);
    save(store, key_of(key, 1, 4), 44, 5);
    spk_store *other = open_store(direct_path);
    if (stored_us(other, key) != 44)
        _exit(8);
    spk_store_close(&other);
    spk_store_unlock(store, token);
    spk_store_close(&store);
}

static void test_read_only_file(void **state)
{
    (void)state;
    prepare_file();
    assert_int_equal(chmod(direct_path, 0400), 0);
    in_child(reads_but_keeps_in_memory, true);
}

static void test_read_only_folder(void **state)
{
    (void)state;
    prepare_file();
    assert_int_equal(chmod(folder, 0500), 0);
    in_child(reads_but_keeps_in_memory, true);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void finds_nothing(void)
{
    char key[128];
    spk_store *store = open_store(direct_path);
    if (stored_us(store, key_of(key, 1, 1)) != -1)
        _exit(4);
    go_on(store);
    must_tell(1, "ermission denied");
    spk_store_close(&store);
}

static void test_unreadable_file(void **state)
{
    (void)state;
    prepare_file();
    assert_int_equal(chmod(direct_path, 0), 0);
    in_child(finds_nothing, true);
}

static void test_unreadable_folder(void **state)
{
    (void)state;
    prepare_file();
    assert_int_equal(chmod(folder, 0), 0);
    in_child(finds_nothing, true);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* What is said of a place before anything is kept, and after. */
static void check_place(const char *place, const char *path, const char *before, const char *after)
{
    char key[128];
    spk_store *store = NULL;
    setenv("SPARSEK_CACHE_DIR", place != NULL ? place : folder, 1);
    store = open_store(path);
    if (strcmp(spk_store_used(store), before) != 0)
        fail_msg("%s: \"%s\"", spk_store_where(store), spk_store_used(store));
    save(store, key_of(key, 1, 1), 9, 9);
    if (strcmp(spk_store_used(store), after) != 0)
        fail_msg("%s: \"%s\" after a save", spk_store_where(store), spk_store_used(store));
    must_tell(after[0] == '\0', "");
    spk_store_close(&store);
}

static void in_a_read_only_folder(void)
{
    char place[300];
    unsetenv("SPARSEK_STORE");
    snprintf(place, sizeof place, "%s/deep/inside", folder);
    check_place(place, NULL, "", "");
    check_place(NULL, direct_path, "", "");
}

/* A store that cannot be made has no path, and asking for one makes nothing. */
static void test_places_that_take_no_file(void **state)
{
    (void)state;
    struct stat about;
    char place[300], inside[320], link[300];
    unsetenv("SPARSEK_STORE");
    check_place("/proc/nope", NULL, "", "");
    check_place("/proc/nope/deep", NULL, "", "");
    check_place(NULL, "/proc/store.db", "", "");
    snprintf(place, sizeof place, "%s/file", folder);
    write_bytes(place, "x", 1);
    check_place(place, NULL, "", "");
    snprintf(inside, sizeof inside, "%s/nowhere/store.db", folder); /* the folder of a given path is not made */
    check_place(NULL, inside, "", "");
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("nothing", link), 0);
    check_place(NULL, link, "", "");
    check_place(link, NULL, "", "");
    snprintf(place, sizeof place, "%s/deep/inside", folder);
    snprintf(inside, sizeof inside, "%s/store.db", place);
    setenv("SPARSEK_CACHE_DIR", place, 1);
    spk_store *store = open_store(NULL);
    assert_string_equal(spk_store_used(store), inside);
    spk_store_close(&store);
    assert_int_not_equal(stat(place, &about), 0);
    check_place(place, NULL, inside, inside);
    if (geteuid() == 0)
        assert_int_equal(chown(folder, 65534, 65534), 0);
    snprintf(place, sizeof place, "rm -r %s/deep", folder);
    assert_int_equal(system(place), 0);
    assert_int_equal(chmod(folder, 0500), 0);
    in_child(in_a_read_only_folder, true);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* Nothing told that this would fail. */
static void test_a_place_that_only_seems_to_take_a_file(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store("/dev/pts/sparsek-store.db");
    save(store, key_of(key, 1, 1), 9, 9);
    assert_string_equal(spk_store_used(store), "");
    must_tell(1, "cannot be made");
    assert_true(stored_us(store, key) == 9);
    spk_store_close(&store);
}

static void damaged_but_fixed(void)
{
    char key[128];
    setenv("SPARSEK_CACHE_DIR", folder, 1); /* the default place: what is given is left alone */
    unsetenv("SPARSEK_STORE");
    spk_store *store = open_store(NULL);
    if (stored_us(store, key_of(key, 1, 1)) != -1)
        _exit(4);
    must_tell(1, "is damaged");
    go_on(store);
    must_tell(1, "cannot be set aside");
    spk_store_close(&store);
}

static void test_damage_in_a_read_only_folder(void **state)
{
    (void)state;
    write_bytes(direct_path, "this is no database, and long enough to tell", 44);
    give_to_nobody();
    assert_int_equal(chmod(folder, 0500), 0);
    in_child(damaged_but_fixed, true);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* A limit on the size of files stands in for a full disk: writes fail in the middle of a transaction. */
static void outgrows_its_limit(void)
{
    char key[128];
    struct rlimit limit = {40000, 40000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(3);
    spk_store *store = open_store(direct_path);
    for (int i = 0; i < 60; i++) {
        save(store, key_of(key, 1, i), i, i);
        if (stored_us(store, key) != i)
            _exit(4);
    }
    if (told_count != 1)
        _exit(5);
    expect_sound(store, 60, 0);
    spk_store_close(&store);
}

static void test_limited_file_size(void **state)
{
    (void)state;
    in_child(outgrows_its_limit, false);
    int64_t good, bad;
    spk_store *store = open_store(direct_path);
    OK(spk_store_check(store, &good, &bad));
    assert_true(good > 5 && good < 60);
    assert_int_equal(bad, 0);
    spk_store_close(&store);
    must_tell(0, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_locked_by_another),
        TEST(test_full),
        TEST(test_read_only_file),
        TEST(test_read_only_folder),
        TEST(test_unreadable_file),
        TEST(test_unreadable_folder),
        TEST(test_places_that_take_no_file),
        TEST(test_a_place_that_only_seems_to_take_a_file),
        TEST(test_damage_in_a_read_only_folder),
        TEST(test_limited_file_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
