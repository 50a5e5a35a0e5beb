/* Walking, checking and emptying the store. Entries are gathered first: a caller's function is never called with a lock held, nor with
 * a read transaction open that would keep other processes from writing. */
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

/* ------------------------------------------------------------------------------------------------ gathering */

void spk_listing_release(spk_listing *listing)
{
    spk_free(listing->mem, listing->entries);
    spk_free(listing->mem, listing->text);
    *listing = (spk_listing){.mem = listing->mem};
}

static spk_status add_text(spk_listing *listing, const char *text, size_t *place)
{
    size_t bytes = strlen(text) + 1;
    if (listing->text_used + bytes > listing->text_capacity) {
        size_t capacity = 2 * listing->text_capacity + bytes + 4096;
        SPK_TRY(spk_realloc(listing->mem, &listing->text, capacity, 1));
        listing->text_capacity = capacity;
    }
    memcpy(listing->text + listing->text_used, text, bytes);
    *place = listing->text_used;
    listing->text_used += bytes;
    return SPK_OK;
}

static const char *column(sqlite3_stmt *statement, int index)
{
    const char *text = (const char *)sqlite3_column_text(statement, index);
    return text != NULL ? text : "";
}

static spk_status add_entry(spk_listing *listing, sqlite3_stmt *statement)
{
    if (listing->count == listing->capacity) {
        int64_t capacity = 2 * listing->capacity + 64;
        SPK_TRY(spk_realloc(listing->mem, &listing->entries, (size_t)capacity, sizeof *listing->entries));
        listing->capacity = capacity;
    }
    const int64_t measured_at = sqlite3_column_int64(statement, 4);
    spk_listed entry = {.median_us = sqlite3_column_double(statement, 3),
                        .measured_at = measured_at < 0 ? 0 : measured_at, /* as whoever reads the class sees it */
                        .candidate_count = (int)sqlite3_column_int64(statement, 5),
                        .provisional = (spk_provisional)sqlite3_column_int(statement, 6)};
    SPK_TRY(add_text(listing, column(statement, 0), &entry.key));
    SPK_TRY(add_text(listing, column(statement, 1), &entry.device));
    SPK_TRY(add_text(listing, column(statement, 2), &entry.choice));
    listing->entries[listing->count++] = entry;
    return SPK_OK;
}

typedef struct gathering {
    spk_listing *listing;
    spk_db *hiding; /* what is known there has been gathered already; NULL: nothing */
    int64_t first;  /* entries before this job */
} gathering;

static int gather(spk_db *db, void *arg)
{
    const gathering *g = arg;
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_LIST, &statement);
    if (code != SQLITE_OK)
        return code;
    g->listing->count = g->first; /* a job may be run again */
    spk_status status = SPK_OK;
    while (status == SPK_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *key = column(statement, 0);
        spk_age hidden = {.measured_at = INT64_MIN};
        if (g->hiding != NULL && strchr(key, '|') != NULL)
            code = spk_rows_age(g->hiding, key, &hidden);
        if (code != SQLITE_ROW && code != SQLITE_OK)
            break;
        if (hidden.measured_at == INT64_MIN)
            status = add_entry(g->listing, statement);
    }
    code = spk_db_finish(statement, code);
    return status != SPK_OK ? SQLITE_NOMEM : code;
}

static int newer_first(const void *a, const void *b, void *text)
{
    const spk_listed *x = a, *y = b;
    if (x->measured_at != y->measured_at)
        return x->measured_at < y->measured_at ? 1 : -1;
    return strcmp((const char *)text + x->key, (const char *)text + y->key);
}

/* SQLite's code, or SPK_DB_ABSENT for a store that was refused and nothing beside it; the listing is empty then. */
static int list_all(spk_store *store, spk_listing *listing)
{
    *listing = (spk_listing){.mem = &store->mem};
    gathering g = {.listing = listing};
    spk_store_enter(store);
    int code = spk_store_on_memory(store, false, gather, &g);
    if (code == SQLITE_OK || code == SPK_DB_ABSENT) {
        g.hiding = store->memory;
        g.first = listing->count;
        code = spk_store_on_disk(store, SPK_DISK_READ, gather, &g);
    }
    /* A store that cannot be used is not an empty one. One that was refused as a whole has said so, and what is in memory is all there
     * is. */
    if (code == SPK_DB_ABSENT && (listing->count > 0 || !store->disk_off))
        code = SQLITE_OK;
    spk_store_leave(store);
    if (code != SQLITE_OK)
        spk_listing_release(listing);
    else if (listing->count > 1)
        qsort_r(listing->entries, (size_t)listing->count, sizeof *listing->entries, newer_first, listing->text);
    return code;
}

spk_status spk_store_listing(spk_store *store, spk_listing *listing)
{
    return spk_store_status(store, list_all(store, listing));
}

