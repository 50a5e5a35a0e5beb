/* The entry points of SpMM. */
#include "api/context.h"

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

static spk_status read_problem(spk_context *context, spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *their_options,
                               spk_tune_options *options, spk_problem *problem)
{
    SPK_TRY(spk_enter_problem(context, pattern, theirs, their_options, options));
    SPK_TRY(spk_problem_from_spmm(pattern, theirs, options, problem));
    spk_problem_fold(problem);
    return SPK_OK;
}

spk_status spk_plan_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *their_options, spk_plan **plan)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, pattern, theirs, their_options, &options, &problem));
    SPK_TRY(spk_check_pointer(plan, "plan"));
    return spk_plan_make(context, &problem, &options, plan);
}

spk_status spk_run_spmm(const spk_plan *plan, const spk_spmm_args *theirs, void *stream)
{
    spk_args args;
    SPK_TRY(spk_plan_enter_run(plan, SPK_SPMM, theirs, stream));
    SPK_TRY(read_args(theirs, &args, NULL));
    return spk_plan_run(plan, &args, stream);
}

spk_status spk_matmul(spk_context *context, spk_pattern *pattern, const spk_spmm *theirs, const spk_spmm_args *given, const spk_tune_options *their_options)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    void *stream = NULL;
    SPK_TRY(read_problem(context, pattern, theirs, their_options, &options, &problem));
    SPK_TRY(spk_check_pointer(given, "args"));
    SPK_TRY(read_args(given, &args, &stream));
    return spk_plan_now(context, &problem, &options, &args, stream);
}

spk_status spk_oracle_spmm(spk_context *context, const spk_pattern *pattern, const spk_spmm *theirs, const spk_spmm_args *given, const int64_t *rows,
                           int64_t row_count, double *out, double *preact, double *magnitude)
{
    spk_tune_options options;
    spk_problem problem; /* as it was given: its rows are those of the items */
    spk_args args;
    SPK_TRY(spk_enter_problem(context, pattern, theirs, NULL, &options));
    SPK_TRY(spk_problem_from_spmm((spk_pattern *)pattern, theirs, &options, &problem));
    SPK_TRY(spk_check_pointer(given, "args"));
    SPK_TRY(read_args(given, &args, NULL));
    return spk_oracle_rows(context, &problem, &args, rows, row_count, out, preact, magnitude);
}

spk_status spk_default_tolerance(spk_context *context, const spk_pattern *pattern, const spk_spmm *theirs, double *tolerance)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, (spk_pattern *)pattern, theirs, NULL, &options, &problem));
    SPK_TRY(spk_check_pointer(tolerance, "tolerance"));
    *tolerance = spk_problem_tolerance(&problem);
    return SPK_OK;
}

static spk_status make_report(spk_report_maker maker, spk_context *context, spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *their_options,
                              spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, pattern, theirs, their_options, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    const spk_tuner tuner = spk_context_tuner(context);
    return maker(&tuner, &problem, &options, report);
}

spk_status spk_list_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options, spk_report **report)
{
    return make_report(spk_tune_list, context, pattern, problem, options, report);
}

spk_status spk_tune_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options, spk_report **report)
{
    return make_report(spk_tune_problem, context, pattern, problem, options, report);
}

spk_status spk_explain_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options, spk_report **report)
{
    return make_report(spk_tune_explain, context, pattern, problem, options, report);
}

spk_status spk_race_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *their_options,
                         const spk_race_options *race, spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(context, pattern, theirs, their_options, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    return spk_race_problem(context, &problem, &options, race, report);
}
