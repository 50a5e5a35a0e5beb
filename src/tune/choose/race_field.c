/* Who takes part in a race, and with which parameters. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "tune/choose/race.h"

enum { ROW_FINALISTS = 8, ROW_ROUNDS = 7 };
static const double row_tie = 1.3;   /* parameters of a row this close when screened meet in rounds of their own */
static const double rows_end = 0.75; /* of the budget: what the parameters of the rows may take */

/* ------------------------------------------------------------------------------------------------ who takes part */

int spk_race_contender(const spk_search *search, const spk_kernel *kernel, const spk_params *params)
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
    int contender = spk_race_contender(&r->search, kernel, &params);
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
        r->search.contenders[i].in_search = false;
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
        count += search->contenders[i].row == row && search->contenders[i].in_search;
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
        c->in_search = c->status != SPK_CANDIDATE_NOT_APPLICABLE && allowed && !c->for_load;
    }
    for (int i = 0; i < r->search.count; i++)
        r->meets[i] = r->search.contenders[i].in_search && wanted_of_row(&r->search, r->search.contenders[i].row) == 1;
    for (int i = 0; i < r->search.count; i++)
        r->search.contenders[i].in_search &= !r->meets[i];
}

spk_status spk_race_enter(race *r)
{
    if (r->options->choices != NULL)
        return enter_choices(r);
    enter_rows(r);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ a row's own best */

/* r->row, `count` survivors of one row, best first when screened: the close ones meet where the stage is the whole problem. */
static spk_status best_of_row(race *r, spk_stage *stage, int count, spk_contender **best)
{
    const double share_us = 0.2 * r->search.budget_us,
                 left_us = r->search.options->budget_s > 0 ? spk_search_left_us(&r->search, rows_end) : share_us;
    spk_contender **row = r->row;
    int close = 0, in = 0;
    while (close < count && close < ROW_FINALISTS && row[close]->full_us <= row_tie * row[0]->full_us)
        close++;
    *best = row[0];
    if (stage == NULL || close < 2 || ROW_ROUNDS * close * row[0]->full_us > fmin(share_us, left_us))
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
    const double ratio = c->full_us / fmax(best->full_us, 1e-3);
    if (c == best || c->status != SPK_CANDIDATE_PRUNED)
        return;
    if (ratio >= 1.005)
        spk_snprintf(c->why, sizeof c->why, "%.2f times as long as this kernel with %s", ratio, params);
    else /* its fewer runs when screened said otherwise */
        spk_snprintf(c->why, sizeof c->why, "slower in the rounds than this kernel with %s", params);
}

/* Screens the rows with several candidates; the best of each goes on. */
spk_status spk_race_row_bests(race *r, spk_stage **stage)
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
