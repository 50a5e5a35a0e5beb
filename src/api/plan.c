/* Plans: made from a choice, run without lock or allocation. And spk_matmul, which finds the plan first. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "base/clock.h"

spk_status spk_plan_make(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_plan **out)
{
    spk_tuner tuner = spk_context_tuner(context);
    spk_choice choice;
    SPK_TRY(spk_tune_choose(&tuner, problem, options, &choice));
    spk_plan *made = NULL;
    SPK_TRY(spk_calloc(&context->mem, 1, sizeof *made, &made));
    made->context = context;
    atomic_store(&made->references, 1);
    made->from_store = choice.from_store;
    made->why = choice.why;
    spk_params_text(choice.kernel, &choice.params, made->params, sizeof made->params);
    snprintf(made->choice, sizeof made->choice, "%s%s%s", choice.kernel->name, made->params[0] != '\0' ? " " : "", made->params);
    spk_status status;
    double start = spk_now_us();
    SPK_GOTO(spk_bind(choice.kernel, &choice.params, problem, context->device, &made->bound));
    made->prepare_us = spk_now_us() - start;
    made->workspace_bytes = made->bound.workspace_bytes;
    spk_plan_bind_other(made, options);
    if (made->workspace_bytes > 0)
        SPK_GOTO(spk_scratch_make(&context->mem, context->device, made->workspace_bytes, &made->scratch));
    *out = made;
    return SPK_OK;
done:
    spk_plan_release(&made);
    return status;
}

void spk_plan_release(spk_plan **plan)
{
    spk_plan *p = *plan;
    *plan = NULL;
    if (p == NULL || atomic_fetch_sub(&p->references, 1) > 1)
        return;
    spk_context *context = p->context;
    spk_scratch_release(&p->scratch);
    spk_unbind(&p->other);
    spk_unbind(&p->bound);
    spk_free(&context->mem, p);
}

static spk_status check_stream(const spk_plan *plan, const void *stream)
{
    if (stream != NULL && plan->context->device->backend->id == SPK_BACKEND_CPU)
        return spk_fail(SPK_ERR_ARGUMENT, "stream = %p: the CPU has no streams, give NULL", stream);
    return SPK_OK;
}

/* The candidate that takes these pointers; where none does, the first says why. */
static const spk_bound *bound_for(const spk_plan *plan, const spk_args *args)
{
    const spk_bound *bound = &plan->bound;
    return plan->other.kernel == NULL || bound->kernel->ops->takes(bound, args) ? bound : &plan->other;
}

static spk_status run_with_scratch(const spk_plan *plan, const spk_bound *bound, spk_args *args, void *stream)
{
    spk_loan loan;
    SPK_TRY(spk_scratch_borrow(plan->scratch, stream, &loan));
    args->workspace = loan.memory;
    args->workspace_bytes = plan->workspace_bytes;
    spk_status status = bound->kernel->ops->run(bound, args, stream);
    spk_scratch_return(plan->scratch, &loan);
    return status;
}

/* A caller's arguments as ours. stream may be NULL. */
static spk_status read_args(const spk_spmm_args *theirs, spk_args *args, void **stream)
{
    spk_spmm_args given;
    SPK_TRY(spk_struct_read(&given, sizeof given, theirs, "spk_spmm_args"));
    *args = (spk_args){.a = given.values,
                       .b = given.b,
                       .c = given.c,
                       .d = given.d,
                       .bias = given.bias,
                       .residual = given.residual,
                       .preact = given.preact,
                       .alpha = given.alpha,
                       .beta = given.beta,
                       .workspace = given.workspace,
                       .workspace_bytes = given.workspace_bytes};
    if (stream != NULL)
        *stream = given.stream;
    return SPK_OK;
}

spk_status spk_plan_run(const spk_plan *plan, spk_args *args, void *stream)
{
    const spk_problem *problem = &plan->bound.problem;
    if (problem->static_values) {
        if (plan->values == NULL && spk_problem_operand_elements(problem, SPK_OPERAND_A) > 0)
            return spk_fail(SPK_ERR_ARGUMENT, "the plan was made with static_values: call spk_plan_update_values before the first run");
        args->a = plan->values;
    }
    SPK_TRY(spk_problem_check_args(problem, args));
    const spk_backend *backend = plan->context->device->backend;
    if (backend->check_args != NULL)
        SPK_TRY(backend->check_args(plan->context->device, problem, args));
    if (problem->m == 0 || problem->n == 0)
        return SPK_OK;
    const spk_bound *bound = bound_for(plan, args);
    size_t needed = plan->workspace_bytes;
    if (needed == 0)
        return bound->kernel->ops->run(bound, args, stream);
    if (args->workspace == NULL)
        return run_with_scratch(plan, bound, args, stream);
    if (args->workspace_bytes < needed)
        return spk_fail(SPK_ERR_ARGUMENT, "args.workspace_bytes = %zu: the plan needs %zu", args->workspace_bytes, needed);
    if ((uintptr_t)args->workspace % 64 != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.workspace = %p is not aligned to 64 bytes", args->workspace);
    return bound->kernel->ops->run(bound, args, stream);
}

/* The problem and options of an entry point. */
static spk_status read_problem(spk_context *context, spk_pattern *pattern, const spk_spmm *spmm, const spk_tune_options *theirs, spk_tune_options *options,
                               spk_problem *problem)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    SPK_TRY(spk_check_pointer(spmm, "problem"));
    SPK_TRY(spk_tune_options_read(theirs, options));
    return spk_problem_from_spmm(pattern, spmm, options, problem);
}

spk_status spk_plan_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *spmm, const spk_tune_options *theirs, spk_plan **plan)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, pattern, spmm, theirs, &options, &problem));
    SPK_TRY(spk_check_pointer(plan, "plan"));
    return spk_plan_make(context, &problem, &options, plan);
}

