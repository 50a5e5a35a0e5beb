/* Classes and candidates as rows of one database. What is read is checked as if a stranger had written it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/store_internal.h"

/* ------------------------------------------------------------------------------------------------ binding and reading */

/* ?1 and ?2: the two parts of a key (the caller has seen the bar). The key must live until the statement is finished. */
static void bind_key(sqlite3_stmt *statement, const char *key)
{
    const char *bar = strchr(key, '|');
    sqlite3_bind_text(statement, 1, key, (int)(bar - key), SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, bar + 1, -1, SQLITE_STATIC);
}

/* Without a branch for each letter: every lookup goes through its key. */
bool spk_rows_text_is_clean(const char *text)
{
    const size_t length = strlen(text);
    unsigned char odd = 0;
    for (size_t i = 0; i < length; i++)
        odd |= (unsigned char)(text[i] - ' ') > '~' - ' ';
    return odd == 0;
}

/* For text of our own making that may quote a path or a message of the system. */
static void clean(const char *text, char *out, size_t size)
{
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < size; i++)
        out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    out[i] = '\0';
}

static bool read_text(sqlite3_stmt *statement, int column, char *out, size_t size)
{
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return false;
    const char *text = (const char *)sqlite3_column_text(statement, column);
    size_t bytes = (size_t)sqlite3_column_bytes(statement, column);
    if (text == NULL || bytes >= size || strlen(text) != bytes || !spk_rows_text_is_clean(text))
        return false;
    memcpy(out, text, bytes + 1);
    return true;
}

static bool read_number(sqlite3_stmt *statement, int column, double *out)
{
    int type = sqlite3_column_type(statement, column);
    *out = sqlite3_column_double(statement, column);
    return (type == SQLITE_FLOAT || type == SQLITE_INTEGER) && isfinite(*out);
}

static bool read_integer(sqlite3_stmt *statement, int column, int64_t low, int64_t high, int64_t *out)
{
    *out = sqlite3_column_int64(statement, column);
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER && *out >= low && *out <= high;
}

/* Of a clock before 1970: none is known. */
static bool read_time(sqlite3_stmt *statement, int column, int64_t *seconds)
{
    bool ok = read_integer(statement, column, INT64_MIN, INT64_MAX, seconds);
    *seconds = *seconds < 0 ? 0 : *seconds;
    return ok;
}

/* Of two columns, the second one the budget. */
static bool read_provisional(sqlite3_stmt *statement, int column, spk_provisional *provisional, double *budget_s)
{
    int64_t number = 0;
    bool ok = read_integer(statement, column, SPK_PROVISIONAL_NO, SPK_PROVISIONAL_IN_PLACE, &number) &&
              read_number(statement, column + 1, budget_s) && *budget_s >= 0;
    *provisional = (spk_provisional)number;
    return ok;
}

/* ------------------------------------------------------------------------------------------------ soundness */

static bool hash_is_sound(const char *hash)
{
    return strspn(hash, "0123456789abcdef") == 16 && hash[16] == '\0';
}

static bool number_is_sound(double x, double least)
{
    return isfinite(x) && x >= least;
}

bool spk_rows_error_is_sound(const spk_evidence *e)
{
    return e->status != SPK_CANDIDATE_OK || e->tolerance <= 0 || e->error <= e->tolerance;
}

bool spk_rows_evidence_is_sound(const spk_evidence *e)
{
    return spk_rows_error_is_sound(e) && e->name[0] != '\0' && strchr(e->name, ' ') == NULL && spk_rows_text_is_clean(e->name) &&
           spk_rows_text_is_clean(e->params) && hash_is_sound(e->hash) && e->kind >= SPK_KIND_OWN && e->kind <= SPK_KIND_PEER &&
           e->status >= SPK_CANDIDATE_OK && e->status <= SPK_CANDIDATE_NOT_APPLICABLE && spk_rows_text_is_clean(e->why) &&
           number_is_sound(e->predicted_us, 0) && number_is_sound(e->median_us, 0) && number_is_sound(e->spread_us, 0) &&
           number_is_sound(e->prepare_us, 0) && number_is_sound(e->error, -1) && number_is_sound(e->tolerance, 0);
}

bool spk_rows_report_is_sound(const spk_report *report)
{
    if (report->chosen < -1 || report->chosen >= report->count || !number_is_sound(report->tuning_s, 0) || report->measured_at < 0)
        return false;
    return report->chosen < 0 || report->candidates[report->chosen].status == SPK_CANDIDATE_OK;
}

