/* What the entry points of each operation share. */
#include "api/context.h"

/* The problem as it was given: its items are those of the batch. */
static spk_status read_items(const spk_asked *asked, spk_tune_options *options, spk_problem *problem)
{
    SPK_TRY(spk_enter(asked->context));
    if (asked->op->needs_pattern)
        SPK_TRY(spk_check_pointer(asked->pattern, "pattern"));
    SPK_TRY(spk_check_pointer(asked->problem, "problem"));
    SPK_TRY(spk_tune_options_read(asked->options, options));
    return spk_problem_read(asked->op, asked->pattern, asked->problem, options, problem);
}

static spk_status read_problem(const spk_asked *asked, spk_tune_options *options, spk_problem *problem)
{
    SPK_TRY(read_items(asked, options, problem));
    spk_problem_fold(problem);
    return SPK_OK;
}

spk_status spk_asked_plan(const spk_asked *asked, spk_plan **plan)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(plan, "plan"));
    return spk_plan_make(asked->context, &problem, &options, plan);
}

spk_status spk_asked_run(const spk_op *op, const spk_plan *plan, const void *theirs, void *stream)
{
    spk_args args;
    SPK_TRY(spk_plan_enter_run(plan, op, theirs, stream));
    SPK_TRY(spk_args_read(op, theirs, &args, NULL));
    return spk_plan_run(plan, &args, stream);
}

spk_status spk_asked_now(const spk_asked *asked, const void *theirs)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    void *stream = NULL;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(theirs, "args"));
    SPK_TRY(spk_args_read(asked->op, theirs, &args, &stream));
    return spk_plan_now(asked->context, &problem, &options, &args, stream);
}

/* The oracle on a caller's rows, which are checked. */
static spk_status oracle_rows(const spk_context *context, const spk_problem *problem, spk_args *args, const int64_t *rows,
                              int64_t row_count, double *out, double *preact, double *magnitude)
{
    const int64_t most = problem->batch * spk_problem_out_rows(problem);
    if (rows == NULL)
        row_count = most;
    if (row_count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_count = %lld: it cannot be negative", (long long)row_count);
    for (int64_t i = 0; rows != NULL && i < row_count; i++)
        if (rows[i] < 0 || rows[i] >= most)
            return spk_fail(SPK_ERR_ARGUMENT, "rows[%lld] = %lld: the rows are 0..%lld", (long long)i, (long long)rows[i],
                            (long long)most - 1);
    if (row_count == 0 || spk_problem_is_empty(problem))
        return SPK_OK;
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_fetch(problem->pattern));
    SPK_TRY(spk_check_pointer(out, "out"));
    SPK_TRY(spk_problem_check_inputs(problem, args));
    spk_oracle_ask ask = {.rows = rows, .row_count = row_count, .cols = spk_problem_out_cols(problem)};
    ask.out[SPK_D].want = out;
    ask.out[SPK_D].magnitude = magnitude;
    ask.out[SPK_PREACT].want = preact;
    return problem->op->oracle(&context->mem, problem, args, &ask);
}

spk_status spk_asked_oracle(const spk_asked *asked, const void *theirs, const int64_t *rows, int64_t row_count, double *out, double *preact,
                            double *magnitude)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    SPK_TRY(read_items(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(theirs, "args"));
    SPK_TRY(spk_args_read(asked->op, theirs, &args, NULL));
    return oracle_rows(asked->context, &problem, &args, rows, row_count, out, preact, magnitude);
}

spk_status spk_asked_tolerance(const spk_asked *asked, double *tolerance)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(tolerance, "tolerance"));
    *tolerance = spk_problem_tolerance(&problem);
    return SPK_OK;
}

spk_status spk_asked_report(const spk_asked *asked, spk_report_maker maker, spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    const spk_tuner tuner = spk_context_tuner(asked->context);
    return maker(&tuner, &problem, &options, report);
}

spk_status spk_asked_race(const spk_asked *asked, const spk_race_options *theirs, spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    spk_race_options race = {.struct_size = sizeof race};
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&race, sizeof race, theirs, "spk_race_options"));
    if (race.rounds < 0 || race.rounds > 10000)
        return spk_fail(SPK_ERR_ARGUMENT, "rounds = %d: the limits are 0 (20 rounds) and 10000", race.rounds);
    if (race.reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "race.reserved = %d: it must be 0", race.reserved);
    const spk_tuner tuner = spk_context_tuner(asked->context);
    return spk_tune_race(&tuner, &problem, &options, &race, report);
}
