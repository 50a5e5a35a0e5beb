/* Measuring on a noisy machine: one contender bound, checked and timed; and several in interleaved rounds, until the best stands apart
 * from the others or does not differ from them in a way that matters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/callback.h"
#include "base/clock.h"
#include "kernel/threads.h"
#include "tune/measure/measure.h"

enum { MOST_BATCH = 64, PIECE = 2, SLOW_ROUNDS = 3, MOST_PAIRS = 256, LEAST_JUDGED = 4 };
static const double sample_us = 400;    /* a sample lasts about this long, where a run is shorter */
static const double patience_us = 4000; /* and no longer than this, where other programs have the processors meanwhile */
static const double warm_run_us = 2000; /* shorter runs follow one that is not counted: it wakes the threads */
static const double dear_run_us = 50000, spin_us = 20000;
/* a named peer's first 20 cost less than a second: it has them */
static const double slow_factor = 20, peer_rounds_us = 1e6, peer_rounds = 20;
static const double disagreement = 1.5; /* of a median and its lower quartile: half of the samples and more were disturbed, and not all */
static const double torn = 30;          /* a median beyond so many times the least one: a lucky run does not outweigh what the others say */
static const double stray = 1.2, longest_retake_us = 20000;
static const double tie = 0.01, noisy_tie = 0.02; /* differences that do not matter: as far as noise blurs them, at most the second */

bool spk_interrupted(const spk_tuner *tuner)
{
    return spk_stop_asked(&tuner->stop);
}

bool spk_is_busy(const spk_tuner *tuner)
{
    return (tuner->busy_now != NULL ? tuner->busy_now : spk_load_busy)(tuner->device->executor.threads);
}

/* ------------------------------------------------------------------------------------------------ statistics */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int count, double q)
{
    double at = q * (count - 1);
    int below = (int)at;
    return below + 1 < count ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]) : sorted[below];
}

double spk_median(const double *values, int count, double *scratch)
{
    if (count == 0)
        return 0;
    memcpy(scratch, values, (size_t)count * sizeof *values);
    qsort(scratch, (size_t)count, sizeof *scratch, ascending);
    return quantile(scratch, count, 0.5);
}

double spk_half_quartiles(const double *values, int count, double *scratch)
{
    if (count == 0)
        return 0;
    memcpy(scratch, values, (size_t)count * sizeof *values);
    qsort(scratch, (size_t)count, sizeof *scratch, ascending);
    return 0.5 * (quantile(scratch, count, 0.75) - quantile(scratch, count, 0.25));
}

/* ------------------------------------------------------------------------------------------------ one contender */

static void fail_with(spk_contender *c, spk_candidate_status status, const char *why)
{
    c->status = status;
    snprintf(c->why, sizeof c->why, "%s", why);
}

/* A failure in the candidate's own words. An interruption is none. */
static void fail_by(spk_contender *c, const char *what, spk_status status)
{
    if (status == SPK_ERR_INTERRUPTED)
        return;
    c->status = SPK_CANDIDATE_FAILED;
    c->ran = true;
    c->failure = status;
    snprintf(c->why, sizeof c->why, "%s: %s (%.180s)", what, spk_status_name(status), spk_error_last());
}

/* A library that turned out to be of no use here, when it was opened, or not to take the problem, is no failure of the candidate. */
static void fail_to_bind(spk_contender *c, const spk_stage *stage, spk_status status)
{
    const char *why = NULL;
    if (status == SPK_ERR_UNAVAILABLE && !spk_candidate_applicable(c->kernel, &c->params, &stage->problem, stage->tuner->device, &why))
        fail_with(c, SPK_CANDIDATE_NOT_APPLICABLE, why);
    else if (status == SPK_ERR_UNSUPPORTED)
        fail_with(c, SPK_CANDIDATE_PRUNED, spk_error_last());
    else
        fail_by(c, "it could not be prepared", status);
}

