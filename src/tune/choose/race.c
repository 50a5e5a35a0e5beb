/* The race: every row of the table with its best parameters, in interleaved rounds on the whole problem, ineligible rows too (marked). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callback.h"
#include "tune/choose/choose.h"

enum { DEFAULT_ROUNDS = 20, LEAST_ROUNDS = 3, ROW_FINALISTS = 8, ROW_ROUNDS = 7 };
static const double row_tie = 1.3; /* parameters of a row this close when screened meet in rounds of their own */
/* a run expected to take longer is estimated on a sample that takes about so long */
static const double unseen_run_us = 1e6, sample_run_us = 50e3;
static const double longest_run_us = 120e6;  /* a row whose one run is expected to take longer is not raced */
static const double budgets = 10;            /* a race takes so many times a given budget at most, and what is under way is finished */
static const double longest_race_us = 300e6; /* without a given one */

typedef struct race {
    spk_search search;
    const spk_race_options *options;
    bool *meets;          /* of each contender */
    spk_contender **list; /* room for every contender */
    spk_contender **row;  /* likewise: those of one row */
    int *entrants;        /* contenders of the report: one a row, or the given choices */
    int entrant_count;
    bool cut_short; /* interrupted before the entrants had met */
} race;

/* ------------------------------------------------------------------------------------------------ who takes part */

static int find_contender(const spk_search *search, const spk_kernel *kernel, const spk_params *params)
{
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].kernel == kernel && memcmp(&search->contenders[i].params, params, sizeof *params) == 0)
            return i;
    return -1;
}

static spk_status enter_choice(race *r, const char *text)
{
    const spk_kernel *kernel = NULL;
    spk_params params;
    SPK_TRY(spk_choice_parse(r->search.tuner, r->search.problem, text, &kernel, &params));
    int contender = find_contender(&r->search, kernel, &params);
    if (contender < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "choices: \"%s\" is for another operation or another kind of device", text);
    if (!r->meets[contender])
        r->entrants[r->entrant_count++] = contender;
    r->meets[contender] = true;
    return SPK_OK;
}

/* The ';'-separated choices meet, and nobody else. */
static spk_status enter_choices(race *r)
{
    for (int i = 0; i < r->search.count; i++)
        r->search.contenders[i].wanted = false;
    for (const char *at = r->options->choices; *at != '\0';) {
        char text[SPK_MAX_PARAMS_TEXT + 64];
        size_t length = strcspn(at, ";");
        if (length >= sizeof text)
            return spk_fail(SPK_ERR_ARGUMENT, "choices = \"%s\": a choice has at most %zu letters", r->options->choices, sizeof text - 1);
        memcpy(text, at, length);
        text[length] = '\0';
        at += length + (at[length] == ';');
        if (text[strspn(text, " ")] != '\0')
            SPK_TRY(enter_choice(r, text));
    }
    return r->entrant_count > 0 ? SPK_OK : spk_fail(SPK_ERR_ARGUMENT, "choices = \"%s\" names no candidate", r->options->choices);
}

static int wanted_of_row(const spk_search *search, int row)
{
    int count = 0;
    for (int i = 0; i < search->count; i++)
        count += search->contenders[i].row == row && search->contenders[i].wanted;
    return count;
}

/* Whatever can run takes part, and a row with one candidate meets the others without being screened. What only leaves out stays out, but
 * for dense, the yardstick; what exclude names stays out in any case. */
static void enter_rows(race *r)
{
    const spk_tune_options *options = r->search.options, unless_excluded = {.exclude = options->exclude};
    for (int i = 0; i < r->search.count; i++) {
        spk_contender *c = &r->search.contenders[i];
        const char *why = NULL;
        bool allowed = spk_kernel_allowed(c->kernel, c->kernel->kind == SPK_KIND_DENSE ? &unless_excluded : options, &why);
        c->wanted = c->status != SPK_CANDIDATE_NOT_APPLICABLE && allowed;
    }
    for (int i = 0; i < r->search.count; i++)
        r->meets[i] = r->search.contenders[i].wanted && wanted_of_row(&r->search, r->search.contenders[i].row) == 1;
    for (int i = 0; i < r->search.count; i++)
        r->search.contenders[i].wanted &= !r->meets[i];
}

/* ------------------------------------------------------------------------------------------------ a row's own best */

/* r->row, `count` survivors of one row, best first when screened: the close ones meet where the stage is the whole problem. */
static spk_status best_of_row(race *r, spk_stage *stage, int count, spk_contender **best)
{
    spk_contender **row = r->row;
    int close = 0, in = 0;
    while (close < count && close < ROW_FINALISTS && row[close]->full_us <= row_tie * row[0]->full_us)
        close++;
    *best = row[0];
    if (stage == NULL || close < 2 || ROW_ROUNDS * close * row[0]->full_us > 0.2 * r->search.budget_us)
        return SPK_OK;
    for (int i = 0; i < close; i++)
        if (spk_contender_bind(row[i], stage) == SPK_OK)
            row[in++] = row[i];
    spk_rounds rounds = {.least = ROW_ROUNDS,
                         .most = ROW_ROUNDS,
                         .every_round = true,
                         .deadline_us = INFINITY,
                         .rng = &r->search.rng,
                         .tell = spk_search_tell,
                         .tell_user = &r->search};
    spk_status status = spk_rounds_run(r->search.tuner, stage, row, in, &rounds);
    int first = spk_search_winner(&r->search, row, in, true);
    spk_contender *winner = first >= 0 ? row[first] : NULL;
    if (status == SPK_OK)
        status = spk_steady_run(&r->search, stage, row, in, &winner);
    for (int i = 0; i < in; i++) {
        spk_contender_unbind(row[i]);
        row[i]->full_us = row[i]->median_us;
        row[i]->sample_count = 0;
    }
    if (winner != NULL)
        *best = winner;
    return status;
}

