/* The race: every row of the table with its best parameters, in interleaved rounds on the whole problem, ineligible rows too (marked). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "tune/choose/race.h"

static const double overrun = 2, least_overrun_us = 1e6; /* more is told */
static const double longest_race_us = 300e6;             /* without a given budget */

/* Who speaks for a row: the one that met the others, else the one with most to say. */
static int speaker(const race *r, int row)
{
    static const int weight[] = {
        [SPK_CANDIDATE_NOT_APPLICABLE] = 1, [SPK_CANDIDATE_NOT_ELIGIBLE] = 2, [SPK_CANDIDATE_PRUNED] = 3, [SPK_CANDIDATE_TIMED_OUT] = 4,
        [SPK_CANDIDATE_FAILED] = 5,         [SPK_CANDIDATE_WRONG] = 6,        [SPK_CANDIDATE_OK] = 7};
    int best = -1;
    if (r->search.chosen >= 0 && r->search.contenders[r->search.chosen].row == row)
        return r->search.chosen;
    for (int i = 0; i < r->search.count; i++) {
        if (r->search.contenders[i].row != row)
            continue;
        if (r->meets[i])
            return i;
        if (best < 0 || weight[r->search.contenders[i].status] > weight[r->search.contenders[best].status])
            best = i;
    }
    return best;
}

static spk_status make_report(race *r, const char *key, spk_report **report)
{
    const spk_tuner *tuner = r->search.tuner;
    int rows = 0, chosen = -1;
    spk_tuner_table(tuner, &rows);
    for (int row = 0; row < rows && r->options->choices == NULL; row++)
        if (speaker(r, row) >= 0)
            r->entrants[r->entrant_count++] = speaker(r, row);
    spk_contender *shown = NULL;
    SPK_TRY(spk_alloc(tuner->mem, (size_t)r->entrant_count, sizeof *shown, &shown));
    for (int i = 0; i < r->entrant_count; i++) {
        shown[i] = r->search.contenders[r->entrants[i]];
        if (r->entrants[i] == r->search.chosen)
            chosen = i;
    }
    spk_status status = spk_evidence_report(&r->search, shown, r->entrant_count, chosen, key, NULL, report);
    spk_free(tuner->mem, shown);
    return status;
}

/* The whole field as the class's evidence, unless there is better. A race among a few given choices joins evidence that there is, and
 * leaves its decision alone. */
static spk_status store_evidence(race *r, const char *key, bool *kept)
{
    spk_search *search = &r->search;
    spk_report *stored = NULL, *made = NULL;
    int chosen = search->chosen;
    if (spk_store_load(search->tuner->store, key, &stored) != SPK_OK)
        stored = NULL;
    const bool joins = r->options->choices != NULL;
    const int best = stored != NULL ? spk_evidence_best(search->tuner, search->problem, search->options, stored) : -1;
    if (joins && (stored == NULL || r->cut_short)) {
        spk_report_release(&stored);
        return SPK_OK;
    }
    if (joins) {
        const spk_kernel *kernel = NULL;
        spk_params params;
        bool current = best >= 0 && spk_evidence_current(search->tuner, stored->candidates[best].name, stored->candidates[best].params,
                                                         stored->candidates[best].hash, &kernel, &params);
        chosen = current ? spk_race_contender(search, kernel, &params) : -1;
    }
    spk_status status = SPK_OK;
    if (chosen >= 0)
        status = spk_evidence_report(search, search->contenders, search->count, chosen, key, joins ? stored : NULL, &made);
    if (made != NULL && joins) {
        made->provisional = stored->provisional;
        made->budget_s = stored->budget_s;
    }
    const bool lesser = joins ? search->provisional != SPK_PROVISIONAL_NO && stored->provisional == SPK_PROVISIONAL_NO
                              : made != NULL && !spk_evidence_replaces(made, stored, best >= 0);
    search->kept_out = made != NULL && lesser;
    if (made != NULL && !search->kept_out)
        *kept = spk_store_save(search->tuner->store, made) == SPK_OK;
    spk_report_release(&made);
    spk_report_release(&stored);
    return status;
}

