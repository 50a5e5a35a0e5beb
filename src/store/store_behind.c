/* Saving behind the caller: evidence is known to this process at once, from memory, and a thread of the store takes it to the file. Neither
 * the disk nor another process that holds the file keeps a caller waiting. What the end of the process finds unwritten is written then. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "known/epoch.h"
#include "store/store_internal.h"

enum { LOOK_AGAIN_NS = 20000000, STACK_BYTES = 1 << 20 };

struct spk_store_waiting {
    spk_store_waiting *next;
    spk_report *report;
    int64_t since;
    double until_us; /* how long a lock of another process is waited for */
};

typedef struct saving {
    spk_store *store;
    const spk_store_waiting *of;
} saving;

static int save(spk_db *db, void *arg)
{
    const saving *s = arg;
    spk_age stored = {.measured_at = INT64_MIN};
    int code = spk_rows_age(db, s->of->report->class_key, &stored);
    if (code == SQLITE_OK && stored.measured_at < s->of->since)
        code = spk_rows_save(db, s->of->report);
    return code == SQLITE_OK ? spk_rows_evict(db, s->store->class_limit) : code;
}

static int save_in_memory(spk_db *db, void *arg)
{
    const saving *s = arg;
    const int code = spk_rows_save(db, s->of->report);
    return code == SQLITE_OK ? spk_rows_evict(db, s->store->class_limit) : code;
}

static int forget(spk_db *db, void *arg)
{
    const saving *s = arg;
    return spk_rows_erase(db, s->of->report->class_key);
}

static void release(spk_store *store, spk_store_waiting *w)
{
    spk_report_release(&w->report);
    spk_free(&store->mem, w);
}

/* The first that waits goes to the file, and is done with however that ends: what the file does not take stays in memory. false: another
 * process has the file, and there is time to come back. */
static bool write_first(spk_store *store, bool last_chance)
{
    spk_store_waiting *w = store->waiting;
    saving s = {store, w};
    const int before = store->busy_ms;
    const bool comes_back = !last_chance && spk_now_us() < w->until_us;
    if (comes_back) {
        store->comes_back = true;
        store->busy_ms = 0;
    }
    const int code = spk_store_on_disk(store, SPK_DISK_WRITE, save, &s);
    store->comes_back = false;
    if (comes_back)
        store->busy_ms = code == SQLITE_OK ? SPK_STORE_BUSY_MS : before;
    if (comes_back && spk_db_is_busy(code))
        return false;
    if (code == SQLITE_OK)
        (void)spk_store_on_memory(store, false, forget, &s);
    store->waiting = w->next;
    release(store, w);
    return true;
}

/* What there is to say is said at the next call of the caller's: its log may belong to threads of its own. */
static void leave_silently(spk_store *store)
{
    if (store->wrote)
        spk_epoch_written();
    store->wrote = false;
    pthread_mutex_unlock(&store->mutex);
}

static void *work(void *arg)
{
    spk_store *store = arg;
    spk_store_enter(store);
    while (store->waiting != NULL && !store->closing) {
        const bool done = write_first(store, false);
        leave_silently(store);
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
        spk_store_enter(store);
    }
    store->has_writer = false;
    pthread_cond_broadcast(&store->writer_ended);
    leave_silently(store);
    return NULL;
}

static bool start_writer(spk_store *store)
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (store->has_writer)
        return true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    store->has_writer = pthread_create(&thread, &attributes, work, store) == 0;
    pthread_attr_destroy(&attributes);
    return store->has_writer;
}

static void write_all(spk_store *store)
{
    while (store->waiting != NULL)
        (void)write_first(store, true);
}

static void write_left(spk_store *store)
{
    spk_store_enter(store);
    write_all(store);
    leave_silently(store);
}

static void write_left_of_process(void)
{
    spk_store_each(write_left);
}

static void watch_exit(void)
{
    atexit(write_left_of_process);
}

/* ------------------------------------------------------------------------------------------------ for the other files */

void spk_store_drop_waiting(spk_store *store)
{
    while (store->waiting != NULL) {
        spk_store_waiting *w = store->waiting;
        store->waiting = w->next;
        release(store, w);
    }
}

void spk_store_end_writer(spk_store *store)
{
    spk_store_enter(store);
    store->closing = true;
    while (store->has_writer)
        pthread_cond_wait(&store->writer_ended, &store->mutex);
    write_all(store);
    spk_store_leave(store);
}

spk_status spk_store_save_behind(spk_store *store, spk_report **report, int64_t since)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    spk_store_waiting *made = NULL;
    pthread_once(&once, watch_exit);
    if (store->path[0] == '\0' || spk_calloc(&store->mem, 1, sizeof *made, &made) != SPK_OK) {
        const spk_status status = spk_store_save(store, *report);
        spk_report_release(report);
        return status;
    }
    *made = (spk_store_waiting){.report = *report, .since = since, .until_us = spk_now_us() + 1e3 * SPK_STORE_BUSY_MS};
    *report = NULL;
    spk_store_enter(store);
    saving s = {store, made};
    spk_store_forget_neighbours(store);
    spk_store_waiting **last = &store->waiting;
    while (*last != NULL)
        last = &(*last)->next;
    *last = made;
    const int code = spk_store_on_memory(store, true, save_in_memory, &s);
    if (code != SQLITE_OK || store->disk_off || !start_writer(store))
        write_all(store);
    spk_store_leave(store);
    return SPK_OK;
}
