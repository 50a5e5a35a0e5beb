/* Export and import: what goes out comes back; a file with one fault in it changes nothing and is told with its place. */
#include "test_store.h"

#include <jansson.h>

#include "base/c_locale.h"
#include "base/clock.h"

static char json_path[300];

static int setup(void **state)
{
    int failed = make_folder(state);
    snprintf(json_path, sizeof json_path, "%s/export.json", folder);
    return failed;
}

static void write_text(const char *text)
{
    FILE *file = fopen(json_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static char *read_text(void)
{
    FILE *file = fopen(json_path, "rb");
    char *text = calloc(1, 65536);
    assert_true(file != NULL && text != NULL);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void test_there_and_back(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path), *second = open_store("");
    char key[128];
    int64_t count = -1;
    for (int i = 0; i < 4; i++)
        save(store, key_of(key, i % 2, i), 10.0 / 3 + i, 100 + i);
    spk_report *none = make_report(key_of(key, 5, 5), 0, 0, 7);
    OK(spk_store_save(store, none));
    spk_report_release(&none);
    OK(spk_store_export_json(store, json_path, &count));
    assert_int_equal(count, 5);
    OK(spk_store_import_json(second, json_path, &count));
    assert_int_equal(count, 5);
    expect_sound(second, 5, 0);
    for (int i = 0; i < 4; i++) {
        spk_report *a = NULL, *b = NULL;
        OK(spk_store_load(store, key_of(key, i % 2, i), &a));
        OK(spk_store_load(second, key, &b));
        assert_true(a->count == b->count && a->seed == b->seed && a->tuning_s == b->tuning_s && a->chosen == b->chosen);
        assert_memory_equal(a->candidates, b->candidates, (size_t)a->count * sizeof *a->candidates);
        spk_report_release(&a);
        spk_report_release(&b);
    }
    /* The newer entry stays, whichever side it is on; equal ones are not taken again. */
    OK(spk_store_import_json(second, json_path, &count));
    assert_int_equal(count, 0);
    save(store, key_of(key, 0, 0), 77, 99);
    save(store, key_of(key, 1, 1), 78, 102);
    OK(spk_store_import_json(store, json_path, &count));
    assert_int_equal(count, 1);
    assert_true(stored_us(store, key_of(key, 0, 0)) == 10.0 / 3);
    assert_true(stored_us(store, key_of(key, 1, 1)) == 78);
    spk_store_close(&store);
    spk_store_close(&second);
    must_tell(0, "");
}

/* A store that cannot take it says so: the caller asked for it to be kept. */
static void test_import_needs_the_file(void **state)
{
    (void)state;
    spk_store *store = open_store(folder); /* a folder is no store */
    char key[128];
    int64_t count = -1;
    save(store, key_of(key, 1, 1), 5, 10);
    must_tell(1, "not a regular file");
    OK(spk_store_export_json(store, json_path, &count)); /* what is in memory can be rescued */
    assert_int_equal(count, 1);
    assert_int_equal(spk_store_import_json(store, json_path, &count), SPK_ERR_IO);
    assert_non_null(strstr(spk_error_message(0), "not a regular file"));
    int64_t removed;
    assert_int_equal(spk_store_empty(store, &removed), SPK_ERR_IO);
    int64_t good, bad;
    assert_int_equal(spk_store_check(store, &good, &bad), SPK_ERR_IO);
    spk_store_close(&store);
}

/* Memory holds a class that the file could not take; a newer import uncovers the file. */
static void test_import_over_memory(void **state)
{
    (void)state;
    spk_store *source = open_store(""), *store = open_store(store_path);
    char key[128], other[128];
    int64_t count = -1;
    save(source, key_of(key, 1, 1), 5, 50);
    save(source, key_of(other, 1, 2), 6, 50);
    OK(spk_store_export_json(source, json_path, &count));
    save(store, key_of(other, 9, 9), 1, 1);
    sqlite3 *holder = NULL; /* the file cannot be written for a while */
    assert_int_equal(sqlite3_open(store_path, &holder), SQLITE_OK);
    assert_int_equal(sqlite3_exec(holder, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    store->busy_ms = 20;
    save(store, key_of(key, 1, 1), 3, 40);
    save(store, key_of(other, 1, 2), 4, 60);
    must_tell(1, "held by another process");
    sqlite3_close(holder);
    OK(spk_store_import_json(store, json_path, &count));
    assert_int_equal(count, 1);
    assert_true(stored_us(store, key) == 5);
    assert_true(stored_us(store, other) == 4);
    expect_sound(store, 3, 0);
    spk_store_close(&store);
    spk_store_close(&source);
}

/* What was kept when the clock stood before 1970 is read, listed and exported like all else. */
static void test_times_before_1970(void **state)
{
    (void)state;
    static const char *const odd[] = {"-1", "-9223372036854775808"};
    char key[128], sql[128];
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        int64_t count = -1;
        spk_store *source = open_store(store_path), *store = open_store("");
        save(source, key_of(key, 1, 1), 5, 50);
        snprintf(sql, sizeof sql, "UPDATE class SET measured_at = %s", odd[i]);
        run_sql(store_path, sql);
        assert_true(stored_us(source, key) == 5);
        expect_sound(source, 1, 0);
        OK(spk_store_export_json(source, json_path, &count));
        assert_int_equal(count, 1);
        char *text = read_text();
        assert_non_null(strstr(text, "\"measured_at\":0,"));
        free(text);
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 1);
        assert_true(stored_us(store, key) == 5);
        save(store, key, 7, 7); /* older than all that has a time */
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 0);
        OK(spk_store_export_json(store, json_path, &count));
        OK(spk_store_import_json(source, json_path, &count));
        assert_int_equal(count, 1);
        assert_true(stored_us(source, key) == 7);
        spk_store_close(&source);
        spk_store_close(&store);
        unlink(store_path);
        must_tell(0, "");
    }
}

/* What a clock says that was wrong neither makes a file unreadable nor takes the place of what is known. */
static void test_times_out_of_joint(void **state)
{
    (void)state;
    static const int64_t odd[] = {INT64_MAX, 4102444800, -1, INT64_MIN};
    char key[128];
    int64_t count = -1;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        spk_store *source = open_store(store_path), *store = open_store("");
        save(source, key_of(key, 1, 1), 5, 50);
        save(source, key_of(key, 1, 2), 6, 60);
        char sql[128];
        snprintf(sql, sizeof sql, "UPDATE class SET measured_at = %lld WHERE rest LIKE 'm=1;%%'",
                 (long long)(odd[i] < 0 ? 4102444800 : odd[i]));
        run_sql(store_path, sql);
        OK(spk_store_export_json(source, json_path, &count));
        assert_int_equal(count, 2);
        if (odd[i] < 0) { /* a store saves no such time itself */
            char *text = read_text(), *at = strstr(text, "4102444800");
            assert_non_null(at);
            char changed[65536];
            snprintf(changed, sizeof changed, "%.*s%lld%s", (int)(at - text), text, (long long)odd[i], at + 10);
            write_text(changed);
            free(text);
        }
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 2);
        must_tell(1, "1 classes whose time lies in the future or before 1970");
        spk_report *report = NULL;
        OK(spk_store_load(store, key_of(key, 1, 1), &report));
        assert_true(report->measured_at > 0 && report->measured_at <= spk_unix_time_s());
        spk_report_release(&report);
        save(store, key, 7, 7); /* what is known stays */
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 0);
        assert_true(stored_us(store, key) == 7);
        /* What a fast clock left here is replaced. */
        save(store, key_of(key, 1, 2), 8, spk_unix_time_s() + 1000000);
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 1);
        assert_true(stored_us(store, key) == 6);
        save(store, key, 9, -5); /* a clock before 1970: still to be read */
        assert_true(stored_us(store, key) == 9);
        expect_sound(store, 2, 0);
        spk_store_close(&source);
        spk_store_close(&store);
        unlink(store_path);
        must_tell(0, "");
    }
}

