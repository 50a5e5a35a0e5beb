/* The store as JSON. Export writes aside and renames; import checks the whole file before it changes anything, and changes all or nothing. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tune/store_internal.h"

enum { SCHEMA = 1 };
static const int64_t max_file_bytes = INT64_C(1) << 29;

static const char *const kind_names[] = {
    [SPK_KIND_OWN] = "own", [SPK_KIND_VENDOR] = "vendor", [SPK_KIND_DENSE] = "dense", [SPK_KIND_REFERENCE] = "reference", [SPK_KIND_PEER] = "peer"};
static const char *const status_names[] = {[SPK_CANDIDATE_OK] = "ok",
                                           [SPK_CANDIDATE_WRONG] = "wrong",
                                           [SPK_CANDIDATE_FAILED] = "failed",
                                           [SPK_CANDIDATE_TIMED_OUT] = "timed_out",
                                           [SPK_CANDIDATE_PRUNED] = "pruned",
                                           [SPK_CANDIDATE_NOT_ELIGIBLE] = "not_eligible",
                                           [SPK_CANDIDATE_NOT_APPLICABLE] = "not_applicable"};
enum { KINDS = sizeof kind_names / sizeof kind_names[0], STATUSES = sizeof status_names / sizeof status_names[0] };

/* The numbers of a candidate: one list for both ways. */
static const struct {
    const char *name;
    size_t offset;
    double least;
} numbers[] = {{"predicted_us", offsetof(spk_evidence, predicted_us), 0}, {"median_us", offsetof(spk_evidence, median_us), 0},
               {"spread_us", offsetof(spk_evidence, spread_us), 0},       {"prepare_us", offsetof(spk_evidence, prepare_us), 0},
               {"error", offsetof(spk_evidence, error), -1},              {"tolerance", offsetof(spk_evidence, tolerance), 0}};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static double *number_of(spk_evidence *e, int i)
{
    return (double *)((char *)e + numbers[i].offset);
}

