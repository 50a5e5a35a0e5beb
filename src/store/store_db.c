/* One SQLite connection: pragmas, limits, statements prepared once. */
#include "store/store_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/c_locale.h"
#include "base/clock.h"

enum { STEP_OPS = 1000, PATIENT_STEPS = 20000 };
static const char strange[] = "its tables are not those of a store";

/* CROSS JOIN keeps the order of the tables: one lookup each, whatever the planner has seen. */
#define CLASS_OF_KEY " FROM family f CROSS JOIN class k ON k.family_id = f.id "
#define BY_KEY " WHERE f.exact = ?1 AND k.rest = ?2"
/* What was found wrong, or failed, is no choice, whatever `chosen` says. */
#define CHOSEN "CROSS JOIN candidate c ON c.class_id = k.id AND c.rank = k.chosen AND c.status = 0"

static const char *const statement_text[SPK_SQL_COUNT] = {
    [SPK_SQL_DECISION] =
        "SELECT c.name, c.params, c.hash, c.median_us, k.measured_at, k.provisional, k.budget_s" CLASS_OF_KEY CHOSEN BY_KEY,
    [SPK_SQL_FAMILY] = "SELECT k.rest" CLASS_OF_KEY "WHERE f.exact = ?1 AND k.chosen >= 0 ORDER BY k.rest",
    [SPK_SQL_SIZES] = "SELECT f.exact || '|' || k.rest" CLASS_OF_KEY "WHERE f.exact >= ?1 AND f.exact < ?2 AND k.chosen >= 0",
    [SPK_SQL_LOAD] = "SELECT k.device, k.chosen, k.seed, k.tuning_s, k.measured_at, c.rank, c.name, c.params, c.hash, c.kind, c.status, "
                     "c.why, c.predicted_us,"
                     " c.median_us, c.spread_us, c.prepare_us, c.error, c.tolerance, k.provisional, k.budget_s" CLASS_OF_KEY
                     "LEFT JOIN candidate c ON c.class_id = k.id" BY_KEY " ORDER BY c.rank",
    [SPK_SQL_WRONG] = "SELECT c.name, c.params, c.hash, c.why, c.error, c.tolerance" CLASS_OF_KEY
                      "CROSS JOIN candidate c ON c.class_id = k.id" BY_KEY " AND c.status = ?3",
    [SPK_SQL_AGE] = "SELECT k.measured_at, k.provisional" CLASS_OF_KEY BY_KEY,
    [SPK_SQL_LIST] = "SELECT f.exact || '|' || k.rest, k.device, CASE c.params WHEN '' THEN c.name ELSE c.name || ' ' || c.params END, "
                     "c.median_us, k.measured_at,"
                     " (SELECT count(*) FROM candidate WHERE class_id = k.id), k.provisional"
                     " FROM class k CROSS JOIN family f ON f.id = k.family_id LEFT JOIN candidate c ON c.class_id = k.id AND c.rank = "
                     "k.chosen AND c.status = 0",
    [SPK_SQL_ADD_FAMILY] = "INSERT OR IGNORE INTO family (exact) VALUES (?1)",
    [SPK_SQL_ADD_CLASS] =
        ("INSERT INTO class (family_id, rest, device, chosen, seed, tuning_s, measured_at, provisional, budget_s)"
         " SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM family WHERE exact = ?1"), /* parentheses: clang suspects a missing comma */
    [SPK_SQL_ADD_CANDIDATE] = "INSERT INTO candidate VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    [SPK_SQL_ERASE] = "DELETE FROM class WHERE rest = ?2 AND family_id = (SELECT id FROM family WHERE exact = ?1)",
    [SPK_SQL_EVICT] = "DELETE FROM class WHERE id IN (SELECT id FROM class ORDER BY measured_at DESC, id DESC LIMIT -1 OFFSET ?1)",
    [SPK_SQL_TIDY] = "DELETE FROM family WHERE NOT EXISTS (SELECT 1 FROM class WHERE family_id = family.id)",
    [SPK_SQL_CLEAR] = "DELETE FROM class",
};

int spk_db_exec(spk_db *db, const char *sql)
{
    return sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
}

int spk_db_integer(spk_db *db, const char *sql, int64_t *value)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db->sql, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *value = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    } else if (code == SQLITE_DONE) {
        code = SQLITE_CORRUPT;
    }
    sqlite3_finalize(statement);
    return code;
}

int spk_db_statement(spk_db *db, spk_statement which, sqlite3_stmt **statement)
{
    if (db->statements[which] == NULL) {
        int code = sqlite3_prepare_v3(db->sql, statement_text[which], -1, SQLITE_PREPARE_PERSISTENT, &db->statements[which], NULL);
        if (code != SQLITE_OK)
            return code;
    }
    *statement = db->statements[which];
    return SQLITE_OK;
}

int spk_db_finish(sqlite3_stmt *statement, int code)
{
    int reset = sqlite3_reset(statement); /* ends the read transaction; repeats the error of the last step */
    sqlite3_clear_bindings(statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW && code != SQLITE_OK)
        return code;
    return reset;
}

void spk_db_reason(spk_db *db, int code, char *reason, size_t reason_size)
{
    if (code == SPK_DB_STRANGE) {
        snprintf(reason, reason_size, "%s", strange);
        return;
    }
    int system = db == NULL ? 0 : db->system_error != 0 ? db->system_error : sqlite3_system_errno(db->sql);
    if (system != 0 && (code & 0xff) != SQLITE_FULL && !spk_db_is_damage(code))
        snprintf(reason, reason_size, "%s (%s)", sqlite3_errstr(code), spk_system_error(system));
    else
        snprintf(reason, reason_size, "%s", sqlite3_errstr(code));
}

