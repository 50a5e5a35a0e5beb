/* The store's handle: decisions, evidence, and the rule that it never stops a run. What the file does not take is kept in memory, so
 * that this process finds it again in any case. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "base/clock.h"
#include "base/hash.h"
#include "known/epoch.h"
#include "store/store_internal.h"

static const double NEAR_US = 5e6;

spk_status spk_store_open(const spk_mem *mem, const char *path, spk_log log, void *log_user, spk_store **store)
{
    spk_store *made = NULL;
    const char *why = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    made->log = log;
    made->log_user = log_user;
    made->busy_ms = SPK_STORE_BUSY_MS;
    made->read_ms = SPK_STORE_READ_MS;
    made->class_limit = SPK_STORE_CLASSES;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->writer_ended, NULL);
    spk_status status = spk_store_path_find(mem, path, &made->path, &made->given, &why);
    if (status == SPK_OK)
        status = spk_store_fork_watch(made);
    if (status != SPK_OK) {
        pthread_cond_destroy(&made->writer_ended);
        pthread_mutex_destroy(&made->mutex);
        spk_free(mem, made->path);
        spk_free(mem, made);
        return status;
    }
    if (why != NULL) {
        char text[256];
        snprintf(text, sizeof text, "store: %s; what is learned stays in this process", why);
        spk_tell_log(log, log_user, 1, text);
    }
    *store = made;
    return SPK_OK;
}

void spk_store_close(spk_store **store)
{
    spk_store *old = *store;
    if (old == NULL)
        return;
    spk_store_end_writer(old);
    spk_store_close_layers(old);
    for (int i = 0; i < SPK_STORE_LOCKS; i++)
        spk_store_unlock(old, i);
    spk_store_enter(old); /* as ever with SQLite: a fork waits until nobody is inside */
    spk_db_close(&old->disk);
    spk_db_close(&old->memory);
    spk_store_leave(old);
    spk_store_fork_forget(old);
    pthread_cond_destroy(&old->writer_ended);
    pthread_mutex_destroy(&old->mutex);
    spk_mem mem = old->mem;
    spk_free(&mem, old->sized);
    spk_free(&mem, old->path);
    spk_free(&mem, old);
    *store = NULL;
}

const char *spk_store_where(const spk_store *store)
{
    return store->path;
}

const char *spk_store_used(spk_store *store)
{
    spk_store_enter(store);
    const bool used = store->path[0] != '\0' && !store->disk_off && !store->unmade && (store->disk != NULL || spk_store_path_usable(store));
    spk_store_leave(store);
    return used ? store->path : "";
}

void spk_store_heed(spk_store *store, const atomic_int *interrupted)
{
    store->interrupted = interrupted;
    if (store->below != NULL)
        spk_store_heed(store->below, interrupted);
    if (store->bundle != NULL)
        spk_store_heed(store->bundle, interrupted);
}

/* ------------------------------------------------------------------------------------------------ what the other files use */

void spk_store_enter(spk_store *store)
{
    pthread_mutex_lock(&store->mutex);
}

void spk_store_leave(spk_store *store)
{
    char texts[SPK_STORE_PENDING][sizeof store->pending[0]];
    int count = store->pending_count;
    if (count > 0)
        memcpy(texts, store->pending, (size_t)count * sizeof texts[0]);
    store->pending_count = 0;
    if (store->wrote)
        spk_epoch_written();
    store->wrote = false;
    pthread_mutex_unlock(&store->mutex);
    for (int i = 0; i < count; i++)
        spk_tell_log(store->log, store->log_user, 1, texts[i]);
}

void spk_store_warn(spk_store *store, spk_store_warning warning, const char *format, ...)
{
    if (store->warned & (unsigned)warning || store->pending_count == SPK_STORE_PENDING)
        return;
    if (warning != SPK_WARN_ASIDE && warning != SPK_WARN_LEFT_OUT)
        store->warned |= (unsigned)warning;
    va_list arguments;
    va_start(arguments, format);
    spk_vsnprintf(store->pending[store->pending_count++], sizeof store->pending[0], format, arguments);
    va_end(arguments);
}