static void save_as(spk_store *store, const char *key, double median_us, int64_t measured_at, spk_provisional provisional)
{
    spk_report *report = make_report(key, 5, median_us, measured_at);
    report->provisional = provisional;
    report->budget_s = 0.5;
    OK(spk_store_save(store, report));
    spk_report_release(&report);
}

/* What is finished goes before what is provisional, whichever is newer. */
static void test_provisional_imports(void **state)
{
    (void)state;
    char key[128];
    int64_t count = -1;
    for (int i = SPK_PROVISIONAL_INTERRUPTED; i <= SPK_PROVISIONAL_LOAD; i++) {
        spk_store *source = open_store(""), *store = open_store("");
        spk_decision decision;
        bool found = false;
        save_as(source, key_of(key, 1, 1), 5, 90, (spk_provisional)i);
        save_as(source, key_of(key, 1, 2), 6, 10, SPK_PROVISIONAL_NO);
        save_as(source, key_of(key, 1, 3), 7, 90, (spk_provisional)i);
        OK(spk_store_export_json(source, json_path, &count));
        save_as(store, key_of(key, 1, 1), 50, 10, SPK_PROVISIONAL_NO);
        save_as(store, key_of(key, 1, 2), 60, 90, (spk_provisional)i);
        OK(spk_store_import_json(store, json_path, &count));
        assert_int_equal(count, 2);
        assert_true(stored_us(store, key_of(key, 1, 1)) == 50);
        assert_true(stored_us(store, key_of(key, 1, 2)) == 6);
        OK(spk_store_decision(store, key_of(key, 1, 3), &decision, &found));
        assert_true(found && decision.median_us == 7 && decision.budget_s == 0.5);
        assert_int_equal(decision.provisional, i);
        spk_store_close(&source);
        spk_store_close(&store);
    }
}

