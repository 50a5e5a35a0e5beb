/* The store as JSON, on its way in: the whole file is checked before anything is changed, and all of it is taken or nothing. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/free_memory.h"
#include "base/file.h"
#include "base/json_cost.h"
#include "base/json_text.h"
#include "store/store_json.h"

static const int64_t max_file_bytes = INT64_C(1) << 29;
static const int64_t day_s = 86400; /* clocks differ by less */

/* ------------------------------------------------------------------------------------------------ reading */

typedef struct source {
    spk_reader *reader;
    spk_status status;
    spk_json_cost cost;
    int64_t most; /* bytes of memory that it may become */
} source;

static size_t from_reader(void *buffer, size_t size, void *arg)
{
    source *s = arg;
    const unsigned char *bytes = NULL;
    size_t have = 0;
    (void)size;
    /* Jansson's scanner passes over a refused allocation, and clears errno with the next number: byte by byte, it is seen */
    if (errno == ENOMEM)
        s->status = spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: reading %s", spk_reader_name(s->reader));
    if (s->status != SPK_OK)
        return (size_t)-1;
    s->status = spk_reader_window(s->reader, 1, &bytes, &have);
    if (s->status == SPK_OK && spk_reader_offset(s->reader) > max_file_bytes)
        s->status = spk_fail(SPK_ERR_FORMAT, "%s is longer than %" PRId64 " bytes, the limit of an import", spk_reader_name(s->reader),
                             max_file_bytes);
    if (s->status != SPK_OK)
        return (size_t)-1;
    size_t count = have > 0;
    if (count > 0)
        memcpy(buffer, bytes, count);
    spk_json_cost_add(&s->cost, buffer, count);
    if (s->cost.bytes > s->most) {
        s->status = spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %s needs more than %" PRId64 " bytes, half of those that are free",
                             spk_reader_name(s->reader), s->most);
        return (size_t)-1;
    }
    spk_reader_skip(s->reader, count);
    return count;
}

static spk_status parse_file(const spk_store *store, const char *path, json_t **root)
{
    const int64_t room = spk_free_memory();
    source s = {.status = SPK_OK, .most = store->import_bytes > 0 ? store->import_bytes : room > 0 ? room / 2 : INT64_MAX};
    json_error_t error;
    SPK_TRY(spk_reader_open(&store->mem, path, &s.reader));
    errno = 0;
    *root = spk_json_load(from_reader, &s, JSON_REJECT_DUPLICATES, &error);
    const bool no_memory = errno == ENOMEM; /* elsewhere it tells one as a mistake in the text */
    spk_reader_close(&s.reader);
    if (s.status == SPK_OK && *root != NULL && !no_memory)
        return SPK_OK;
    json_decref(*root);
    *root = NULL;
    if (s.status != SPK_OK)
        return s.status;
    if (no_memory)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: reading %s", path);
    return spk_fail(SPK_ERR_FORMAT, "%s, line %d, column %d: %s", path, error.line, error.column, error.text);
}

/* ------------------------------------------------------------------------------------------------ checking */

/* Where the reading is, for messages. */
typedef struct place {
    const char *path;
    size_t class_index;
    size_t candidate; /* SIZE_MAX: the class itself */
} place;

static spk_status complain(const place *at, const char *field, const char *what)
{
    if (at->candidate == SIZE_MAX)
        return spk_fail(SPK_ERR_FORMAT, "%s: classes[%zu].%s %s", at->path, at->class_index, field, what);
    return spk_fail(SPK_ERR_FORMAT, "%s: classes[%zu].candidates[%zu].%s %s", at->path, at->class_index, at->candidate, field, what);
}

static spk_status get_text(const place *at, const json_t *object, const char *field, char *out, size_t size)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_string(value))
        return complain(at, field, "is missing or no text");
    const char *text = json_string_value(value);
    if (json_string_length(value) >= size || strlen(text) != json_string_length(value))
        return complain(at, field, "is too long");
    if (!spk_rows_text_is_clean(text))
        return complain(at, field, "holds bytes that are not printable ASCII");
    memcpy(out, text, strlen(text) + 1);
    return SPK_OK;
}

static spk_status get_number(const place *at, const json_t *object, const char *field, double least, double *out)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        return complain(at, field, "is missing or no finite number");
    if (json_number_value(value) < least)
        return complain(at, field, "is too small");
    *out = json_number_value(value);
    return SPK_OK;
}

static spk_status get_integer(const place *at, const json_t *object, const char *field, int64_t low, int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_integer(value))
        return complain(at, field, "is missing or no integer");
    if (json_integer_value(value) < low || json_integer_value(value) > high)
        return complain(at, field, "is out of range");
    *out = json_integer_value(value);
    return SPK_OK;
}

static spk_status get_name(const place *at, const json_t *object, const char *field, const char *const *names, int count, int *out)
{
    char text[32];
    SPK_TRY(get_text(at, object, field, text, sizeof text));
    for (int i = 0; i < count; i++)
        if (names[i] != NULL && strcmp(names[i], text) == 0) {
            *out = i;
            return SPK_OK;
        }
    return complain(at, field, "is none of the known names");
}

