/* Screening: a quick look at every wanted contender, on a sample of the problem where the whole would take too long, so that the hopeless
 * cost little and the finals have few entrants. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "kernel/threads.h"
#include "tune/search/search.h"

enum {
    MOST_REPLANS = 2,
    LOOKS = 3,
    MOST_EXTRA = 3,
    EXHAUSTIVE_LOOKS = 5,
    MOST_NOISE = 64,
    MOST_SCREENED = 32,
    MOST_SAMPLED = 4,
    MOST_FITTED = 3,
    MOST_AGAIN = 2
};
static const double looks_cost = 2.2;                   /* runs that a contender costs on average: one checked, some timed */
static const double look_share = 0.4;                   /* of the budget, for the first look at all */
static const double second_share = 0.4;                 /* of what is left then, for a second sample */
static const double look_end = 0.55, second_end = 0.75; /* of the budget: no look at the first, the second sample begins later */
static const double long_run_us = 20000;                /* a run this long is a sample by itself, the checked one too */
static const double hopeless = 1.5;                     /* times the best so far: no further look */
static const double timeout_factor = 10;
static const double model_factor = 8; /* predicted this many times the best prediction: not run, unless it costs next to nothing */

static const double again_cost = 0.05;                  /* of the budget: what a second look at a contender may cost */
static const double least_growth = 0.1;                 /* of a sample's time, from a smaller one to it: less is taken for noise */
static const double sure_growth = 0.5, model_trust = 8; /* a growth less than this is not believed beyond so many times the model's */
static const double row_factor = 2.5; /* a kernel this far from the best with one choice of parameters is not tried with others */

typedef struct screening {
    spk_search *search;
    spk_contender **pool;
    int count;
    spk_stage *stage;
    spk_level at;
    double best_predicted_us, end; /* end: of the budget's part for this */
    double noise[MOST_NOISE];      /* how far a contender's two best samples lay apart */
    int noise_count;
} screening;

/* ------------------------------------------------------------------------------------------------ how much of the problem */

/* A level at which `runs` runs of about full_us for the whole problem take time_us. */
static spk_level choose_level(const spk_search *search, double full_us, double runs, double time_us)
{
    return spk_level_for(search->tuner, search->problem, time_us / fmax(runs * full_us, 1));
}

/* What the model expects of a contender of average promise. */
static double average_predicted(const screening *s)
{
    double sum = 0;
    for (int i = 0; i < s->count; i++)
        sum += fmin(s->pool[i]->predicted_us, model_factor * s->best_predicted_us);
    return s->count > 0 ? sum / s->count : 0;
}

/* ------------------------------------------------------------------------------------------------ one look */

/* The whole problem's time from that of a sample, as the cost model sees the two: what every run pays (packing all of B) does not grow.
 * Never less than the sample took, never more than in proportion to the work. */
static spk_sample_time scaled_time(const screening *s, const spk_contender *c, double us)
{
    spk_sample_time time = {us, spk_stage_share(s->stage, c), us, 0};
    if (s->at.share >= 1)
        return time;
    double part_us = spk_predict(c->kernel, &c->params, &s->stage->problem, s->search->tuner->device);
    time.full_us = us * fmin(fmax(c->predicted_us / fmax(part_us, 1e-3), 1), fmax(1 / time.share, 1));
    time.growth_us = fmax(c->predicted_us - part_us, 0);
    return time;
}

static double scaled(const screening *s, const spk_contender *c, double us)
{
    return scaled_time(s, c, us).full_us;
}

static void note_time(const screening *s, spk_contender *c, double us)
{
    c->level[1] = scaled_time(s, c, us);
    c->full_us = c->median_us = c->level[1].full_us;
}

/* The least full time so far of those that this contender competes with. */
static double best_so_far(const screening *s, const spk_contender *c)
{
    double best = INFINITY;
    for (int i = 0; i < s->count; i++)
        if (s->pool[i]->screened && (!s->search->by_row || s->pool[i]->row == c->row))
            best = fmin(best, s->pool[i]->full_us);
    return best;
}

static double row_best_so_far(const screening *s, const spk_contender *c)
{
    double best = INFINITY;
    for (int i = 0; i < s->count; i++)
        if (s->pool[i]->screened && s->pool[i]->row == c->row)
            best = fmin(best, s->pool[i]->full_us);
    return best;
}