void spk_store_forget_neighbours(spk_store *store)
{
    memset(store->nears, 0, sizeof store->nears);
    if (store->sized != NULL)
        memset(store->sized, 0, SPK_STORE_SIZES_KEPT * sizeof *store->sized);
}

int spk_store_on_memory(spk_store *store, bool make, int (*job)(spk_db *db, void *arg), void *arg)
{
    char reason[128];
    if (store->memory == NULL) {
        if (!make)
            return SPK_DB_ABSENT;
        int code = spk_db_open(NULL, 0, store->interrupted, &store->memory, reason, sizeof reason);
        if (code != SQLITE_OK)
            return code;
    }
    spk_db_begin(store->memory, make);
    store->wrote |= make;
    return make ? spk_db_transaction(store->memory, job, arg) : job(store->memory, arg);
}

spk_status spk_store_status(const spk_store *store, int code)
{
    const char *path = store->path[0] != '\0' ? store->path : "in memory";
    if (code == SQLITE_OK)
        return SPK_OK;
    if (store->disk_off && code == SPK_DB_ABSENT)
        return spk_fail(SPK_ERR_IO, "store %s is not usable: %s", path, store->off_reason);
    if ((code & 0xff) == SQLITE_NOMEM)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: in store %s", path);
    if ((code & 0xff) == SQLITE_FULL)
        return spk_fail(SPK_ERR_NO_SPACE, "store %s: %s", path, sqlite3_errstr(code));
    if (code == SQLITE_INTERRUPT)
        return spk_fail(SPK_ERR_INTERRUPTED, "store %s: interrupted", path);
    if (code > 0 && ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED))
        return spk_fail(SPK_ERR_IO, "store %s is held by another process: not waited for any longer", path);
    char reason[160] = "not usable";
    if (code > 0 || spk_db_is_damage(code))
        spk_db_reason(NULL, code, reason, sizeof reason);
    return spk_fail(SPK_ERR_IO, "store %s%s: %s", path, spk_db_is_damage(code) ? " is damaged" : "", reason);
}

/* ------------------------------------------------------------------------------------------------ decisions and evidence */

static spk_status check_key(const char *class_key)
{
    size_t length = strlen(class_key);
    if (length >= SPK_MAX_KEY_TEXT)
        return spk_fail(SPK_ERR_ARGUMENT, "class_key has %zu bytes, the limit is %d", length, SPK_MAX_KEY_TEXT - 1);
    if (strchr(class_key, '|') == NULL || !spk_rows_text_is_clean(class_key))
        return spk_fail(SPK_ERR_ARGUMENT, "class_key \"%s\" is no key: it has no \"|\", or bytes that are not printable", class_key);
    return SPK_OK;
}

/* Lookups fail only for want of memory: whatever else is wrong with the file has been told as a warning, and counts as "not known". */
static spk_status lookup_status(const spk_store *store, int code)
{
    return code > 0 && (code & 0xff) == SQLITE_NOMEM ? spk_store_status(store, code) : SPK_OK;
}

typedef struct lookup {
    const char *key;
    spk_decision decision;
    bool found;
    double distance;
} lookup;

static int find_decision(spk_db *db, void *arg)
{
    lookup *l = arg;
    return spk_rows_decision(db, l->key, &l->decision, &l->found);
}

spk_status spk_store_decision(spk_store *store, const char *class_key, spk_decision *decision, bool *found)
{
    SPK_TRY(check_key(class_key));
    lookup l = {.key = class_key};
    spk_store_enter(store);
    int code = spk_store_on_memory(store, false, find_decision, &l);
    if (!l.found)
        code = spk_store_on_disk(store, SPK_DISK_READ, find_decision, &l);
    spk_store_leave(store);
    SPK_TRY(lookup_status(store, code));
    if (!l.found && store->below != NULL)
        return spk_store_decision(store->below, class_key, decision, found);
    if (l.found)
        *decision = l.decision;
    *found = l.found;
    return SPK_OK;
}

static int find_nearest(spk_db *db, void *arg)
{
    lookup *l = arg;
    return spk_rows_nearest(db, l->key, &l->decision, &l->distance);
}

