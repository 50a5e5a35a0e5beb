/* The cache of compiled device programs: whatever happens to its files, the right cubin comes back or none. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cuda/runtime/cubins.h"
#include "base/clock.h"
#include "base/hash.h"

static char cache[] = "/tmp/sparsek-cubins-XXXXXX";
static const spk_mem *mem = &spk_mem_system;

static void path_of(const char *key, char *path, size_t size)
{
    snprintf(path, size, "%s/cubin/%016llx.cubin", cache, (unsigned long long)spk_hash_text(SPK_HASH_START, key));
}

static bool holds(const char *key, const char *content)
{
    void *cubin = NULL;
    size_t bytes = 0;
    bool found = spk_cubins_load(mem, key, &cubin, &bytes);
    if (found) {
        assert_int_equal(bytes, strlen(content));
        assert_memory_equal(cubin, content, bytes);
        spk_free(mem, cubin);
    }
    return found;
}

static void save(const char *key, const char *content)
{
    spk_cubins_save(mem, key, content, strlen(content));
}

static void saved_comes_back(void **state)
{
    (void)state;
    struct stat facts;
    char path[512];
    assert_false(holds("a key", "content"));
    save("a key", "content");
    assert_true(holds("a key", "content"));
    assert_false(holds("a kez", "content"));
    save("a key", "other content");
    assert_true(holds("a key", "other content"));
    path_of("a key", path, sizeof path);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
}

/* Each byte changed, each length cut, a byte too many: never taken, and removed so that the next one can be kept. */
static void damaged_is_removed(void **state)
{
    (void)state;
    char path[512], whole[256];
    save("key", "the content");
    path_of("key", path, sizeof path);
    FILE *file = fopen(path, "rb");
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_in_range(size, 1, sizeof whole - 1);
    for (size_t i = 0; i < 2 * size + 1; i++) {
        char bad[256];
        memcpy(bad, whole, size);
        bad[size] = 'x';
        size_t kept = i < size ? size : i < 2 * size ? i - size : size + 1; /* changed, cut, longer */
        if (i < size)
            bad[i] ^= 4;
        file = fopen(path, "wb");
        assert_int_equal(fwrite(bad, 1, kept, file), kept);
        fclose(file);
        assert_false(holds("key", "the content"));
        assert_int_not_equal(access(path, F_OK), 0);
    }
    save("key", "the content");
    assert_true(holds("key", "the content"));
}

/* The file of another key under this name, as if two keys had one hash. */
static void foreign_is_removed(void **state)
{
    (void)state;
    char mine[512], other[512];
    save("other key", "other");
    path_of("my key", mine, sizeof mine);
    path_of("other key", other, sizeof other);
    assert_int_equal(rename(other, mine), 0);
    assert_false(holds("my key", "other"));
    assert_int_not_equal(access(mine, F_OK), 0);
    /* a link, and a folder, are not followed */
    save("other key", "other");
    assert_int_equal(symlink(other, mine), 0);
    assert_false(holds("my key", "other"));
    unlink(mine);
    assert_int_equal(mkdir(mine, 0700), 0);
    assert_false(holds("my key", "other"));
    rmdir(mine);
}

/* A folder that others may write, one that cannot be made, none at all: kept in memory, no failure. */
static void bad_folder_is_not_used(void **state)
{
    (void)state;
    char path[512];
    save("key", "content");
    snprintf(path, sizeof path, "%s/cubin", cache);
    assert_int_equal(chmod(path, 0777), 0);
    assert_false(holds("key", "content"));
    save("unsafe", "content");
    assert_int_equal(spk_cubins_lock(mem, "key", 0), -1);
    assert_int_equal(chmod(path, 0700), 0);
    assert_true(holds("key", "content"));
    assert_true(holds("unsafe", "content")); /* in memory */
    spk_cubins_forget();
    assert_true(holds("key", "content"));
    assert_false(holds("unsafe", "content"));
    if (geteuid() != 0) { /* root writes anywhere */
        assert_int_equal(chmod(path, 0500), 0);
        save("read only", "content");
        assert_true(holds("read only", "content"));
        spk_cubins_forget();
        assert_false(holds("read only", "content"));
        assert_true(holds("key", "content"));
        assert_int_equal(chmod(path, 0700), 0);
    }
    setenv("SPARSEK_CACHE_DIR", "/proc/nowhere", 1);
    assert_false(holds("key", "content"));
    save("key", "content");
    assert_true(holds("key", "content"));
    save("key", "other content"); /* the later one stands */
    assert_true(holds("key", "other content"));
    assert_int_equal(spk_cubins_lock(mem, "key", 0), -1);
    spk_cubins_unlock(-1, "key");
    spk_cubins_forget();
    setenv("SPARSEK_CACHE_DIR", cache, 1);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    const size_t half = SPK_CUBINS_KEPT_BYTES / 2;
    char *content = calloc(1, 2 * half + 1);
    void *found = NULL;
    size_t bytes = 0;
    assert_non_null(content);
    spk_cubins_keep("too large", content, 2 * half + 1);
    assert_false(spk_cubins_recall(mem, "too large", &found, &bytes));
    const char *const keys[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++)
        spk_cubins_keep(keys[i], content, half);
    assert_false(spk_cubins_recall(mem, "first", &found, &bytes));
    for (int i = 1; i < 3; i++) {
        assert_true(spk_cubins_recall(mem, keys[i], &found, &bytes));
        assert_int_equal(bytes, half);
        spk_free(mem, found);
    }
    spk_cubins_forget();
    free(content);
}

