/* The search: screening, then finals on the whole problem, within the budget; and what remains of it tells what assume_finite would
 * gain. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "base/clock.h"
#include "tune/search/search.h"

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 100, GOOD_ROUNDS = 10, FEW = 3, BARRED_SAMPLES = 3, RACE_ROUNDS = 3 };
static const double long_run_us = 20000; /* the checked run of a finalist that takes this long is its first sample */
static const double fill_bytes_a_us = 1500;
static const double sets_share = 0.12; /* of the budget: what the sets of one stage that keep operands cold may take to fill */
static const double reach = 2;
static const double most_overrun = 1.5; /* of the budget: the least number of rounds is given up then */
static const double again_us = 100000;
static const double no_chance = 20; /* race: predicted this many times the best, as a prediction may be far off */
/* race: what one without a chance may cost all the same, of a given budget, and where none is given */
static const double hopeless_share = 0.25, hopeless_us = 3e6;
static const double no_gain = 4; /* expected to take this many times as long as the choice: no use asking */

/* ------------------------------------------------------------------------------------------------ one at a time */

static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;

bool spk_measuring_begin(const spk_tuner *tuner, double limit_s)
{
    double start = spk_now_us();
    while (pthread_mutex_trylock(&measuring) != 0) {
        if (spk_interrupted(tuner) || spk_now_us() - start > 1e6 * limit_s)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

void spk_measuring_end(bool held)
{
    if (held)
        pthread_mutex_unlock(&measuring);
}

/* ------------------------------------------------------------------------------------------------ begin, end, time */

spk_status spk_search_begin(spk_search *search, const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options)
{
    spk_search made = {.tuner = tuner, .problem = problem, .options = options, .chosen = -1};
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_fetch(problem->pattern));
    made.exhaustive = options->effort == SPK_TUNE_EXHAUSTIVE;
    made.budget_us = options->budget_s > 0 ? 1e6 * options->budget_s : made.exhaustive ? INFINITY : 1e6 * tuner->device->backend->budget_s;
    made.seed = options->seed != 0 ? options->seed : (uint64_t)spk_unix_time_s() * 1000003u + (uint64_t)spk_now_us();
    made.tolerance = options->tolerance > 0 ? options->tolerance : spk_problem_tolerance(problem, spk_problem_first_output(problem));
    spk_rng_seed(&made.rng, made.seed);
    made.start_us = spk_work_us();
    made.operand_memory.limit_us = isinf(made.budget_us) ? 0 : sets_share * made.budget_us;
    SPK_TRY(spk_contenders_make(tuner, problem, options, &made.contenders, &made.count));
    if (spk_is_busy(tuner))
        spk_contenders_admit_for_load(made.contenders, made.count);
    *search = made;
    return SPK_OK;
}

void spk_search_end(spk_search *search)
{
    if (search->contenders != NULL)
        spk_contenders_release(search->tuner, &search->contenders, search->count);
    spk_operand_memory_release(search->tuner->device, &search->operand_memory);
}

static spk_load load_now(const spk_tuner *tuner)
{
    return tuner->load_now != NULL ? tuner->load_now() : spk_load_now();
}

void spk_search_watch(spk_search *search)
{
    search->load = load_now(search->tuner);
}

static void tell_crowded(const spk_search *search, bool before)
{
    const spk_tuner *tuner = search->tuner;
    if (search->crowded && !before)
        spk_tell_log(tuner->log, tuner->log_user, 1,
                     "other programs used the processors while this was measured: the outcome is provisional");
}

void spk_search_judge(spk_search *search)
{
    const spk_tuner *tuner = search->tuner;
    spk_load now = load_now(tuner);
    const bool before = search->crowded;
    /* other devices do not want the host's processors, and compiling beside them is no load */
    if (tuner->device->backend->shares_processors)
        search->crowded |= spk_load_crowded(&search->load, &now, tuner->device->executor.threads);
    tell_crowded(search, before);
}

int spk_search_winner(spk_search *search, spk_contender **list, int count, bool any)
{
    spk_search_judge(search);
    const bool before = search->crowded;
    if (search->tuner->device->backend->shares_processors)
        search->crowded |= spk_rounds_disturbed(list, count, any);
    tell_crowded(search, before);
    return search->crowded ? spk_rounds_briefest(list, count, any) : spk_rounds_winner(list, count, any, NULL);
}

/* Too few rounds to tell several apart. */
static bool ended_early(const spk_search *search)
{
    int rivals = 0;
    if (search->by_row) /* one alone, whom the budget left less than the rounds that are usual at least */
        return search->chosen >= 0 && search->contenders[search->chosen].sample_count < search->least_rounds;
    for (int i = 0; i < search->count; i++)
        rivals += search->contenders[i].in_search;
    return rivals > 1 && search->chosen >= 0 && search->contenders[search->chosen].sample_count < FEW;
}

void spk_search_conclude(spk_search *search, spk_status status)
{
    spk_search_judge(search);
    search->provisional = status == SPK_ERR_INTERRUPTED ? SPK_PROVISIONAL_INTERRUPTED
                          : search->crowded             ? SPK_PROVISIONAL_LOAD
                          : ended_early(search)         ? SPK_PROVISIONAL_BUDGET
                                                        : SPK_PROVISIONAL_NO;
}

double spk_search_left_us(const spk_search *search, double part)
{
    return search->start_us + part * search->budget_us - spk_work_us();
}

bool spk_search_late(const spk_search *search)
{
    return search->limit_us > 0 && spk_work_us() > search->start_us + search->limit_us;
}

double spk_search_cost_us(const spk_search *search, const spk_contender *c, double us)
{
    /* what the values are made into is made once, or in every run, where its memory is touched for the first time before */
    const bool made_once = search->problem->static_values && c->kernel->kind != SPK_KIND_OWN && c->kernel->kind != SPK_KIND_REFERENCE;
    const double check = 1, preparing = made_once ? 4 : 1;
    return (preparing + check) * us + RACE_ROUNDS * spk_sample_us(us);
}

/* The least time so far of those that may win, and no less than the best prediction. */
static double best_time_us(const spk_search *search)
{
    double predicted_us = INFINITY, measured_us = INFINITY;
    for (int i = 0; i < search->count; i++) {
        const spk_contender *c = &search->contenders[i];
        if (!c->eligible || c->status == SPK_CANDIDATE_WRONG || c->status == SPK_CANDIDATE_FAILED)
            continue;
        predicted_us = fmin(predicted_us, c->predicted_us);
        if (c->full_us > 0)
            measured_us = fmin(measured_us, c->full_us);
    }
    return isinf(measured_us) ? predicted_us : fmax(predicted_us, measured_us);
}

bool spk_search_hopeless(const spk_search *search, spk_contender *c)
{
    const spk_tune_options *options = search->options;
    const char *why = NULL;
    const bool named = options->only != NULL && options->only[0] != '\0' && spk_kernel_allowed(c->kernel, options, &why);
    const double best_us = best_time_us(search), most_us = options->budget_s > 0 ? hopeless_share * search->budget_us : hopeless_us;
    if (search->all || c->always_in_search || named || isinf(best_us) || c->predicted_us < no_chance * best_us ||
        spk_search_cost_us(search, c, c->predicted_us) <= most_us)
        return false;
    spk_snprintf(c->why, sizeof c->why, "it cannot win: one run is expected to take %.2g s at least, %.0f times the best",
                 1e-6 * c->predicted_us, floor(c->predicted_us / best_us));
    c->status = SPK_CANDIDATE_PRUNED;
    return c->left_out = true;
}

void spk_search_progress(spk_search *search, const spk_contender *c, bool step)
{
    const spk_tuner *tuner = search->tuner;
    if (tuner->progress == NULL)
        return;
    char params[SPK_MAX_PARAMS_TEXT], what[SPK_MAX_PARAMS_TEXT + 64];
    spk_params_text(c->kernel, &c->params, params, sizeof params);
    snprintf(what, sizeof what, "%s%s%s", c->kernel->name, params[0] != '\0' ? " " : "", params);
    search->total = search->done >= search->total ? search->done + 1 : search->total;
    spk_tell_progress(tuner->progress, tuner->progress_user, search->done, search->total, what);
    search->told_us = spk_now_us();
    search->done += step;
}

void spk_search_tell(void *of, const spk_contender *contender)
{
    spk_search *search = of;
    if (spk_now_us() - search->told_us > again_us)
        spk_search_progress(search, contender, false);
}

static double check_limit_us(const spk_search *search)
{
    return fmin(50e3, 0.05 * search->budget_us);
}

spk_status spk_search_whole(spk_search *search, spk_stage **stage)
{
    return spk_stage_make(search->tuner, search->problem, (spk_level){.share = 1}, spk_rng_next(&search->rng), check_limit_us(search),
                          &search->operand_memory, stage);
}

/* ------------------------------------------------------------------------------------------------ finals */

static spk_status make_samples(const spk_tuner *tuner, spk_contender **list, int count)
{
    for (int i = 0; i < count; i++) {
        SPK_TRY(spk_realloc(tuner->mem, &list[i]->samples, MOST_ROUNDS, sizeof(double)));
        list[i]->sample_capacity = MOST_ROUNDS;
    }
    return SPK_OK;
}

/* Exhaustive: all are measured, but only those within reach of the best meet it again in the rounds. Returns how many do. */
static int within_reach(spk_contender **list, int count)
{
    int in = 0;
    for (int i = 0; i < count; i++) {
        list[i]->status = SPK_CANDIDATE_OK;
        list[i]->why[0] = '\0';
        in += list[i]->full_us <= reach * list[0]->full_us;
    }
    return in;
}

/* Whether the budget has room for one more finalist: some rounds with a few, good rounds with more. A run that is a sample by itself has
 * been paid for when it is checked. */
static bool has_budget_for_one_more(const spk_search *search, int in, double round_us, bool have_sample)
{
    double left = spk_search_left_us(search, 1);
    if (in == 0 || isinf(left))
        return true;
    if (have_sample)
        return left > 1.5 * round_us;
    return in < FEW ? left > LEAST_ROUNDS * round_us : 0.6 * left > GOOD_ROUNDS * round_us;
}

/* Packed values stay with each finalist: all of them within a quarter of the free memory. */
static int most_finalists(const spk_search *search)
{
    const int packed = spk_problem_static_operand(search->problem);
    if (packed < 0)
        return INT_MAX;
    double bytes = (double)spk_operand_bytes(&search->problem->operand[packed], search->problem->batch);
    double sets = 0.25 * (double)search->tuner->device->backend->free_memory(search->tuner->device) / fmax(bytes, 1);
    return sets > 1e6 ? INT_MAX : sets > 2 ? (int)sets : 2;
}

/* Admits survivors in their order while there is room. Those checked on this stage before are not again. */
static int admit(spk_search *search, spk_stage *stage, spk_contender **list, int count, bool checked, bool *have_sample)
{
    int in = 0, most = most_finalists(search);
    double round_us = 0, best_us = list[0]->full_us;
    *have_sample = !checked && best_us > long_run_us;
    for (int i = 0; i < count; i++) {
        spk_contender *c = list[i];
        double run_us = c->full_us;
        if (in >= most || !has_budget_for_one_more(search, in, round_us + spk_sample_us(run_us), *have_sample)) {
            c->status = SPK_CANDIDATE_PRUNED;
            spk_snprintf(c->why, sizeof c->why, "%.2f times the best when screened, and the budget had no room for it in the finals",
                         c->full_us / best_us);
            continue;
        }
        spk_search_progress(search, c, false);
        if (spk_interrupted(search->tuner))
            break;
        if (spk_contender_bind(c, stage) != SPK_OK)
            continue;
        if (!checked && !spk_contender_check(c, stage, search->tolerance, &run_us)) {
            spk_contender_unbind(c);
            continue;
        }
        c->batch = spk_batch_for(run_us);
        c->run_us = run_us;
        c->sample_count = *have_sample ? 1 : 0;
        c->samples[0] = run_us;
        round_us += spk_sample_us(run_us);
        list[in++] = c; /* in <= i */
    }
    return in;
}

static spk_status run_finals(spk_search *search, spk_stage *stage, spk_contender **list, int count, bool have_sample)
{
    double round_us = 0;
    for (int i = 0; i < count; i++)
        round_us += spk_sample_us(list[i]->run_us);
    double affordable = spk_search_left_us(search, 1) / fmax(round_us, 1);
    int have = have_sample ? 1 : 0, least = affordable > LEAST_ROUNDS ? LEAST_ROUNDS : (int)fmax(affordable, 1);
    if (search->exhaustive && isinf(search->budget_us))
        least = LEAST_ROUNDS;
    spk_rounds rounds = {.have = have,
                         .least = least,
                         .most = MOST_ROUNDS,
                         .deadline_us = search->start_us + search->budget_us,
                         .stop_us = isinf(search->budget_us) ? 0 : search->start_us + most_overrun * search->budget_us,
                         .rng = &search->rng,
                         .tell = spk_search_tell,
                         .tell_user = search};
    if (have == 1 && affordable < 1)
        rounds.most = 1;
    return spk_rounds_run(search->tuner, stage, list, count, &rounds);
}

/* The finalists' fate: the measured ones are ok, whoever wins. */
static void settle(spk_search *search, spk_contender **list, int count)
{
    int winner = spk_search_winner(search, list, count, false);
    search->chosen = winner >= 0 ? (int)(list[winner] - search->contenders) : -1;
    for (int i = 0; i < count; i++)
        if (list[i]->status == SPK_CANDIDATE_PRUNED && list[i]->sample_count > 0) {
            list[i]->status = SPK_CANDIDATE_OK;
            list[i]->why[0] = '\0';
        }
}

/* ------------------------------------------------------------------------------------------------ what may not win */

static const spk_contender *barred_of_row(const spk_search *search, int row)
{
    const spk_contender *best = NULL;
    for (int i = 0; i < search->count; i++) {
        const spk_contender *c = &search->contenders[i];
        const char *why = NULL;
        bool barred = c->row == row && c->status == SPK_CANDIDATE_NOT_ELIGIBLE && c->kernel->fills_zeros &&
                      spk_kernel_allowed(c->kernel, search->options, &why);
        if (barred && (best == NULL || c->predicted_us < best->predicted_us))
            best = c;
    }
    return best;
}

/* What measure_barred may come to is prepared with all others. */
static void enter_barred(spk_search *search)
{
    double best_us = INFINITY;
    int rows = 0;
    if (search->tuner->device->backend->prepare == NULL)
        return;
    spk_tuner_table(search->tuner, &rows);
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].in_search)
            best_us = fmin(best_us, search->contenders[i].predicted_us);
    for (int row = 0; row < rows; row++) {
        const spk_contender *found = barred_of_row(search, row);
        if (found != NULL && found->predicted_us <= 2 * no_gain * best_us)
            search->contenders[found - search->contenders].optional = true;
    }
}

