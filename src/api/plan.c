/* Plans: made from a choice, run without lock or allocation; or found in the cache first. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "base/clock.h"

void spk_plan_words_of(const spk_choice *choice, spk_plan_words *words)
{
    spk_choice_words(choice, words->why, sizeof words->why);
    spk_params_text(choice->kernel, &choice->params, words->params, sizeof words->params);
    snprintf(words->choice, sizeof words->choice, "%s%s%s", choice->kernel->name, words->params[0] != '\0' ? " " : "", words->params);
}

static void describe(spk_plan *plan, const spk_choice *choice)
{
    plan->from_store = choice->from_store;
    plan->until_write = choice->until_write;
    spk_plan_words_of(choice, &plan->words);
}

static void take_workspace(spk_plan *plan)
{
    const size_t first = plan->bound.workspace_bytes, fallback = plan->fallback.workspace_bytes;
    plan->workspace_bytes = first > fallback ? first : fallback;
}

void spk_plan_hold_value(void *value)
{
    atomic_fetch_add_explicit(&(*(spk_plan **)value)->references, 1, memory_order_relaxed);
}

void spk_plan_release_value(void *value)
{
    spk_plan_release(value);
}

/* A second candidate may have failed to come for want of memory. */
static bool is_complete(const spk_plan *plan)
{
    return plan->bound.kernel->ops->accepts == NULL || plan->fallback.kernel != NULL;
}

/* A plan of what was decided. since: the epoch before. known: the second candidate was decided, too, and nothing is tried; else it is
 * decided now, unless the plan's trial does so when it is wanted. */
static spk_status make(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_epoch since,
                       spk_decided *decided, bool known, spk_plan **out)
{
    const spk_tuner tuner = spk_context_tuner_for(context, options);
    spk_plan *made = NULL;
    SPK_TRY(spk_calloc(&context->mem, 1, sizeof *made, &made));
    made->context = context;
    made->since = since;
    atomic_store(&made->references, 1);
    describe(made, &decided->first);
    spk_status status;
    double start = spk_now_us();
    SPK_GOTO(spk_tune_bind(&tuner, problem, &decided->first, &made->bound));
    made->prepare_us = spk_now_us() - start;
    if (!known)
        SPK_GOTO(spk_plan_begin_trial(made, options, &decided->first));
    if (!known && !spk_plan_trial_has_spare(made)) {
        spk_plan_bind_fallback(made, options, &decided->first, &decided->fallback);
        if (!is_complete(made) && spk_stop_asked(&tuner.stop)) /* others would find the plan, and miss the candidate */
            SPK_GOTO(spk_fail(SPK_ERR_INTERRUPTED, "interrupted while a second candidate was bound"));
    } else if (known && decided->fallback.kernel != NULL)
        SPK_GOTO(spk_tune_bind(&tuner, problem, &decided->fallback, &made->fallback));
    take_workspace(made);
    if (made->workspace_bytes > 0)
        SPK_GOTO(spk_scratch_make(&context->mem, context->device, made->workspace_bytes, &made->scratch));
    *out = made;
    return SPK_OK;
done:
    spk_plan_release(&made);
    return status;
}

/* Not where the indices have come to the host meanwhile, or may have: what follows from them holds for this pattern alone. */
static bool is_as_asked(const spk_problem *problem, const spk_asked *asked)
{
    spk_pattern_facts now;
    return problem->pattern == NULL || (spk_pattern_is_remote(problem->pattern, &now) && memcmp(&now, &asked->pattern, sizeof now) == 0);
}

/* One whose proof has no name yet gets it. */
static void remember(spk_context *context, const spk_problem *problem, const spk_asked *asked, spk_epoch since, spk_decided *decided)
{
    const spk_tuner tuner = spk_context_tuner(context);
    if (decided->first.proof[0] == '\0')
        spk_tune_name_proof(&tuner, problem, &decided->first);
    if (is_as_asked(problem, asked))
        spk_decisions_add(context->decisions, asked, since, decided);
}