/* ------------------------------------------------------------------------------------------------ reading */

int spk_rows_decision(spk_db *db, const char *key, spk_decision *decision, bool *found)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_DECISION, &statement);
    if (code != SQLITE_OK)
        return code;
    bind_key(statement, key);
    code = sqlite3_step(statement);
    spk_decision read = {.median_us = 0};
    bool have = code == SQLITE_ROW && read_text(statement, 0, read.name, sizeof read.name) &&
                read_text(statement, 1, read.params, sizeof read.params) && read_text(statement, 2, read.hash, sizeof read.hash) &&
                read_number(statement, 3, &read.median_us) && read_time(statement, 4, &read.measured_at) &&
                read_provisional(statement, 5, &read.provisional, &read.budget_s);
    code = spk_db_finish(statement, code);
    if (code == SQLITE_OK && have) {
        *decision = read;
        *found = true;
    }
    return code;
}

int spk_rows_nearest(spk_db *db, const char *key, spk_decision *decision, double *distance)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_FAMILY, &statement);
    if (code != SQLITE_OK)
        return code;
    const char *bar = strchr(key, '|');
    size_t prefix = (size_t)(bar + 1 - key);
    char other[SPK_MAX_KEY_TEXT], best[SPK_MAX_KEY_TEXT] = "";
    if (prefix >= sizeof other)
        return SQLITE_OK;
    memcpy(other, key, prefix);
    double least = *distance;
    sqlite3_bind_text(statement, 1, key, (int)(prefix - 1), SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!read_text(statement, 0, other + prefix, sizeof other - prefix))
            continue;
        double d = spk_key_distance(key, other);
        if (d < least) {
            least = d;
            memcpy(best, other, sizeof best);
        }
    }
    code = spk_db_finish(statement, code);
    bool found = false;
    if (code == SQLITE_OK && best[0] != '\0')
        code = spk_rows_decision(db, best, decision, &found);
    if (found)
        *distance = least;
    return code;
}

/* Keeps them in order; one that is there already (of the file, and of memory) once. */
void spk_sizes_add(spk_store_sizes *sizes, const char *key, double distance)
{
    int at = sizes->count;
    for (int i = 0; i < sizes->count; i++)
        if (strcmp(sizes->key[i], key) == 0)
            return;
    while (at > 0 && sizes->distance[at - 1] > distance)
        at--;
    if (at == SPK_STORE_SIZES)
        return;
    const int last = sizes->count < SPK_STORE_SIZES ? sizes->count++ : SPK_STORE_SIZES - 1;
    for (int i = last; i > at; i--) {
        sizes->distance[i] = sizes->distance[i - 1];
        memcpy(sizes->key[i], sizes->key[i - 1], sizeof sizes->key[i]);
    }
    sizes->distance[at] = distance;
    snprintf(sizes->key[at], sizeof sizes->key[at], "%s", key);
}

int spk_rows_sizes(spk_db *db, const char *key, double most, spk_store_sizes *sizes)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_SIZES, &statement);
    if (code != SQLITE_OK)
        return code;
    char after[sizeof sizes->key[0]], other[sizeof sizes->key[0]];
    const size_t prefix = spk_key_size_prefix(key);
    snprintf(after, sizeof after, "%.*s\x7f", (int)prefix, key); /* behind all printable text that begins like the key */
    sqlite3_bind_text(statement, 1, key, (int)prefix, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, after, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!read_text(statement, 0, other, sizeof other))
            continue;
        const double distance = spk_key_size_distance(key, other);
        if (distance <= most)
            spk_sizes_add(sizes, other, distance);
    }
    return spk_db_finish(statement, code);
}

static bool read_evidence(sqlite3_stmt *statement, int rank, spk_evidence *e)
{
    int64_t stored_rank = 0, kind = 0, status = 0;
    bool ok = read_integer(statement, 5, rank, rank, &stored_rank) && read_text(statement, 6, e->name, sizeof e->name) &&
              read_text(statement, 7, e->params, sizeof e->params) && read_text(statement, 8, e->hash, sizeof e->hash) &&
              read_integer(statement, 9, SPK_KIND_OWN, SPK_KIND_PEER, &kind) &&
              read_integer(statement, 10, SPK_CANDIDATE_OK, SPK_CANDIDATE_NOT_APPLICABLE, &status) &&
              read_text(statement, 11, e->why, sizeof e->why) && read_number(statement, 12, &e->predicted_us) &&
              read_number(statement, 13, &e->median_us) && read_number(statement, 14, &e->spread_us) &&
              read_number(statement, 15, &e->prepare_us) && read_number(statement, 16, &e->error) &&
              read_number(statement, 17, &e->tolerance);
    e->kind = (spk_kind)kind;
    e->status = (spk_candidate_status)status;
    return ok && spk_rows_evidence_is_sound(e);
}

