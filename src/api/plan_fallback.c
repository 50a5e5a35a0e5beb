/* A plan's second candidate, for pointers that the first does not take. */
#include "api/context.h"

void spk_plan_bind_other(spk_plan *plan, const spk_tune_options *options, const spk_choice *first, spk_choice *other)
{
    const spk_problem *problem = &plan->bound.problem;
    other->kernel = NULL;
    if (plan->bound.kernel->ops->takes == NULL || spk_problem_is_empty(problem))
        return;
    const spk_tuner tuner = spk_context_tuner(plan->context);
    spk_tune_bind_other(&tuner, problem, options, first, other, &plan->other);
}
