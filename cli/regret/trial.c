/* One problem of `regret`: what is chosen for it, and what is best. */
#include "cli/regret/trial.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/clock.h"
#include "cli/base/memory.h"
#include "cli/base/stats.h"
#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"
#include "cli/result/result.h"

void regret_trial_end(cli *app, trial *t)
{
    problem_release(&t->p);
    cli_watch(1, NULL);
    spk_context_destroy(&app->context);
    app->context = t->programs;
}

int regret_trial_begin(cli *app, const problem_flags *flags, trial *t)
{
    spk_context *fresh = NULL;
    *t = (trial){.programs = app->context};
    int code = cli_context(app, "", 0, &fresh);
    if (code)
        return code;
    app->context = fresh;
    cli_watch(1, fresh);
    code = problem_make(app, flags, &t->p);
    if (code)
        regret_trial_end(app, t);
    return code;
}

int regret_trial_tune(cli *app, trial *t, spk_effort effort, double budget_s, tuned *out)
{
    spk_report *report = NULL;
    result r = {.chosen = -1};
    *out = (tuned){0};
    t->p.options.effort = effort;
    t->p.options.budget_s = budget_s;
    t->p.options.fresh = 1; /* the bundle may know the class */
    double start = clock_now_s();
    spk_status status = problem_tune(app, &t->p, &report);
    out->seconds = clock_now_s() - start;
    if (status == SPK_OK)
        status = result_from_report(report, false, &r);
    for (int i = 0; i < r.count; i++) {
        out->candidates += r.rows[i].status != SPK_CANDIDATE_NOT_APPLICABLE;
        out->measured += r.rows[i].median_us > 0;
    }
    if (r.chosen >= 0)
        out->choice = cli_format("%s%s%s", r.rows[r.chosen].name, r.rows[r.chosen].params[0] ? " " : "", r.rows[r.chosen].params);
    out->provisional = r.provisional;
    spk_report_destroy(&report);
    result_release(&r);
    return cli_status(app, NULL, status, NULL);
}

/* The trial's store is empty. */
int regret_trial_look_up(cli *app, trial *t, tuned *out)
{
    spk_plan *plan = NULL;
    *out = (tuned){0};
    t->p.options.tuning = SPK_TUNING_AHEAD_EACH;
    spk_status status = spk_plan_create(app->context, t->p.pattern, &t->p.given, &t->p.options, &plan);
    t->p.options.tuning = SPK_TUNING_NOW;
    if (status == SPK_OK)
        out->choice = cli_format("%s", spk_plan_choice(plan));
    spk_plan_destroy(&plan);
    return status == SPK_ERR_UNKNOWN_CLASS ? EXIT_DONE : cli_status(app, NULL, status, NULL);
}

typedef struct promise {
    double us;
    char *text;
} promise;

static int by_promise(const void *a, const void *b)
{
    const promise *x = a, *y = b;
    return x->us < y->us ? -1 : x->us > y->us;
}

/* All that may win, best first by the model, into room for as many as the list has. */
static spk_status list_promises(const spk_report *list, const spk_report_info *info, promise *out, int *count)
{
    spk_status status = SPK_OK;
    *count = 0;
    for (int i = 0; i < info->candidate_count && status == SPK_OK; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_get_candidate(list, i, &c);
        if (status == SPK_OK && c.status != SPK_CANDIDATE_NOT_APPLICABLE && c.status != SPK_CANDIDATE_NOT_ELIGIBLE)
            out[(*count)++] = (promise){c.predicted_us, cli_format("%s%s%s", c.name, c.params[0] ? " " : "", c.params)};
    }
    qsort(out, (size_t)*count, sizeof(*out), by_promise);
    return status;
}

/* The first `among` of a list, and what was chosen, as spk_race_options.choices wants them. */
static char *join_choices(const promise *all, int count, int64_t among, const char *chosen)
{
    char *choices = cli_format("%s", chosen);
    for (int i = 0; i < count && i < among; i++) {
        char *longer = cli_format("%s;%s", choices, all[i].text);
        free(choices);
        choices = longer;
    }
    return choices;
}