bool spk_db_is_busy(int code)
{
    return code > 0 && ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED);
}

bool spk_db_is_damage(int code)
{
    if (code <= 0)
        return code == SPK_DB_STRANGE;
    return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_TOOBIG;
}

/* SQLite calls a file corrupt where the system failed to read it (EIO, ENXIO: a bad disk, a lost network). The system's own word counts. */
int spk_db_true_code(spk_db *db, int code)
{
    int system = 0;
    if (code <= 0 || !spk_db_is_damage(code))
        return code;
    if (sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_LAST_ERRNO, &system) != SQLITE_OK || system == 0)
        return code;
    db->system_error = system;
    return SQLITE_IOERR_READ;
}

void spk_db_begin(spk_db *db, bool patient)
{
    db->steps = 0;
    db->patient = patient || (db->interrupted != NULL && atomic_load(db->interrupted) != 0);
}

/* Every STEP_OPS operations. An interruption ends what is being read. What is written then, or read by those who keep what they have, is
 * given some time: it is short, unless somebody made the file such that it is not. */
static int on_progress(void *arg)
{
    spk_db *db = arg;
    db->steps++;
    if (db->interrupted == NULL || atomic_load(db->interrupted) == 0)
        return 0;
    return !db->patient || db->steps > PATIENT_STEPS;
}

int spk_db_transaction(spk_db *db, int (*job)(spk_db *db, void *arg), void *arg)
{
    /* IMMEDIATE: a transaction that begins by reading could not be upgraded while another process does the same. */
    int code = spk_db_exec(db, "BEGIN IMMEDIATE");
    if (code != SQLITE_OK)
        return code;
    code = job(db, arg);
    if (code == SQLITE_OK)
        code = spk_db_exec(db, "COMMIT");
    if (code != SQLITE_OK && !sqlite3_get_autocommit(db->sql))
        spk_db_exec(db, "ROLLBACK");
    return code;
}

/* Looks again every few milliseconds. SQLite's own timeout soon looks only ten times a second: beside a process that saves without a
 * pause it may find the lock taken each time. */
static int wait_for_lock(void *arg, int looked)
{
    spk_db *db = arg;
    double now_us = spk_now_us();
    if (looked == 0)
        db->wait_begun_us = now_us;
    if (now_us - db->wait_begun_us >= 1e3 * db->busy_ms)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = 500000 + 100000 * (looked % 37)}, NULL);
    return 1;
}

/* Far above what a store needs, and far below what would take long or much memory. */
static void limit(spk_db *db)
{
    static const struct {
        int id, most;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 1 << 20},          {SQLITE_LIMIT_SQL_LENGTH, 1 << 16}, {SQLITE_LIMIT_COLUMN, 64},
        {SQLITE_LIMIT_EXPR_DEPTH, 50},           {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_COMPOUND_SELECT, 4},
        {SQLITE_LIMIT_VDBE_OP, 100000},          {SQLITE_LIMIT_TRIGGER_DEPTH, 4},    {SQLITE_LIMIT_FUNCTION_ARG, 16},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100}, {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        sqlite3_limit(db->sql, limits[i].id, limits[i].most);
}

static int set_up(spk_db *db, bool on_disk)
{
    sqlite3_extended_result_codes(db->sql, 1);
    sqlite3_busy_handler(db->sql, wait_for_lock, db);
    sqlite3_progress_handler(db->sql, STEP_OPS, on_progress, db);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL); /* a store has neither */
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    limit(db);
    int code = spk_db_exec(db, "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
    /* The schema comes first: nothing is changed in a file that is not ours. */
    if (code == SQLITE_OK)
        code = spk_schema_prepare(db, on_disk);
    /* A rollback journal, since WAL needs memory shared between processes, which a network home does not have. FULL, since a save comes
     * once in seconds of tuning and its extra fsync keeps the file whole through a loss of power, on any file system. */
    if (code == SQLITE_OK && on_disk)
        code = spk_db_exec(db, "PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
    return code;
}

static const char *told_by_us(int code)
{
    switch (code) {
    case SPK_DB_NEWER:
        return "a newer sparsek wrote it";
    case SPK_DB_OLDER:
        return "an older sparsek wrote it, and it may not be written, so that it cannot be brought up to date";
    case SPK_DB_STRANGE:
        return strange;
    }
    return "it is a database of another program";
}

int spk_db_open(const char *path, int busy_ms, const atomic_int *interrupted, spk_db **db, char *reason, size_t reason_size)
{
    spk_db *made = NULL;
    /* The system's memory: after fork() an inherited connection outlives its store. */
    if (spk_calloc(&spk_mem_system, 1, sizeof *made, &made) != SPK_OK) {
        snprintf(reason, reason_size, "out of memory");
        return SQLITE_NOMEM;
    }
    made->busy_ms = busy_ms;
    made->interrupted = interrupted;
    spk_db_begin(made, false);
    int code = sqlite3_open_v2(path != NULL ? path : ":memory:", &made->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = spk_db_true_code(made, set_up(made, path != NULL));
    if (code != SQLITE_OK) {
        if (code > 0)
            spk_db_reason(made->sql != NULL ? made : NULL, code, reason, reason_size);
        else
            snprintf(reason, reason_size, "%s", told_by_us(code));
        spk_db_close(&made);
        return code;
    }
    *db = made;
    return SQLITE_OK;
}

void spk_db_close(spk_db **db)
{
    spk_db *old = *db;
    if (old == NULL)
        return;
    for (int i = 0; i < SPK_SQL_COUNT; i++)
        sqlite3_finalize(old->statements[i]);
    sqlite3_close(old->sql);
    spk_free(&spk_mem_system, old);
    *db = NULL;
}