__attribute__((format(printf, 3, 4))) static void rule_out(spk_contender *c, spk_candidate_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    spk_vsnprintf(c->why, sizeof c->why, format, arguments);
    va_end(arguments);
    c->status = status;
}

/* True where it took so long that it is out at once. */
static bool timed_out(const screening *s, spk_contender *c, double run_us, double best)
{
    double full_us = scaled(s, c, run_us);
    if (s->search->exhaustive || s->search->by_row || isinf(best) || run_us < again_cost * s->search->budget_us)
        return false;
    if (full_us > timeout_factor * best)
        rule_out(c, SPK_CANDIDATE_TIMED_OUT, "one run took %.3g ms%s, %.0f times the best", run_us / 1e3,
                 s->at.share < 1 ? " on a sample" : "", full_us / best);
    else if (run_us > 2 * spk_search_left_us(s->search, 1))
        rule_out(c, SPK_CANDIDATE_TIMED_OUT, "one run took %.3g ms, which the budget does not allow", run_us / 1e3);
    else
        return false;
    c->median_us = full_us;
    return true;
}

/* Whether this contender has been looked at long enough. What was taken while the processor was wanted elsewhere counts for little. */
static bool seen_enough(const screening *s, const spk_contender *c, double least, double best, int taken, int clean)
{
    const spk_search *search = s->search;
    int looks = search->exhaustive ? EXHAUSTIVE_LOOKS : LOOKS;
    if (taken == 0)
        return false;
    double slower = scaled(s, c, least) / best;
    bool costly = c->run_us > fmin(0.005 * search->budget_us, 10e3), sure = clean > 0 || taken >= looks || slower > 4;
    if (slower > hopeless && sure && (taken > 1 || costly))
        return true;
    int least_taken = s->stage->checks != NULL ? 2 : 1; /* the checked run is one of two; a sample's time will be multiplied */
    if (c->run_us > long_run_us && sure && taken >= least_taken + (s->at.share < 1))
        return true;
    return clean >= looks || taken >= looks + MOST_EXTRA || spk_search_left_us(search, 0.8) < c->run_us;
}

