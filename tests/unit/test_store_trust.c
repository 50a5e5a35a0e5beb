/* What a store is believed: not what is another user's, not what holds more than tables of ours, and not that it is damaged or empty
 * because it could not be read for once. */
#include "test_store_files.h"

#include <errno.h>

/* ------------------------------------------------------------------------------------------------ reads that fail */

static const char *const read_calls[] = {"read", "pread", "pread64"};
static sqlite3_syscall_ptr real_calls[3];
static enum { READS_PASS, READS_FAIL, READS_GARBLE } reads;
static int reads_left; /* so many go wrong; the others pass */

static ssize_t goes_wrong(void *buffer, size_t count, ssize_t got)
{
    if (reads == READS_PASS || reads_left <= 0 || got <= 0)
        return got;
    reads_left--;
    if (reads == READS_FAIL) {
        errno = EIO;
        return -1;
    }
    memset(buffer, 0x5a, count);
    return got;
}

static ssize_t bad_read(int file, void *buffer, size_t count)
{
    return goes_wrong(buffer, count, read(file, buffer, count));
}

static ssize_t bad_pread(int file, void *buffer, size_t count, off_t at)
{
    return goes_wrong(buffer, count, pread(file, buffer, count, at));
}

static void hook(bool on)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (int i = 0; i < 3; i++) {
        sqlite3_syscall_ptr ours = i == 0 ? (sqlite3_syscall_ptr)bad_read : (sqlite3_syscall_ptr)bad_pread;
        if (on)
            real_calls[i] = vfs->xGetSystemCall(vfs, read_calls[i]);
        vfs->xSetSystemCall(vfs, read_calls[i], on ? ours : real_calls[i]);
    }
}

static void make_store(int classes)
{
    char key[128];
    spk_store *store = open_store(direct_path);
    for (int i = 0; i < classes; i++)
        save(store, key_of(key, 1, i), i + 1, i + 1);
    spk_store_close(&store);
}

static int count_entries(void *user, const spk_store_entry *entry)
{
    (void)entry;
    ++*(int *)user;
    return 0;
}

static void must_list(int wanted)
{
    int count = 0;
    spk_store *store = open_store(direct_path);
    OK(spk_store_visit(store, count_entries, &count));
    assert_int_equal(count, wanted);
    spk_store_close(&store);
}

/* A disk or a network that fails says nothing of the file: it stays where it is, and nothing is overwritten. */
static void test_failing_reads(void **state)
{
    (void)state;
    char key[128], json[300];
    make_store(20);
    snprintf(json, sizeof json, "%s/backup.json", folder);
    hook(true);
    for (int how = READS_FAIL; how <= READS_GARBLE; how++)
        for (int first = 0; first < 12; first++)
            for (int lasting = 0; lasting < 2; lasting++) {
                int64_t good = 0, bad = 0, count = 0;
                reads = READS_PASS;
                write_bytes(json, "the last backup", 15);
                spk_store *store = open_store(direct_path);
                if (first % 2 == 1)
                    assert_true(stored_us(store, key_of(key, 1, 1)) == 2);
                if (first % 3 == 2 && store->disk != NULL) /* nothing is in the cache */
                    assert_int_equal(sqlite3_exec(store->disk->sql, "PRAGMA shrink_memory", NULL, NULL, NULL), SQLITE_OK);
                reads = how;
                reads_left = lasting ? 1000000 : 1;
                int listed = 0;
                spk_status status = first < 4   ? spk_store_visit(store, count_entries, &listed)
                                    : first < 8 ? spk_store_check(store, &good, &bad)
                                                : spk_store_export_json(store, json, &count);
                if (status == SPK_OK && first < 4)
                    assert_int_equal(listed, 20);
                if (status == SPK_OK && first >= 8)
                    assert_int_equal(count, 20);
                assert_true(status == SPK_OK || status == SPK_ERR_IO);
                reads = READS_PASS;
                size_t bytes = 0;
                char *backup = read_bytes(json, &bytes);
                assert_true(bytes == 15 || (status == SPK_OK && first >= 8));
                free(backup);
                spk_store_close(&store);
                assert_int_equal(files_with(".bad-", NULL, 0), 0);
                must_list(20);
            }
    hook(false);
}

/* A save that meets them looks again before it sets anything aside. */
static void test_failing_reads_of_a_save(void **state)
{
    (void)state;
    char key[128];
    make_store(20);
    hook(true);
    for (int how = READS_FAIL; how <= READS_GARBLE; how++)
        for (int skipped = 0; skipped < 8; skipped++) {
            reads = READS_PASS;
            spk_store *store = open_store(direct_path);
            if (skipped % 2 == 1)
                assert_true(stored_us(store, key_of(key, 1, 1)) == 2);
            reads = how;
            reads_left = 1;
            save(store, key_of(key, 1, 3), 4, 100 + skipped);
            reads = READS_PASS;
            assert_true(stored_us(store, key) == 4);
            spk_store_close(&store);
            assert_int_equal(files_with(".bad-", NULL, 0), 0);
            must_list(20);
        }
    hook(false);
}