static spk_status candidate_from_json(const place *at, const json_t *object, spk_evidence *e)
{
    int kind = 0, candidate_status = 0;
    SPK_TRY(get_text(at, object, "name", e->name, sizeof e->name));
    SPK_TRY(get_text(at, object, "params", e->params, sizeof e->params));
    SPK_TRY(get_text(at, object, "hash", e->hash, sizeof e->hash));
    SPK_TRY(get_name(at, object, "kind", spk_json_kinds, SPK_JSON_KINDS, &kind));
    SPK_TRY(get_name(at, object, "status", spk_json_statuses, SPK_JSON_STATUSES, &candidate_status));
    e->kind = (spk_kind)kind;
    e->status = (spk_candidate_status)candidate_status;
    if (!json_is_null(json_object_get(object, "why")))
        SPK_TRY(get_text(at, object, "why", e->why, sizeof e->why));
    for (int i = 0; i < SPK_JSON_NUMBERS; i++)
        SPK_TRY(get_number(at, object, spk_json_numbers[i].name, spk_json_numbers[i].least, spk_json_number_of(e, i)));
    if (!spk_rows_error_is_sound(e))
        return complain(at, "error", "is above the tolerance, and the status is ok");
    return spk_rows_evidence_is_sound(e) ? SPK_OK
                                         : complain(at, "name", "is empty or has a space, or the hash is not 16 hexadecimal digits");
}

static spk_status candidates_from_json(place *at, const json_t *object, spk_report *report)
{
    const json_t *list = json_object_get(object, "candidates");
    if (!json_is_array(list) || json_array_size(list) > SPK_STORE_MAX_CANDIDATES)
        return complain(at, "candidates", "is missing, no list, or too long");
    for (size_t i = 0; i < json_array_size(list); i++) {
        spk_evidence e = {.sample_count = 0};
        at->candidate = i;
        SPK_TRY(candidate_from_json(at, json_array_get(list, i), &e));
        SPK_TRY(spk_report_append(report, &e, NULL));
    }
    at->candidate = SIZE_MAX;
    return SPK_OK;
}

/* What exports of the first version do not have. */
static spk_status get_provisional(const place *at, const json_t *object, spk_report *report)
{
    int provisional = SPK_PROVISIONAL_NO;
    if (json_object_get(object, "provisional") != NULL && !json_is_null(json_object_get(object, "provisional")))
        SPK_TRY(get_name(at, object, "provisional", spk_json_provisionals, SPK_JSON_PROVISIONALS, &provisional));
    report->provisional = (spk_provisional)provisional;
    return json_object_get(object, "budget_s") == NULL ? SPK_OK : get_number(at, object, "budget_s", 0, &report->budget_s);
}

static spk_status fill_report(place *at, const json_t *object, spk_report *report)
{
    char seed[24], *end = NULL;
    int64_t chosen = 0;
    SPK_TRY(candidates_from_json(at, object, report));
    SPK_TRY(get_integer(at, object, "chosen", -1, report->count - 1, &chosen));
    report->chosen = (int)chosen;
    SPK_TRY(get_text(at, object, "seed", seed, sizeof seed));
    report->seed = strtoull(seed, &end, 16);
    if (strlen(seed) != 16 || strspn(seed, "0123456789abcdef") != 16)
        return complain(at, "seed", "is not 16 hexadecimal digits");
    SPK_TRY(get_number(at, object, "tuning_s", 0, &report->tuning_s));
    SPK_TRY(get_provisional(at, object, report));
    return spk_rows_report_is_sound(report) ? SPK_OK : complain(at, "chosen", "names a candidate whose status is not ok");
}

/* A clock that was wrong says nothing of the evidence: it counts as of now. *doubtful says so. */
static spk_status get_time(const place *at, const json_t *object, int64_t *measured_at, bool *doubtful)
{
    const int64_t now = spk_unix_time_s();
    SPK_TRY(get_integer(at, object, "measured_at", INT64_MIN, INT64_MAX, measured_at));
    *doubtful = *measured_at < 0 || *measured_at > now + day_s;
    if (*doubtful)
        *measured_at = now > 0 ? now : 0;
    return SPK_OK;
}