spk_status spk_contender_bind(spk_contender *c, spk_stage *stage)
{
    if (c->bound_now)
        return SPK_OK;
    if (stage->tuner->device->backend->prepare != NULL && !c->prepared) {
        fail_with(c, SPK_CANDIDATE_FAILED, "it was not prepared");
        return spk_fail(SPK_ERR_INTERNAL, "%s: a candidate that was not prepared is not bound", c->kernel->name);
    }
    double start = spk_work_us();
    spk_status status = spk_bind(c->kernel, &c->params, &stage->problem, stage->tuner->device, &c->bound);
    if (status != SPK_OK) {
        fail_to_bind(c, stage, status);
        return status;
    }
    c->bound_now = true;
    const int packed = spk_problem_static_operand(&stage->problem);
    if (packed >= 0 && stage->operands->bytes[packed] > 0)
        status = spk_bound_update_values(&c->bound, stage->operands->args[0].at[packed]);
    double spent = spk_work_us() - start;
    if (status == SPK_OK)
        status = spk_operands_workspace(stage->operands, c->bound.workspace_bytes);
    if (status != SPK_OK) {
        fail_by(c, "it could not be prepared", status);
        spk_contender_unbind(c);
        return status;
    }
    if (stage->sample == NULL && (c->prepare_us <= 0 || spent < c->prepare_us))
        c->prepare_us = spent;
    return SPK_OK;
}

void spk_contender_unbind(spk_contender *c)
{
    if (c->bound_now)
        spk_unbind(&c->bound);
    c->bound_now = false;
}

bool spk_contender_check(spk_contender *c, spk_stage *stage, double tolerance, double *run_us)
{
    spk_verdict verdict;
    spk_status status = spk_checks_run(stage->checks, stage->operands, &c->bound, tolerance, &verdict);
    if (status != SPK_OK) {
        fail_by(c, "its run failed", status);
        return false;
    }
    c->error = verdict.error > c->error ? verdict.error : c->error;
    *run_us = c->run_us = verdict.run_us;
    c->ran = true;
    if (verdict.wrong)
        fail_with(c, SPK_CANDIDATE_WRONG, verdict.why);
    return !verdict.wrong;
}

int spk_batch_lasting(double run_us, double us)
{
    double runs = ceil(us / fmax(run_us, 0.1));
    return runs < 1 ? 1 : runs > MOST_BATCH ? MOST_BATCH : (int)runs;
}

int spk_batch_for(double run_us)
{
    return spk_batch_lasting(run_us, sample_us);
}

double spk_sample_us(double run_us)
{
    return run_us * spk_batch_for(run_us) + (run_us < warm_run_us ? run_us : 0);
}

/* Whether the sample before was of a row with other threads than this one: a library's own, or ours. Threads that have just worked spin for
 * some milliseconds, waiting for more, and take the processors from those of the next. */
static bool threads_change(const spk_contender *c, spk_stage *stage)
{
    const char *before = stage->library, *now = c->kernel->library != NULL ? c->kernel->library : "";
    stage->library = now;
    return before != NULL && strcmp(before, now) != 0;
}

/* A run that is not counted: it wakes this row's threads, and outlasts the others' spinning. Where that is dear, a pause. */
static spk_status settle_threads(const spk_contender *c, spk_stage *stage)
{
    double ignored;
    bool change = threads_change(c, stage);
    if (c->run_us < warm_run_us || (change && c->run_us < dear_run_us))
        return spk_operands_time(stage->operands, &c->bound, 1, &ignored);
    if (change)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e3 * spin_us)}, NULL);
    return SPK_OK;
}

