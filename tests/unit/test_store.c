/* The store as it should be: what is saved comes back, from the file, from memory, from another handle; paths, limits, memory failures. */
#include "test_store.h"

#include <math.h>

static void compare(const spk_report *a, const spk_report *b)
{
    assert_string_equal(a->class_key, b->class_key);
    assert_string_equal(a->device_text, b->device_text);
    assert_int_equal(a->chosen, b->chosen);
    assert_int_equal(a->provisional, b->provisional);
    assert_true(a->budget_s == b->budget_s);
    assert_true(a->seed == b->seed && a->tuning_s == b->tuning_s && a->measured_at == b->measured_at);
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        const spk_evidence *x = &a->candidates[i], *y = &b->candidates[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->params, y->params);
        assert_string_equal(x->hash, y->hash);
        assert_string_equal(x->why, y->why);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->status, y->status);
        assert_true(x->predicted_us == y->predicted_us && x->median_us == y->median_us && x->spread_us == y->spread_us &&
                    x->prepare_us == y->prepare_us);
        assert_true(x->error == y->error && x->tolerance == y->tolerance);
    }
}

static void round_trip(spk_store *store)
{
    char key[128], other[128];
    spk_report *back = NULL, *report = make_report(key_of(key, 1, 1), 7, 42.5, 1000);
    OK(spk_store_load(store, key, &back));
    assert_null(back);
    assert_true(stored_us(store, key) == -1);
    OK(spk_store_save(store, report));
    OK(spk_store_load(store, key, &back));
    assert_non_null(back);
    assert_true(back->from_store);
    compare(report, back);
    spk_report_release(&back);
    spk_decision decision;
    bool found = false;
    OK(spk_store_decision(store, key, &decision, &found));
    assert_true(found);
    assert_string_equal(decision.name, "kernel_3");
    assert_string_equal(decision.params, "MR=4 PACK=1");
    assert_string_equal(decision.hash, "0000000000000003");
    assert_true(decision.median_us == 42.5 && decision.measured_at == 1000);
    assert_true(stored_us(store, key_of(other, 1, 2)) == -1);
    assert_true(stored_us(store, key_of(other, 2, 1)) == -1);
    /* Saved again with fewer candidates: nothing of the old evidence stays. */
    spk_report_release(&report);
    report = make_report(key, 2, 40, 1001);
    report->provisional = SPK_PROVISIONAL_BUDGET;
    report->budget_s = 0.25;
    OK(spk_store_save(store, report));
    OK(spk_store_load(store, key, &back));
    compare(report, back);
    spk_report_release(&back);
    spk_report_release(&report);
    /* No candidates and nothing chosen: evidence, but no decision. */
    report = make_report(key_of(key, 1, 3), 0, 0, 5);
    OK(spk_store_save(store, report));
    OK(spk_store_load(store, key, &back));
    compare(report, back);
    assert_true(stored_us(store, key) == -1);
    spk_report_release(&back);
    spk_report_release(&report);
    expect_sound(store, 2, 0);
}