spk_status spk_store_visit(spk_store *store, int (*visit)(void *user, const spk_store_entry *entry), void *user)
{
    spk_listing listing;
    SPK_TRY(spk_store_listing(store, &listing));
    for (int64_t i = 0; i < listing.count; i++) {
        const spk_listed *e = &listing.entries[i];
        spk_store_entry entry = {SPK_SIZED(spk_store_entry),         .class_key = listing.text + e->key,
                                 .device = listing.text + e->device, .choice = listing.text + e->choice,
                                 .median_us = e->median_us,          .candidate_count = e->candidate_count,
                                 .provisional = e->provisional,      .measured_at = e->measured_at};
        if (visit(user, &entry) != 0)
            break;
    }
    spk_listing_release(&listing);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ checking */

typedef struct inspection {
    const spk_mem *mem;
    const char *key;
    int64_t good, bad;
} inspection;

/* Of a fault that integrity_check lists because it had no memory to read the page: "... error code=7", which is no word on the file. */
static int told_by_fault(const char *fault)
{
    const char *code = strstr(fault, "error code=");
    return code != NULL && (atoi(code + strlen("error code=")) & 0xff) == SQLITE_NOMEM ? SQLITE_NOMEM : SQLITE_OK;
}

/* Rows of a pragma that lists faults; integrity_check says "ok" where there are none. */
static int count_faults(spk_db *db, const char *pragma, int64_t *faults)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db->sql, pragma, -1, &statement, NULL);
    int told = SQLITE_OK;
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW || strcmp(column(statement, 0), "ok") == 0)
            continue;
        ++*faults;
        told = told != SQLITE_OK ? told : told_by_fault(column(statement, 0));
    }
    sqlite3_finalize(statement);
    return told != SQLITE_OK ? told : code == SQLITE_DONE ? SQLITE_OK : code;
}

/* A page that could not be read counts as a fault there, with no error: faults are those that a second look finds too. */
static int inspect_database(spk_db *db, void *arg)
{
    inspection *in = arg;
    int64_t first = 0;
    int code = count_faults(db, "PRAGMA integrity_check", &first);
    in->bad = 0;
    if (code == SQLITE_OK && first > 0)
        code = count_faults(db, "PRAGMA integrity_check", &in->bad);
    if (code == SQLITE_OK && first > 0 && in->bad == 0)
        return SQLITE_IOERR_READ;
    return code == SQLITE_OK ? count_faults(db, "PRAGMA foreign_key_check", &in->bad) : code;
}

static int inspect_class(spk_db *db, void *arg)
{
    inspection *in = arg;
    spk_report *report = NULL;
    bool bad = false;
    int code = spk_rows_load(db, in->mem, in->key, &report, &bad);
    if (code != SQLITE_OK)
        return code;
    in->bad += bad;
    in->good += report != NULL; /* neither: removed meanwhile */
    spk_report_release(&report);
    return SQLITE_OK;
}

/* A class where it is found first: in memory, else in the file. */
static int inspect_one(spk_store *store, inspection *in)
{
    int64_t before = in->good + in->bad;
    if (spk_key_distance(in->key, in->key) != 0) { /* not even a key */
        in->bad++;
        return SQLITE_OK;
    }
    int code = spk_store_on_memory(store, false, inspect_class, in);
    if (in->good + in->bad == before)
        code = spk_store_on_disk(store, SPK_DISK_READ, inspect_class, in);
    return code;
}

spk_status spk_store_check(spk_store *store, int64_t *good, int64_t *bad)
{
    inspection in = {.mem = &store->mem};
    spk_store_enter(store);
    int code = spk_store_on_disk(store, SPK_DISK_READ, inspect_database, &in);
    spk_store_leave(store);
    spk_listing listing = {.mem = &store->mem};
    if (code == SQLITE_OK || (code == SPK_DB_ABSENT && !store->disk_off))
        code = list_all(store, &listing);
    if (spk_db_is_damage(code)) {
        *good = 0;
        *bad = in.bad + 1;
        return SPK_OK;
    }
    if (code != SQLITE_OK)
        return spk_store_status(store, code);
    for (int64_t i = 0; i < listing.count && (code == SQLITE_OK || code == SPK_DB_ABSENT); i++) {
        in.key = listing.text + listing.entries[i].key;
        spk_store_enter(store);
        code = inspect_one(store, &in);
        spk_store_leave(store);
        if (spk_db_is_damage(code)) { /* of this entry; the file as a whole is sound */
            in.bad++;
            code = SQLITE_OK;
        }
    }
    spk_listing_release(&listing);
    if (code != SQLITE_OK && code != SPK_DB_ABSENT)
        return spk_store_status(store, code);
    *good = in.good;
    *bad = in.bad;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ emptying */

static int clear(spk_db *db, void *arg)
{
    (void)arg;
    static const spk_statement both[] = {SPK_SQL_CLEAR, SPK_SQL_TIDY};
    int code = SQLITE_OK;
    for (int i = 0; i < 2 && code == SQLITE_OK; i++) {
        sqlite3_stmt *statement = NULL;
        code = spk_db_statement(db, both[i], &statement);
        if (code == SQLITE_OK)
            code = spk_db_finish(statement, sqlite3_step(statement));
    }
    return code;
}

spk_status spk_store_empty(spk_store *store, int64_t *removed)
{
    spk_listing listing;
    int64_t count = 0;
    if (spk_store_listing(store, &listing) == SPK_OK) { /* what is damaged is emptied all the same */
        count = listing.count;
        spk_listing_release(&listing);
    }
    spk_store_enter(store);
    int code = spk_store_on_disk(store, SPK_DISK_UPDATE, clear, NULL);
    bool done = code == SQLITE_OK || (code == SPK_DB_ABSENT && !store->disk_off);
    if (done) {
        spk_store_drop_waiting(store);
        spk_db_close(&store->memory);
    }
    spk_store_leave(store);
    if (!done)
        return spk_store_status(store, code);
    *removed = count;
    return SPK_OK;
}