/* The class's own columns, out of the first row. */
static spk_status read_class(sqlite3_stmt *statement, const spk_mem *mem, const char *key, spk_report **report, bool *sound)
{
    char device[256];
    int64_t chosen = 0, seed = 0;
    *sound = read_text(statement, 0, device, sizeof device);
    if (!*sound)
        return SPK_OK;
    SPK_TRY(spk_report_make(mem, key, device, report));
    *sound = read_integer(statement, 1, -1, INT32_MAX, &chosen) && read_integer(statement, 2, INT64_MIN, INT64_MAX, &seed) &&
             read_number(statement, 3, &(*report)->tuning_s) && read_time(statement, 4, &(*report)->measured_at) &&
             read_provisional(statement, 18, &(*report)->provisional, &(*report)->budget_s);
    (*report)->chosen = (int)chosen;
    (*report)->seed = (uint64_t)seed;
    (*report)->from_store = true;
    return SPK_OK;
}

int spk_rows_load(spk_db *db, const spk_mem *mem, const char *key, spk_report **report, bool *bad)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_LOAD, &statement);
    if (code != SQLITE_OK)
        return code;
    bind_key(statement, key);
    spk_report *made = NULL;
    spk_status status = SPK_OK;
    bool sound = true, any = false;
    while (status == SPK_OK && sound && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!any)
            status = read_class(statement, mem, key, &made, &sound);
        any = true;
        if (status != SPK_OK || !sound || sqlite3_column_type(statement, 5) == SQLITE_NULL)
            continue; /* a class without candidates is one row of NULLs */
        spk_evidence e = {.sample_count = 0};
        sound = made->count < SPK_STORE_MAX_CANDIDATES && read_evidence(statement, made->count, &e);
        if (sound)
            status = spk_report_append(made, &e, NULL);
    }
    code = spk_db_finish(statement, code);
    if (status != SPK_OK)
        code = SQLITE_NOMEM;
    if (code == SQLITE_OK && any && sound)
        sound = spk_rows_report_is_sound(made);
    if (bad != NULL)
        *bad = code == SQLITE_OK && any && !sound;
    if (code == SQLITE_OK && any && sound)
        *report = made;
    else
        spk_report_release(&made);
    return code;
}

int spk_rows_wrong(spk_db *db, const char *key, void (*visit)(void *user, const spk_evidence *wrong), void *user)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_WRONG, &statement);
    if (code != SQLITE_OK)
        return code;
    bind_key(statement, key);
    sqlite3_bind_int(statement, 3, SPK_CANDIDATE_WRONG);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        spk_evidence e = {.status = SPK_CANDIDATE_WRONG};
        if (read_text(statement, 0, e.name, sizeof e.name) && read_text(statement, 1, e.params, sizeof e.params) &&
            read_text(statement, 2, e.hash, sizeof e.hash) && read_text(statement, 3, e.why, sizeof e.why) &&
            read_number(statement, 4, &e.error) && read_number(statement, 5, &e.tolerance))
            visit(user, &e);
    }
    return spk_db_finish(statement, code);
}

int spk_rows_age(spk_db *db, const char *key, spk_age *age)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_AGE, &statement);
    if (code != SQLITE_OK)
        return code;
    bind_key(statement, key);
    code = sqlite3_step(statement);
    *age = (spk_age){.measured_at = INT64_MIN};
    if (code == SQLITE_ROW) {
        (void)read_time(statement, 0, &age->measured_at);
        age->provisional = sqlite3_column_int(statement, 1) != SPK_PROVISIONAL_NO;
    }
    return spk_db_finish(statement, code);
}

/* ------------------------------------------------------------------------------------------------ writing */

static int run(spk_db *db, spk_statement which, const char *key, int64_t number)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, which, &statement);
    if (code != SQLITE_OK)
        return code;
    if (key != NULL)
        bind_key(statement, key);
    else
        sqlite3_bind_int64(statement, 1, number);
    return spk_db_finish(statement, sqlite3_step(statement));
}