/* Where nobody names a path, the folder is made with the first save; a given one's is not. */
static void test_folder_is_made(void **state)
{
    (void)state;
    char cache[300], nowhere[320], key[128];
    struct stat about;
    const char *before = getenv("SPARSEK_CACHE_DIR");
    char kept[512];
    snprintf(kept, sizeof kept, "%s", before != NULL ? before : "");
    snprintf(cache, sizeof cache, "%s/made", folder);
    setenv("SPARSEK_CACHE_DIR", cache, 1);
    unsetenv("SPARSEK_STORE");
    spk_store *store = open_store(NULL);
    assert_int_not_equal(stat(cache, &about), 0);
    save(store, key_of(key, 1, 1), 40, 1000);
    assert_int_equal(stat(cache, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    spk_store_close(&store);
    if (before != NULL)
        setenv("SPARSEK_CACHE_DIR", kept, 1);
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/store.db", folder);
    store = open_store(nowhere);
    save(store, key, 40, 1000);
    must_tell(1, "its folder does not exist");
    assert_int_not_equal(stat(nowhere, &about), 0);
    spk_store_close(&store);
}

static void test_round_trip(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    assert_string_equal(spk_store_where(store), store_path);
    struct stat about;
    assert_int_not_equal(stat(store_path, &about), 0); /* opened lazily */
    char key[128];
    assert_true(stored_us(store, key_of(key, 1, 1)) == -1);
    assert_int_not_equal(stat(store_path, &about), 0); /* a lookup makes no file */
    round_trip(store);
    assert_int_equal(stat(store_path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    /* Another handle sees it, and what it changes is seen here. */
    spk_store *second = open_store(store_path);
    assert_true(stored_us(second, key_of(key, 1, 1)) == 40);
    save(second, key, 39, 1002);
    assert_true(stored_us(store, key) == 39);
    spk_store_close(&second);
    assert_null(second);
    spk_store_close(&second);
    spk_store_close(&store);
    store = open_store(store_path);
    assert_true(stored_us(store, key) == 39);
    spk_store_close(&store);
    must_tell(0, "");
}

/* A file of the first version, as it was made then. */
static void test_migration(void **state)
{
    (void)state;
    static const char first_version[] =
        "CREATE TABLE family (id INTEGER PRIMARY KEY, exact TEXT NOT NULL UNIQUE);"
        "CREATE TABLE class (id INTEGER PRIMARY KEY, family_id INTEGER NOT NULL REFERENCES family (id), rest TEXT NOT NULL, device TEXT "
        "NOT NULL,"
        " chosen INTEGER NOT NULL, seed INTEGER NOT NULL, tuning_s REAL NOT NULL, measured_at INTEGER NOT NULL, UNIQUE (family_id, rest));"
        "CREATE INDEX class_age ON class (measured_at);"
        "CREATE TABLE candidate (class_id INTEGER NOT NULL REFERENCES class (id) ON DELETE CASCADE, rank INTEGER NOT NULL, name TEXT NOT "
        "NULL, params TEXT NOT "
        "NULL, hash TEXT NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL, why TEXT NOT NULL, predicted_us REAL NOT NULL, "
        "median_us REAL NOT NULL,"
        " spread_us REAL NOT NULL, prepare_us REAL NOT NULL, error REAL NOT NULL, tolerance REAL NOT NULL, PRIMARY KEY (class_id, rank)) "
        "WITHOUT ROWID;"
        "PRAGMA application_id = 1936747313; PRAGMA user_version = 1;"
        "INSERT INTO family VALUES (1, 'v=1;op=spmm;family=1');";
    /* Finished, interrupted, and a single sample. */
    static const char *const whys[3] = {"", "tuning was interrupted before it was decided", ""};
    static const double spreads[3] = {0.5, 0.5, 0};
    run_sql(store_path, first_version);
    assert_int_equal(chmod(store_path, 0600), 0);
    char key[128], sql[1000];
    for (int i = 0; i < 3; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO class VALUES (%d, 1, '%s', 'D', 0, 1, 1.5, 100); INSERT INTO candidate VALUES (%d, 0, 'k', '', "
                 "'0000000000000001', 1, 0, '', 1, 7, %g, 0, 0,"
                 " 1); INSERT INTO candidate VALUES (%d, 1, 'l', '', '0000000000000001', 1, 4, '%s', 1, 0, 0, 0, 0, 1)",
                 i + 1, strchr(key_of(key, 1, i), '|') + 1, i + 1, spreads[i], i + 1, whys[i]);
        run_sql(store_path, sql);
    }
    spk_store *store = open_store(store_path);
    for (int i = 0; i < 3; i++) {
        spk_decision decision;
        bool found = false;
        OK(spk_store_decision(store, key_of(key, 1, i), &decision, &found));
        assert_true(found && decision.median_us == 7 && decision.budget_s == 0);
        assert_int_equal(decision.provisional, i);
    }
    save(store, key_of(key, 1, 7), 40, 1000);
    expect_sound(store, 4, 0);
    spk_store_close(&store);
    store = open_store(store_path);
    expect_sound(store, 4, 0);
    spk_store_close(&store);
    must_tell(0, "");
}

static void test_in_memory(void **state)
{
    (void)state;
    spk_store *store = open_store("");
    assert_string_equal(spk_store_where(store), "");
    round_trip(store);
    spk_store *other = open_store("");
    char key[128];
    assert_true(stored_us(other, key_of(key, 1, 1)) == -1);
    int64_t removed = 0;
    OK(spk_store_empty(store, &removed));
    assert_int_equal(removed, 2);
    expect_sound(store, 0, 0);
    spk_store_close(&store);
    spk_store_close(&other);
    must_tell(0, "");
}

static void with_environment(const char *store, const char *cache, const char *xdg, const char *home, const char *want)
{
    const char *names[] = {"SPARSEK_STORE", "SPARSEK_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    const char *values[] = {store, cache, xdg, home};
    char *old[4];
    for (int i = 0; i < 4; i++) {
        old[i] = getenv(names[i]) != NULL ? strdup(getenv(names[i])) : NULL;
        if (values[i] != NULL)
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
    spk_store *opened = open_store(NULL);
    assert_string_equal(spk_store_where(opened), want);
    spk_store_close(&opened);
    for (int i = 0; i < 4; i++) {
        if (old[i] != NULL)
            setenv(names[i], old[i], 1);
        else
            unsetenv(names[i]);
        free(old[i]);
    }
}

static void test_default_path(void **state)
{
    (void)state;
    with_environment("/a/b.db", "/c", "/x", "/h", "/a/b.db");
    with_environment(NULL, "/c", "/x", "/h", "/c/store.db");
    with_environment("", "/c/", "/x", "/h", "/c/store.db");
    with_environment(NULL, NULL, "/x", "/h", "/x/sparsek/store.db");
    with_environment(NULL, NULL, "relative", "/h", "/h/.cache/sparsek/store.db");
    with_environment(NULL, "", "", "/h", "/h/.cache/sparsek/store.db");
    must_tell(0, "");
    with_environment(NULL, NULL, NULL, NULL, "");
    must_tell(1, "stays in this process");
    /* A relative path is settled at once. */
    char here[512], want[600];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    char physical[512];
    assert_non_null(getcwd(physical, sizeof physical));
    snprintf(want, sizeof want, "%s/rel.db", physical);
    spk_store *store = open_store("rel.db");
    with_environment("rel.db", NULL, NULL, NULL, want);
    assert_int_equal(chdir(here), 0);
    assert_string_equal(spk_store_where(store), want);
    char key[128];
    save(store, key_of(key, 1, 1), 3, 1);
    struct stat about;
    assert_int_equal(stat(want, &about), 0);
    spk_store_close(&store);
}

static void test_nearest(void **state)
{
    (void)state;
    char key[128];
    spk_decision decision;
    bool found = true;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        spk_store *store = open_store(in_memory ? "" : store_path);
        OK(spk_store_nearest(store, key_of(key, 1, 100), &decision, &found));
        assert_false(found);
        save(store, key_of(key, 1, 64), 64, 1);
        save(store, key_of(key, 1, 256), 256, 1);
        save(store, key_of(key, 2, 100), 999, 1);
        spk_report *none = make_report(key_of(key, 1, 101), 0, 0, 1); /* no decision: cannot be the answer */
        OK(spk_store_save(store, none));
        spk_report_release(&none);
        OK(spk_store_nearest(store, key_of(key, 1, 100), &decision, &found));
        assert_true(found);
        assert_true(decision.median_us == 64);
        OK(spk_store_nearest(store, key_of(key, 1, 200), &decision, &found));
        assert_true(decision.median_us == 256);
        OK(spk_store_nearest(store, key_of(key, 1, 256), &decision, &found));
        assert_true(decision.median_us == 256);
        OK(spk_store_nearest(store, key_of(key, 3, 100), &decision, &found));
        assert_false(found);
        spk_store_close(&store);
    }
    must_tell(0, "");
}

static int collect(void *user, const spk_store_entry *entry)
{
    spk_store *store = user;
    assert_true(stored_us(store, entry->class_key) == entry->median_us); /* no lock is held */
    assert_string_equal(entry->choice, "kernel_2");
    assert_string_equal(entry->device, "Test CPU");
    assert_int_equal(entry->candidate_count, 5);
    static int64_t last;
    static int calls;
    if (calls++ % 3 != 0)
        assert_true(entry->measured_at < last);
    last = entry->measured_at;
    return calls == 6; /* the second walk stops itself */
}

static void test_visit(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    char key[128];
    const int64_t times[] = {20, 40, 10, 30};
    for (int i = 0; i < 3; i++)
        save(store, key_of(key, 1, i + 1), i + 1, times[i]);
    OK(spk_store_visit(store, collect, store));
    save(store, key_of(key, 1, 4), 4, times[3]);
    OK(spk_store_visit(store, collect, store));
    int64_t removed = 0;
    OK(spk_store_empty(store, &removed));
    assert_int_equal(removed, 4);
    OK(spk_store_empty(store, &removed));
    assert_int_equal(removed, 0);
    expect_sound(store, 0, 0);
    spk_store_close(&store);
}

static void test_growth_is_capped(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    store->class_limit = 10;
    char key[128];
    for (int i = 0; i < 25; i++)
        save(store, key_of(key, i % 7, i), i, 100 + i);
    expect_sound(store, 10, 0);
    assert_true(stored_us(store, key_of(key, 14 % 7, 14)) == -1);
    assert_true(stored_us(store, key_of(key, 15 % 7, 15)) == 15);
    spk_store_close(&store);
    /* Families without classes go too. */
    sqlite3 *other = NULL;
    sqlite3_stmt *count = NULL;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(other, "SELECT (SELECT count(*) FROM candidate), (SELECT count(*) FROM family)", -1, &count, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(count, 0), 50);
    assert_int_equal(sqlite3_column_int(count, 1), 7);
    sqlite3_finalize(count);
    sqlite3_close(other);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    spk_store *store = open_store("");
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    longest[10] = '|';
    longest[sizeof longest - 1] = '\0';
    static const char *const bad[] = {"", "no bar", "tab\t|x", "\xc3\xa9|x"};
    spk_decision decision;
    bool found;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(spk_store_decision(store, bad[i], &decision, &found), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_store_decision(store, longest, &decision, &found), SPK_ERR_ARGUMENT);
    char key[128];
    spk_report *report = make_report(key_of(key, 1, 1), 5, 1, 1);
    report->chosen = 5;
    assert_int_equal(spk_store_save(store, report), SPK_ERR_INTERNAL);
    report->chosen = 0; /* the wrong one */
    assert_int_equal(spk_store_save(store, report), SPK_ERR_INTERNAL);
    spk_report_release(&report);
    spk_store_close(&store);
}

/* What a failed measurement may hold is made fit to be kept. */
static void test_strange_evidence(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    char key[128];
    spk_report *back = NULL, *report = make_report(key_of(key, 1, 1), 3, 1, 1);
    report->candidates[0].error = INFINITY;
    report->candidates[0].predicted_us = NAN;
    report->candidates[0].median_us = -4;
    snprintf(report->candidates[0].why, sizeof report->candidates[0].why, "odd\n\xff text");
    OK(spk_store_save(store, report));
    OK(spk_store_load(store, key, &back));
    assert_non_null(back);
    assert_true(isfinite(back->candidates[0].error) && back->candidates[0].error > 1e100);
    assert_true(isfinite(back->candidates[0].predicted_us));
    assert_true(back->candidates[0].median_us == 0);
    assert_string_equal(back->candidates[0].why, "odd?? text");
    expect_sound(store, 1, 0);
    spk_report_release(&back);
    spk_report_release(&report);
    spk_store_close(&store);
}

/* What cannot compute the problem is not kept, and the choice stays the choice. */
static void test_the_inapplicable_are_not_kept(void **state)
{
    (void)state;
    char key[128];
    spk_store *store = open_store(store_path);
    for (int mask = 0; mask < 32; mask++) {
        spk_report *report = make_report(key_of(key, 1, mask), 5, 9, 9), *back = NULL;
        int kept = 0;
        for (int i = 0; i < 5; i++) {
            if ((mask >> i & 1) && i != report->chosen)
                report->candidates[i].status = SPK_CANDIDATE_NOT_APPLICABLE;
            kept += report->candidates[i].status != SPK_CANDIDATE_NOT_APPLICABLE;
        }
        OK(spk_store_save(store, report));
        assert_true(stored_us(store, key) == 9);
        OK(spk_store_load(store, key, &back));
        assert_int_equal(back->count, kept);
        assert_string_equal(back->candidates[back->chosen].name, report->candidates[report->chosen].name);
        spk_report_release(&back);
        spk_report_release(&report);
    }
    expect_sound(store, 32, 0);
    spk_store_close(&store);
}

static spk_status use(const char *path, const char *json_path)
{
    spk_store *store = NULL;
    spk_report *report = NULL, *back = NULL;
    spk_decision decision;
    char key[128];
    bool found;
    int64_t a, b;
    int token = -1;
    spk_status status = spk_report_make(&spk_mem_system, key_of(key, 1, 1), "x", &report);
    if (status == SPK_OK)
        status = spk_store_open(&spk_mem_system, path, NULL, NULL, &store);
    if (status == SPK_OK)
        status = spk_store_lock(store, key, 1, NULL, &token);
    if (status == SPK_OK)
        status = spk_store_save(store, report);
    if (status == SPK_OK)
        status = spk_store_decision(store, key, &decision, &found);
    if (status == SPK_OK)
        status = spk_store_nearest(store, key, &decision, &found);
    if (status == SPK_OK)
        status = spk_store_load(store, key, &back);
    if (status == SPK_OK)
        status = spk_store_check(store, &a, &b);
    if (status == SPK_OK)
        status = spk_store_export_json(store, json_path, &a);
    if (status == SPK_OK)
        status = spk_store_import_json(store, json_path, &a);
    if (status == SPK_OK)
        status = spk_store_empty(store, &a);
    if (store != NULL)
        spk_store_unlock(store, token);
    spk_report_release(&back);
    spk_report_release(&report);
    spk_store_close(&store);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    char json[300];
    snprintf(json, sizeof json, "%s/x.json", folder);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        int64_t count = 0;
        for (;; count++) {
            assert_true(count < 500);
            spk_mem_fail_after(count);
            spk_status status = use(in_memory ? "" : store_path, json);
            spk_mem_fail_after(-1);
            if (status == SPK_OK)
                break;
            assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        }
        assert_true(count > 20);
        spk_store *store = open_store(store_path);
        int64_t good, bad;
        OK(spk_store_check(store, &good, &bad));
        assert_int_equal(bad, 0);
        spk_store_close(&store);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_folder_is_made), TEST(test_round_trip),       TEST(test_migration),     TEST(test_in_memory),
        TEST(test_default_path),   TEST(test_nearest),          TEST(test_visit),         TEST(test_growth_is_capped),
        TEST(test_bad_arguments),  TEST(test_strange_evidence), TEST(test_out_of_memory), TEST(test_the_inapplicable_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
