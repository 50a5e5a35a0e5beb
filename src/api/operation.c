/* What the entry points of each operation share. */
#include "api/context.h"

spk_status spk_enter_problem(const spk_context *context, const spk_pattern *pattern, const void *problem, const spk_tune_options *theirs,
                             spk_tune_options *options)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(pattern, "pattern"));
    SPK_TRY(spk_check_pointer(problem, "problem"));
    return spk_tune_options_read(theirs, options);
}

spk_status spk_oracle_rows(const spk_context *context, const spk_problem *problem, spk_args *args, const int64_t *rows, int64_t row_count, double *out,
                           double *preact, double *magnitude)
{
    const int64_t most = problem->batch * spk_problem_d_rows(problem);
    if (rows == NULL)
        row_count = most;
    if (row_count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_count = %lld: it cannot be negative", (long long)row_count);
    for (int64_t i = 0; rows != NULL && i < row_count; i++)
        if (rows[i] < 0 || rows[i] >= most)
            return spk_fail(SPK_ERR_ARGUMENT, "rows[%lld] = %lld: the rows are 0..%lld", (long long)i, (long long)rows[i], (long long)most - 1);
    if (row_count == 0 || spk_problem_is_empty(problem))
        return SPK_OK;
    SPK_TRY(spk_pattern_fetch(problem->pattern));
    SPK_TRY(spk_check_pointer(out, "out"));
    /* The oracle writes neither d nor preact: anything aligned that overlaps nothing passes the check of the others. */
    args->d = args->preact = NULL;
    SPK_TRY(spk_problem_check_inputs(problem, args));
    return spk_oracle_run(&context->mem, problem, args, rows, row_count, out, preact, magnitude);
}

spk_status spk_race_problem(spk_context *context, const spk_problem *problem, const spk_tune_options *options, const spk_race_options *theirs,
                            spk_report **report)
{
    spk_race_options race = {.struct_size = sizeof race};
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&race, sizeof race, theirs, "spk_race_options"));
    if (race.rounds < 0 || race.rounds > 10000)
        return spk_fail(SPK_ERR_ARGUMENT, "rounds = %d: the limits are 0 (20 rounds) and 10000", race.rounds);
    spk_tuner tuner = spk_context_tuner(context);
    return spk_tune_race(&tuner, problem, options, &race, report);
}