/* With time left, one candidate of each row that assume_finite would admit is measured too, so that its gain can be told. */
static void measure_barred(spk_search *search, spk_stage *stage)
{
    const spk_contender *chosen = &search->contenders[search->chosen];
    double calibration = chosen->median_us / fmax(chosen->predicted_us, 1e-3);
    int rows = 0;
    spk_tuner_table(search->tuner, &rows);
    for (int row = 0; row < rows && !spk_interrupted(search->tuner); row++) {
        const spk_contender *found = barred_of_row(search, row);
        if (found == NULL)
            continue;
        spk_contender *c = &search->contenders[found - search->contenders];
        double run_us = 0, samples[BARRED_SAMPLES], scratch[BARRED_SAMPLES];
        double expected_us = c->predicted_us * calibration, limit_us = fmin(spk_search_left_us(search, 1), 0.25 * search->budget_us);
        if (expected_us > no_gain * chosen->median_us || 2 * (BARRED_SAMPLES + 2) * expected_us > limit_us)
            continue;
        if (!spk_search_ready(search, c) || spk_contender_bind(c, stage) != SPK_OK)
            continue;
        int taken = 0;
        if (spk_contender_check(c, stage, search->tolerance, &run_us)) {
            c->batch = spk_batch_for(run_us);
            while (taken < BARRED_SAMPLES && (taken == 0 || spk_search_left_us(search, 1) > run_us) &&
                   spk_contender_sample(c, stage, &samples[taken]))
                taken++;
        }
        c->median_us = spk_median(samples, taken, scratch);
        c->spread_us = spk_half_quartiles(samples, taken, scratch);
        spk_contender_unbind(c);
    }
}