/* ------------------------------------------------------------------------------------------------ a file that is locked */

static void test_locked_is_not_empty(void **state)
{
    (void)state;
    char key[128], json[300];
    int64_t count = -1, bad = -1;
    int listed = 0;
    make_store(3);
    snprintf(json, sizeof json, "%s/backup.json", folder);
    write_bytes(json, "the last backup", 15);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(direct_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    spk_store *store = open_store(direct_path);
    store->busy_ms = 20;
    assert_int_equal(spk_store_visit(store, count_entries, &listed), SPK_ERR_IO);
    assert_non_null(strstr(spk_error_message(0), "held by another process"));
    assert_int_equal(spk_store_export_json(store, json, &count), SPK_ERR_IO);
    assert_int_equal(spk_store_check(store, &count, &bad), SPK_ERR_IO);
    assert_int_equal(count, -1);
    size_t bytes = 0;
    char *backup = read_bytes(json, &bytes);
    assert_int_equal(bytes, 15);
    free(backup);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    OK(spk_store_visit(store, count_entries, &listed));
    assert_int_equal(listed, 3);
    assert_true(stored_us(store, key_of(key, 1, 1)) == 2);
    spk_store_close(&store);
}

/* ------------------------------------------------------------------------------------------------ whose it is */

static void must_refuse(const char *why)
{
    char key[128];
    int listed = 0;
    spk_store *store = open_store(direct_path);
    assert_true(stored_us(store, key_of(key, 1, 1)) == -1);
    must_tell(1, why);
    assert_int_equal(spk_store_visit(store, count_entries, &listed), SPK_ERR_IO);
    assert_non_null(strstr(spk_error_message(0), why));
    assert_string_equal(spk_store_used(store), "");
    assert_string_equal(spk_store_where(store), direct_path);
    go_on(store); /* in memory */
    spk_store_close(&store);
    told_count = 0;
}

static void test_whose_it_is(void **state)
{
    (void)state;
    char journal[320];
    make_store(3);
    static const mode_t wide[] = {0620, 0602, 0666};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        assert_int_equal(chmod(direct_path, wide[i]), 0);
        must_refuse("other users may write it");
    }
    assert_int_equal(chmod(direct_path, 0644), 0);
    must_list(3);
    snprintf(journal, sizeof journal, "%s-journal", direct_path);
    assert_int_equal(symlink("/nonexistent", journal), 0);
    must_refuse("its journal belongs to user");
    unlink(journal);
    if (geteuid() != 0)
        return; /* only root can give files away */
    write_bytes(journal, "x", 1);
    assert_int_equal(chown(journal, 65534, 65534), 0);
    must_refuse("its journal belongs to user 65534");
    unlink(journal);
    assert_int_equal(chown(direct_path, 65534, 65534), 0);
    must_refuse("it belongs to user 65534, who is neither this process's user nor root");
    /* Root's, as an image has it, is believed by everybody. */
    assert_int_equal(chown(direct_path, 0, 0), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    must_list(3);
    assert_int_equal(seteuid(0), 0);
}

/* ------------------------------------------------------------------------------------------------ what it holds */

static void test_more_than_tables(void **state)
{
    (void)state;
    static const char *const additions[] = {
        "CREATE TRIGGER t AFTER INSERT ON class BEGIN INSERT INTO family (exact) WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 "
        "FROM c)"
        " SELECT 'x' || x FROM c; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON candidate (name)",
        "ALTER TABLE candidate ADD COLUMN more",
        "DROP INDEX class_age",
        "DROP TABLE candidate; CREATE VIEW candidate AS WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS "
        "class_id, -x AS rank, 'a' AS"
        " name, '' AS params, '' AS hash, 1 AS kind, 0 AS status, '' AS why, 0.0 AS predicted_us, 0.0 AS median_us, 0.0 AS spread_us, 0.0 "
        "AS prepare_us, 0.0 AS"
        " error, 0.0 AS tolerance FROM c",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = -3",
    };
    char key[128], aside[600];
    for (size_t i = 0; i < sizeof additions / sizeof additions[0]; i++) {
        int64_t good = -1, bad = -1;
        int listed = 0;
        make_store(3);
        run_sql(direct_path, additions[i]);
        spk_store *store = open_store(direct_path);
        assert_true(stored_us(store, key_of(key, 1, 1)) == -1);
        must_tell(1, "its tables are not those of a store");
        assert_int_equal(spk_store_visit(store, count_entries, &listed), SPK_ERR_IO);
        OK(spk_store_check(store, &good, &bad));
        assert_int_equal(good, 0);
        assert_int_equal(bad, 1);
        assert_int_equal(files_with(".bad-", NULL, 0), 0);
        save(store, key, 7, 7);
        must_tell(1, "set aside as");
        assert_int_equal(files_with(".bad-", aside, sizeof aside), 1);
        assert_true(stored_us(store, key) == 7);
        expect_sound(store, 1, 0);
        spk_store_close(&store);
        unlink(aside);
        unlink(direct_path);
    }
    /* What SQLite adds by itself is no harm. */
    make_store(3);
    run_sql(direct_path, "ANALYZE; VACUUM");
    must_list(3);
    must_tell(0, "");
}

/* Whatever `chosen` points at: what was found wrong is no choice. */
static void test_the_wrong_is_no_choice(void **state)
{
    (void)state;
    static const char *const edits[] = {"UPDATE class SET chosen = 0", "UPDATE candidate SET status = 2 WHERE rank = 2",
                                        "UPDATE candidate SET status = 3 WHERE rank = 2", "UPDATE candidate SET status = 4 WHERE rank = 2"};
    char key[128];
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        spk_decision decision;
        spk_report *report = NULL;
        bool found = true;
        make_store(1);
        run_sql(direct_path, edits[i]);
        spk_store *store = open_store(direct_path);
        assert_true(stored_us(store, key_of(key, 1, 0)) == -1);
        OK(spk_store_load(store, key, &report));
        assert_null(report);
        OK(spk_store_nearest(store, key_of(key, 1, 5), &decision, &found));
        assert_false(found);
        expect_sound(store, 0, 1);
        spk_store_close(&store);
        unlink(direct_path);
    }
}