/* The runs of a sample. Beside other programs a run may take a hundred times what counts of it: then fewer will do. */
static spk_status time_batch(const spk_contender *c, spk_stage *stage, double *times, int *runs)
{
    const spk_backend *backend = stage->tuner->device->backend;
    const bool at_once = !backend->shares_processors || backend->settle_us > 0; /* a clock that falls does so within a sample */
    const double begin_us = spk_now_us();
    for (*runs = 0; *runs < c->batch && (*runs == 0 || spk_now_us() - begin_us < patience_us);) {
        const int left = c->batch - *runs, piece = at_once || left < PIECE ? left : PIECE;
        SPK_TRY(spk_operands_time(stage->operands, &c->bound, piece, times + *runs));
        *runs += piece;
    }
    return SPK_OK;
}

bool spk_contender_sample(spk_contender *c, spk_stage *stage, double *us)
{
    double times[MOST_BATCH], scratch[MOST_BATCH];
    int runs = 0;
    spk_status status = settle_threads(c, stage);
    long before_switches = spk_load_forced_switches();
    if (status == SPK_OK)
        status = time_batch(c, stage, times, &runs);
    if (status != SPK_OK) {
        fail_by(c, "its run failed", status);
        return false;
    }
    c->disturbed = spk_load_forced_switches() != before_switches;
    *us = spk_median(times, runs, scratch);
    c->quick_us = scratch[runs / 4]; /* spk_median sorts there */
    c->brief_us = scratch[0];
    c->run_us = *us;
    c->ran = true;
    return true;
}

/* ------------------------------------------------------------------------------------------------ rounds */

static spk_status make_samples(const spk_tuner *tuner, spk_contender **list, int count, int have, int most)
{
    for (int i = 0; i < count; i++) {
        if (have == 0)
            list[i]->sample_count = 0;
        list[i]->least_us = have == 0 ? INFINITY : list[i]->samples[0];
        list[i]->alive = true;
        if (list[i]->sample_capacity < most) {
            SPK_TRY(spk_realloc(tuner->mem, &list[i]->samples, (size_t)most, sizeof(double)));
            list[i]->sample_capacity = most;
        }
    }
    return SPK_OK;
}

static void summarise(spk_contender *c, double *scratch)
{
    c->median_us = spk_median(c->samples, c->sample_count, scratch);
    c->spread_us = spk_half_quartiles(c->samples, c->sample_count, scratch);
}

static int least_median(spk_contender **list, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (list[i]->alive && list[i]->sample_count > 0 && (best < 0 || list[i]->median_us < list[best]->median_us))
            best = i;
    return best;
}

/* The ratio of two contenders over the rounds they share: its median, and the error of that. */
static void compare(const spk_contender *a, const spk_contender *b, double *scratch, double *ratio, double *error)
{
    int rounds = a->sample_count < b->sample_count ? a->sample_count : b->sample_count;
    double *ratios = scratch + rounds;
    for (int i = 0; i < rounds; i++)
        ratios[i] = a->samples[i] / fmax(b->samples[i], 1e-3);
    *ratio = spk_median(ratios, rounds, scratch);
    /* Of a normal distribution: sigma = half the quartiles' distance / 0.674, the median's error = 1.253 sigma / sqrt(n). */
    *error = rounds > 2 ? 1.858 * spk_half_quartiles(ratios, rounds, scratch) / sqrt(rounds) : INFINITY;
}

/* Few rounds tell little about their own noise: the factor on the error shrinks as they become more. */
static double certainty(int rounds)
{
    return 2.5 + 12.0 / rounds;
}

/* The error of a typical ratio in this company: no contender's own few samples may claim to be much surer than that. */
static double common_error(spk_contender **list, int count, int best, double *scratch)
{
    double sum = 0, ratio, error;
    int others = 0;
    for (int i = 0; i < count; i++) {
        if (i == best || !list[i]->alive || list[i]->sample_count < 3)
            continue;
        compare(list[i], list[best], scratch, &ratio, &error);
        sum += error;
        others++;
    }
    return others > 0 ? sum / others : INFINITY;
}

