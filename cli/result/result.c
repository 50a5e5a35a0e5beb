/* Results: copies of reports, their order and their ratios. */
#include "cli/result/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/memory.h"
#include "cli/base/stats.h"
#include "cli/base/text.h"

static char *copied(const char *text)
{
    return cli_format("%s", text ? text : "");
}

static result_row row_of(const spk_candidate_info *i)
{
    result_row row = {.name = copied(i->name), .params = copied(i->params), .hash = copied(i->hash), .kind = i->kind, .status = i->status};
    if (row.status == SPK_CANDIDATE_OK && i->median_us <= 0) /* as a list without measuring has it */
        row.status = SPK_CANDIDATE_PRUNED;
    row.why = i->why && i->why[0]                                       ? copied(i->why)
              : row.status == SPK_CANDIDATE_PRUNED && i->median_us <= 0 ? copied("not measured")
                                                                        : NULL;
    row.median_us = i->median_us;
    row.spread_us = i->spread_us;
    row.least_us = i->least_us;
    row.prepare_us = i->prepare_us;
    row.error = i->error;
    row.tolerance = i->tolerance;
    row.sample_count = i->sample_count;
    if (i->sample_count > 0) {
        row.samples_us = cli_alloc((size_t)i->sample_count, sizeof(double));
        memcpy(row.samples_us, i->samples_us, (size_t)i->sample_count * sizeof(double));
    }
    return row;
}

static void release_row(result_row *row)
{
    free(row->name);
    free(row->params);
    free(row->hash);
    free(row->why);
    free(row->samples_us);
}

void result_release(result *r)
{
    for (int i = 0; i < r->count; i++)
        release_row(&r->rows[i]);
    for (int i = 0; i < r->ratio_count; i++)
        free(r->ratios[i].name);
    free(r->rows);
    free(r->ratios);
    free(r->summary);
    free(r->class_key);
    free(r->origin);
    *r = (result){.chosen = -1};
}

/* The store keeps no samples, but their spread. */
bool result_is_first_look(const result_row *row)
{
    return row->median_us > 0 && (row->status == SPK_CANDIDATE_PRUNED || (row->sample_count == 0 && row->spread_us <= 0));
}

/* Measured in interleaved rounds, then at a first look, then by how far it got. */
static int rank(const result_row *row)
{
    if (row->median_us > 0)
        return result_is_first_look(row);
    return 2 + (int)row->status;
}

static int better(const void *a, const void *b)
{
    const result_row *x = a, *y = b;
    if (rank(x) != rank(y))
        return rank(x) < rank(y) ? -1 : 1;
    if (x->median_us != y->median_us)
        return x->median_us < y->median_us ? -1 : 1;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : strcmp(x->params, y->params);
}

static void set_ratio(result *r, const char *name, double median, int64_t pairs)
{
    if (r->chosen >= 0 && strcmp(r->rows[r->chosen].name, name) == 0) /* the same kernel with other parameters */
        return;
    for (int i = 0; i < r->ratio_count; i++)
        if (strcmp(r->ratios[i].name, name) == 0) {
            r->ratios[i].median = median;
            r->ratios[i].pairs = pairs;
            return;
        }
    if (r->ratio_count < r->ratio_room)
        r->ratios[r->ratio_count++] = (result_ratio){copied(name), median, pairs};
}

/* Ratios against each other kernel's fastest row: rows are in order, the first of a name is its fastest. */
static void find_ratios(result *r)
{
    r->ratio_room = spk_kernel_count() + r->count; /* those that a later report may add included */
    r->ratios = cli_alloc((size_t)r->ratio_room + 1, sizeof(*r->ratios));
    const result_row *chosen = r->chosen >= 0 ? &r->rows[r->chosen] : NULL;
    for (int i = 0; chosen && i < r->count; i++) {
        const result_row *row = &r->rows[i];
        bool seen = strcmp(row->name, chosen->name) == 0;
        for (int j = 0; j < i && !seen; j++)
            seen = strcmp(r->rows[j].name, row->name) == 0 && r->rows[j].sample_count > 0;
        int64_t pairs = 0, count = row->sample_count < chosen->sample_count ? row->sample_count : chosen->sample_count;
        double median = seen ? 0 : stats_ratio(row->samples_us, chosen->samples_us, count, &pairs);
        if (pairs > 0)
            set_ratio(r, row->name, median, pairs);
    }
}

/* Keeps one row a kernel, the first in order; for the kernel of the chosen one, that. */
static void keep_best(result *r, const char *chosen_name, const char *chosen_params)
{
    int kept = 0;
    for (int i = 0; i < r->count; i++) {
        result_row *row = &r->rows[i];
        bool is_chosen = chosen_name && strcmp(row->name, chosen_name) == 0 && strcmp(row->params, chosen_params) == 0;
        bool drop = !is_chosen && chosen_name && strcmp(row->name, chosen_name) == 0;
        for (int j = 0; j < kept && !drop && !is_chosen; j++)
            drop = strcmp(r->rows[j].name, row->name) == 0;
        if (drop)
            release_row(row);
        else
            r->rows[kept++] = *row;
    }
    r->count = kept;
}