/* Where nothing was measured the model's choice may want more memory than there is, which a tuning would have seen. So its row is left out,
 * and the next one's, until one fits. Nothing is tried in place then: what is left is not what the class knows. */
static spk_status make_smaller(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_epoch since,
                               spk_decided *decided, spk_plan **out)
{
    enum { MOST_LEFT_OUT = 8, LIST_TEXT = 600 };
    const spk_tuner tuner = spk_context_tuner_for(context, options);
    spk_tune_options fewer = *options;
    char list[LIST_TEXT], said[400];
    int used = snprintf(list, sizeof list, "%s", options->exclude != NULL ? options->exclude : "");
    spk_status status = SPK_ERR_OUT_OF_MEMORY;
    snprintf(said, sizeof said, "%s", spk_error_last());
    fewer.exclude = list;
    fewer.tuning = SPK_TUNING_NEVER;
    for (int i = 0; i < MOST_LEFT_OUT && status == SPK_ERR_OUT_OF_MEMORY; i++) {
        used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", used > 0 ? "," : "", decided->first.kernel->name);
        if (used >= LIST_TEXT)
            break;
        const spk_status chosen = spk_tune_choose(&tuner, problem, &fewer, &decided->first);
        if (chosen == SPK_ERR_INTERRUPTED)
            return chosen;
        if (chosen != SPK_OK)
            break;
        status = make(context, problem, &fewer, since, decided, false, out);
    }
    return status == SPK_ERR_OUT_OF_MEMORY ? spk_fail(status, "%s", said) : status;
}

spk_status spk_plan_make(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_plan **out)
{
    const spk_tuner tuner = spk_context_tuner_for(context, options);
    spk_asked asked;
    spk_decided decided;
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_check(problem->pattern));
    const bool asks = spk_asked_make(problem, options, &asked) && !spk_stop_asked(&tuner.stop);
    /* what does not bind any more is decided anew */
    const spk_epoch since = spk_epoch_now();
    if (asks && spk_decisions_find(context->decisions, &asked, &decided) &&
        make(context, problem, options, since, &decided, true, out) == SPK_OK)
        return SPK_OK;
    SPK_TRY(spk_tune_choose(&tuner, problem, options, &decided.first));
    const spk_status status = make(context, problem, options, since, &decided, false, out);
    if (status == SPK_ERR_OUT_OF_MEMORY && spk_origin_is_estimate(decided.first.origin))
        return make_smaller(context, problem, options, since, &decided, out);
    SPK_TRY(status);
    if ((*out)->trial == NULL && asks && decided.first.stable && is_complete(*out))
        remember(context, problem, &asked, since, &decided);
    return SPK_OK;
}

void spk_plan_release(spk_plan **plan)
{
    spk_plan *p = *plan;
    *plan = NULL;
    if (p == NULL || atomic_fetch_sub(&p->references, 1) > 1)
        return;
    spk_context *context = p->context;
    spk_plan_end_trial(p);
    spk_scratch_release(&p->scratch);
    spk_unbind(&p->fallback);
    spk_unbind(&p->bound);
    spk_free(&context->mem, p);
}

static spk_status check_stream(const spk_plan *plan, const void *stream)
{
    if (stream != NULL && plan->context->device->backend->own_stream == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "stream = %p: device = \"%s\" has no streams, give NULL", stream,
                        plan->context->device->backend->kind);
    return SPK_OK;
}

/* Names the first input that is not aligned: that is what only some kernels read. */
spk_status spk_plan_refuse_addresses(const spk_plan *plan, const spk_args *args)
{
    const spk_bound *bound = &plan->bound;
    const spk_op *op = bound->problem.op;
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i].role != SPK_ROLE_OUT && (uintptr_t)args->at[i] % 16 != 0)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %p is not aligned to 16 bytes, as %s needs, and no second kernel could be bound for it",
                            op->operands[i].name, args->at[i], bound->kernel->name);
    return spk_fail(SPK_ERR_ARGUMENT, "%s does not take these addresses, and no second kernel could be bound for them",
                    bound->kernel->name);
}

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    return bound->kernel->ops->accepts == NULL || bound->kernel->ops->accepts(bound, args);
}