/* After a round: those surely slower than the best leave. True when nothing that matters is undecided. */
static bool decide(spk_contender **list, int count, double *scratch)
{
    bool decided = true;
    int best = least_median(list, count);
    double common = best >= 0 ? common_error(list, count, best, scratch) : 0;
    for (int i = 0; i < count && best >= 0; i++) {
        if (i == best || !list[i]->alive || list[i]->sample_count == 0)
            continue;
        double ratio, error;
        compare(list[i], list[best], scratch, &ratio, &error);
        error = fmax(error, 0.7 * common);
        if (ratio - certainty(list[i]->sample_count) * error > 1 + tie)
            list[i]->alive = false;
        else if (ratio + 2 * error > 1 + tie)
            decided = false;
    }
    return decided;
}

/* Nobody gains from a fixed place in the round. */
static void shuffle(int *order, int count, spk_rng *rng)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)spk_rng_below(rng, (uint64_t)i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

/* Slow ones only show where they stand: three rounds are enough for that. What others name in comparisons gets more where that is cheap. */
static bool sits_out(spk_contender **list, int count, const spk_contender *c, int round)
{
    int best = least_median(list, count);
    bool peer = c->kernel->kind == SPK_KIND_VENDOR || c->kernel->kind == SPK_KIND_DENSE;
    if (peer && round < peer_rounds && peer_rounds * spk_sample_us(c->run_us) < peer_rounds_us)
        return false;
    return round >= SLOW_ROUNDS && best >= 0 && c->median_us > slow_factor * list[best]->median_us;
}

/* Whether time is up after so many rounds. */
static bool is_over(const spk_rounds *rounds, spk_contender **list, int count, int done)
{
    const double now = spk_work_us();
    int rivals = 0;
    if (done >= rounds->least && now > rounds->deadline_us)
        return true;
    if (rounds->stop_us > 0 && done > 0 && now > rounds->stop_us)
        return true;
    if (rounds->alone_deadline_us <= 0 || done == 0 || now <= rounds->alone_deadline_us)
        return false;
    for (int i = 0; i < count; i++)
        rivals += list[i]->alive && list[i]->eligible;
    return rivals < 2;
}

static spk_status one_round(const spk_tuner *tuner, spk_stage *stage, spk_contender **list, int count, const spk_rounds *rounds, int round,
                            const int *order)
{
    for (int i = 0; i < count; i++) {
        spk_contender *c = list[order[i]];
        if (!c->alive || (rounds->every_round && sits_out(list, count, c, round)))
            continue;
        if (rounds->tell != NULL)
            rounds->tell(rounds->tell_user, c);
        if (spk_interrupted(tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        if (is_over(rounds, list, count, round))
            return SPK_OK;
        double us;
        bool ran = spk_contender_sample(c, stage, &us);
        if (ran && c->disturbed && us > stray * c->median_us && spk_sample_us(us) < longest_retake_us)
            ran = spk_contender_sample(c, stage, &us); /* this round's once more: other work of the machine was measured */
        c->least_us = fmin(c->least_us, c->brief_us);
        if (ran)
            c->samples[c->sample_count++] = us;
        else
            c->alive = false;
    }
    return SPK_OK;
}

spk_status spk_rounds_run(const spk_tuner *tuner, spk_stage *stage, spk_contender **list, int count, const spk_rounds *rounds)
{
    double *scratch = NULL;
    int *order = NULL;
    SPK_TRY(make_samples(tuner, list, count, rounds->have, rounds->most));
    SPK_TRY(spk_alloc(tuner->mem, 2 * (size_t)rounds->most, sizeof *scratch, &scratch));
    spk_status status = spk_alloc(tuner->mem, (size_t)count, sizeof *order, &order);
    for (int i = 0; status == SPK_OK && i < count; i++) {
        order[i] = i;
        summarise(list[i], scratch);
    }
    for (int round = rounds->have; status == SPK_OK && round < rounds->most; round++) {
        shuffle(order, count, rounds->rng);
        status = one_round(tuner, stage, list, count, rounds, round, order);
        for (int i = 0; i < count; i++)
            summarise(list[i], scratch);
        bool decided = !rounds->every_round && decide(list, count, scratch);
        if (is_over(rounds, list, count, round + 1) || (decided && round + 1 >= rounds->least))
            break;
    }
    spk_free(tuner->mem, order);
    spk_free(tuner->mem, scratch);
    return status;
}

/* Of the tied: who leaves the other processors alone, as that holds when they are busy, too. */
static bool before(const spk_contender *a, const spk_contender *b)
{
    const bool serial = spk_is_serial(a->kernel, &a->params);
    if (serial != spk_is_serial(b->kernel, &b->params))
        return serial;
    if (a->kernel->priority != b->kernel->priority)
        return a->kernel->priority > b->kernel->priority;
    if (a->predicted_us != b->predicted_us)
        return a->predicted_us < b->predicted_us;
    return a->order < b->order;
}

static bool may_win(const spk_contender *c, bool any)
{
    return (any || c->eligible) && c->sample_count > 0 && c->status != SPK_CANDIDATE_FAILED && c->status != SPK_CANDIDATE_WRONG;
}

/* Tied with the best, which is the luckiest of those that are: the error of the ratio is on the side of the others. */
static bool tied(const spk_contender *c, const spk_contender *best)
{
    double scratch[2 * MOST_PAIRS], ratio, error;
    int rounds = c->sample_count < best->sample_count ? c->sample_count : best->sample_count;
    if (rounds > MOST_PAIRS)
        return c->median_us <= best->median_us * (1 + tie);
    compare(c, best, scratch, &ratio, &error);
    double ratio_of_medians = c->median_us / fmax(best->median_us, 1e-3);
    ratio = rounds == c->sample_count && rounds == best->sample_count ? ratio : ratio_of_medians;
    return ratio <= 1 + fmin(tie + error, noisy_tie);
}

int spk_rounds_winner(spk_contender **list, int count, bool any, const spk_contender *favourite)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (may_win(list[i], any) && (best < 0 || list[i]->median_us < list[best]->median_us))
            best = i;
    int winner = best;
    for (int i = 0; i < count && best >= 0; i++)
        if (may_win(list[i], any) && tied(list[i], list[best]) && list[winner] != favourite &&
            (list[i] == favourite || before(list[i], list[winner])))
            winner = i;
    return winner;
}

int spk_rounds_briefest(spk_contender **list, int count, bool any)
{
    const int calmest = spk_rounds_winner(list, count, any, NULL);
    const double most_us = calmest < 0 ? INFINITY : torn * list[calmest]->median_us;
    int best = -1;
    for (int i = 0; i < count; i++)
        if (may_win(list[i], any) && list[i]->median_us <= most_us && (best < 0 || list[i]->least_us < list[best]->least_us))
            best = i;
    int winner = best;
    for (int i = 0; i < count && best >= 0; i++)
        if (may_win(list[i], any) && list[i]->median_us <= most_us && list[i]->least_us <= (1 + noisy_tie) * list[best]->least_us &&
            before(list[i], list[winner]))
            winner = i;
    return winner;
}

bool spk_rounds_disturbed(spk_contender **list, int count, bool any)
{
    const int best = spk_rounds_winner(list, count, any, NULL);
    for (int i = 0; i < count && best >= 0; i++) {
        const spk_contender *c = list[i];
        double scratch[MOST_PAIRS];
        if (!may_win(c, any) || c->sample_count < LEAST_JUDGED || c->sample_count > MOST_PAIRS)
            continue;
        (void)spk_median(c->samples, c->sample_count, scratch);
        const double quarter_us = quantile(scratch, c->sample_count, 0.25);
        if (c->median_us > disagreement * quarter_us && (i == best || quarter_us < list[best]->median_us))
            return true;
    }
    return false;
}
