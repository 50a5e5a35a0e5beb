/* Stored evidence against the present table: what still holds, what is missing, and how new measurements join it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callback.h"
#include "base/clock.h"
#include "tune/choose/choose.h"

bool spk_evidence_current(const spk_tuner *tuner, const char *name, const char *params_text, const char *hash, const spk_kernel **kernel,
                          spk_params *params)
{
    const spk_kernel *found = spk_tuner_kernel(tuner, name);
    spk_params parsed;
    char now[17];
    if (found == NULL || spk_params_parse(found, params_text, &parsed) != SPK_OK)
        return false;
    spk_candidate_hash(found, &parsed, now);
    if (strcmp(now, hash) != 0)
        return false;
    *kernel = found;
    *params = parsed;
    return true;
}

static bool usable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_evidence *e,
                   bool references)
{
    const spk_kernel *kernel = NULL;
    spk_params params;
    const char *why = NULL;
    char refutation[200];
    if (options->tolerance > 0 && !(e->error >= 0 && e->error <= options->tolerance))
        return false;
    return e->status == SPK_CANDIDATE_OK && spk_evidence_current(tuner, e->name, e->params, e->hash, &kernel, &params) &&
           (kernel->kind == SPK_KIND_REFERENCE) == references && spk_may_win(tuner, problem, options, kernel, &params, &why) &&
           spk_proof_known(tuner, problem, kernel, &params, refutation, sizeof refutation) != SPK_PROOF_REFUTED;
}

/* The stored choice, else the fastest measured, among the references or among all others; -1 for none. */
static int best_of(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_report *report,
                   bool references)
{
    if (report->chosen >= 0 && report->chosen < report->count &&
        usable(tuner, problem, options, &report->candidates[report->chosen], references))
        return report->chosen;
    int best = -1;
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        if (e->median_us > 0 && (best < 0 || e->median_us < report->candidates[best].median_us) &&
            usable(tuner, problem, options, e, references))
            best = i;
    }
    return best;
}