/* The candidate that takes these addresses. */
static spk_status find_bound(const spk_plan *plan, const spk_args *args, const spk_bound **found)
{
    const bool first = accepts(&plan->bound, args);
    *found = first ? &plan->bound : &plan->fallback;
    return first || plan->fallback.kernel != NULL ? SPK_OK : spk_plan_refuse_addresses(plan, args);
}

static spk_status run_with_scratch(const spk_plan *plan, const spk_bound *bound, spk_args *args, void *stream)
{
    spk_loan loan;
    SPK_TRY(spk_scratch_borrow(plan->scratch, stream, &loan));
    args->workspace = loan.memory;
    args->workspace_bytes = plan->workspace_bytes;
    spk_status status = spk_bound_run(bound, args, stream);
    spk_scratch_return(plan->scratch, &loan);
    return status;
}

spk_status spk_plan_launch_bound(const spk_plan *plan, const spk_bound *bound, spk_args *args, void *stream)
{
    if (bound == NULL && spk_plan_trial_has_spare(plan) && !accepts(&plan->bound, args))
        return spk_plan_launch_spare(plan, args, stream);
    if (bound == NULL)
        SPK_TRY(find_bound(plan, args, &bound));
    if (plan->workspace_bytes > 0 && args->workspace == NULL)
        return run_with_scratch(plan, bound, args, stream);
    return spk_bound_run(bound, args, stream);
}

/* Where a candidate of a trial needs more than the plan said, a workspace that is large enough serves it; else it is left. */
static spk_status check_workspace(const spk_plan *plan, spk_args *args)
{
    const size_t needed = plan->workspace_bytes;
    if (needed == 0) {
        if (plan->trial == NULL || (uintptr_t)args->workspace % 64 != 0 || args->workspace_bytes > PTRDIFF_MAX ||
            spk_problem_check_workspace(&plan->bound.problem, args, args->workspace_bytes) != SPK_OK)
            args->workspace = NULL;
        return SPK_OK;
    }
    if (args->workspace_bytes < needed)
        return spk_fail(SPK_ERR_ARGUMENT, "args.workspace_bytes = %zu: the plan needs %zu", args->workspace_bytes, needed);
    if ((uintptr_t)args->workspace % 64 != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.workspace = %p is not aligned to 64 bytes", args->workspace);
    const size_t used = plan->trial != NULL && args->workspace_bytes <= PTRDIFF_MAX ? args->workspace_bytes : needed;
    return spk_problem_check_workspace(&plan->bound.problem, args, used);
}

spk_status spk_plan_launch(const spk_plan *plan, spk_args *args, void *stream)
{
    const spk_problem *problem = &plan->bound.problem;
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_check(problem->pattern));
    const int packed = spk_problem_static_operand(problem);
    if (packed >= 0) {
        if (plan->values == NULL && spk_problem_operand_elements(problem, packed) > 0)
            return spk_fail(SPK_ERR_ARGUMENT, "the plan was made with static_values: call spk_plan_update_values before the first run");
        args->at[packed] = (void *)plan->values;
    }
    SPK_TRY(spk_problem_check_args(problem, args));
    const spk_backend *backend = plan->context->device->backend;
    if (backend->check_args != NULL)
        SPK_TRY(backend->check_args(plan->context->device, problem, args));
    if (backend->host_memory)
        SPK_TRY(spk_problem_check_indices(problem, args));
    if (spk_problem_is_empty(problem))
        return SPK_OK;
    if (args->workspace != NULL)
        SPK_TRY(check_workspace(plan, args));
    if (plan->trial != NULL)
        return spk_plan_launch_in_turn(plan, args, stream);
    return spk_plan_launch_bound(plan, NULL, args, stream);
}