static int find_row(const result *r, const char *name, const char *params)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->rows[i].name, name) == 0 && (!params || strcmp(r->rows[i].params, params) == 0))
            return i;
    return -1;
}

spk_status result_from_report(const spk_report *report, bool best_only, result *out)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_status status = spk_report_get_info(report, &info);
    if (status != SPK_OK)
        return status;
    result r = {.chosen = -1,
                .from_store = info.from_store != 0,
                .provisional = info.provisional,
                .tuning_s = info.tuning_s,
                .measured_at = info.measured_at};
    r.summary = copied(info.summary);
    r.class_key = copied(info.class_key);
    r.origin = info.origin ? copied(info.origin) : NULL;
    r.foreign = info.foreign != 0;
    r.rows = cli_alloc((size_t)info.candidate_count + 1, sizeof(*r.rows));
    char *name = NULL, *params = NULL;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_get_candidate(report, i, &candidate);
        if (status != SPK_OK)
            break;
        r.rows[r.count++] = row_of(&candidate);
        if (i == info.chosen) {
            name = copied(candidate.name);
            params = copied(candidate.params);
        }
    }
    qsort(r.rows, (size_t)r.count, sizeof(*r.rows), better);
    if (best_only)
        keep_best(&r, name, params);
    r.chosen = name ? find_row(&r, name, params) : -1;
    find_ratios(&r);
    free(name);
    free(params);
    if (status == SPK_OK)
        *out = r;
    else
        result_release(&r);
    return status;
}

/* Sorts again; the chosen one keeps its mark. */
static void reorder(result *r)
{
    const char *name = r->chosen >= 0 ? r->rows[r->chosen].name : NULL, *params = name ? r->rows[r->chosen].params : NULL;
    qsort(r->rows, (size_t)r->count, sizeof(*r->rows), better);
    r->chosen = name ? find_row(r, name, params) : -1;
}

spk_status result_renew(result *r, const spk_report *later)
{
    result now = {.chosen = -1};
    spk_status status = result_from_report(later, false, &now);
    if (status != SPK_OK)
        return status;
    if (r->chosen < 0) {
        result_release(&now);
        return SPK_OK;
    }
    const result_row *old = &r->rows[r->chosen];
    r->stored_dense_us = result_best_dense(r) >= 0 ? r->rows[result_best_dense(r)].median_us : 0;
    int chosen = find_row(&now, old->name, old->params);
    for (int i = 0; chosen >= 0 && i < now.count; i++) {
        const result_row *row = &now.rows[i], *base = &now.rows[chosen];
        int64_t pairs = 0, count = row->sample_count < base->sample_count ? row->sample_count : base->sample_count;
        double median = i == chosen ? 0 : stats_ratio(row->samples_us, base->samples_us, count, &pairs);
        if (pairs > 0)
            set_ratio(r, row->name, median, pairs);
    }
    for (int i = 0; i < r->count; i++) {
        /* a dense row may have been stored with other parameters, or unmeasured: its name is enough */
        int at = i == r->chosen ? chosen : find_row(&now, r->rows[i].name, NULL);
        if (at < 0 || now.rows[at].median_us <= 0)
            continue;
        result_row old_row = r->rows[i];
        r->rows[i] = now.rows[at];
        r->rows[i].renewed = true;
        now.rows[at] = old_row;
    }
    r->renewed = true;
    r->disturbed = now.provisional == SPK_PROVISIONAL_LOAD;
    if (r->disturbed && r->provisional == SPK_PROVISIONAL_NO)
        r->provisional = now.provisional;
    result_release(&now);
    reorder(r);
    return SPK_OK;
}

int result_best_dense(const result *r)
{
    int best = -1;
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].kind == SPK_KIND_DENSE && r->rows[i].median_us > 0 && (best < 0 || better(&r->rows[i], &r->rows[best]) < 0))
            best = i;
    return best;
}

const char *result_status_name(spk_candidate_status status)
{
    static const char *const names[] = {"ok", "wrong", "failed", "timed_out", "pruned", "not_eligible", "not_applicable"};
    return (unsigned)status < sizeof(names) / sizeof(*names) ? names[status] : "failed";
}

const char *result_kind_name(spk_kind kind)
{
    static const char *const names[] = {"peer", "own", "vendor", "dense", "reference", "peer"};
    return (unsigned)kind < sizeof(names) / sizeof(*names) ? names[kind] : "peer";
}

const char *result_provisional(spk_provisional provisional)
{
    static const char *const names[] = {"", "interrupted", "budget", "load", "in_place"};
    return (unsigned)provisional < sizeof(names) / sizeof(*names) ? names[provisional] : "unknown";
}

void result_age(int64_t measured_at, char *out, size_t size)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}}; /* as the summaries of the library say it */
    int64_t age = (int64_t)time(NULL) - measured_at;
    snprintf(out, size, measured_at <= 0 ? "at an unknown time" : age < -60 ? "at a time that lies ahead of this clock" : "just now");
    for (int i = 2; measured_at > 0 && i >= 0; i--)
        if (age >= units[i].seconds)
            snprintf(out, size, "%lld %s%s ago", (long long)(age / units[i].seconds), units[i].name,
                     age / units[i].seconds == 1 ? "" : "s");
}
