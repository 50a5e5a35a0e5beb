/* What the tests of broken and refused files share. */
#ifndef TEST_STORE_FILES_H
#define TEST_STORE_FILES_H

#include <dirent.h>

#include "test_store.h"

static char direct_path[300]; /* in the folder itself */

static inline int setup(void **state)
{
    int failed = make_folder(state);
    snprintf(direct_path, sizeof direct_path, "%s/store.db", folder);
    return failed;
}

static inline void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static inline char *read_bytes(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    fclose(file);
    return bytes;
}

/* Files whose name has `part`; the last one's path goes to out. */
static inline int files_with(const char *part, char *out, size_t size)
{
    DIR *walk = opendir(folder);
    int count = 0;
    assert_non_null(walk);
    for (struct dirent *entry = readdir(walk); entry != NULL; entry = readdir(walk)) {
        if (strstr(entry->d_name, part) == NULL)
            continue;
        count++;
        if (out != NULL)
            snprintf(out, size, "%s/%s", folder, entry->d_name);
    }
    closedir(walk);
    return count;
}

/* Lookups, walks and saves go on, in this process at least. */
static inline void go_on(spk_store *store)
{
    char key[128];
    int64_t good, bad;
    spk_decision decision;
    bool found;
    spk_report *report = NULL;
    OK(spk_store_nearest(store, key_of(key, 1, 3), &decision, &found));
    save(store, key_of(key, 77, 77), 1234, 5);
    assert_true(stored_us(store, key) == 1234);
    OK(spk_store_load(store, key, &report));
    assert_non_null(report);
    spk_report_release(&report);
    spk_status status = spk_store_check(store, &good, &bad);
    assert_true(status == SPK_OK || status == SPK_ERR_IO);
}

#endif