/* Under the mutex. The answer stays for a while only, for the sake of what other processes write. */
static spk_store_near *near_of(spk_store *store, const char *class_key)
{
    const uint64_t key = spk_hash_text(SPK_HASH_START, class_key);
    spk_store_near *near = &store->nears[key % SPK_STORE_NEARS];
    if (near->key != key || near->until_us < spk_now_us())
        *near = (spk_store_near){.key = key};
    return near;
}

spk_status spk_store_nearest(spk_store *store, const char *class_key, spk_decision *decision, bool *found)
{
    SPK_TRY(check_key(class_key));
    lookup l = {.key = class_key, .distance = 1e300};
    spk_store_enter(store);
    spk_store_near *near = near_of(store, class_key);
    int memory_code = SQLITE_OK, code = SQLITE_OK;
    if (near->until_us == 0) {
        memory_code = spk_store_on_memory(store, false, find_nearest, &l);
        code = spk_store_on_disk(store, SPK_DISK_READ, find_nearest, &l);
        *near = (spk_store_near){near->key, spk_now_us() + NEAR_US, l.distance < 1e300, l.decision};
    }
    if (memory_code > 0 || code > 0)
        near->until_us = 0;
    const spk_store_near answer = *near;
    spk_store_leave(store);
    SPK_TRY(lookup_status(store, memory_code));
    SPK_TRY(lookup_status(store, code));
    if (!answer.found && store->below != NULL)
        return spk_store_nearest(store->below, class_key, decision, found);
    *found = answer.found;
    if (answer.found)
        *decision = answer.decision;
    return SPK_OK;
}

typedef struct sizing {
    const char *key;
    double most;
    spk_store_sizes sizes;
} sizing;

static int find_sizes(spk_db *db, void *arg)
{
    sizing *s = arg;
    return spk_rows_sizes(db, s->key, s->most, &s->sizes);
}

/* Under the mutex; NULL where memory is short. */
static spk_store_sized *sized_of(spk_store *store, uint64_t key)
{
    if (store->sized == NULL && spk_calloc(&store->mem, SPK_STORE_SIZES_KEPT, sizeof *store->sized, &store->sized) != SPK_OK)
        return NULL;
    return &store->sized[key % SPK_STORE_SIZES_KEPT];
}

static void join_sizes(spk_store_sizes *to, const spk_store_sizes *from)
{
    for (int i = 0; i < from->count; i++)
        spk_sizes_add(to, from->key[i], from->distance[i]);
}

spk_status spk_store_near_sizes(spk_store *store, const char *class_key, double most, spk_store_sizes *sizes)
{
    SPK_TRY(check_key(class_key));
    sizing *s = NULL;
    SPK_TRY(spk_calloc(&store->mem, 1, sizeof *s, &s));
    *s = (sizing){.key = class_key, .most = most};
    const uint64_t hash = spk_hash_bytes(spk_hash_text(SPK_HASH_START, class_key), &most, sizeof most);
    spk_store_enter(store);
    spk_store_sized *kept = sized_of(store, hash);
    int memory_code = SQLITE_OK, code = SQLITE_OK;
    if (kept != NULL && kept->key == hash && kept->until_us > spk_now_us()) {
        s->sizes = kept->sizes;
    } else {
        memory_code = spk_store_on_memory(store, false, find_sizes, s);
        code = spk_store_on_disk(store, SPK_DISK_READ, find_sizes, s);
        if (kept != NULL && memory_code <= 0 && code <= 0)
            *kept = (spk_store_sized){hash, spk_now_us() + NEAR_US, s->sizes};
    }
    spk_store_leave(store);
    *sizes = s->sizes;
    spk_free(&store->mem, s);
    SPK_TRY(lookup_status(store, memory_code));
    SPK_TRY(lookup_status(store, code));
    if (store->below == NULL)
        return SPK_OK;
    spk_store_sizes lower;
    SPK_TRY(spk_store_near_sizes(store->below, class_key, most, &lower));
    join_sizes(sizes, &lower);
    return SPK_OK;
}

typedef struct telling {
    const char *key;
    void (*visit)(void *user, const spk_evidence *wrong);
    void *user;
} telling;

static int tell_wrong(spk_db *db, void *arg)
{
    const telling *t = arg;
    return spk_rows_wrong(db, t->key, t->visit, t->user);
}

