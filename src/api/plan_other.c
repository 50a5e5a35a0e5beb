/* A plan's second candidate, for pointers that the first does not take: the best of the cost model's that takes all, proved like any other. */
#include <string.h>

#include "api/context.h"
#include "tune/search.h"

enum { MOST_ROWS_TRIED = 3 };

/* Of libraries none: they are only opened where they were chosen. What repacks values would have to be told of new ones too. */
static bool suits(const spk_contender *c)
{
    return c->eligible && c->kernel->ops->takes == NULL && c->kernel->library == NULL && c->kernel->ops->update_values == NULL;
}

/* A pinned or estimated choice runs unproved; its second does too. */
static bool proved(const spk_plan *plan, const spk_tuner *tuner, const spk_contender *c)
{
    spk_prepared answer = {.kernel = c->kernel, .params = c->params};
    if ((!plan->from_store && strcmp(plan->why, "measured") != 0) || tuner->device->backend->prepare == NULL)
        return true;
    return tuner->device->backend->prepare(tuner->device, &plan->bound.problem, &answer, 1, tuner->interrupted) == SPK_OK && answer.status == SPK_OK;
}

/* After a try the whole row is out. */
static void leave_row(spk_contender *contenders, int count, int row)
{
    for (int i = 0; i < count; i++)
        if (contenders[i].row == row)
            contenders[i].eligible = false;
}

void spk_plan_bind_other(spk_plan *plan, const spk_tune_options *options)
{
    const spk_problem *problem = &plan->bound.problem;
    if (plan->bound.kernel->ops->takes == NULL || problem->m == 0 || problem->n == 0)
        return;
    const spk_tuner tuner = spk_context_tuner(plan->context);
    spk_tune_options any = *options; /* `only` names what is to be tuned, not what must do the work that it cannot do */
    any.only = any.choice = NULL;
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_contenders_make(&tuner, problem, &any, &contenders, &count) != SPK_OK)
        return;
    for (int i = 0; i < count; i++)
        contenders[i].eligible = suits(&contenders[i]);
    for (int tries = 0; tries < MOST_ROWS_TRIED && plan->other.kernel == NULL; tries++) {
        const int best = spk_contenders_predicted_best(contenders, count);
        if (best < 0)
            break;
        const spk_contender *c = &contenders[best];
        if (!proved(plan, &tuner, c) || spk_bind(c->kernel, &c->params, problem, tuner.device, &plan->other) != SPK_OK)
            leave_row(contenders, count, c->row);
    }
    if (plan->other.workspace_bytes > plan->workspace_bytes)
        plan->workspace_bytes = plan->other.workspace_bytes;
    spk_contenders_release(&tuner, &contenders, count);
}
