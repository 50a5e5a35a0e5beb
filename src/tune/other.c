/* The second candidate of a plan, for pointers that the first does not take: the best of the cost model's that takes all, proved like any other. */
#include "tune/search.h"

enum { MOST_ROWS_TRIED = 3 };

/* Of libraries none: they are only opened where they were chosen. What repacks values would have to be told of new ones too. */
static bool suits(const spk_contender *c)
{
    return c->eligible && c->kernel->ops->takes == NULL && c->kernel->library == NULL && c->kernel->ops->update_values == NULL;
}

static bool is_proved(const spk_tuner *tuner, const spk_problem *problem, const spk_contender *c)
{
    spk_prepared answer = {.kernel = c->kernel, .params = c->params};
    if (tuner->device->backend->prepare == NULL)
        return true;
    return tuner->device->backend->prepare(tuner->device, problem, &answer, 1, tuner->interrupted) == SPK_OK && answer.status == SPK_OK;
}

/* After a try the whole row is out. */
static void leave_row(spk_contender *contenders, int count, int row)
{
    for (int i = 0; i < count; i++)
        if (contenders[i].row == row)
            contenders[i].eligible = false;
}

void spk_tune_bind_other(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, bool prove, spk_bound *other)
{
    spk_tune_options any = *options; /* `only` names what is to be tuned, not what must do the work that it cannot do */
    any.only = any.choice = NULL;
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_contenders_make(tuner, problem, &any, &contenders, &count) != SPK_OK)
        return;
    for (int i = 0; i < count; i++)
        contenders[i].eligible = suits(&contenders[i]);
    for (int tries = 0; tries < MOST_ROWS_TRIED && other->kernel == NULL; tries++) {
        const int best = spk_contenders_predicted_best(contenders, count);
        if (best < 0)
            break;
        const spk_contender *c = &contenders[best];
        if ((prove && !is_proved(tuner, problem, c)) || spk_bind(c->kernel, &c->params, problem, tuner->device, other) != SPK_OK)
            leave_row(contenders, count, c->row);
    }
    spk_contenders_release(tuner, &contenders, count);
}