static void oldest_go_first(void **state)
{
    (void)state;
    char path[512], key[32], folder[512], content[1001];
    memset(content, 'x', 1000);
    content[1000] = '\0';
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "program %d", i);
        save(key, content);
        path_of(key, path, sizeof path);
        struct timespec times[2] = {{.tv_sec = 1000000 + i}, {.tv_sec = 1000000 + i}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    assert_true(holds("program 0", content)); /* used: the newest now */
    snprintf(folder, sizeof folder, "%s/cubin", cache);
    char left_over[600];
    snprintf(left_over, sizeof left_over, "%s/x.cubin.1.tmp", folder);
    close(open(left_over, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(utimensat(AT_FDCWD, left_over, (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
    spk_cubins_trim(folder, 5 * 1100);
    assert_int_not_equal(access(left_over, F_OK), 0);
    assert_true(holds("program 0", content));
    assert_true(holds("program 9", content));
    assert_false(holds("program 1", content));
    assert_false(holds("program 5", content));
}

/* Until each of `count` processes has said that it has begun. */
static bool all_have_begun(int begun, int count)
{
    char word;
    for (int i = 0; i < count; i++)
        if (read(begun, &word, 1) != 1)
            return false;
    return true;
}

/* Eight processes want the same program: one compiles, and takes until all of them have come for it. */
static void processes_compile_once(void **state)
{
    (void)state;
    char work[512];
    struct stat facts;
    snprintf(work, sizeof work, "%s/compiled", cache);
    pid_t children[8];
    int begun[2];
    assert_int_equal(pipe(begun), 0);
    for (int i = 0; i < 8; i++) {
        fflush(NULL);
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            bool good = write(begun[1], "x", 1) == 1;
            int token = spk_cubins_lock(mem, "shared", 300);
            if (!holds("shared", "content")) {
                int file = open(work, O_WRONLY | O_CREAT | O_APPEND, 0600);
                good = good && file >= 0 && write(file, "x", 1) == 1 && all_have_begun(begun[0], 8);
                save("shared", "content");
            }
            spk_cubins_unlock(token, "shared");
            _exit(token < 0 || !good);
        }
    }
    for (int i = 0; i < 8; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    close(begun[0]);
    close(begun[1]);
    assert_int_equal(stat(work, &facts), 0);
    assert_int_equal(facts.st_size, 1);
}

static void waiting_has_a_limit(void **state)
{
    (void)state;
    int token = spk_cubins_lock(mem, "held", 0);
    assert_true(token >= 0);
    double begun = spk_now_us();
    assert_int_equal(spk_cubins_lock(mem, "held", 0.05), -1);
    assert_true(spk_now_us() - begun >= 0.05e6);
    spk_cubins_unlock(token, "held");
    token = spk_cubins_lock(mem, "held", 0);
    assert_true(token >= 0);
    spk_cubins_unlock(token, "held");
}

static int empty_cache(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s/cubin' '%s/compiled'", cache, cache);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(saved_comes_back, empty_cache),    cmocka_unit_test_teardown(damaged_is_removed, empty_cache),
        cmocka_unit_test_teardown(foreign_is_removed, empty_cache),  cmocka_unit_test_teardown(bad_folder_is_not_used, empty_cache),
        cmocka_unit_test_teardown(oldest_go_first, empty_cache),     cmocka_unit_test_teardown(processes_compile_once, empty_cache),
        cmocka_unit_test_teardown(waiting_has_a_limit, empty_cache), cmocka_unit_test(memory_has_a_limit),
    };
    if (mkdtemp(cache) == NULL || setenv("SPARSEK_CACHE_DIR", cache, 1) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(cache);
    return failed;
}