static void test_huge_values(void **state)
{
    (void)state;
    char key[128];
    int64_t good, bad;
    int listed = 0;
    make_store(2);
    run_sql(direct_path, "UPDATE candidate SET params = hex(zeroblob(4000000)) WHERE class_id = 1 AND rank = 2");
    spk_store *store = open_store(direct_path);
    assert_true(stored_us(store, key_of(key, 1, 0)) == -1);
    must_tell(1, "is damaged");
    assert_true(stored_us(store, key_of(key, 1, 1)) == 2);
    assert_int_equal(spk_store_visit(store, count_entries, &listed), SPK_ERR_IO);
    OK(spk_store_check(store, &good, &bad));
    assert_true(bad > 0);
    spk_store_close(&store);
}

/* A candidate that is ok by its status and wrong by its error. */
static void test_error_above_tolerance(void **state)
{
    (void)state;
    int64_t good = -1, bad = -1;
    make_store(3);
    run_sql(direct_path, "UPDATE candidate SET error = 1e9, tolerance = 1e-5 WHERE class_id = 1 AND status = 0");
    spk_store *store = open_store(direct_path);
    OK(spk_store_check(store, &good, &bad));
    assert_int_equal(good, 2);
    assert_int_equal(bad, 1);
    spk_store_close(&store);
}

/* One text that is too long is one bad entry, which is replaced where it is. */
static void test_one_huge_value(void **state)
{
    (void)state;
    char key[128];
    int64_t good = -1, bad = -1;
    make_store(3);
    run_sql(direct_path, "UPDATE candidate SET why = hex(zeroblob(4000000)) WHERE class_id = 1 AND rank = 1");
    spk_store *store = open_store(direct_path);
    OK(spk_store_check(store, &good, &bad));
    assert_int_equal(good, 2);
    assert_int_equal(bad, 1);
    must_tell(1, "replaced when its class is measured anew");
    save(store, key_of(key, 1, 0), 7, 4000000000);
    assert_true(stored_us(store, key) == 7);
    spk_store_close(&store);
    store = open_store(direct_path);
    expect_sound(store, 3, 0);
    assert_int_equal(store->asides, 0);
    spk_store_close(&store);
}

/* ------------------------------------------------------------------------------------------------ interruption */

static atomic_int interrupted;

static int endless(spk_db *db, void *arg)
{
    if (arg != NULL)
        atomic_store(&interrupted, 1);
    return spk_db_exec(db, "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
}

static void test_interruption(void **state)
{
    (void)state;
    char key[128];
    int now = 1;
    make_store(3);
    spk_store *store = open_store(direct_path);
    spk_store_heed(store, &interrupted);
    for (int before = 0; before < 2; before++)
        for (int mode = SPK_DISK_READ; mode <= SPK_DISK_UPDATE; mode++) {
            atomic_store(&interrupted, before);
            spk_store_enter(store);
            assert_int_equal(spk_store_on_disk(store, (spk_disk_mode)mode, endless, before ? NULL : &now), SQLITE_INTERRUPT);
            spk_store_leave(store);
        }
    /* After it, what was measured is kept all the same. */
    save(store, key_of(key, 1, 1), 70, 70);
    assert_true(stored_us(store, key) == 70);
    expect_sound(store, 3, 0);
    spk_store_close(&store);
    must_list(3);
    must_tell(0, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_failing_reads), TEST(test_failing_reads_of_a_save), TEST(test_locked_is_not_empty),
        TEST(test_whose_it_is),   TEST(test_more_than_tables),        TEST(test_the_wrong_is_no_choice),
        TEST(test_huge_values),   TEST(test_one_huge_value),          TEST(test_error_above_tolerance),
        TEST(test_interruption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