spk_status spk_store_wrong(spk_store *store, const char *class_key, void (*visit)(void *user, const spk_evidence *wrong), void *user)
{
    SPK_TRY(check_key(class_key));
    telling t = {.key = class_key, .visit = visit, .user = user};
    spk_store_enter(store);
    const int memory_code = spk_store_on_memory(store, false, tell_wrong, &t);
    const int code = spk_store_on_disk(store, SPK_DISK_READ, tell_wrong, &t);
    spk_store_leave(store);
    SPK_TRY(lookup_status(store, memory_code));
    SPK_TRY(lookup_status(store, code));
    return store->below != NULL ? spk_store_wrong(store->below, class_key, visit, user) : SPK_OK;
}

typedef struct loading {
    const spk_mem *mem;
    const char *key;
    spk_report *report;
    bool bad;
} loading;

static int load(spk_db *db, void *arg)
{
    loading *l = arg;
    return spk_rows_load(db, l->mem, l->key, &l->report, &l->bad);
}

/* SQLite's code; *report stays NULL where nothing was found, or what was makes no sense (*bad). */
static int load_code(spk_store *store, const char *class_key, spk_report **report, bool *bad)
{
    loading l = {.mem = &store->mem, .key = class_key};
    spk_store_enter(store);
    int code = spk_store_on_memory(store, false, load, &l);
    if (l.report == NULL && (code == SQLITE_OK || code == SPK_DB_ABSENT))
        code = spk_store_on_disk(store, SPK_DISK_READ, load, &l);
    spk_store_leave(store);
    *report = l.report;
    *bad = l.report == NULL && l.bad;
    return code;
}

spk_status spk_store_load(spk_store *store, const char *class_key, spk_report **report)
{
    spk_report *found = NULL;
    bool bad = false;
    SPK_TRY(check_key(class_key));
    SPK_TRY(lookup_status(store, load_code(store, class_key, &found, &bad)));
    if (found == NULL && !bad && store->below != NULL)
        return spk_store_load(store->below, class_key, report);
    *report = found;
    return SPK_OK;
}

spk_status spk_store_read(spk_store *store, const char *class_key, spk_report **report, bool *bad)
{
    spk_report *found = NULL;
    *bad = check_key(class_key) != SPK_OK || spk_key_distance(class_key, class_key) != 0;
    if (*bad) {
        *report = NULL;
        return SPK_OK;
    }
    const int code = load_code(store, class_key, &found, bad);
    if (code != SQLITE_OK && (code != SPK_DB_ABSENT || (found == NULL && store->disk_off)))
        return spk_store_status(store, code);
    *report = found;
    return SPK_OK;
}

typedef struct saving {
    const spk_report *report;
    int64_t class_limit;
} saving;

static int save(spk_db *db, void *arg)
{
    const saving *s = arg;
    int code = spk_rows_save(db, s->report);
    return code == SQLITE_OK ? spk_rows_evict(db, s->class_limit) : code;
}

static int forget(spk_db *db, void *arg)
{
    const saving *s = arg;
    return spk_rows_erase(db, s->report->class_key);
}

spk_status spk_store_save(spk_store *store, const spk_report *report)
{
    SPK_TRY(check_key(report->class_key));
    if (report->chosen < -1 || report->chosen >= report->count)
        return spk_fail(SPK_ERR_INTERNAL, "report->chosen is %d, it has %d candidates", report->chosen, report->count);
    if (report->chosen >= 0 && report->candidates[report->chosen].status != SPK_CANDIDATE_OK)
        return spk_fail(SPK_ERR_INTERNAL, "report->chosen %d (%s) is not ok, but %d", report->chosen,
                        report->candidates[report->chosen].name, (int)report->candidates[report->chosen].status);
    saving s = {report, store->class_limit};
    spk_store_enter(store);
    int code = spk_store_on_disk(store, SPK_DISK_WRITE, save, &s);
    if (code == SQLITE_OK)
        (void)spk_store_on_memory(store, false, forget, &s); /* an older one there would hide it */
    else
        code = spk_store_on_memory(store, true, save, &s);
    spk_store_leave(store);
    return spk_store_status(store, code);
}