/* ------------------------------------------------------------------------------------------------ all */

/* After an interruption: the best of what was measured is the answer for now; the rest is marked as undecided. */
static void keep_what_there_is(spk_search *search)
{
    for (int i = 0; i < search->count; i++) {
        spk_contender *c = &search->contenders[i];
        if (!c->in_search || c->status != SPK_CANDIDATE_PRUNED)
            continue;
        if (c->median_us > 0 && (search->chosen < 0 || c->median_us < search->contenders[search->chosen].median_us))
            search->chosen = i;
        snprintf(c->why, sizeof c->why, "%s", spk_why_interrupted);
    }
    if (search->chosen >= 0) {
        search->contenders[search->chosen].status = SPK_CANDIDATE_OK;
        search->contenders[search->chosen].why[0] = '\0';
    }
}

/* Why nothing is left: lack of memory is the caller's to know, anything else is told candidate by candidate. */
static spk_status nothing_left(const spk_search *search)
{
    if (spk_interrupted(search->tuner))
        return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].status == SPK_CANDIDATE_FAILED && search->contenders[i].failure == SPK_ERR_OUT_OF_MEMORY)
            return spk_fail(SPK_ERR_OUT_OF_MEMORY, "%s: %s", search->contenders[i].kernel->name, search->contenders[i].why);
    return spk_no_candidate(search->contenders, search->count, search->options);
}