static const char *const good_file = "{\"schema\":1,\"sparsek\":\"0.1.0\",\"extra\":[1],\"classes\":[{\"key\":\"a|m=1;k=1;br=1;bc=1;nz=1;n="
                                     "1;rs=0;ov=0\",\"device\":\"D\",\"chosen\":1,"
                                     "\"seed\":\"00000000000000ff\",\"tuning_s\":1.5,\"measured_at\":77,\"candidates\":["
                                     "{\"name\":\"k0\",\"params\":\"\",\"hash\":\"0123456789abcdef\",\"kind\":\"own\",\"status\":\"wrong\","
                                     "\"why\":\"bad\",\"predicted_us\":1,\"median_us\":0,"
                                     "\"spread_us\":0,\"prepare_us\":0,\"error\":0.5,\"tolerance\":1e-5},"
                                     "{\"name\":\"k1\",\"params\":\"MR=4\",\"hash\":\"fedcba9876543210\",\"kind\":\"dense\",\"status\":"
                                     "\"ok\",\"why\":null,\"predicted_us\":0,\"median_us\":12."
                                     "5,"
                                     "\"spread_us\":0.5,\"prepare_us\":3,\"error\":-1,\"tolerance\":1e-5}]}]}";

/* Faults, each made by replacing one piece of the good file, and what the message must say. */
static const struct {
    const char *piece, *fault, *message;
} faults[] = {
    {"\"schema\":1", "\"schema\":2", "schema"},
    {"\"schema\":1,", "", "schema"},
    {"\"classes\":[", "\"classes\":3,\"x\":[", "classes"},
    {"{\"key\":", "{\"kez\":", "classes[0].key is missing"},
    {"\"a|m=1;", "\"am=1;", "classes[0].key is no key"},
    {"\"a|m=1;", "\"a|m=x;", "classes[0].key is no key"},
    {"\"device\":\"D\"", "\"device\":7", "classes[0].device"},
    {"\"device\":\"D\"", "\"device\":\"\\u0001\"", "classes[0].device"},
    {"\"chosen\":1", "\"chosen\":2", "classes[0].chosen is out of range"},
    {"\"chosen\":1", "\"chosen\":-2", "classes[0].chosen is out of range"},
    {"\"chosen\":1", "\"chosen\":0", "status is not ok"},
    {"\"chosen\":1", "\"chosen\":1.0", "classes[0].chosen"},
    {"00000000000000ff", "0000000000000xff", "classes[0].seed"},
    {"\"00000000000000ff\"", "255", "classes[0].seed"},
    {"\"tuning_s\":1.5", "\"tuning_s\":-1.5", "classes[0].tuning_s"},
    {"\"tuning_s\":1.5", "\"tuning_s\":\"1.5\"", "classes[0].tuning_s"},
    {"\"measured_at\":77", "\"measured_at\":7.5", "classes[0].measured_at"},
    {"\"measured_at\":77", "\"provisional\":\"maybe\",\"measured_at\":77", "classes[0].provisional"},
    {"\"measured_at\":77", "\"provisional\":3,\"measured_at\":77", "classes[0].provisional"},
    {"\"measured_at\":77", "\"budget_s\":-1,\"measured_at\":77", "classes[0].budget_s"},
    {"\"measured_at\":77", "\"measured_at\":1e400", "line 1"},
    {"\"measured_at\":77,", "", "classes[0].measured_at is missing"},
    {"\"candidates\":[", "\"candidates\":7,\"x\":[", "classes[0].candidates"},
    {"\"name\":\"k1\"", "\"name\":\"\"", "classes[0].candidates[1].name"},
    {"\"name\":\"k1\"", "\"name\":\"k 1\"", "classes[0].candidates[1].name"},
    {"\"name\":\"k1\"", "\"name\":\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"",
     "classes[0].candidates[1].name is too long"},
    {"\"name\":\"k1\"", "\"name\":\"k\\u00001\"", "line 1"},
    {"fedcba9876543210", "fedcba987654321", "hash"},
    {"fedcba9876543210", "FEDCBA9876543210", "hash"},
    {"\"kind\":\"dense\"", "\"kind\":\"thick\"", "classes[0].candidates[1].kind"},
    {"\"status\":\"ok\"", "\"status\":\"fine\"", "classes[0].candidates[1].status"},
    {"\"why\":null", "\"why\":3", "classes[0].candidates[1].why"},
    {"\"why\":null,", "", "classes[0].candidates[1].why"},
    {"\"median_us\":12.5", "\"median_us\":-1", "classes[0].candidates[1].median_us"},
    {"\"median_us\":12.5", "\"median_us\":null", "classes[0].candidates[1].median_us"},
    {"\"error\":-1", "\"error\":-1.5", "classes[0].candidates[1].error"},
    {"\"error\":-1", "\"error\":2e-5", "classes[0].candidates[1].error is above the tolerance"},
    {"\"error\":-1", "\"error\":-1,\"error\":-1", "line 1"},
    {"1e-5}]}]}", "1e-5}]}]", "line 1"},
    {"1e-5}]}]}", "1e-5}]}]} {}", "line 1"},
    {"1e-5}]}]}", "1e-5}]},5]}", "classes[1].key is missing"},
};

