/* Device programs that came with the library: what is in the file comes back, whatever else is wrong with it costs a compilation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <zlib.h>

#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/runtime/program.h"
#include "backend/cuda/runtime/shipped.h"
#include "backend/cuda/runtime/source.h"

static char folder[] = "/tmp/sparsek-shipped-XXXXXX", path[64];
static const char program[] = "a compiled program, or what passes for one: a compiled program, or what passes for one";

static void run(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void put(sqlite3 *db, const char *key, int64_t bytes, const void *zipped, int zipped_bytes)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO program VALUES (?, ?, ?)", -1, &row, NULL), SQLITE_OK);
    sqlite3_bind_text(row, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 2, bytes);
    sqlite3_bind_blob(row, 3, zipped, zipped_bytes, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
}

/* A file with a good program under `key`, and with such as nobody can read. */
static void make_file(const char *key)
{
    sqlite3 *db = NULL;
    Bytef zipped[256];
    uLongf used = sizeof zipped;
    assert_int_equal(compress(zipped, &used, (const Bytef *)program, sizeof program), Z_OK);
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "CREATE TABLE program (key TEXT PRIMARY KEY, bytes INTEGER NOT NULL, zipped BLOB NOT NULL)");
    put(db, key, sizeof program, zipped, (int)used);
    put(db, "longer", sizeof program + 1, zipped, (int)used);
    put(db, "shorter", sizeof program - 1, zipped, (int)used);
    put(db, "cut", sizeof program, zipped, (int)used - 5);
    put(db, "huge", INT64_MAX, zipped, (int)used);
    put(db, "none", 0, zipped, (int)used);
    put(db, "empty", sizeof program, "", 0);
    sqlite3_close(db);
    chmod(path, 0644);
    setenv("SPARSEK_PROGRAMS", path, 1);
    spk_shipped_forget();
}

static bool holds(const char *key)
{
    void *cubin = NULL;
    size_t bytes = 0;
    const bool found = spk_shipped_load(&spk_mem_system, key, &cubin, &bytes);
    if (found) {
        assert_int_equal(bytes, sizeof program);
        assert_memory_equal(cubin, program, bytes);
        spk_free(&spk_mem_system, cubin);
    }
    return found;
}

static void what_is_whole_comes_back(void **state)
{
    (void)state;
    make_file("good");
    assert_true(holds("good") && spk_shipped_has("good"));
    assert_false(holds("another") || spk_shipped_has("another"));
    static const char *const broken[] = {"longer", "shorter", "cut", "huge", "none", "empty"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_false(holds(broken[i]));
    spk_shipped_refuse(); /* the driver did not take one */
    assert_false(holds("good") || spk_shipped_has("good"));
}

/* What the file holds is run. */
static void who_may_write_to_it(void **state)
{
    (void)state;
    make_file("good");
    static const mode_t modes[] = {0644, 0600, 0666, 0646};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        chmod(path, modes[i]);
        spk_shipped_forget();
        assert_int_equal(holds("good"), (modes[i] & S_IWOTH) == 0);
    }
    chmod(path, 0644);
    chmod(folder, 0777);
    spk_shipped_forget();
    assert_false(holds("good"));
    chmod(folder, 0700);
    static const char *const wishes[] = {"", "programs.db", "/nowhere/programs.db", "/tmp"};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        setenv("SPARSEK_PROGRAMS", wishes[i], 1);
        spk_shipped_forget();
        assert_false(holds("good"));
    }
}

static void what_is_no_such_file(void **state)
{
    (void)state;
    static const char *const contents[] = {"", "no database at all, but long enough to be looked at: no database at all"};
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        make_file("good");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(contents[i], file);
        fclose(file);
        spk_shipped_forget();
        assert_false(holds("good") || spk_shipped_has("good"));
    }
}

/* A program of the file is not compiled: there is no compiler here. */
static void no_compiler_is_asked(void **state)
{
    (void)state;
    const spk_cuda_source *source = spk_cuda_source_find("delay.cu");
    const spk_build build = {.file = "delay.cu", .entry = "delay", .options = "-DSOME=1"};
    char key[256];
    void *cubin = NULL;
    size_t bytes = 0;
    assert_non_null(source);
    snprintf(key, sizeof key, "delay.cu %016llx arch=sm_90a -DSOME=1", (unsigned long long)source->hash);
    make_file(key);
    setenv("SPARSEK_NVRTC", "none", 1);
    assert_true(spk_cuda_compiled(&spk_mem_system, &build, "sm_90a") && spk_cuda_is_shipped(&build, "sm_90a"));
    assert_int_equal(spk_cuda_compile(&spk_mem_system, &build, "sm_90a", &cubin, &bytes, NULL), SPK_OK);
    assert_memory_equal(cubin, program, sizeof program);
    spk_free(&spk_mem_system, cubin);
    assert_false(spk_cuda_is_shipped(&build, "sm_80"));
    assert_int_not_equal(spk_cuda_compile(&spk_mem_system, &build, "sm_80", &cubin, &bytes, NULL), SPK_OK);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/programs.db", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spk_shipped_forget();
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_comes_back),
        cmocka_unit_test(who_may_write_to_it),
        cmocka_unit_test(what_is_no_such_file),
        cmocka_unit_test(no_compiler_is_asked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
