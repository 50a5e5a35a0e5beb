/* The store's file as it should not be: damaged, foreign, newer, not a file, removed. Whatever it is, lookups and saves go on, one warning
 * says so, and what is not ours stays as it was. */
#include "test_store_files.h"

#include <fcntl.h>

#include "base/rng.h"

/* A sound file of `classes` classes, as bytes. */
static char *sound_file(int classes, size_t *count)
{
    char key[128], path[300];
    snprintf(path, sizeof path, "%s/sound.db", folder);
    spk_store *store = open_store(path);
    for (int i = 0; i < classes; i++)
        save(store, key_of(key, 1, i), i, i);
    spk_store_close(&store);
    char *bytes = read_bytes(path, count);
    unlink(path);
    return bytes;
}

static void test_not_a_database(void **state)
{
    (void)state;
    static const size_t lengths[] = {2, 15, 16, 99, 100, 1024, 4096, 100000};
    spk_rng rng;
    spk_rng_seed(&rng, 7);
    setenv("SPARSEK_CACHE_DIR", folder, 1); /* the default place */
    unsetenv("SPARSEK_STORE");
    char *noise = malloc(100000), key[128], aside[600];
    assert_non_null(noise);
    for (int i = 0; i < 100000; i++)
        noise[i] = (char)spk_rng_next(&rng);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_bytes(direct_path, noise, lengths[i]);
        spk_store *store = open_store(NULL);
        assert_true(stored_us(store, key_of(key, 1, 1)) == -1); /* who looks changes nothing */
        must_tell(1, "it is not used, and set aside when something is to be saved");
        assert_int_equal(files_with(".bad-", NULL, 0), 0);
        save(store, key, 2, 2);
        must_tell(1, "set aside as");
        assert_int_equal(files_with(".bad-", aside, sizeof aside), 1);
        size_t count = 0;
        char *kept = read_bytes(aside, &count);
        assert_int_equal(count, lengths[i]);
        assert_memory_equal(kept, noise, count);
        free(kept);
        unlink(aside);
        save(store, key, 3, 3);
        spk_store_close(&store);
        store = open_store(NULL);
        assert_true(stored_us(store, key) == 3);
        expect_sound(store, 1, 0);
        spk_store_close(&store);
        unlink(direct_path);
        must_tell(0, "");
    }
    /* The first to meet it may be a save, or the check, which counts it. */
    write_bytes(direct_path, noise, 5000);
    spk_store *store = open_store(NULL);
    save(store, key_of(key, 1, 1), 3, 3);
    must_tell(1, "set aside");
    expect_sound(store, 1, 0);
    spk_store_close(&store);
    write_bytes(direct_path, noise, 5000);
    store = open_store(NULL);
    expect_sound(store, 0, 1);
    must_tell(1, "is damaged");
    save(store, key, 3, 3);
    must_tell(1, "set aside");
    spk_store_close(&store);
    assert_int_equal(files_with(".bad-", NULL, 0), 2); /* within one second, perhaps: the names differ all the same */
    free(noise);
    unsetenv("SPARSEK_CACHE_DIR");
}

static void must_stay_as_it_is(const char *warning);

/* A path that was given may be mistyped: what is no database there is not ours. */
static void test_a_given_path_with_other_contents(void **state)
{
    (void)state;
    write_bytes(direct_path, "SQLite format 2 was another", 27);
    must_stay_as_it_is("it is not a database");
    write_bytes(direct_path, "\x93NUMPY and so on", 16);
    must_stay_as_it_is("it is not a database");
    write_bytes(direct_path, "x", 1);
    must_stay_as_it_is("it is not a database");
}

static void test_truncated(void **state)
{
    (void)state;
    size_t count = 0;
    char *bytes = sound_file(60, &count), key[128];
    assert_true(count > 40000);
    size_t lengths[] = {0, 16, 50, 99, 100, 511, 1024, 4095, 4096, 4097, 8192, 20480, count / 2, count - 4096, count - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_bytes(direct_path, bytes, lengths[i]);
        spk_store *store = open_store(direct_path);
        (void)stored_us(store, key_of(key, 1, 30));
        go_on(store);
        spk_store_close(&store);
        store = open_store(direct_path);
        assert_true(stored_us(store, key_of(key, 77, 77)) == 1234);
        int64_t good = 0, bad = 0;
        OK(spk_store_check(store, &good, &bad));
        assert_int_equal(bad, 0);
        assert_true(good == 1 || (lengths[i] == count - 1 && good == 61)); /* the last byte of all is a free one */
        spk_store_close(&store);
        unlink(direct_path);
    }
    free(bytes);
}