static void test_faulty_files(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    char key[128];
    int64_t count = -1;
    save(store, key_of(key, 1, 1), 5, 10);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const char *at = strstr(good_file, faults[i].piece);
        if (at == NULL)
            fail_msg("fault %zu: no \"%s\"", i, faults[i].piece);
        char text[4096];
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good_file), good_file, faults[i].fault, at + strlen(faults[i].piece));
        write_text(text);
        spk_status status = spk_store_import_json(store, json_path, &count);
        if (status != SPK_ERR_FORMAT || strstr(spk_error_message(0), faults[i].message) == NULL ||
            strstr(spk_error_message(0), json_path) == NULL)
            fail_msg("fault %zu (%s): status %d, \"%s\"", i, faults[i].fault, (int)status, spk_error_message(0));
        assert_int_equal(count, -1);
    }
    expect_sound(store, 1, 0);
    write_text(good_file);
    OK(spk_store_import_json(store, json_path, &count));
    assert_int_equal(count, 1);
    assert_true(stored_us(store, "a|m=1;k=1;br=1;bc=1;nz=1;n=1;rs=0;ov=0") == 12.5);
    expect_sound(store, 2, 0);
    spk_store_close(&store);
}

/* The last of many classes is bad: none is taken, and the store's file is not even made. */
static void test_all_or_nothing(void **state)
{
    (void)state;
    spk_store *source = open_store(""), *store = open_store(store_path);
    char key[128];
    int64_t count = -1;
    for (int i = 0; i < 50; i++)
        save(source, key_of(key, 1, i + 1), i, 100 - i); /* newest first: the last is the oldest */
    OK(spk_store_export_json(source, json_path, &count));
    const locale_t before = spk_c_locale_enter(); /* Jansson ends a program whose locale has a point of several bytes */
    json_t *root = json_load_file(json_path, 0, NULL);
    assert_non_null(root);
    json_object_set_new(json_array_get(json_object_get(root, "classes"), 49), "tuning_s", json_string("x"));
    assert_int_equal(json_dump_file(root, json_path, 0), 0);
    json_decref(root);
    spk_c_locale_leave(before);
    assert_int_equal(spk_store_import_json(store, json_path, &count), SPK_ERR_FORMAT);
    assert_non_null(strstr(spk_error_message(0), "classes[49].tuning_s"));
    struct stat about;
    assert_int_not_equal(stat(store_path, &about), 0);
    expect_sound(store, 0, 0);
    spk_store_close(&store);
    spk_store_close(&source);
}