void spk_plan_destroy(spk_plan **plan)
{
    if (plan != NULL)
        spk_plan_release(plan);
}

static spk_status enter_plan(const spk_plan *plan)
{
    spk_error_enter(plan != NULL ? plan->context->id : 0);
    SPK_TRY(spk_check_pointer(plan, "plan"));
    return spk_check_caller();
}

spk_status spk_plan_enter_run(const spk_plan *plan, void *stream)
{
    SPK_TRY(enter_plan(plan));
    return check_stream(plan, stream);
}

spk_status spk_plan_update_values(spk_plan *plan, const void *values, void *stream)
{
    SPK_TRY(enter_plan(plan));
    SPK_TRY(check_stream(plan, stream));
    const spk_problem *problem = &plan->bound.problem;
    const int packed = spk_problem_static_operand(problem);
    if (packed < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "the plan was made without static_values: give the values to each run");
    const int64_t elements = spk_problem_operand_elements(problem, packed);
    const size_t element_bytes = spk_dtype_bytes(problem->operand[packed].dtype);
    if (elements > 0)
        SPK_TRY(spk_check_pointer(values, "values"));
    if ((uintptr_t)values % element_bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "values = %p is not aligned to its elements of %zu bytes", values, element_bytes);
    const spk_backend *backend = plan->context->device->backend;
    spk_args only = {.workspace = NULL};
    only.at[packed] = (void *)values;
    if (backend->check_args != NULL && elements > 0)
        SPK_TRY(backend->check_args(plan->context->device, problem, &only));
    static const double nothing = 0; /* a pattern without blocks: the kernel prepares all the same, and gets something to point at */
    if (!spk_problem_is_empty(problem))
        SPK_TRY(spk_bound_update_values(&plan->bound, elements > 0 ? values : &nothing));
    plan->values = values;
    return SPK_OK;
}

spk_status spk_plan_get_info(const spk_plan *plan, spk_plan_info *info)
{
    SPK_TRY(enter_plan(plan));
    SPK_TRY(spk_check_pointer(info, "info"));
    const spk_plan_later *later = spk_plan_later_of(plan);
    const spk_plan_words *words = later != NULL ? &later->words : &plan->words;
    spk_plan_info ours = {.kernel = later != NULL ? later->bound->kernel->name : plan->bound.kernel->name,
                          .params = words->params,
                          .why = words->why,
                          .from_store = later != NULL ? later->from_store : plan->from_store,
                          .workspace_bytes = spk_plan_workspace_bytes(plan),
                          .prepare_us = plan->prepare_us};
    return spk_struct_write(info, &ours, sizeof ours, "spk_plan_info");
}

size_t spk_plan_workspace_bytes(const spk_plan *plan)
{
    const spk_plan_later *later = plan != NULL ? spk_plan_later_of(plan) : NULL;
    const size_t first = plan != NULL ? plan->workspace_bytes : 0, decided = later != NULL ? later->bound->workspace_bytes : 0;
    return first > decided ? first : decided;
}

const char *spk_plan_choice(const spk_plan *plan)
{
    const spk_plan_later *later = plan != NULL ? spk_plan_later_of(plan) : NULL;
    return later != NULL ? later->words.choice : plan != NULL ? plan->words.choice : "";
}

spk_status spk_plan_find(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_plan **plan)
{
    if (problem->static_values)
        return spk_fail(SPK_ERR_ARGUMENT, "static_values = 1: spk_compute takes the values at each call; make a plan instead");
    *plan = options->fresh ? NULL : spk_plan_cache_find(context->plans, &context->mem, problem, options);
    if (*plan == NULL) {
        SPK_TRY(spk_plan_make(context, problem, options, plan));
        spk_plan_cache_add(context->plans, &context->mem, problem, options, *plan);
    }
    return SPK_OK;
}