/* Random bytes changed anywhere: no crash, no failure, and a new class can always be kept. */
static void test_flipped_bytes(void **state)
{
    (void)state;
    size_t count = 0;
    char *bytes = sound_file(30, &count), *mangled = malloc(count), key[128];
    assert_non_null(mangled);
    spk_rng rng;
    spk_rng_seed(&rng, 11);
    for (int i = 0; i < 60; i++) {
        memcpy(mangled, bytes, count);
        size_t span = i % 3 == 0 ? 100 : i % 3 == 1 ? 4096 : count; /* the header, the schema, anything */
        for (int j = 0; j < 1 + i / 4; j++)
            mangled[spk_rng_below(&rng, span)] = (char)spk_rng_next(&rng);
        write_bytes(direct_path, mangled, count);
        spk_store *store = open_store(direct_path);
        for (int j = 0; j < 30; j++) {
            spk_report *report = NULL;
            (void)stored_us(store, key_of(key, 1, j));
            OK(spk_store_load(store, key, &report));
            spk_report_release(&report);
        }
        go_on(store);
        spk_store_close(&store);
        unlink(direct_path);
    }
    free(mangled);
    free(bytes);
}

static void must_stay_as_it_is(const char *warning)
{
    size_t before_count = 0, after_count = 0;
    char *before = read_bytes(direct_path, &before_count);
    spk_store *store = open_store(direct_path);
    go_on(store);
    must_tell(1, warning);
    spk_store_close(&store);
    char *after = read_bytes(direct_path, &after_count);
    assert_int_equal(before_count, after_count);
    assert_memory_equal(before, after, before_count);
    assert_int_equal(files_with(".bad-", NULL, 0), 0);
    free(before);
    free(after);
    unlink(direct_path);
}

static void test_foreign_databases(void **state)
{
    (void)state;
    run_sql(direct_path, "CREATE TABLE accounts (id INTEGER); PRAGMA application_id = 1234567");
    must_stay_as_it_is("another program");
    run_sql(direct_path, "CREATE TABLE accounts (id INTEGER)");
    must_stay_as_it_is("another program");
    run_sql(direct_path, "PRAGMA user_version = 1; CREATE TABLE class (id INTEGER)");
    must_stay_as_it_is("another program");
    run_sql(direct_path, "PRAGMA journal_mode = WAL; CREATE TABLE accounts (id INTEGER)");
    must_stay_as_it_is("another program");
}

static void test_newer_version(void **state)
{
    (void)state;
    size_t count = 0;
    char *bytes = sound_file(3, &count);
    write_bytes(direct_path, bytes, count);
    free(bytes);
    run_sql(direct_path, "PRAGMA user_version = 3; ALTER TABLE class ADD COLUMN later TEXT");
    must_stay_as_it_is("newer sparsek");
}

static void test_not_a_file(void **state)
{
    (void)state;
    char key[128];
    assert_int_equal(mkdir(direct_path, 0700), 0);
    spk_store *store = open_store(direct_path);
    go_on(store);
    must_tell(1, "not a regular file");
    spk_store_close(&store);
    rmdir(direct_path);
    assert_int_equal(mkfifo(direct_path, 0600), 0);
    store = open_store(direct_path);
    go_on(store);
    must_tell(1, "not a regular file");
    spk_store_close(&store);
    unlink(direct_path);
    /* A file where a folder should be. */
    write_bytes(direct_path, "x", 1);
    char below[400];
    snprintf(below, sizeof below, "%s/sub/store.db", direct_path);
    store = open_store(below);
    assert_true(stored_us(store, key_of(key, 1, 1)) == -1);
    must_tell(0, "");
    go_on(store);
    must_tell(1, "cannot be made");
    spk_store_close(&store);
}

