/* The store as JSON, on its way out: one class a line, written aside and renamed. */
#include "store/store_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json_text.h"

const char *const spk_json_kinds[SPK_JSON_KINDS] = {[SPK_KIND_OWN] = "own",
                                                    [SPK_KIND_VENDOR] = "vendor",
                                                    [SPK_KIND_DENSE] = "dense",
                                                    [SPK_KIND_REFERENCE] = "reference",
                                                    [SPK_KIND_PEER] = "peer"};
const char *const spk_json_statuses[SPK_JSON_STATUSES] = {
    [SPK_CANDIDATE_OK] = "ok",
    [SPK_CANDIDATE_WRONG] = "wrong",
    [SPK_CANDIDATE_FAILED] = "failed",
    [SPK_CANDIDATE_TIMED_OUT] = "timed_out",
    [SPK_CANDIDATE_PRUNED] = "pruned",
    [SPK_CANDIDATE_NOT_ELIGIBLE] = "not_eligible",
    [SPK_CANDIDATE_NOT_APPLICABLE] = "not_applicable",
};
const char *const spk_json_provisionals[SPK_JSON_PROVISIONALS] = {
    [SPK_PROVISIONAL_INTERRUPTED] = "interrupted",
    [SPK_PROVISIONAL_BUDGET] = "budget",
    [SPK_PROVISIONAL_LOAD] = "load",
    [SPK_PROVISIONAL_IN_PLACE] = "in_place",
};
const spk_json_number spk_json_numbers[SPK_JSON_NUMBERS] = {
    {"predicted_us", offsetof(spk_evidence, predicted_us), 0},
    {"median_us", offsetof(spk_evidence, median_us), 0},
    {"spread_us", offsetof(spk_evidence, spread_us), 0},
    {"prepare_us", offsetof(spk_evidence, prepare_us), 0},
    {"error", offsetof(spk_evidence, error), -1},
    {"tolerance", offsetof(spk_evidence, tolerance), 0},
};

double *spk_json_number_of(spk_evidence *evidence, int number)
{
    return (double *)((char *)evidence + spk_json_numbers[number].offset);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

spk_status spk_json_refuse_own_file(const spk_store *store, const char *path)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal", ".lock"};
    char own[4096 + 16];
    if (store->path[0] == '\0')
        return SPK_OK;
    if (is_same_file(path, store->path))
        return spk_fail(SPK_ERR_ARGUMENT, "path %s is the store itself", path);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        snprintf(own, sizeof own, "%s%s", store->path, beside[i]);
        if (is_same_file(path, own))
            return spk_fail(SPK_ERR_ARGUMENT, "path %s belongs to the store %s", path, store->path);
    }
    return SPK_OK;
}

static json_t *candidate_to_json(spk_evidence *e)
{
    json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "name", e->name, "params", e->params, "hash", e->hash, "kind",
                            spk_json_kinds[e->kind], "status", spk_json_statuses[e->status], "why", e->why[0] != '\0' ? e->why : NULL);
    int failed = out == NULL;
    for (int i = 0; i < SPK_JSON_NUMBERS && !failed; i++)
        failed = json_object_set_new(out, spk_json_numbers[i].name, json_real(*spk_json_number_of(e, i)));
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
    return json_pack("{s:s, s:s, s:i, s:s, s:f, s:f, s:I, s:s*, s:o}", "key", report->class_key, "device", report->device_text, "chosen",
                     report->chosen, "seed", seed, "tuning_s", report->tuning_s, "budget_s", report->budget_s, "measured_at",
                     (json_int_t)report->measured_at, "provisional", spk_json_provisionals[report->provisional], "candidates", candidates);
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
    int failed = spk_json_dump(json, to_writer, &s, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(json);
    if (failed && s.status == SPK_OK)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: a class as JSON");
    return s.status;
}

static spk_status write_all(spk_store *store, const spk_listing *listing, spk_writer *writer, int64_t *written, int64_t *left_out)
{
    SPK_TRY(spk_writer_printf(writer, "{\"schema\":%d,\"sparsek\":\"%d.%d.%d\",\"classes\":[", SPK_JSON_SCHEMA, SPK_VERSION_MAJOR,
                              SPK_VERSION_MINOR, SPK_VERSION_PATCH));
    for (int64_t i = 0; i < listing->count; i++) {
        const char *key = listing->text + listing->entries[i].key;
        spk_report *report = NULL;
        bool bad = false;
        SPK_TRY(spk_store_read(store, key, &report, &bad));
        *left_out += bad;
        if (report == NULL)
            continue; /* that, or removed meanwhile */
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
    int64_t written = 0, left_out = 0;
    SPK_TRY(spk_json_refuse_own_file(store, path));
    SPK_TRY(spk_store_listing(store, &listing)); /* no backup is replaced by nothing */
    spk_status status = spk_writer_open(&store->mem, path, &writer);
    if (status == SPK_OK)
        status = write_all(store, &listing, writer, &written, &left_out);
    if (status == SPK_OK)
        status = spk_writer_commit(&writer);
    spk_writer_abort(&writer);
    spk_listing_release(&listing);
    if (status == SPK_OK && left_out > 0) {
        spk_store_enter(store);
        spk_store_warn(store, SPK_WARN_LEFT_OUT, "%s: without %" PRId64 " entries of the store that make no sense", path, left_out);
        spk_store_leave(store);
    }
    if (status == SPK_OK)
        *count = written;
    return status;
}