/* Every prefix of a good file, and every byte of it changed, is refused or taken, and never leaves an unsound store. */
static void test_mangled_files(void **state)
{
    (void)state;
    spk_store *store = open_store("");
    size_t length = strlen(good_file);
    int64_t count, good, bad;
    char text[4096];
    for (size_t i = 0; i < length; i++) {
        snprintf(text, sizeof text, "%.*s", (int)i, good_file);
        write_text(text);
        assert_int_equal(spk_store_import_json(store, json_path, &count), SPK_ERR_FORMAT);
        memcpy(text, good_file, length + 1);
        text[i] = (char)(text[i] ^ (1 << (i % 7)));
        write_text(text);
        spk_status status = spk_store_import_json(store, json_path, &count);
        assert_true(status == SPK_OK || status == SPK_ERR_FORMAT);
    }
    OK(spk_store_check(store, &good, &bad));
    assert_true(good > 0);
    assert_int_equal(bad, 0);
    spk_store_close(&store);
}

/* A file that would take too much memory is refused while it is read. */
static void test_a_costly_file(void **state)
{
    (void)state;
    spk_store *store = open_store("");
    int64_t count = -1;
    char text[30001];
    for (int i = 0; i < 30000; i++)
        text[i] = i ? "[],"[(i - 1) % 3] : '[';
    text[30000] = '\0';
    write_text(text);
    store->import_bytes = 1000000;
    assert_int_equal(spk_store_import_json(store, json_path, &count), SPK_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(spk_error_message(0), "needs more than 1000000 bytes"));
    write_text(good_file);
    OK(spk_store_import_json(store, json_path, &count));
    spk_store_close(&store);
}

static void test_paths(void **state)
{
    (void)state;
    spk_store *store = open_store(store_path);
    char key[128];
    int64_t count = -1;
    assert_int_equal(spk_store_import_json(store, json_path, &count), SPK_ERR_IO); /* there is none */
    save(store, key_of(key, 1, 1), 5, 10);
    assert_int_equal(spk_store_export_json(store, store_path, &count), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_store_import_json(store, store_path, &count), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_error_message(0), "the store itself"));
    static const char *const beside[] = {"-wal", "-shm", "-journal", ".lock"};
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s%s", store_path, beside[i]);
        assert_int_equal(spk_store_export_json(store, path, &count), SPK_ERR_ARGUMENT);
        assert_non_null(strstr(spk_error_message(0), "belongs to the store"));
    }
    assert_int_not_equal(spk_store_export_json(store, "/proc/nowhere/x.json", &count), SPK_OK);
    assert_int_equal(count, -1);
    expect_sound(store, 1, 0);
    spk_store_close(&store);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_there_and_back),     TEST(test_import_needs_the_file),
        TEST(test_import_over_memory), TEST(test_times_out_of_joint),
        TEST(test_times_before_1970),  TEST(test_provisional_imports),
        TEST(test_faulty_files),       TEST(test_all_or_nothing),
        TEST(test_mangled_files),      TEST(test_paths),
        TEST(test_a_costly_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