/* The store's own file must not be replaced by an export, nor be opened and closed beside SQLite. */
static spk_status refuse_own_file(const spk_store *store, const char *path)
{
    struct stat a, b;
    if (store->path[0] != '\0' && stat(path, &a) == 0 && stat(store->path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return spk_fail(SPK_ERR_ARGUMENT, "path %s is the store itself", path);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ export */

static json_t *candidate_to_json(spk_evidence *e)
{
    json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "name", e->name, "params", e->params, "hash", e->hash, "kind", kind_names[e->kind], "status",
                            status_names[e->status], "why", e->why[0] != '\0' ? e->why : NULL);
    int failed = out == NULL;
    for (int i = 0; i < NUMBERS && !failed; i++)
        failed = json_object_set_new(out, numbers[i].name, json_real(*number_of(e, i)));
    if (failed) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *report_to_json(spk_report *report)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%016" PRIx64, report->seed);
    json_t *candidates = json_array();
    int failed = candidates == NULL;
    for (int i = 0; i < report->count && !failed; i++)
        failed = json_array_append_new(candidates, candidate_to_json(&report->candidates[i]));
    if (failed) {
        json_decref(candidates);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:i, s:s, s:f, s:I, s:o}", "key", report->class_key, "device", report->device_text, "chosen", report->chosen, "seed", seed, "tuning_s",
                     report->tuning_s, "measured_at", (json_int_t)report->measured_at, "candidates", candidates);
}

typedef struct sink {
    spk_writer *writer;
    spk_status status;
} sink;

static int to_writer(const char *bytes, size_t count, void *arg)
{
    sink *s = arg;
    s->status = spk_writer_bytes(s->writer, bytes, count);
    return s->status == SPK_OK ? 0 : -1;
}

static spk_status write_report(spk_writer *writer, spk_report *report, bool first)
{
    SPK_TRY(spk_writer_printf(writer, "%s\n", first ? "" : ","));
    json_t *json = report_to_json(report);
    if (json == NULL)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: a class as JSON");
    sink s = {writer, SPK_OK};
    int failed = json_dump_callback(json, to_writer, &s, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(json);
    if (failed && s.status == SPK_OK)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: a class as JSON");
    return s.status;
}

static spk_status write_all(spk_store *store, const spk_listing *listing, spk_writer *writer, int64_t *written)
{
    SPK_TRY(spk_writer_printf(writer, "{\"schema\":%d,\"sparsek\":\"%d.%d.%d\",\"classes\":[", SCHEMA, SPK_VERSION_MAJOR, SPK_VERSION_MINOR, SPK_VERSION_PATCH));
    for (int64_t i = 0; i < listing->count; i++) {
        const char *key = listing->text + listing->entries[i].key;
        spk_report *report = NULL;
        if (strchr(key, '|') == NULL)
            continue;
        SPK_TRY(spk_store_load(store, key, &report));
        if (report == NULL)
            continue; /* removed meanwhile, or not sound: check tells */
        spk_status status = write_report(writer, report, *written == 0);
        spk_report_release(&report);
        SPK_TRY(status);
        ++*written;
    }
    return spk_writer_printf(writer, "\n]}\n");
}

spk_status spk_store_export_json(spk_store *store, const char *path, int64_t *count)
{
    spk_listing listing;
    spk_writer *writer = NULL;
    int64_t written = 0;
    SPK_TRY(refuse_own_file(store, path));
    SPK_TRY(spk_store_listing(store, &listing));
    spk_status status = spk_writer_open(&store->mem, path, &writer);
    if (status == SPK_OK)
        status = write_all(store, &listing, writer, &written);
    if (status == SPK_OK)
        status = spk_writer_commit(&writer);
    spk_writer_abort(&writer);
    spk_listing_release(&listing);
    if (status == SPK_OK)
        *count = written;
    return status;
}

/* ------------------------------------------------------------------------------------------------ import: reading */

typedef struct source {
    spk_reader *reader;
    spk_status status;
} source;

static size_t from_reader(void *buffer, size_t size, void *arg)
{
    source *s = arg;
    const unsigned char *bytes = NULL;
    size_t have = 0;
    s->status = spk_reader_window(s->reader, 1, &bytes, &have);
    if (s->status == SPK_OK && spk_reader_offset(s->reader) > max_file_bytes)
        s->status = spk_fail(SPK_ERR_FORMAT, "%s is longer than %" PRId64 " bytes, the limit of an import", spk_reader_name(s->reader), max_file_bytes);
    if (s->status != SPK_OK)
        return (size_t)-1;
    size_t count = have < size ? have : size;
    if (count > 0)
        memcpy(buffer, bytes, count);
    spk_reader_skip(s->reader, count);
    return count;
}

static spk_status parse_file(const spk_mem *mem, const char *path, json_t **root)
{
    source s = {.status = SPK_OK};
    json_error_t error;
    SPK_TRY(spk_reader_open(mem, path, &s.reader));
    *root = json_load_callback(from_reader, &s, JSON_REJECT_DUPLICATES, &error);
    spk_reader_close(&s.reader);
    if (*root != NULL)
        return SPK_OK;
    if (s.status != SPK_OK)
        return s.status;
    if (json_error_code(&error) == json_error_out_of_memory)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: reading %s", path);
    return spk_fail(SPK_ERR_FORMAT, "%s, line %d, column %d: %s", path, error.line, error.column, error.text);
}

/* ------------------------------------------------------------------------------------------------ import: checking */

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
    SPK_TRY(get_name(at, object, "kind", kind_names, KINDS, &kind));
    SPK_TRY(get_name(at, object, "status", status_names, STATUSES, &candidate_status));
    e->kind = (spk_kind)kind;
    e->status = (spk_candidate_status)candidate_status;
    if (!json_is_null(json_object_get(object, "why")))
        SPK_TRY(get_text(at, object, "why", e->why, sizeof e->why));
    for (int i = 0; i < NUMBERS; i++)
        SPK_TRY(get_number(at, object, numbers[i].name, numbers[i].least, number_of(e, i)));
    return spk_rows_evidence_is_sound(e) ? SPK_OK : complain(at, "name", "is empty or has a space, or the hash is not 16 hexadecimal digits");
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
    SPK_TRY(get_integer(at, object, "measured_at", 0, INT64_MAX, &report->measured_at));
    return spk_rows_report_is_sound(report) ? SPK_OK : complain(at, "chosen", "names a candidate whose status is not ok");
}

static spk_status report_from_json(const spk_mem *mem, const char *path, size_t index, const json_t *object, spk_report **out)
{
    place at = {path, index, SIZE_MAX};
    char key[SPK_MAX_KEY_TEXT], device[128];
    spk_report *report = NULL;
    SPK_TRY(get_text(&at, object, "key", key, sizeof key));
    if (strchr(key, '|') == NULL || spk_key_distance(key, key) != 0)
        return complain(&at, "key", "is no key");
    SPK_TRY(get_text(&at, object, "device", device, sizeof device));
    SPK_TRY(spk_report_make(mem, key, device, &report));
    spk_status status = fill_report(&at, object, report);
    if (status != SPK_OK) {
        spk_report_release(&report);
        return status;
    }
    *out = report;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ import: taking */

typedef struct import {
    spk_store *store;
    const char *path;
    const json_t *classes;
    int64_t taken;
    spk_status status;
} import;

static spk_status check_all(const import *in)
{
    for (size_t i = 0; i < json_array_size(in->classes); i++) {
        spk_report *report = NULL;
        SPK_TRY(report_from_json(&in->store->mem, in->path, i, json_array_get(in->classes, i), &report));
        spk_report_release(&report);
    }
    return SPK_OK;
}

/* Saves where it is newer than what the store has. Memory hides the file: what it holds counts too, and goes when it is older. */
static int take_one(spk_db *db, import *in, const spk_report *report)
{
    int64_t here = INT64_MIN, hidden = INT64_MIN;
    int code = spk_rows_age(db, report->class_key, &here);
    if (code == SQLITE_OK && in->store->memory != NULL && in->store->memory != db)
        code = spk_rows_age(in->store->memory, report->class_key, &hidden);
    if (code != SQLITE_OK || report->measured_at <= here || report->measured_at <= hidden)
        return code;
    in->taken++;
    return spk_rows_save(db, report);
}

static int take_all(spk_db *db, void *arg)
{
    import *in = arg;
    int code = SQLITE_OK;
    in->taken = 0;
    for (size_t i = 0; i < json_array_size(in->classes) && code == SQLITE_OK; i++) {
        spk_report *report = NULL;
        in->status = report_from_json(&in->store->mem, in->path, i, json_array_get(in->classes, i), &report);
        if (in->status != SPK_OK)
            return SPK_DB_STOPPED;
        code = take_one(db, in, report);
        spk_report_release(&report);
    }
    return code == SQLITE_OK ? spk_rows_evict(db, in->store->class_limit) : code;
}

static void uncover(const import *in)
{
    for (size_t i = 0; in->store->memory != NULL && i < json_array_size(in->classes); i++) {
        const json_t *object = json_array_get(in->classes, i);
        const char *key = json_string_value(json_object_get(object, "key"));
        int64_t hidden = INT64_MIN;
        if (spk_rows_age(in->store->memory, key, &hidden) == SQLITE_OK && json_integer_value(json_object_get(object, "measured_at")) > hidden)
            (void)spk_rows_erase(in->store->memory, key);
    }
}

static spk_status take(import *in)
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
    spk_store_leave(store);
    if (in->status != SPK_OK)
        return in->status;
    return spk_store_status(store, code);
}

spk_status spk_store_import_json(spk_store *store, const char *path, int64_t *count)
{
    json_t *root = NULL;
    SPK_TRY(refuse_own_file(store, path));
    SPK_TRY(parse_file(&store->mem, path, &root));
    const json_t *schema = json_object_get(root, "schema");
    import in = {.store = store, .path = path, .classes = json_object_get(root, "classes")};
    spk_status status = SPK_OK;
    if (!json_is_integer(schema) || json_integer_value(schema) != SCHEMA)
        status = spk_fail(SPK_ERR_FORMAT, "%s: schema is missing or not %d, the one that this version reads", path, SCHEMA);
    else if (!json_is_array(in.classes))
        status = spk_fail(SPK_ERR_FORMAT, "%s: classes is missing or no list", path);
    if (status == SPK_OK)
        status = check_all(&in);
    if (status == SPK_OK)
        status = take(&in);
    json_decref(root);
    if (status == SPK_OK)
        *count = in.taken;
    return status;
}