static spk_status report_from_json(const spk_mem *mem, const char *path, size_t index, const json_t *object, spk_report **out,
                                   bool *doubtful)
{
    place at = {path, index, SIZE_MAX};
    char key[SPK_MAX_KEY_TEXT], device[128];
    spk_report *report = NULL;
    SPK_TRY(get_text(&at, object, "key", key, sizeof key));
    if (strchr(key, '|') == NULL || spk_key_distance(key, key) != 0)
        return complain(&at, "key", "is no key");
    SPK_TRY(get_text(&at, object, "device", device, sizeof device));
    SPK_TRY(spk_report_make(mem, key, device, &report));
    spk_status status = get_time(&at, object, &report->measured_at, doubtful);
    if (status == SPK_OK)
        status = fill_report(&at, object, report);
    if (status != SPK_OK) {
        spk_report_release(&report);
        return status;
    }
    *out = report;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ taking */

typedef struct import {
    spk_store *store;
    const char *path;
    const json_t *classes;
    int64_t taken, doubtful;
    spk_status status;
} import;

static spk_status check_all(const import *in)
{
    for (size_t i = 0; i < json_array_size(in->classes); i++) {
        spk_report *report = NULL;
        bool doubtful = false;
        SPK_TRY(report_from_json(&in->store->mem, in->path, i, json_array_get(in->classes, i), &report, &doubtful));
        spk_report_release(&report);
    }
    return SPK_OK;
}

/* Whether what comes takes the place of what is there: the newer one does, but what is finished goes before what is provisional. */
static bool goes_before(const spk_report *report, bool doubtful, const spk_age *here)
{
    if (here->measured_at == INT64_MIN)
        return true;
    if (doubtful)
        return false;
    if (here->provisional != (report->provisional != SPK_PROVISIONAL_NO))
        return here->provisional;
    /* What a fast clock has left would else stay the newest for long. */
    return report->measured_at > here->measured_at || here->measured_at > spk_unix_time_s() + day_s;
}

/* Memory hides the file: what it holds counts too, and goes when something better comes. */
static int take_one(spk_db *db, import *in, const spk_report *report, bool doubtful)
{
    spk_age here, hidden = {.measured_at = INT64_MIN};
    int code = spk_rows_age(db, report->class_key, &here);
    if (code == SQLITE_OK && in->store->memory != NULL && in->store->memory != db)
        code = spk_rows_age(in->store->memory, report->class_key, &hidden);
    if (code != SQLITE_OK || !goes_before(report, doubtful, &here) || !goes_before(report, doubtful, &hidden))
        return code;
    in->taken++;
    in->doubtful += doubtful;
    return spk_rows_save(db, report);
}

static int take_all(spk_db *db, void *arg)
{
    import *in = arg;
    int code = SQLITE_OK;
    in->taken = in->doubtful = 0;
    for (size_t i = 0; i < json_array_size(in->classes) && code == SQLITE_OK; i++) {
        spk_report *report = NULL;
        bool doubtful = false;
        in->status = report_from_json(&in->store->mem, in->path, i, json_array_get(in->classes, i), &report, &doubtful);
        if (in->status != SPK_OK)
            return SPK_DB_STOPPED;
        code = take_one(db, in, report, doubtful);
        spk_report_release(&report);
    }
    return code == SQLITE_OK ? spk_rows_evict(db, in->store->class_limit) : code;
}

static void uncover(const import *in)
{
    for (size_t i = 0; in->store->memory != NULL && i < json_array_size(in->classes); i++) {
        spk_report *report = NULL;
        bool doubtful = false;
        spk_age hidden;
        if (report_from_json(&in->store->mem, in->path, i, json_array_get(in->classes, i), &report, &doubtful) != SPK_OK)
            continue;
        if (spk_rows_age(in->store->memory, report->class_key, &hidden) == SQLITE_OK && goes_before(report, doubtful, &hidden))
            (void)spk_rows_erase(in->store->memory, report->class_key);
        spk_report_release(&report);
    }
}

static spk_status import_rows(import *in)
{
    spk_store *store = in->store;
    spk_store_enter(store);
    int code;
    if (store->path[0] == '\0') {
        code = spk_store_on_memory(store, true, take_all, in);
    } else {
        code = spk_store_on_disk(store, SPK_DISK_WRITE, take_all, in);
        if (code == SQLITE_OK)
            uncover(in);
    }
    if (code == SQLITE_OK && in->doubtful > 0)
        spk_store_warn(store, SPK_WARN_TIME, "%s: %" PRId64 " classes whose time lies in the future or before 1970 were taken as of now",
                       in->path, in->doubtful);
    spk_store_leave(store);
    if (in->status != SPK_OK)
        return in->status;
    return spk_store_status(store, code);
}

spk_status spk_store_import_json(spk_store *store, const char *path, int64_t *count)
{
    json_t *root = NULL;
    SPK_TRY(spk_json_refuse_own_file(store, path));
    SPK_TRY(parse_file(store, path, &root));
    const json_t *schema = json_object_get(root, "schema");
import in = {.store = store, .path = path, .classes = json_object_get(root, "classes") };
    spk_status status = SPK_OK;
    if (!json_is_integer(schema) || json_integer_value(schema) != SPK_JSON_SCHEMA)
        status = spk_fail(SPK_ERR_FORMAT, "%s: schema is missing or not %d, the one that this version reads", path, SPK_JSON_SCHEMA);
    else if (!json_is_array(in.classes))
        status = spk_fail(SPK_ERR_FORMAT, "%s: classes is missing or no list", path);
    if (status == SPK_OK)
        status = check_all(&in);
    if (status == SPK_OK)
        status = import_rows(&in);
    json_decref(root);
    if (status == SPK_OK)
        *count = in.taken;
    return status;
}