/* Whether one run of the whole problem, and what has to be made for it, is more than the budget has left. A budget that nobody asked for
 * may be exceeded by a quarter for that. */
static bool too_long_for_finals(const spk_search *search, const spk_contender *best)
{
    double make_us = check_limit_us(search) + (double)spk_operands_set_bytes(search->problem) / fill_bytes_a_us;
    double left_us = spk_search_left_us(search, search->options->budget_s > 0 ? 1 : 1.25);
    return !search->exhaustive && best->full_us + make_us > left_us;
}

static void decide_on_sample(spk_search *search, spk_contender **list, int count)
{
    search->chosen = (int)(list[0] - search->contenders);
    for (int i = 0; i < count; i++) {
        list[i]->status = i == 0 ? SPK_CANDIDATE_OK : SPK_CANDIDATE_PRUNED;
        spk_snprintf(list[i]->why, sizeof list[i]->why,
                     "%.2f times the best on a sample; one run of the whole problem is more than the budget has left",
                     list[i]->full_us / list[0]->full_us);
    }
    list[0]->why[0] = '\0';
}

static spk_status run_finals_on(spk_search *search, spk_stage *stage, bool checked, spk_contender **list, int count)
{
    bool have_sample = false;
    SPK_TRY(make_samples(search->tuner, list, count));
    if (search->exhaustive)
        count = within_reach(list, count);
    count = admit(search, stage, list, count, checked, &have_sample);
    if (count == 0)
        return nothing_left(search);
    SPK_TRY(run_finals(search, stage, list, count, have_sample));
    settle(search, list, count);
    spk_contender *winner = search->chosen >= 0 ? &search->contenders[search->chosen] : NULL;
    SPK_TRY(spk_steady_run(search, stage, list, count, &winner));
    search->chosen = winner != NULL ? (int)(winner - search->contenders) : -1;
    return winner != NULL ? SPK_OK : nothing_left(search);
}