/* A table that is gone, and rows that make no sense, in a file that is otherwise sound. */
static void test_wrong_inside(void **state)
{
    (void)state;
    static const char *const edits[] = {
        "UPDATE candidate SET median_us = 'x' WHERE rank = 2",
        "UPDATE candidate SET median_us = -1 WHERE rank = 1",
        "UPDATE candidate SET error = 9e999 WHERE rank = 1",
        "UPDATE candidate SET name = '' WHERE rank = 2",
        "UPDATE candidate SET name = printf('%.*c', 48, 'x') WHERE rank = 2",
        "UPDATE candidate SET hash = 'x' WHERE rank = 2",
        "UPDATE candidate SET kind = 99 WHERE rank = 2",
        "UPDATE candidate SET status = 1 WHERE rank = 2",
        "UPDATE candidate SET status = -1 WHERE rank = 4",
        "UPDATE candidate SET why = x'0102' WHERE rank = 2",
        "UPDATE candidate SET rank = 50 WHERE rank = 2",
        "DELETE FROM candidate WHERE rank = 2",
        "UPDATE class SET chosen = 5",
        "UPDATE class SET chosen = -2",
        "UPDATE class SET measured_at = 'today'",
        "UPDATE class SET tuning_s = 'long'",
        "UPDATE class SET device = x'ff'",
        "UPDATE class SET rest = 'nonsense'",
        "UPDATE family SET exact = 'a|b'",
    };
    char key[128];
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        spk_store *store = open_store(direct_path);
        save(store, key_of(key, 1, 1), 9, 9);
        run_sql(direct_path, edits[i]);
        int64_t good = 0, bad = 0;
        OK(spk_store_check(store, &good, &bad));
        if (good != 0 || bad != 1)
            fail_msg("%s: %d good, %d bad", edits[i], (int)good, (int)bad);
        spk_report *report = NULL;
        OK(spk_store_load(store, key, &report));
        assert_null(report);
        must_tell(0, "");
        char json[300];
        int64_t count = -1;
        snprintf(json, sizeof json, "%s/x.json", folder);
        OK(spk_store_export_json(store, json, &count));
        assert_int_equal(count, 0);
        must_tell(1, "without 1 entries of the store that make no sense");
        save(store, key, 8, 10);
        assert_true(stored_us(store, key) == 8);
        spk_store_close(&store);
        unlink(direct_path);
    }
    must_tell(0, "");
    spk_store *store = open_store(direct_path);
    save(store, key_of(key, 1, 1), 9, 9);
    run_sql(direct_path, "PRAGMA foreign_keys = OFF; INSERT INTO candidate SELECT class_id + 1, rank, name, params, hash, kind, status, "
                         "why, 0, 0, 0, 0, 0, 0 FROM candidate");
    expect_sound(store, 1, 5); /* candidates of no class */
    run_sql(direct_path, "DROP TABLE candidate");
    assert_true(stored_us(store, key) == -1);
    must_tell(1, "is not used");
    go_on(store);
    spk_store_close(&store);
}

static void test_removed_under_us(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(store_path);
    save(store, key_of(key, 1, 1), 9, 9);
    unlink(store_path);
    save(store, key_of(key, 1, 2), 8, 9);
    spk_store *other = open_store(store_path);
    assert_true(stored_us(other, key) == 8);
    expect_sound(other, 1, 0);
    spk_store_close(&other);
    remove_folder(NULL);
    assert_int_equal(mkdir(folder, 0700), 0); /* the folder of a given path is the caller's to make */
    char sub[300];
    snprintf(sub, sizeof sub, "%s/sub", folder);
    assert_int_equal(mkdir(sub, 0700), 0);
    save(store, key_of(key, 1, 3), 7, 9);
    other = open_store(store_path);
    assert_true(stored_us(other, key) == 7);
    spk_store_close(&other);
    spk_store_close(&store);
    must_tell(0, "");
}

/* Two handles meet the same damage: the second must not move the first one's new file. */
static void test_damage_met_twice(void **state)
{
    (void)state;
    char key[128];
    size_t count = 0;
    char *bytes = sound_file(60, &count);
    write_bytes(direct_path, bytes, count);
    spk_store *a = open_store(direct_path), *b = open_store(direct_path);
    assert_true(stored_us(a, key_of(key, 1, 5)) == 5);
    assert_true(stored_us(b, key) == 5);
    /* In place: both keep the same file open. */
    int file = open(direct_path, O_WRONLY | O_CLOEXEC);
    for (size_t at = 4096; at < count; at += 512)
        assert_int_equal(pwrite(file, "damage damage damage damage", 27, (off_t)at), 27);
    close(file);
    run_sql(direct_path, "PRAGMA user_version = 2"); /* moves the change counter: caches are dropped */
    save(a, key_of(key, 2, 2), 22, 22);
    must_tell(1, "set aside");
    assert_true(stored_us(b, key_of(key, 1, 5)) == -1);
    assert_int_equal(told_count, 0);
    assert_true(stored_us(b, key_of(key, 2, 2)) == 22);
    save(b, key_of(key, 3, 3), 33, 33);
    assert_true(stored_us(a, key) == 33);
    expect_sound(a, 2, 0);
    assert_int_equal(files_with(".bad-", NULL, 0), 1);
    spk_store_close(&a);
    spk_store_close(&b);
    free(bytes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_not_a_database),    TEST(test_a_given_path_with_other_contents),
        TEST(test_truncated),         TEST(test_flipped_bytes),
        TEST(test_foreign_databases), TEST(test_newer_version),
        TEST(test_not_a_file),        TEST(test_wrong_inside),
        TEST(test_removed_under_us),  TEST(test_damage_met_twice),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