/* A run that has begun ends when it ends, which may be late where others use the processors. */
static void tell_overrun(const spk_search *search)
{
    const spk_tuner *tuner = search->tuner;
    const double took_us = spk_work_us() - search->start_us;
    char text[160];
    if (search->options->budget_s <= 0 || took_us <= fmax(overrun * search->budget_us, least_overrun_us) || tuner->log == NULL)
        return;
    spk_snprintf(text, sizeof text, "the race took %.1f s of a budget of %.3g s, as %s", 1e-6 * took_us, search->options->budget_s,
                 search->crowded ? "other programs used the processors" : "a run that has begun is finished");
    spk_tell_log(tuner->log, tuner->log_user, 1, text);
}

static spk_status measure_race(race *r)
{
    const bool held = spk_measuring_begin(r->search.tuner, 60);
    r->search.start_us = spk_work_us();
    spk_search_watch(&r->search);
    const spk_status status = spk_race_run(r);
    tell_overrun(&r->search);
    spk_search_conclude(&r->search, status);
    spk_measuring_end(held);
    return status;
}

static bool anything_measured(const spk_search *search)
{
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].median_us > 0)
            return true;
    return false;
}

static spk_status reserve_lists(race *r)
{
    size_t count = (size_t)r->search.count;
    SPK_TRY(spk_calloc(r->search.tuner->mem, count, sizeof *r->meets, &r->meets));
    SPK_TRY(spk_alloc(r->search.tuner->mem, count, sizeof *r->list, &r->list));
    SPK_TRY(spk_alloc(r->search.tuner->mem, count, sizeof *r->row, &r->row));
    return spk_alloc(r->search.tuner->mem, count, sizeof *r->entrants, &r->entrants);
}

spk_status spk_tune_race(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                         const spk_race_options *race_options, spk_report **report)
{
    race r = {.options = race_options};
    spk_class class;
    spk_report *made = NULL;
    spk_status status;
    bool kept = false;
    if (spk_problem_is_empty(problem))
        return spk_report_unmeasured(tuner, problem, options, NULL, report);
    SPK_TRY(spk_operands_fit(tuner->device, problem)); /* samples of it would, and take their time before the whole is refused */
    SPK_TRY(spk_class_keys(tuner, problem, options, &class));
    SPK_TRY(spk_search_begin(&r.search, tuner, problem, options));
    r.search.by_row = true;
    r.search.exhaustive = false;
    if (isinf(r.search.budget_us))
        r.search.budget_us = 60e6;
    SPK_GOTO(reserve_lists(&r));
    r.search.limit_us = options->budget_s > 0 ? spk_race_last_begin * r.search.budget_us : longest_race_us;
    r.search.all = race_options->all != 0;
    SPK_GOTO(spk_race_enter(&r));
    status = measure_race(&r);
    if (status != SPK_OK && (status != SPK_ERR_INTERRUPTED || !anything_measured(&r.search)))
        goto done;
    spk_status made_status = race_options->keep ? store_evidence(&r, class.key, &kept) : SPK_OK;
    if (made_status == SPK_OK)
        made_status = make_report(&r, class.key, &made);
    if (made_status == SPK_OK)
        *report = made;
    else
        spk_report_release(&made);
    if (made_status != SPK_OK || status != SPK_OK)
        status = made_status != SPK_OK ? made_status
                                       : spk_fail(SPK_ERR_INTERRUPTED, "the race was interrupted; what was measured is %s",
                                                  kept ? "kept" : "in the report, and the store is as it was");
done:
    spk_free(tuner->mem, r.meets);
    spk_free(tuner->mem, r.list);
    spk_free(tuner->mem, r.row);
    spk_free(tuner->mem, r.entrants);
    spk_search_end(&r.search);
    return status;
}