void spk_plan_destroy(spk_plan **plan)
{
    if (plan != NULL)
        spk_plan_release(plan);
}

static spk_status enter_plan(const spk_plan *plan)
{
    spk_error_enter(plan != NULL ? plan->context->id : 0);
    return spk_check_pointer(plan, "plan");
}

spk_status spk_run_spmm(const spk_plan *plan, const spk_spmm_args *theirs, void *stream)
{
    spk_args args;
    SPK_TRY(enter_plan(plan));
    SPK_TRY(spk_check_pointer(theirs, "args"));
    SPK_TRY(check_stream(plan, stream));
    SPK_TRY(read_args(theirs, &args, NULL));
    return spk_plan_run(plan, &args, stream);
}

spk_status spk_plan_update_values(spk_plan *plan, const void *values, void *stream)
{
    SPK_TRY(enter_plan(plan));
    SPK_TRY(check_stream(plan, stream));
    const spk_problem *problem = &plan->bound.problem;
    if (!problem->static_values)
        return spk_fail(SPK_ERR_ARGUMENT, "the plan was made without static_values: give the values to each run");
    int64_t elements = spk_problem_operand_elements(problem, SPK_OPERAND_A);
    if (elements > 0)
        SPK_TRY(spk_check_pointer(values, "values"));
    if ((uintptr_t)values % spk_dtype_bytes(problem->dtype_a) != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "values = %p is not aligned to its elements of %zu bytes", values, spk_dtype_bytes(problem->dtype_a));
    const spk_backend *backend = plan->context->device->backend;
    if (backend->check_args != NULL && elements > 0)
        SPK_TRY(backend->check_args(plan->context->device, problem, &(spk_args){.a = values}));
    static const double nothing = 0; /* a pattern without blocks: the kernel prepares all the same, and gets something to point at */
    if (plan->bound.kernel->ops->update_values != NULL)
        SPK_TRY(plan->bound.kernel->ops->update_values(&plan->bound, elements > 0 ? values : &nothing));
    plan->values = values;
    return SPK_OK;
}

spk_status spk_plan_get_info(const spk_plan *plan, spk_plan_info *info)
{
    SPK_TRY(enter_plan(plan));
    SPK_TRY(spk_check_pointer(info, "info"));
    spk_plan_info ours = {.kernel = plan->bound.kernel->name,
                          .params = plan->params,
                          .why = plan->why,
                          .from_store = plan->from_store,
                          .workspace_bytes = plan->workspace_bytes,
                          .prepare_us = plan->prepare_us};
    return spk_struct_write(info, &ours, sizeof ours, "spk_plan_info");
}

size_t spk_plan_workspace_bytes(const spk_plan *plan)
{
    return plan != NULL ? plan->workspace_bytes : 0;
}

const char *spk_plan_choice(const spk_plan *plan)
{
    return plan != NULL ? plan->choice : "";
}

spk_status spk_matmul(spk_context *context, spk_pattern *pattern, const spk_spmm *spmm, const spk_spmm_args *given, const spk_tune_options *theirs)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    void *stream = NULL;
    SPK_TRY(read_problem(context, pattern, spmm, theirs, &options, &problem));
    SPK_TRY(spk_check_pointer(given, "args"));
    SPK_TRY(read_args(given, &args, &stream));
    if (problem.static_values)
        return spk_fail(SPK_ERR_ARGUMENT, "static_values = 1: spk_matmul takes the values at each call; make a plan instead");
    spk_plan *plan = options.fresh ? NULL : spk_plan_cache_find(context->plans, &problem, &options);
    if (plan == NULL) {
        SPK_TRY(spk_plan_make(context, &problem, &options, &plan));
        spk_plan_cache_add(context->plans, &context->mem, &problem, &options, plan);
    }
    spk_status status = spk_plan_run(plan, &args, stream);
    spk_plan_release(&plan);
    return status;
}

spk_status spk_oracle_spmm(spk_context *context, const spk_pattern *pattern, const spk_spmm *spmm, const spk_spmm_args *theirs, const int64_t *rows,
                           int64_t row_count, double *out, double *preact, double *magnitude)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    SPK_TRY(read_problem(context, (spk_pattern *)pattern, spmm, NULL, &options, &problem));
    SPK_TRY(spk_check_pointer(theirs, "args"));
    SPK_TRY(read_args(theirs, &args, NULL));
    if (rows == NULL)
        row_count = problem.m;
    if (row_count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_count = %lld: it cannot be negative", (long long)row_count);
    for (int64_t i = 0; rows != NULL && i < row_count; i++)
        if (rows[i] < 0 || rows[i] >= problem.m)
            return spk_fail(SPK_ERR_ARGUMENT, "rows[%lld] = %lld: the rows are 0..%lld", (long long)i, (long long)rows[i], (long long)problem.m - 1);
    if (row_count == 0 || problem.n == 0)
        return SPK_OK;
    SPK_TRY(spk_check_pointer(out, "out"));
    /* The oracle writes neither d nor preact: anything aligned that overlaps nothing passes the check of the others. */
    args.d = args.preact = NULL;
    SPK_TRY(spk_problem_check_inputs(&problem, &args));
    return spk_oracle_run(&context->mem, &problem, &args, rows, row_count, out, preact, magnitude);
}

spk_status spk_default_tolerance(spk_context *context, const spk_pattern *pattern, const spk_spmm *spmm, double *tolerance)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, (spk_pattern *)pattern, spmm, NULL, &options, &problem));
    SPK_TRY(spk_check_pointer(tolerance, "tolerance"));
    *tolerance = spk_problem_tolerance(&problem);
    return SPK_OK;
}