static void lose_to(spk_contender *c, const spk_contender *best)
{
    char params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(best->kernel, &best->params, params, sizeof params);
    if (c != best && c->status == SPK_CANDIDATE_PRUNED)
        snprintf(c->why, sizeof c->why, "%.2f times as long as this kernel with %s", c->full_us / fmax(best->full_us, 1e-3), params);
}

/* Screens the rows with several candidates; the best of each goes on. */
static spk_status find_row_bests(race *r, spk_stage **stage)
{
    spk_search *search = &r->search;
    int rows = 0, survivors = 0;
    spk_tuner_table(search->tuner, &rows);
    SPK_TRY(spk_search_screen(search, r->list, &survivors, stage));
    for (int row = 0; row < rows; row++) {
        int count = 0;
        spk_contender *best = NULL;
        for (int i = 0; i < survivors; i++)
            if (r->list[i]->row == row)
                r->row[count++] = r->list[i];
        if (count == 0)
            continue;
        SPK_TRY(best_of_row(r, *stage, count, &best));
        r->meets[best - search->contenders] = true;
        for (int i = 0; i < survivors; i++)
            if (r->list[i]->row == row)
                lose_to(r->list[i], best);
    }
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ the meeting */

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

/* Binds and checks those that meet; returns how many are fit to. */
static int admit(race *r, spk_stage *stage, bool screened_here)
{
    spk_search *search = &r->search;
    int in = 0, eligible = 0;
    const double factor = calibration(search);
    const int count = gather_entrants(r, factor);
    for (int i = 0; i < count && !spk_interrupted(search->tuner); i++) {
        spk_contender *c = r->row[i];
        c->wanted = true;
        spk_search_progress(search, c, false);
        double run_us = c->full_us;
        if (r->options->choices == NULL && expected_us(c, factor) > longest_run_us) {
            c->status = SPK_CANDIDATE_PRUNED;
            snprintf(c->why, sizeof c->why, "one run is expected to take %.0f s", 1e-6 * expected_us(c, factor));
            continue;
        }
        if (eligible > 0 && r->options->choices == NULL && spk_search_late(search)) {
            c->status = SPK_CANDIDATE_PRUNED;
            snprintf(c->why, sizeof c->why, "the budget ended before its turn");
            continue;
        }
        if (!spk_search_ready(search, c) || spk_contender_bind(c, stage) != SPK_OK)
            continue;
        bool checked = screened_here && c->screened;
        if (!checked && !spk_contender_check(c, stage, search->tolerance, &run_us)) {
            spk_contender_unbind(c);
            continue;
        }
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
        if (c->eligible && c->status == SPK_CANDIDATE_PRUNED && status == SPK_ERR_INTERRUPTED)
            snprintf(c->why, sizeof c->why, "%s", spk_why_interrupted);
        if (c->eligible || c->status != SPK_CANDIDATE_PRUNED ||
            spk_may_win(search->tuner, search->problem, search->options, c->kernel, &c->params, &why))
            continue;
        c->status = SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(c->why, sizeof c->why, "%s", why);
    }
}

static spk_status run_race(race *r)
{
    spk_search *search = &r->search;
    spk_stage *stage = NULL;
    int count = 0;
    for (int i = 0; i < search->count; i++) {
        search->contenders[i].extra = r->meets[i];
        search->contenders[i].sure = r->meets[i] && r->options->choices != NULL;
    }
    spk_status status = spk_search_prepare(search);
    if (status == SPK_OK)
        status = estimate_long(r);
    if (status == SPK_OK && r->options->choices == NULL)
        status = find_row_bests(r, &stage);
    bool screened_here = stage != NULL;
    if (status == SPK_OK && stage == NULL)
        status = spk_search_whole(search, &stage);
    if (status == SPK_OK) {
        count = admit(r, stage, screened_here);
        int rounds = r->options->rounds > 0 ? r->options->rounds : DEFAULT_ROUNDS;
        spk_rounds all = {.least = rounds < LEAST_ROUNDS ? rounds : LEAST_ROUNDS, .most = rounds, .every_round = true, .rng = &search->rng};
        all.deadline_us = search->start_us + search->limit_us;
        all.tell = spk_search_tell;
        all.tell_user = search;
        if (search->options->budget_s > 0)
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

/* ------------------------------------------------------------------------------------------------ reports */

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
        chosen = current ? find_contender(search, kernel, &params) : -1;
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
    r.search.limit_us = options->budget_s > 0 ? budgets * r.search.budget_us : longest_race_us;
    if (race_options->choices != NULL)
        SPK_GOTO(enter_choices(&r));
    else
        enter_rows(&r);
    bool held = spk_measuring_begin(tuner, 60);
    r.search.start_us = spk_work_us();
    spk_search_watch(&r.search);
    status = run_race(&r);
    spk_search_conclude(&r.search, status);
    spk_measuring_end(held);
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