static spk_status run_with(spk_search *search, spk_contender **list)
{
    spk_stage *stage = NULL;
    int count = 0;
    spk_status status = spk_search_screen(search, list, &count, &stage);
    bool screened_whole = stage != NULL;
    if (status == SPK_OK && count == 0)
        status = nothing_left(search);
    if (status == SPK_OK && stage == NULL && too_long_for_finals(search, list[0])) {
        decide_on_sample(search, list, count);
        return SPK_OK;
    }
    if (status == SPK_OK && stage == NULL)
        status = spk_search_whole(search, &stage);
    if (status == SPK_OK)
        status = run_finals_on(search, stage, screened_whole, list, count);
    for (int i = 0; i < search->count; i++)
        spk_contender_unbind(&search->contenders[i]);
    if (status == SPK_OK)
        measure_barred(search, stage);
    spk_stage_release(&stage);
    return status;
}

spk_status spk_search_run(spk_search *search)
{
    spk_contender **list = NULL;
    SPK_TRY(spk_alloc(search->tuner->mem, (size_t)search->count, sizeof *list, &list));
    enter_barred(search);
    spk_status status = spk_search_prepare(search);
    if (status == SPK_OK)
        status = run_with(search, list);
    spk_free(search->tuner->mem, list);
    if (status == SPK_ERR_INTERRUPTED)
        keep_what_there_is(search);
    return status;
}
