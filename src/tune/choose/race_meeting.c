/* How the entrants of a race meet: in interleaved rounds on the whole problem. */
#include <math.h>
#include <stdio.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "tune/choose/race.h"

enum { DEFAULT_ROUNDS = 20, LEAST_ROUNDS = 3 };
/* a run expected to take longer is estimated on a sample that takes about so long */
static const double unseen_run_us = 1e6, sample_run_us = 50e3;
static const double longest_run_us = 120e6; /* a row whose one run is expected to take longer is not raced */

/* What the model's time is worth here: observed over predicted, of the best screened. */
static double calibration(const spk_search *search)
{
    const spk_contender *best = NULL;
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].full_us > 0 && (best == NULL || search->contenders[i].full_us < best->full_us))
            best = &search->contenders[i];
    return best != NULL ? best->full_us / best->predicted_us : 1;
}

/* A run cannot be interrupted: one that the model expects to be long is not begun before a sample has told what it takes. That is an answer
 * for those who interrupt the race then, too. */
static spk_status estimate_long(race *r)
{
    spk_search *search = &r->search;
    spk_status status = SPK_OK;
    for (int i = 0; i < search->count && status == SPK_OK; i++) {
        spk_contender *c = &search->contenders[i];
        spk_stage *stage = NULL;
        double us = 0;
        if (!r->meets[i] || c->status == SPK_CANDIDATE_NOT_APPLICABLE || c->predicted_us <= unseen_run_us || spk_search_late(search))
            continue;
        if (spk_search_hopeless(search, c))
            continue;
        spk_level level = spk_level_for(search->tuner, search->problem, sample_run_us / c->predicted_us);
        if (level.share >= 1)
            continue;
        if (spk_interrupted(search->tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "the race was interrupted");
        spk_search_progress(search, c, false);
        SPK_TRY(spk_stage_make(search->tuner, search->problem, level, spk_rng_next(&search->rng), 0, &search->operand_memory, &stage));
        c->batch = 1;
        c->run_us = c->predicted_us * level.share;
        if (spk_search_ready(search, c) && spk_contender_bind(c, stage) == SPK_OK && spk_contender_sample(c, stage, &us))
            c->full_us = c->median_us = us / fmax(spk_stage_share(stage, c), 1e-9);
        spk_contender_unbind(c);
        spk_stage_release(&stage);
    }
    return status;
}

static double expected_us(const spk_contender *c, double factor)
{
    return c->full_us > 0 ? c->full_us : c->predicted_us * factor;
}

/* Those that meet, into r->row: who may win first, and the fastest of them ahead, as the time may end. Returns how many. */
static int gather_entrants(race *r, double factor)
{
    int count = 0;
    for (int i = 0; i < r->search.count; i++) {
        spk_contender *c = &r->search.contenders[i];
        int at = count;
        if (!r->meets[i] || c->status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        for (; at > 0; at--) {
            const spk_contender *before = r->row[at - 1];
            if (before->eligible != c->eligible ? before->eligible : expected_us(before, factor) <= expected_us(c, factor))
                break;
            r->row[at] = r->row[at - 1];
        }
        r->row[at] = c;
        count++;
    }
    return count;
}

/* Whether a run that nobody can interrupt may begin: it and what follows from it have to end in time, after the rounds of those who are in.
 * Its why says so else. */
static bool may_begin(const race *r, spk_contender *c, double us, double rounds_us, bool any)
{
    const spk_search *search = &r->search;
    if (r->options->choices != NULL)
        return true;
    if (us > longest_run_us) {
        spk_snprintf(c->why, sizeof c->why, "one run is expected to take %.0f s", 1e-6 * us);
        return false;
    }
    if (!any)
        return true;
    if (spk_search_hopeless(search, c))
        return false;
    if (spk_search_late(search)) {
        snprintf(c->why, sizeof c->why, "the budget ended before its turn");
        return false;
    }
    const double end_us = search->start_us + spk_race_last_round * search->budget_us;
    const double needs_us = spk_search_cost_us(search, c, us);
    if (search->options->budget_s <= 0 || spk_work_us() + rounds_us + needs_us <= end_us)
        return true;
    spk_snprintf(c->why, sizeof c->why, "the budget has no room for it: it is expected to need %.2g s", 1e-6 * needs_us);
    return false;
}

/* Binds and checks those that meet; returns how many are fit to. */
static int admit(race *r, spk_stage *stage, bool screened_here)
{
    spk_search *search = &r->search;
    int in = 0, eligible = 0;
    double rounds_us = 0;
    const double factor = calibration(search);
    const int count = gather_entrants(r, factor);
    for (int i = 0; i < count && !spk_interrupted(search->tuner); i++) {
        spk_contender *c = r->row[i];
        c->in_search = true;
        spk_search_progress(search, c, false);
        double run_us = c->full_us;
        if (!may_begin(r, c, expected_us(c, factor), rounds_us, eligible > 0)) {
            c->status = SPK_CANDIDATE_PRUNED;
            c->left_out = true;
            continue;
        }
        if (!spk_search_ready(search, c) || spk_contender_bind(c, stage) != SPK_OK)
            continue;
        bool checked = screened_here && c->screened;
        if (!checked && !spk_contender_check(c, stage, search->tolerance, &run_us)) {
            spk_contender_unbind(c);
            continue;
        }
        rounds_us += LEAST_ROUNDS * spk_sample_us(run_us);
        c->batch = spk_batch_for(run_us);
        c->run_us = run_us;
        eligible += c->eligible;
        r->list[in++] = c;
    }
    return in;
}

/* Interrupted before the rows met: the fastest of those that were screened is the answer for now. */
static void choose_screened(race *r)
{
    spk_search *search = &r->search;
    for (int i = 0; i < search->count; i++) {
        const spk_contender *c = &search->contenders[i];
        if (c->eligible && c->status == SPK_CANDIDATE_PRUNED && c->median_us > 0 &&
            (search->chosen < 0 || c->median_us < search->contenders[search->chosen].median_us))
            search->chosen = i;
    }
    if (search->chosen >= 0) {
        search->contenders[search->chosen].status = SPK_CANDIDATE_OK;
        search->contenders[search->chosen].why[0] = '\0';
    }
}

/* The statuses that the report shall have: who may not win says so, measured or not. */
static void settle(race *r, spk_contender **list, int count, spk_status status)
{
    spk_search *search = &r->search;
    int winner = spk_search_winner(search, list, count, false);
    if (winner < 0 && status != SPK_ERR_INTERRUPTED && spk_contenders_readmit(search->contenders, search->count))
        winner = spk_search_winner(search, list, count, false);
    search->chosen = winner >= 0 ? (int)(list[winner] - search->contenders) : -1;
    r->cut_short = winner < 0 && status == SPK_ERR_INTERRUPTED;
    if (r->cut_short && r->options->choices == NULL)
        choose_screened(r);
    for (int i = 0; i < count; i++)
        if (list[i]->eligible && list[i]->status == SPK_CANDIDATE_PRUNED && list[i]->sample_count > 0) {
            list[i]->status = SPK_CANDIDATE_OK;
            list[i]->why[0] = '\0';
        }
    for (int i = 0; i < search->count; i++) {
        spk_contender *c = &search->contenders[i];
        const char *why = NULL;
        if (c->left_out)
            continue;
        if (c->eligible && c->status == SPK_CANDIDATE_PRUNED && status == SPK_ERR_INTERRUPTED)
            snprintf(c->why, sizeof c->why, "%s", spk_why_interrupted);
        if (c->eligible || c->status != SPK_CANDIDATE_PRUNED ||
            (spk_may_win(search->tuner, search->problem, search->options, c->kernel, &c->params, &why) && !c->held_back))
            continue;
        c->status = SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(c->why, sizeof c->why, "%s", c->held_back ? spk_why_held_back : why);
    }
}

spk_status spk_race_run(race *r)
{
    spk_search *search = &r->search;
    spk_stage *stage = NULL;
    int count = 0;
    for (int i = 0; i < search->count; i++) {
        search->contenders[i].optional = r->meets[i];
        search->contenders[i].always_in_search = r->meets[i] && r->options->choices != NULL;
    }
    spk_status status = spk_search_prepare(search);
    if (status == SPK_OK)
        status = estimate_long(r);
    if (status == SPK_OK && r->options->choices == NULL)
        status = spk_race_row_bests(r, &stage);
    bool screened_here = stage != NULL;
    if (status == SPK_OK && stage == NULL)
        status = spk_search_whole(search, &stage);
    if (status == SPK_OK) {
        count = admit(r, stage, screened_here);
        int rounds = r->options->rounds > 0 ? r->options->rounds : DEFAULT_ROUNDS;
        spk_rounds all = {.least = rounds < LEAST_ROUNDS ? rounds : LEAST_ROUNDS, .most = rounds, .every_round = true, .rng = &search->rng};
        const bool given = search->options->budget_s > 0;
        all.deadline_us = search->start_us + (given ? search->budget_us : search->limit_us);
        all.stop_us = given ? search->start_us + spk_race_last_round * search->budget_us : 0;
        all.tell = spk_search_tell;
        all.tell_user = search;
        if (given)
            all.alone_deadline_us = search->start_us + search->budget_us;
        search->least_rounds = all.least;
        if (count > 0)
            status = spk_rounds_run(search->tuner, stage, r->list, count, &all);
        if (status == SPK_OK && spk_interrupted(search->tuner))
            status = spk_fail(SPK_ERR_INTERRUPTED, "the race was interrupted");
    }
    settle(r, r->list, count, status);
    for (int i = 0; i < search->count; i++)
        spk_contender_unbind(&search->contenders[i]);
    spk_stage_release(&stage);
    return status;
}