/* *next: where it is looked for first, 0 to begin with; behind what was found afterwards. Reports mostly have the order of the table. */
static const spk_evidence *find(const spk_report *report, const spk_contender *c, int *next)
{
    char params[SPK_MAX_PARAMS_TEXT], hash[17];
    spk_params_text(c->kernel, &c->params, params, sizeof params);
    for (int i = 0; i < report->count; i++) {
        const int at = (*next + i) % report->count;
        const spk_evidence *e = &report->candidates[at];
        if (strcmp(e->name, c->kernel->name) != 0 || strcmp(e->params, params) != 0)
            continue;
        *next = at + 1;
        spk_candidate_hash(c->kernel, &c->params, hash);
        return strcmp(e->hash, hash) == 0 ? e : NULL;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ what was found wrong */

typedef struct wrong_ones {
    double tolerance; /* the caller's; 0: none */
    spk_contender *contenders;
    int count;
} wrong_ones;

static void rule_out(void *user, const spk_evidence *wrong)
{
    const wrong_ones *list = user;
    char params[SPK_MAX_PARAMS_TEXT], hash[17];
    /* too far off for the tolerance it was measured under, and not for the caller's */
    if (list->tolerance > 0 && wrong->error > wrong->tolerance && wrong->error <= list->tolerance)
        return;
    for (int i = 0; i < list->count; i++) {
        spk_contender *c = &list->contenders[i];
        if (!(c->eligible || c->held_back) || strcmp(wrong->name, c->kernel->name) != 0)
            continue;
        spk_params_text(c->kernel, &c->params, params, sizeof params);
        spk_candidate_hash(c->kernel, &c->params, hash);
        if (strcmp(wrong->params, params) != 0 || strcmp(wrong->hash, hash) != 0)
            continue;
        c->eligible = c->held_back = false;
        c->status = SPK_CANDIDATE_WRONG;
        snprintf(c->why, sizeof c->why, "%s", wrong->why);
    }
}

spk_status spk_evidence_rule_out(const spk_tuner *tuner, const spk_tune_options *options, const spk_class *class, spk_contender *contenders,
                                 int count)
{
    wrong_ones list = {.tolerance = options->tolerance, .contenders = contenders, .count = count};
    SPK_TRY(spk_store_wrong(tuner->store, class->plain, rule_out, &list));
    return class->restricted ? spk_store_wrong(tuner->store, class->key, rule_out, &list) : SPK_OK;
}

spk_status spk_evidence_is_wrong(const spk_tuner *tuner, const spk_tune_options *options, const spk_class *class, const spk_kernel *kernel,
                                 const spk_params *params, bool *wrong)
{
    spk_contender one = {.kernel = kernel, .params = *params, .eligible = true};
    SPK_TRY(spk_evidence_rule_out(tuner, options, class, &one, 1));
    *wrong = !one.eligible;
    return SPK_OK;
}

/* What this process had no memory for, or no right to, another may have. As contenders say it (measure.c). */
static bool failed_by_limits(const spk_evidence *e)
{
    char unavailable[32];
    snprintf(unavailable, sizeof unavailable, ": %s (", spk_status_name(SPK_ERR_UNAVAILABLE));
    return strstr(e->why, spk_status_name(SPK_ERR_OUT_OF_MEMORY)) != NULL || strstr(e->why, unavailable) != NULL;
}

/* Whether an entry answers for a candidate that can run now. */
static bool settles(const spk_evidence *e)
{
    switch (e->status) {
    case SPK_CANDIDATE_OK:
    case SPK_CANDIDATE_WRONG:
    case SPK_CANDIDATE_TIMED_OUT:
        return true;
    case SPK_CANDIDATE_FAILED:
        return !failed_by_limits(e);
    case SPK_CANDIDATE_PRUNED:
        return strcmp(e->why, spk_why_interrupted) != 0;
    case SPK_CANDIDATE_NOT_ELIGIBLE:
    case SPK_CANDIDATE_NOT_APPLICABLE:
        break;
    }
    return false;
}

/* Whether the evidence leaves a candidate that may run here other than a reference: true where that cannot be told. */
static bool leaves_another(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_report *report)
{
    spk_contender *contenders = NULL;
    int count = 0, next = 0;
    bool left = false;
    if (spk_contenders_eligible(tuner, problem, options, &contenders, &count) != SPK_OK)
        return true;
    for (int i = 0; i < count && !left; i++) {
        const spk_contender *c = &contenders[i];
        const spk_evidence *e = c->kernel->kind != SPK_KIND_REFERENCE ? find(report, c, &next) : NULL;
        const bool out = e != NULL && (e->status == SPK_CANDIDATE_WRONG || e->status == SPK_CANDIDATE_FAILED);
        left = c->kernel->kind != SPK_KIND_REFERENCE && !out;
    }
    spk_contenders_release(tuner, &contenders, count);
    return left;
}

int spk_evidence_best(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_report *report)
{
    const int best = best_of(tuner, problem, options, report, false),
              reference = best < 0 ? best_of(tuner, problem, options, report, true) : -1;
    return reference >= 0 && !leaves_another(tuner, problem, options, report) ? reference : best;
}

int spk_evidence_lacks(const spk_report *report, spk_contender *contenders, int count)
{
    int lacking = 0, next = 0;
    for (int i = 0; i < count; i++) {
        spk_contender *c = &contenders[i];
        const spk_evidence *e = c->eligible ? find(report, c, &next) : NULL;
        c->in_search = c->eligible && (e == NULL || !settles(e));
        lacking += c->in_search;
    }
    return lacking;
}

static int worth(spk_provisional provisional)
{
    return provisional == SPK_PROVISIONAL_NO ? 2 : provisional == SPK_PROVISIONAL_INTERRUPTED ? 0 : 1;
}

static int measured_of(const spk_report *report)
{
    int count = 0;
    for (int i = 0; i < report->count; i++)
        count += report->candidates[i].median_us > 0;
    return count;
}

/* A smaller budget, and fewer candidates measured: however it ended, it tells less. budget_s 0: there was none. */
static bool tells_less(const spk_report *made, const spk_report *stored)
{
    const bool smaller = made->budget_s > 0 && (stored->budget_s == 0 || made->budget_s < stored->budget_s);
    return smaller && measured_of(made) < measured_of(stored);
}

bool spk_evidence_replaces(const spk_report *made, const spk_report *stored, bool usable)
{
    if (stored == NULL || !usable)
        return true;
    if (worth(made->provisional) > worth(stored->provisional) || made->provisional == SPK_PROVISIONAL_NO)
        return worth(stored->provisional) == 0 || !tells_less(made, stored);
    if (worth(made->provisional) < worth(stored->provisional))
        return false;
    if (made->provisional == SPK_PROVISIONAL_INTERRUPTED)
        return measured_of(made) >= measured_of(stored);
    return made->budget_s == 0 || made->budget_s >= stored->budget_s;
}

/* All fields but the samples, which each report owns. */
static spk_status copy_evidence(spk_report *report, spk_evidence *to, const spk_evidence *from)
{
    double *samples = NULL;
    if (from->sample_count > 0 && from->samples_us != NULL) {
        SPK_TRY(spk_alloc(&report->mem, (size_t)from->sample_count, sizeof *samples, &samples));
        memcpy(samples, from->samples_us, (size_t)from->sample_count * sizeof *samples);
    }
    spk_free(&report->mem, to->samples_us);
    *to = *from;
    to->samples_us = samples;
    to->sample_count = samples != NULL ? from->sample_count : 0;
    return SPK_OK;
}

static spk_status write_contender(spk_report *report, spk_evidence *entry, const spk_contender *c, double tolerance)
{
    spk_evidence now = *entry;
    now.status = c->status;
    snprintf(now.why, sizeof now.why, "%s", c->why);
    now.predicted_us = c->predicted_us;
    now.median_us = c->median_us;
    now.spread_us = c->spread_us;
    now.least_us = c->sample_count > 0 ? c->least_us : 0;
    now.prepare_us = c->prepare_us;
    now.error = c->error;
    now.tolerance = tolerance;
    now.sample_count = c->sample_count;
    now.samples_us = c->samples;
    return copy_evidence(report, entry, &now);
}

spk_status spk_evidence_write(spk_report *report, spk_contender *contenders, int count, double tolerance, const spk_report *stored)
{
    int next = 0;
    for (int i = 0; i < count; i++) {
        spk_contender *c = &contenders[i];
        const spk_evidence *old = stored != NULL && !c->in_search && !c->ran ? find(stored, c, &next) : NULL;
        spk_evidence *entry = NULL;
        SPK_TRY(spk_report_add(report, c->kernel, &c->params, &entry));
        c->entry = (int)(entry - report->candidates);
        if (old != NULL)
            SPK_TRY(copy_evidence(report, entry, old));
        else
            SPK_TRY(write_contender(report, entry, c, tolerance));
    }
    return SPK_OK;
}

spk_status spk_evidence_report(const spk_search *search, spk_contender *contenders, int count, int chosen, const char *key,
                               const spk_report *stored, spk_report **report)
{
    spk_report *made = NULL;
    SPK_TRY(spk_report_make(search->tuner->mem, key, search->tuner->device->name, &made));
    spk_status status = spk_evidence_write(made, contenders, count, search->tolerance, stored);
    made->tuning_s = 1e-6 * (spk_work_us() - search->start_us + search->prepare_us + search->lost_us);
    made->measured_at = spk_unix_time_s();
    made->seed = search->seed;
    for (int i = 0; i < search->count; i++)
        made->tried += search->contenders[i].median_us > 0;
    made->known = search->count;
    made->crowded = search->crowded;
    made->kept_out = search->kept_out;
    made->provisional = search->provisional;
    made->budget_s = isinf(search->budget_us) ? 0 : 1e-6 * search->budget_us;
    made->by_kernel = search->by_row && contenders != search->contenders;
    if (status == SPK_OK) {
        made->chosen = chosen >= 0 ? contenders[chosen].entry : -1;
        status = spk_report_summarise(made, made->measured_at);
    }
    if (status != SPK_OK)
        spk_report_release(&made);
    else
        *report = made;
    return status;
}