/* A few samples; the least counts, as noise only adds. */
static spk_status screen_contender(screening *s, spk_contender *c, double run_us, double best)
{
    int taken = 0, clean = 0;
    double least = INFINITY, next = INFINITY;
    if (run_us > long_run_us && s->stage->checks != NULL) {
        least = run_us;
        taken = 1;
    }
    c->batch = spk_batch_for(run_us);
    while (!seen_enough(s, c, least, best, taken, clean)) {
        double us;
        if (spk_interrupted(s->search->tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        if (!spk_contender_sample(c, s->stage, &us))
            return SPK_OK;
        us = c->quick_us;
        clean += !c->disturbed || us < 1.02 * least;
        next = us < least ? least : fmin(next, us);
        least = fmin(least, us);
        c->batch = spk_batch_for(us);
        taken++;
    }
    if (isfinite(next) && s->noise_count < MOST_NOISE)
        s->noise[s->noise_count++] = next / least - 1;
    c->level[0] = c->level[1];
    note_time(s, c, least);
    c->screened = true;
    return SPK_OK;
}

static spk_status screen_one(screening *s, spk_contender *c)
{
    double best = best_so_far(s, c), run_us = 0;
    spk_search_progress(s->search, c, true);
    if (spk_interrupted(s->search->tuner))
        return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
    c->run_us = 0;
    spk_status status = SPK_OK;
    if (spk_contender_bind(c, s->stage) != SPK_OK)
        return SPK_OK;
    bool fit = s->stage->checks == NULL || spk_contender_check(c, s->stage, s->search->tolerance, &run_us);
    if (s->stage->checks == NULL)
        run_us = c->full_us / scaled(s, c, 1);
    if (fit && !timed_out(s, c, run_us, best))
        status = screen_contender(s, c, run_us, best);
    spk_contender_unbind(c);
    return status;
}

/* ------------------------------------------------------------------------------------------------ all of them */

/* Whether the first time that came in shows the level to be far too large, or needlessly small. Chooses another then. */
static bool misjudged(screening *s, const spk_contender *first)
{
    if (s->search->exhaustive)
        return false;
    double time_us = look_share * s->search->budget_us, expected = first->run_us * looks_cost * s->count;
    bool too_large = expected > 2 * time_us, too_small = expected < 0.15 * time_us && s->at.share < 1;
    if (!too_large && !too_small)
        return false;
    if (too_large && first->level[0].us > 0 && first->run_us > 0.5 * first->level[0].us) /* a smaller sample took no less */
        return false;
    spk_level other = choose_level(s->search, first->full_us, looks_cost * s->count, spk_search_left_us(s->search, look_share));
    if (other.share < s->at.share / 16) /* it need not shrink with the sample */
        other = spk_level_for(s->search->tuner, s->search->problem, s->at.share / 16);
    if (too_large ? other.share > 0.6 * s->at.share : other.share < 2 * s->at.share)
        return false;
    s->at = other;
    return true;
}

static bool is_own(const spk_contender *c)
{
    return c->kernel->kind == SPK_KIND_OWN;
}

/* What a prediction is compared with. The models of own rows err alike; that of a library may be far off (a memory-bound product that is
 * predicted by its FLOPs), so that it keeps an own row from running by what it took, and not by what is predicted of it. */
static double best_expected_us(const screening *s, const spk_contender *c)
{
    double best_us = c->predicted_us;
    for (int i = 0; i < s->count; i++) {
        const spk_contender *other = s->pool[i];
        if (is_own(other) || !is_own(c))
            best_us = fmin(best_us, other->predicted_us);
        else if (other->screened)
            best_us = fmin(best_us, other->full_us);
    }
    return best_us;
}

/* Not worth a run: the time is up, or the model sees no chance and a run is not cheap. calibration: what was measured over what was
 * predicted, at the first one of a kind. */
static bool passed_over(screening *s, spk_contender *c, double calibration)
{
    const spk_search *search = s->search;
    bool any = false;
    if (search->by_row && spk_search_hopeless(search, c))
        return true;
    for (int i = 0; i < s->count; i++)
        any |= s->pool[i]->screened && s->pool[i]->eligible;
    if (any && spk_search_late(search)) {
        rule_out(c, SPK_CANDIDATE_PRUNED, "the budget ended before its turn");
        return true;
    }
    if (isinf(best_so_far(s, c)))
        return false;
    if (spk_search_left_us(search, s->end) <= 0) {
        rule_out(c, SPK_CANDIDATE_PRUNED, "the budget ended before its turn");
        return true;
    }
    if (search->by_row || search->exhaustive)
        return false;
    double ratio = c->predicted_us / best_expected_us(s, c), cost = looks_cost * c->predicted_us * calibration * s->at.share;
    double row_best = row_best_so_far(s, c), row_ratio = row_best / best_so_far(s, c);
    if (ratio >= model_factor && cost >= 0.01 * search->budget_us)
        rule_out(c, SPK_CANDIDATE_PRUNED, "the cost model sees it at %.0f times the best prediction", ratio);
    else if (isfinite(row_best) && row_ratio >= row_factor && looks_cost * row_best * s->at.share >= 0.004 * search->budget_us)
        rule_out(c, SPK_CANDIDATE_PRUNED, "other parameters of this kernel took %.1f times the best", row_ratio);
    else
        return false;
    return true;
}

static spk_status make_stage(screening *s, bool checked)
{
    spk_search *search = s->search;
    spk_stage_release(&s->stage);
    for (int i = 0; i < s->count; i++)
        s->pool[i]->screened = false;
    double check_us = !checked ? 0 : fmin(s->at.share < 1 ? 30e3 : 50e3, 0.05 * search->budget_us);
    return spk_stage_make(search->tuner, search->problem, s->at, spk_rng_next(&search->rng), check_us, &search->operand_memory, &s->stage);
}

static spk_status screen_all(screening *s, bool checked)
{
    int replans = 0;
    double calibration[2] = {1, 1}; /* of own rows and of others */
    bool calibrated[2] = {!checked, !checked}, planned = !checked;
    SPK_TRY(make_stage(s, checked));
    for (int i = 0; i < s->count; i++) {
        spk_contender *c = s->pool[i];
        const int kind = !is_own(c);
        if (!spk_search_ready(s->search, c) || passed_over(s, c, calibration[kind]))
            continue;
        SPK_TRY(screen_one(s, c));
        if (c->screened && !calibrated[kind]) {
            calibrated[kind] = true;
            calibration[kind] = c->full_us / fmax(c->predicted_us, 1e-3);
        }
        if (!c->screened || planned)
            continue;
        planned = true;
        if (replans < MOST_REPLANS && misjudged(s, c)) {
            replans++;
            planned = calibrated[0] = calibrated[1] = false;
            i = -1; /* the first ones again, on the new stage */
            SPK_TRY(make_stage(s, checked));
        }
    }
    return SPK_OK;
}

double spk_extrapolate(const spk_sample_time level[2])
{
    const spk_sample_time *large = level[1].share > level[0].share ? &level[1] : &level[0], *small = large == level ? level + 1 : level;
    double step = large->share - small->share, grown = large->us - small->us;
    if (small->share <= 0 || step < 0.3 * small->share) /* as good as one sample */
        return large->full_us;
    if (grown < least_growth * large->us) /* all of it is paid by every run; noise is not multiplied, the model says what comes on top */
        return fmin(large->us + large->growth_us, large->us / large->share);
    double slope = grown / step, fixed = small->us - slope * small->share;
    if (fixed <= 0)
        return large->us / large->share;
    bool faint = grown < sure_growth * large->us; /* then noise may be most of it: the model bounds it */
    return faint ? fmin(fixed + slope, large->us + model_trust * large->growth_us) : fixed + slope;
}

static int by_estimate(const void *a, const void *b)
{
    const spk_contender *x = *(spk_contender *const *)a, *y = *(spk_contender *const *)b;
    if (x->full_us != y->full_us)
        return x->full_us < y->full_us ? -1 : 1;
    return x->order - y->order;
}

/* Disturbances last: all samples of a contender may fall into one. Those that would be dropped get another look, later, while that is
 * cheap. */
static spk_status look_again(screening *s, double factor)
{
    spk_search *search = s->search;
    for (int i = 0; i < s->count; i++) {
        spk_contender *c = s->pool[i];
        double us, cost = 3 * c->run_us + c->prepare_us + 500;
        bool dropped = c->screened && c->full_us > factor * best_so_far(s, c);
        if (!dropped || cost > again_cost * search->budget_us || spk_search_left_us(search, s->end) < cost)
            continue;
        if (spk_interrupted(search->tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        if (spk_contender_bind(c, s->stage) != SPK_OK)
            continue;
        if (spk_contender_sample(c, s->stage, &us) && scaled(s, c, c->quick_us) < c->full_us)
            note_time(s, c, c->quick_us);
        spk_contender_unbind(c);
    }
    return SPK_OK;
}

/* How close to the best a contender must come. Samples taken one contender after the other say little about small differences, as the
 * machine's own pace changes meanwhile: that is for the interleaved rounds. Samples of a large problem must be trusted further. */
static double margin(const screening *s)
{
    double scratch[MOST_NOISE], noise = spk_median(s->noise, s->noise_count, scratch);
    if (s->search->exhaustive)
        return INFINITY;
    return s->at.share < 1 ? 1.3 + 2 * fmin(noise, 0.4) : 2;
}

/* Keeps those within `factor` of the best they compete with, at most `most`. */
static void keep_best(screening *s, double factor, int most)
{
    int kept = 0;
    for (int i = 0; i < s->count; i++) {
        spk_contender *c = s->pool[i];
        double best = best_so_far(s, c);
        if (c->screened && c->full_us > factor * best)
            rule_out(c, SPK_CANDIDATE_PRUNED, "%.2f times the best when screened%s", c->full_us / best,
                     s->at.share < 1 ? " on a sample of the rows" : "");
    }
    for (int i = 0; i < s->count; i++) {
        spk_contender *c = s->pool[i];
        if (c->screened && c->full_us <= factor * best_so_far(s, c))
            s->pool[kept++] = c;
    }
    qsort(s->pool, (size_t)kept, sizeof(spk_contender *), by_estimate);
    for (int i = most; i < kept; i++)
        rule_out(s->pool[i], SPK_CANDIDATE_PRUNED, "%.2f times the best when screened, and others came closer",
                 s->pool[i]->full_us / s->pool[0]->full_us);
    s->count = kept < most ? kept : most;
}

/* A second sample for the survivors of one, so that what does not grow with the work can be told from what does: a larger one where the
 * time allows or there is no smaller one, else a smaller one. A single survivor needs it only where the whole problem will not be run. */
static spk_status second_level(screening *s)
{
    spk_search *search = s->search;
    double full_us = s->pool[0]->full_us, runs = 1.4 * s->count;
    if (s->count < 2 && full_us < 0.5 * spk_search_left_us(search, 1))
        return SPK_OK;
    spk_level next = choose_level(search, full_us, runs, second_share * spk_search_left_us(search, 1));
    if (next.share >= 1)
        return SPK_OK;
    spk_level larger = spk_level_for(search->tuner, search->problem, 4 * s->at.share);
    bool dear = 4 * s->pool[0]->level[1].us * s->count > 0.5 * search->budget_us;
    if (next.share < 1.5 * s->at.share)
        next = dear ? spk_level_for(search->tuner, search->problem, s->at.share / 3) : larger;
    if (next.share > s->at.share / 1.5 && next.share < 1.5 * s->at.share)
        next = larger;
    if (next.share >= 1)
        return SPK_OK;
    s->at = next;
    s->end = second_end;
    SPK_TRY(screen_all(s, false));
    for (int i = 0; i < s->count; i++)
        if (s->pool[i]->screened)
            s->pool[i]->full_us = s->pool[i]->median_us = spk_extrapolate(s->pool[i]->level);
    keep_best(s, margin(s) - 0.1, MOST_FITTED);
    return SPK_OK;
}

static int by_promise(const void *a, const void *b)
{
    const spk_contender *x = *(spk_contender *const *)a, *y = *(spk_contender *const *)b;
    if (x->rank != y->rank)
        return x->rank - y->rank;
    if (x->predicted_us != y->predicted_us)
        return x->predicted_us < y->predicted_us ? -1 : 1;
    return x->kernel->priority != y->kernel->priority ? y->kernel->priority - x->kernel->priority : x->order - y->order;
}

/* Every row's first candidate comes before any row's second, so that no row is missing where the budget ends early, and so that a row
 * whose first is hopeless need not be looked at further. In a race the seconds come before the thirds, too. A row has two firsts where
 * SERIAL=1 may win; all threads come before one. */
static void rank_by_row(screening *s)
{
    for (int i = 0; i < s->count; i++) {
        spk_contender *c = s->pool[i];
        const bool serial = spk_is_serial(c->kernel, &c->params);
        int ahead = 0;
        for (int j = 0; j < s->count; j++) {
            const spk_contender *other = s->pool[j];
            bool first = other->predicted_us < c->predicted_us || (other->predicted_us == c->predicted_us && other->order < c->order);
            ahead += other->row == c->row && first && spk_is_serial(other->kernel, &other->params) == serial;
        }
        if (c->rank >= 0)
            c->rank = 2 * (s->search->by_row ? ahead : ahead > 0) + serial;
    }
}

spk_status spk_search_screen(spk_search *search, spk_contender **survivors, int *survivor_count, spk_stage **stage)
{
    screening s = {.search = search, .pool = survivors, .best_predicted_us = INFINITY, .end = look_end};
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].in_search) {
            survivors[s.count++] = &search->contenders[i];
            s.best_predicted_us = fmin(s.best_predicted_us, search->contenders[i].predicted_us);
        }
    *survivor_count = 0;
    if (s.count == 0)
        return SPK_OK;
    rank_by_row(&s);
    qsort(s.pool, (size_t)s.count, sizeof *s.pool, by_promise);
    search->total = s.count;
    s.at = (spk_level){.share = 1};
    if (!search->exhaustive)
        s.at = choose_level(search, average_predicted(&s), looks_cost * s.count, look_share * search->budget_us);
    spk_status status = screen_all(&s, true);
    for (int again = 0; status == SPK_OK && again < MOST_AGAIN; again++)
        status = look_again(&s, margin(&s));
    if (status == SPK_OK)
        keep_best(&s, margin(&s), search->exhaustive || search->by_row ? s.count : s.at.share < 1 ? MOST_SAMPLED : MOST_SCREENED);
    if (status == SPK_OK && s.at.share < 1 && s.count > 0 && !search->by_row)
        status = second_level(&s);
    if (status != SPK_OK || s.at.share < 1)
        spk_stage_release(&s.stage);
    *survivor_count = status == SPK_OK ? s.count : 0;
    *stage = s.stage;
    return status;
}
