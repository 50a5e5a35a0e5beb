/* Reports for which nothing runs: the table's candidates for a problem, and what the store already knows. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tune/choose/choose.h"

/* A candidate that could run is ok; the others keep their reason. */
static void as_listed(spk_contender *contenders, int count)
{
    for (int i = 0; i < count; i++)
        if (contenders[i].eligible || contenders[i].held_back) {
            contenders[i].status = SPK_CANDIDATE_OK;
            contenders[i].why[0] = '\0';
        }
}

static int entry_of(const spk_contender *contenders, int count, const spk_choice *choice)
{
    for (int i = 0; choice != NULL && i < count; i++) {
        const spk_contender *c = &contenders[i];
        bool same = c->kernel == choice->kernel;
        for (int k = 0; same && k < SPK_MAX_TUNABLES; k++)
            same = c->params.v[k] == choice->params.v[k];
        if (same)
            return c->entry;
    }
    return -1;
}

spk_status spk_report_unmeasured(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                 const spk_choice *choice, spk_report **report)
{
    spk_class class;
    spk_contender *contenders = NULL;
    spk_report *made = NULL;
    int count = 0;
    SPK_TRY(spk_class_keys(tuner, problem, options, &class));
    SPK_TRY(spk_contenders_make(tuner, problem, options, &contenders, &count));
    as_listed(contenders, count);
    spk_status status;
    SPK_GOTO(spk_report_make(tuner->mem, class.key, tuner->device->name, &made));
    SPK_GOTO(spk_evidence_write(
        made, contenders, count,
        options->tolerance > 0 ? options->tolerance : spk_problem_tolerance(problem, spk_problem_first_output(problem)), NULL));
    made->empty = spk_problem_is_empty(problem);
    made->chosen = entry_of(contenders, count, choice);
    SPK_GOTO(spk_report_summarise(made, spk_unix_time_s()));
    *report = made;
    made = NULL;
done:
    spk_report_release(&made);
    spk_contenders_release(tuner, &contenders, count);
    return status;
}

spk_status spk_tune_list(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report)
{
    return spk_report_unmeasured(tuner, problem, options, NULL, report);
}

/* The entry of a choice in a loaded report, -1 for none. */
static int entry_named(const spk_report *report, const spk_choice *choice)
{
    char params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(choice->kernel, &choice->params, params, sizeof params);
    for (int i = 0; i < report->count; i++)
        if (strcmp(report->candidates[i].name, choice->kernel->name) == 0 && strcmp(report->candidates[i].params, params) == 0)
            return i;
    return -1;
}

/* The store keeps none that cannot compute the problem. */
static spk_status add_inapplicable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report *report)
{
    spk_contender *contenders = NULL;
    int count = 0;
    SPK_TRY(spk_contenders_make(tuner, problem, options, &contenders, &count));
    spk_status status = SPK_OK;
    for (int i = 0; i < count && status == SPK_OK; i++) {
        const spk_choice one = {.kernel = contenders[i].kernel, .params = contenders[i].params};
        if (contenders[i].status == SPK_CANDIDATE_NOT_APPLICABLE && entry_named(report, &one) < 0)
            status = spk_evidence_write(report, &contenders[i], 1, 0, NULL);
    }
    spk_contenders_release(tuner, &contenders, count);
    return status;
}

spk_status spk_report_from_store(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                 const spk_choice *choice, spk_report *report)
{
    int best = choice != NULL ? entry_named(report, choice) : spk_evidence_best(tuner, problem, options, report);
    report->from_store = true;
    if (best >= 0)
        report->chosen = best;
    for (int i = 0; i < report->count; i++) {
        spk_evidence *e = &report->candidates[i];
        const spk_kernel *kernel = spk_tuner_kernel(tuner, e->name);
        const char *why = NULL;
        if (kernel == NULL || spk_kernel_allowed(kernel, options, &why) || e->status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        e->status = SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(e->why, sizeof e->why, "%s", why);
    }
    SPK_TRY(add_inapplicable(tuner, problem, options, report));
    return spk_report_summarise(report, spk_unix_time_s());
}
