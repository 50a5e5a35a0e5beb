/* The tables of a store: made, brought up to date, and compared with what they must be. Views, triggers and further tables would run with
 * every query, so that a file which has any is not used. */
#include "store/store_internal.h"

#include <stdio.h>
#include <string.h>

/* The part of a key before "|" is long (it holds the device and the libraries) and shared by many classes: it stands once, in family. */
#define FAMILY "CREATE TABLE family (id INTEGER PRIMARY KEY, exact TEXT NOT NULL UNIQUE)"
#define CLASS                                                                                                                             \
    "CREATE TABLE class (id INTEGER PRIMARY KEY, family_id INTEGER NOT NULL REFERENCES family (id), rest TEXT NOT NULL, device TEXT NOT " \
    "NULL,"                                                                                                                               \
    " chosen INTEGER NOT NULL, seed INTEGER NOT NULL, tuning_s REAL NOT NULL, measured_at INTEGER NOT NULL, "
#define CLASS_END "UNIQUE (family_id, rest))"
#define CLASS_AGE "CREATE INDEX class_age ON class (measured_at)"
#define CANDIDATE                                                                                                                         \
    "CREATE TABLE candidate (class_id INTEGER NOT NULL REFERENCES class (id) ON DELETE CASCADE, rank INTEGER NOT NULL, name TEXT NOT "    \
    "NULL, params TEXT NOT "                                                                                                              \
    "NULL,"                                                                                                                               \
    " hash TEXT NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL, why TEXT NOT NULL, predicted_us REAL NOT NULL, median_us REAL " \
    "NOT NULL,"                                                                                                                           \
    " spread_us REAL NOT NULL, prepare_us REAL NOT NULL, error REAL NOT NULL, tolerance REAL NOT NULL, PRIMARY KEY (class_id, rank)) "    \
    "WITHOUT ROWID"
#define PROVISIONAL "provisional INTEGER NOT NULL DEFAULT 0" /* spk_provisional */
#define BUDGET "budget_s REAL NOT NULL DEFAULT 0"            /* of the tuning; 0: unknown, or none */

enum { PIECES = 4 };

/* Step i takes a database from version i to i + 1. A step is never changed once released: a new version adds one.
 * Version 2: what was interrupted, or ended without interleaved rounds, is provisional. */
static const char *const migrations[SPK_STORE_VERSION] = {
    FAMILY ";" CLASS CLASS_END ";" CLASS_AGE ";" CANDIDATE,
    "ALTER TABLE class ADD COLUMN " PROVISIONAL "; ALTER TABLE class ADD COLUMN " BUDGET ";"
    "UPDATE class SET provisional = 1 WHERE EXISTS (SELECT 1 FROM candidate WHERE class_id = class.id AND status = 4 AND"
    " why = 'tuning was interrupted before it was decided');"
    "UPDATE class SET provisional = 2 WHERE provisional = 0 AND EXISTS (SELECT 1 FROM candidate WHERE class_id = class.id AND rank = "
    "class.chosen AND"
    " spread_us = 0)",
};

/* What sqlite_master says of each version. */
static const char *const expected[SPK_STORE_VERSION][PIECES] = {
    {FAMILY, CLASS CLASS_END, CLASS_AGE, CANDIDATE},
    {FAMILY, CLASS PROVISIONAL ", " BUDGET ", " CLASS_END, CLASS_AGE, CANDIDATE},
};

/* Spaces may differ between versions of SQLite. */
static bool same_statement(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " \n");
        b += strspn(b, " \n");
        if (*a != *b || *a == '\0')
            return *a == *b;
    }
}

/* Indices that a UNIQUE makes, and the statistics of ANALYZE. */
static bool is_of_sqlite(const char *type, const char *name, const char *sql)
{
    return (strcmp(type, "index") == 0 && sql == NULL) || (strcmp(type, "table") == 0 && strncmp(name, "sqlite_stat", 11) == 0);
}

static int find_piece(int64_t version, const char *sql)
{
    for (int i = 0; sql != NULL && i < PIECES; i++)
        if (same_statement(sql, expected[version - 1][i]))
            return i;
    return -1;
}

static int check(spk_db *db, int64_t version)
{
    sqlite3_stmt *statement = NULL;
    unsigned found = 0;
    bool strange = false;
    int code = sqlite3_prepare_v2(db->sql, "SELECT type, name, sql FROM sqlite_master", -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        const char *type = (const char *)sqlite3_column_text(statement, 0), *name = (const char *)sqlite3_column_text(statement, 1);
        const char *sql = (const char *)sqlite3_column_text(statement, 2);
        int piece = find_piece(version, sql);
        if (piece >= 0)
            found |= 1u << piece;
        else
            strange |= type == NULL || name == NULL || !is_of_sqlite(type, name, sql);
    }
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE)
        return code;
    return strange || found != (1u << PIECES) - 1 ? SPK_DB_STRANGE : SQLITE_OK;
}

typedef struct facts {
    int64_t application, version, tables;
} facts;

static int read_facts(spk_db *db, facts *f)
{
    int code = spk_db_integer(db, "PRAGMA application_id", &f->application);
    if (code == SQLITE_OK)
        code = spk_db_integer(db, "PRAGMA user_version", &f->version);
    if (code == SQLITE_OK)
        code = spk_db_integer(db, "SELECT count(*) FROM sqlite_master", &f->tables);
    return code;
}

static int judge(const facts *f)
{
    const bool blank = f->application == 0 && f->version == 0 && f->tables == 0;
    if (!blank && f->application != SPK_STORE_APPLICATION)
        return SPK_DB_FOREIGN;
    if (f->version > SPK_STORE_VERSION)
        return SPK_DB_NEWER;
    return !blank && f->version < 1 ? SPK_DB_STRANGE : SQLITE_OK;
}

static int migrate(spk_db *db, void *arg)
{
    (void)arg;
    facts f;
    int code = read_facts(db, &f);
    if (code == SQLITE_OK)
        code = judge(&f);
    if (code == SQLITE_OK && f.version > 0)
        code = check(db, f.version);
    for (int64_t step = f.version; step < SPK_STORE_VERSION && code == SQLITE_OK; step++)
        code = spk_db_exec(db, migrations[step]);
    char pragmas[96];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d", SPK_STORE_APPLICATION, SPK_STORE_VERSION);
    return code == SQLITE_OK ? spk_db_exec(db, pragmas) : code;
}

int spk_schema_prepare(spk_db *db, bool compare)
{
    facts f;
    int code = read_facts(db, &f);
    if (code != SQLITE_OK)
        return code;
    if (f.application != SPK_STORE_APPLICATION && f.application != 0)
        return SPK_DB_FOREIGN;
    if (f.application == SPK_STORE_APPLICATION && f.version > SPK_STORE_VERSION)
        return SPK_DB_NEWER;
    if (f.application != SPK_STORE_APPLICATION || f.version < SPK_STORE_VERSION) {
        /* Blank or older, as far as a look without a lock can tell: another process may be at the same step. */
        code = spk_db_transaction(db, migrate, NULL);
        if (f.version > 0 && code > 0 && (code & 0xff) == SQLITE_READONLY)
            return SPK_DB_OLDER;
    }
    return code == SQLITE_OK && compare ? check(db, SPK_STORE_VERSION) : code;
}