/* The best of those that the model prefers: an exhaustive search compiles hundreds of programs for one product of dense matrices. */
static int race_promising(cli *app, trial *t, const regret_search *search, const tuned *chosen, tuned *out)
{
    spk_report *list = NULL, *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    promise *all = NULL;
    result r = {.chosen = -1};
    double start = clock_now_s();
    *out = (tuned){0};
    t->p.options.budget_s = 0;
    spk_status status = spk_list_candidates(app->context, t->p.pattern, &t->p.given, &t->p.options, &list);
    if (status == SPK_OK)
        status = spk_report_get_info(list, &info);
    all = cli_alloc((size_t)info.candidate_count + 1, sizeof(*all));
    if (status == SPK_OK)
        status = list_promises(list, &info, all, &out->candidates);
    if (status == SPK_OK) {
        char *choices = join_choices(all, out->candidates, search->among, chosen->choice);
        spk_race_options race = {SPK_SIZED(spk_race_options), .rounds = (int)search->rounds, .choices = choices};
        status = problem_race(app, &t->p, &race, &report);
        free(choices);
    }
    if (status == SPK_OK)
        status = result_from_report(report, false, &r);
    for (int i = 0; i < r.count; i++)
        out->measured += r.rows[i].median_us > 0;
    if (r.chosen >= 0)
        out->choice = cli_format("%s%s%s", r.rows[r.chosen].name, r.rows[r.chosen].params[0] ? " " : "", r.rows[r.chosen].params);
    for (int i = 0; i < out->candidates; i++)
        free(all[i].text);
    free(all);
    spk_report_destroy(&list);
    spk_report_destroy(&report);
    result_release(&r);
    out->seconds = clock_now_s() - start;
    return cli_status(app, NULL, status, NULL);
}

static const result_row *row_called(const result *r, const char *choice)
{
    const result_row *found = NULL;
    for (int i = 0; i < r->count; i++) {
        char *text = cli_format("%s%s%s", r->rows[i].name, r->rows[i].params[0] ? " " : "", r->rows[i].params);
        found = strcmp(text, choice) == 0 ? &r->rows[i] : found;
        free(text);
    }
    return found;
}

/* Chosen / best over the rounds of a race between the two. */
static int head_to_head(cli *app, trial *t, const char *chosen, const char *best, int64_t rounds, duel *out)
{
    spk_report *report = NULL;
    result r = {.chosen = -1};
    char *choices = cli_format("%s;%s", chosen, best);
    spk_race_options race = {SPK_SIZED(spk_race_options), .rounds = (int)rounds, .choices = choices};
    t->p.options.budget_s = 0;
    spk_status status = problem_race(app, &t->p, &race, &report);
    if (status == SPK_OK)
        status = result_from_report(report, false, &r);
    const result_row *a = row_called(&r, chosen), *b = row_called(&r, best);
    const int64_t both = !a || !b ? 0 : a->sample_count < b->sample_count ? a->sample_count : b->sample_count;
    double *ratios = cli_alloc((size_t)both + 1, sizeof(*ratios));
    *out = (duel){.pairs = both > 0 ? stats_ratios(a->samples_us, b->samples_us, both, ratios) : 0};
    out->ratio = stats_quantile(ratios, out->pairs, 0.5);
    out->low = stats_quantile(ratios, out->pairs, 0.25);
    out->high = stats_quantile(ratios, out->pairs, 0.75);
    free(ratios);
    int code = cli_status(app, NULL, status, NULL);
    if (code == EXIT_DONE && out->pairs == 0)
        code = cli_fail(app, EXIT_SHORT, "the race of '%s' and '%s' gave no pairs", chosen, best);
    spk_report_destroy(&report);
    result_release(&r);
    free(choices);
    return code;
}

/* In a second empty store. */
int regret_find_best(cli *app, const problem_flags *flags, const regret_search *search, const tuned *chosen, tuned *best, duel *met)
{
    trial t;
    *met = (duel){1, 1, 1, 0};
    int code = regret_trial_begin(app, flags, &t);
    if (code)
        return code;
    code = search->among && chosen->choice ? race_promising(app, &t, search, chosen, best)
                                           : regret_trial_tune(app, &t, SPK_TUNE_EXHAUSTIVE, search->budget_s, best);
    bool differ = code == EXIT_DONE && chosen->choice && best->choice && strcmp(chosen->choice, best->choice) != 0;
    if (differ)
        code = head_to_head(app, &t, chosen->choice, best->choice, search->rounds, met);
    if (code == EXIT_DONE && (!chosen->choice || !best->choice))
        code = cli_fail(app, EXIT_SHORT, "nothing was chosen for: sparsek tune %s", t.p.flags);
    regret_trial_end(app, &t);
    return code;
}
