/* What the tests of the store share: a folder of their own, reports to keep, and the warnings they caused. */
#ifndef TEST_STORE_H
#define TEST_STORE_H

#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store_internal.h"

#define OK(call) assert_int_equal((call), SPK_OK)

static char folder[256];
static char store_path[300];

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about, (void)type, (void)walk;
    return remove(path);
}

/* Warnings, from any thread. */
static pthread_mutex_t told_mutex = PTHREAD_MUTEX_INITIALIZER;
static int told_count;
static char told[600];

static inline void tell_log(void *user, int level, const char *message)
{
    (void)user;
    assert_int_equal(level, 1);
    pthread_mutex_lock(&told_mutex);
    told_count++;
    snprintf(told, sizeof told, "%s", message);
    pthread_mutex_unlock(&told_mutex);
}

static inline void must_tell(int count, const char *part)
{
    if (told_count != count || (count > 0 && strstr(told, part) == NULL))
        fail_msg("expected %d warnings with \"%s\", got %d, the last: \"%s\"", count, part, told_count, told);
    told_count = 0;
    told[0] = '\0';
}

static inline int make_folder(void **state)
{
    (void)state;
    told_count = 0;
    snprintf(folder, sizeof folder, "/tmp/sparsek-store-XXXXXX"); /* where a child without rights can reach it */
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(store_path, sizeof store_path, "%s/sub", folder); /* the folder of a given path is the caller's to make */
    if (mkdir(store_path, 0700) != 0)
        return -1;
    snprintf(store_path, sizeof store_path, "%s/sub/store.db", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline spk_store *open_store(const char *path)
{
    spk_store *store = NULL;
    OK(spk_store_open(&spk_mem_system, path, tell_log, NULL, &store));
    return store;
}

static inline const char *key_of(char *buffer, int family, int member)
{
    snprintf(buffer, 128, "v=1;op=spmm;family=%d|m=%d;k=64;br=8;bc=8;nz=16;n=64;rs=0;ov=0", family, member);
    return buffer;
}

/* A report of `count` candidates; the middle one is chosen and takes `median_us`. */
static inline spk_report *make_report(const char *key, int count, double median_us, int64_t measured_at)
{
    spk_report *report = NULL;
    OK(spk_report_make(&spk_mem_system, key, "Test CPU", &report));
    for (int i = 0; i < count; i++) {
        spk_evidence e = {.kind = SPK_KIND_OWN,
                          .status = SPK_CANDIDATE_OK,
                          .median_us = median_us + abs(i - count / 2),
                          .spread_us = 0.125,
                          .predicted_us = 3.5,
                          .prepare_us = 1.0 / 3,
                          .error = 1e-7,
                          .tolerance = 1e-5};
        snprintf(e.name, sizeof e.name, "kernel_%d", i);
        snprintf(e.params, sizeof e.params, "%s", i % 2 ? "MR=4 PACK=1" : "");
        snprintf(e.hash, sizeof e.hash, "%016x", i);
        if (i == 0 && count > 1) {
            e.status = SPK_CANDIDATE_WRONG;
            snprintf(e.why, sizeof e.why, "error 0.5 \"quoted\"");
        }
        OK(spk_report_append(report, &e, NULL));
    }
    report->chosen = count > 0 ? count / 2 : -1;
    report->seed = UINT64_C(0xfedcba9876543210);
    report->tuning_s = 1.25;
    report->measured_at = measured_at;
    return report;
}

static inline void save(spk_store *store, const char *key, double median_us, int64_t measured_at)
{
    spk_report *report = make_report(key, 5, median_us, measured_at);
    OK(spk_store_save(store, report));
    spk_report_release(&report);
}

/* The stored median of a class, or -1 where it is not known. */
static inline double stored_us(spk_store *store, const char *key)
{
    spk_decision decision;
    bool found = false;
    OK(spk_store_decision(store, key, &decision, &found));
    return found ? decision.median_us : -1;
}

static inline void expect_sound(spk_store *store, int64_t want_good, int64_t want_bad)
{
    int64_t good = -1, bad = -1;
    OK(spk_store_check(store, &good, &bad));
    assert_int_equal(good, want_good);
    assert_int_equal(bad, want_bad);
}

/* SQL on the file, as another program would. */
static inline void run_sql(const char *path, const char *sql)
{
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(other, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(other);
}

#endif
