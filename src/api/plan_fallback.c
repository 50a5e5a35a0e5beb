/* A plan's second candidate, for pointers that the first does not take. */
#include "api/context.h"

void spk_plan_bind_fallback(spk_plan *plan, const spk_tune_options *options, const spk_choice *first, spk_choice *fallback)
{
    const spk_problem *problem = &plan->bound.problem;
    fallback->kernel = NULL;
    if (plan->bound.kernel->ops->accepts == NULL || spk_problem_is_empty(problem))
        return;
    const spk_tuner tuner = spk_context_tuner_for(plan->context, options);
    spk_tune_bind_fallback(&tuner, problem, options, first, fallback, &plan->fallback);
}