int spk_rows_erase(spk_db *db, const char *key)
{
    return run(db, SPK_SQL_ERASE, key, 0);
}

/* What a measurement of a wrong candidate may give (an infinite error) must not make the evidence unreadable. */
static double bounded(double x, double least)
{
    const double limit = 1e300;
    return isnan(x) || x > limit ? limit : x < least ? least : x;
}

static int add_candidate(spk_db *db, int64_t class_id, int rank, const spk_evidence *e)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_ADD_CANDIDATE, &statement);
    if (code != SQLITE_OK)
        return code;
    char why[sizeof e->why];
    clean(e->why, why, sizeof why);
    sqlite3_bind_int64(statement, 1, class_id);
    sqlite3_bind_int(statement, 2, rank);
    sqlite3_bind_text(statement, 3, e->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, e->params, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, e->hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 6, (int)e->kind);
    sqlite3_bind_int(statement, 7, (int)e->status);
    sqlite3_bind_text(statement, 8, why, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 9, bounded(e->predicted_us, 0));
    sqlite3_bind_double(statement, 10, bounded(e->median_us, 0));
    sqlite3_bind_double(statement, 11, bounded(e->spread_us, 0));
    sqlite3_bind_double(statement, 12, bounded(e->prepare_us, 0));
    sqlite3_bind_double(statement, 13, bounded(e->error, -1));
    sqlite3_bind_double(statement, 14, bounded(e->tolerance, 0));
    return spk_db_finish(statement, sqlite3_step(statement));
}

/* Candidates that cannot compute the problem are of the table, not of the machine: most of a report, and whoever wants them lists them
 * anew. */
static bool is_kept(const spk_evidence *e)
{
    return e->status != SPK_CANDIDATE_NOT_APPLICABLE;
}

/* The place of the chosen one among those that are kept. */
static int chosen_rank(const spk_report *report)
{
    int rank = report->chosen;
    for (int i = 0; i < report->chosen; i++)
        rank -= !is_kept(&report->candidates[i]);
    return rank;
}

static int add_class(spk_db *db, const spk_report *report, int64_t *class_id)
{
    sqlite3_stmt *statement = NULL;
    int code = spk_db_statement(db, SPK_SQL_ADD_CLASS, &statement);
    if (code != SQLITE_OK)
        return code;
    char device[128];
    clean(report->device_text, device, sizeof device);
    bind_key(statement, report->class_key);
    sqlite3_bind_text(statement, 3, device, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, chosen_rank(report));
    sqlite3_bind_int64(statement, 5, (int64_t)report->seed);
    sqlite3_bind_double(statement, 6, bounded(report->tuning_s, 0));
    sqlite3_bind_int64(statement, 7, report->measured_at < 0 ? 0 : report->measured_at); /* a clock before 1970 */
    sqlite3_bind_int(statement, 8, (int)report->provisional);
    sqlite3_bind_double(statement, 9, bounded(report->budget_s, 0));
    code = spk_db_finish(statement, sqlite3_step(statement));
    *class_id = sqlite3_last_insert_rowid(db->sql);
    return code;
}

int spk_rows_save(spk_db *db, const spk_report *report)
{
    int64_t class_id = 0;
    sqlite3_stmt *family = NULL;
    int code = spk_db_statement(db, SPK_SQL_ADD_FAMILY, &family);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_text(family, 1, report->class_key, (int)(strchr(report->class_key, '|') - report->class_key), SQLITE_STATIC);
    code = spk_db_finish(family, sqlite3_step(family));
    if (code == SQLITE_OK)
        code = spk_rows_erase(db, report->class_key);
    if (code == SQLITE_OK)
        code = add_class(db, report, &class_id);
    for (int i = 0, rank = 0; i < report->count && code == SQLITE_OK; i++)
        if (is_kept(&report->candidates[i]))
            code = add_candidate(db, class_id, rank++, &report->candidates[i]);
    return code;
}

int spk_rows_evict(spk_db *db, int64_t class_limit)
{
    int code = run(db, SPK_SQL_EVICT, NULL, class_limit);
    if (code == SQLITE_OK && sqlite3_changes(db->sql) > 0)
        code = run(db, SPK_SQL_TIDY, NULL, 0);
    return code;
}
