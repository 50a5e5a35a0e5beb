/* One SQLite connection: pragmas, migrations, statements prepared once. */
#include "tune/store_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* Step i takes a database from version i to i + 1. A step is never changed once released: a new version adds one.
 * The part of a key before "|" is long (it holds the device and the libraries) and shared by many classes: it stands once, in family. */
static const char *const migrations[SPK_STORE_VERSION] = {
    "CREATE TABLE family (id INTEGER PRIMARY KEY, exact TEXT NOT NULL UNIQUE);"
    "CREATE TABLE class (id INTEGER PRIMARY KEY, family_id INTEGER NOT NULL REFERENCES family (id), rest TEXT NOT NULL, device TEXT NOT NULL,"
    " chosen INTEGER NOT NULL, seed INTEGER NOT NULL, tuning_s REAL NOT NULL, measured_at INTEGER NOT NULL, UNIQUE (family_id, rest));"
    "CREATE INDEX class_age ON class (measured_at);"
    "CREATE TABLE candidate (class_id INTEGER NOT NULL REFERENCES class (id) ON DELETE CASCADE, rank INTEGER NOT NULL, name TEXT NOT NULL, params TEXT NOT "
    "NULL,"
    " hash TEXT NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL, why TEXT NOT NULL, predicted_us REAL NOT NULL, median_us REAL NOT NULL,"
    " spread_us REAL NOT NULL, prepare_us REAL NOT NULL, error REAL NOT NULL, tolerance REAL NOT NULL, PRIMARY KEY (class_id, rank)) WITHOUT ROWID;",
};

/* CROSS JOIN keeps the order of the tables: one lookup each, whatever the planner has seen. */
#define CLASS_OF_KEY " FROM family f CROSS JOIN class k ON k.family_id = f.id "
#define BY_KEY " WHERE f.exact = ?1 AND k.rest = ?2"

static const char *const statement_text[SPK_SQL_COUNT] = {
    [SPK_SQL_DECISION] =
        "SELECT c.name, c.params, c.hash, c.median_us, k.measured_at" CLASS_OF_KEY "CROSS JOIN candidate c ON c.class_id = k.id AND c.rank = k.chosen" BY_KEY,
    [SPK_SQL_FAMILY] = "SELECT k.rest" CLASS_OF_KEY "WHERE f.exact = ?1 AND k.chosen >= 0 ORDER BY k.rest",
    [SPK_SQL_LOAD] =
        "SELECT k.device, k.chosen, k.seed, k.tuning_s, k.measured_at, c.rank, c.name, c.params, c.hash, c.kind, c.status, c.why, c.predicted_us,"
        " c.median_us, c.spread_us, c.prepare_us, c.error, c.tolerance" CLASS_OF_KEY "LEFT JOIN candidate c ON c.class_id = k.id" BY_KEY " ORDER BY c.rank",
    [SPK_SQL_AGE] = "SELECT k.measured_at" CLASS_OF_KEY BY_KEY,
    [SPK_SQL_LIST] =
        "SELECT f.exact || '|' || k.rest, k.device, CASE c.params WHEN '' THEN c.name ELSE c.name || ' ' || c.params END, c.median_us, k.measured_at,"
        " (SELECT count(*) FROM candidate WHERE class_id = k.id)"
        " FROM class k CROSS JOIN family f ON f.id = k.family_id LEFT JOIN candidate c ON c.class_id = k.id AND c.rank = k.chosen",
    [SPK_SQL_ADD_FAMILY] = "INSERT OR IGNORE INTO family (exact) VALUES (?1)",
    [SPK_SQL_ADD_CLASS] =
        "INSERT INTO class (family_id, rest, device, chosen, seed, tuning_s, measured_at) SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM family WHERE exact = ?1",
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
        snprintf(reason, reason_size, "its tables are not those of a store");
        return;
    }
    int system = db != NULL ? sqlite3_system_errno(db->sql) : 0;
    if (system != 0 && (code & 0xff) != SQLITE_FULL && !spk_db_is_damage(code))
        snprintf(reason, reason_size, "%s (%s)", sqlite3_errstr(code), strerror(system));
    else
        snprintf(reason, reason_size, "%s", sqlite3_errstr(code));
}

bool spk_db_is_damage(int code)
{
    return code == SPK_DB_STRANGE || (code > 0 && ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB));
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

static int migrate(spk_db *db, void *arg)
{
    (void)arg;
    int64_t application = 0, version = 0, tables = 0;
    int code = spk_db_integer(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = spk_db_integer(db, "PRAGMA user_version", &version);
    if (code == SQLITE_OK)
        code = spk_db_integer(db, "SELECT count(*) FROM sqlite_master", &tables);
    if (code != SQLITE_OK)
        return code;
    bool blank = application == 0 && version == 0 && tables == 0;
    if (!blank && application != SPK_STORE_APPLICATION)
        return SPK_DB_FOREIGN;
    if (version > SPK_STORE_VERSION)
        return SPK_DB_NEWER;
    for (int64_t step = version < 0 ? 0 : version; step < SPK_STORE_VERSION && code == SQLITE_OK; step++)
        code = spk_db_exec(db, migrations[step]);
    char pragmas[96];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d", SPK_STORE_APPLICATION, SPK_STORE_VERSION);
    return code == SQLITE_OK ? spk_db_exec(db, pragmas) : code;
}

static int prepare_schema(spk_db *db)
{
    int64_t application = 0, version = 0;
    int code = spk_db_integer(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = spk_db_integer(db, "PRAGMA user_version", &version);
    if (code != SQLITE_OK || (application == SPK_STORE_APPLICATION && version == SPK_STORE_VERSION))
        return code;
    if (application != SPK_STORE_APPLICATION && application != 0)
        return SPK_DB_FOREIGN;
    if (application == SPK_STORE_APPLICATION && version > SPK_STORE_VERSION)
        return SPK_DB_NEWER;
    /* Blank or older, as far as a look without a lock can tell: another process may be at the same step. */
    return spk_db_transaction(db, migrate, NULL);
}

/* A file that says it is ours must have our tables: every statement fits them. */
static int check_tables(spk_db *db)
{
    int code = SQLITE_OK;
    for (int i = 0; i < SPK_SQL_COUNT && code == SQLITE_OK; i++) {
        sqlite3_stmt *statement = NULL;
        code = spk_db_statement(db, (spk_statement)i, &statement);
    }
    return code == SQLITE_ERROR ? SPK_DB_STRANGE : code;
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

static int set_up(spk_db *db, bool on_disk)
{
    sqlite3_extended_result_codes(db->sql, 1);
    sqlite3_busy_handler(db->sql, wait_for_lock, db);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    int code = spk_db_exec(db, "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF");
    /* The schema comes first: nothing is changed in a file that is not ours. */
    if (code == SQLITE_OK)
        code = prepare_schema(db);
    if (code == SQLITE_OK && on_disk)
        code = check_tables(db);
    /* A rollback journal, since WAL needs memory shared between processes, which a network home does not have. FULL, since a save comes
     * once in seconds of tuning and its extra fsync keeps the file whole through a loss of power, on any file system. */
    if (code == SQLITE_OK && on_disk)
        code = spk_db_exec(db, "PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
    return code;
}

int spk_db_open(const char *path, int busy_ms, spk_db **db, char *reason, size_t reason_size)
{
    spk_db *made = NULL;
    /* The system's memory: after fork() an inherited connection outlives its store. */
    if (spk_calloc(&spk_mem_system, 1, sizeof *made, &made) != SPK_OK) {
        snprintf(reason, reason_size, "out of memory");
        return SQLITE_NOMEM;
    }
    made->busy_ms = busy_ms;
    int code = sqlite3_open_v2(path != NULL ? path : ":memory:", &made->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = set_up(made, path != NULL);
    if (code != SQLITE_OK) {
        if (code > 0)
            spk_db_reason(made->sql != NULL ? made : NULL, code, reason, reason_size);
        else
            snprintf(reason, reason_size, code == SPK_DB_NEWER ? "a newer sparsek wrote it" : "it is a database of another program");
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
