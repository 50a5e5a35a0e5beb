/* The entry points of SpMM. */
#include "api/context.h"

spk_status spk_plan_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                         spk_plan **plan)
{
    return spk_asked_plan(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, plan);
}

spk_status spk_run_spmm(const spk_plan *plan, const spk_spmm_args *args, void *stream)
{
    return spk_asked_run(&spk_op_spmm, plan, args, stream);
}

spk_status spk_matmul(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_spmm_args *args,
                      const spk_tune_options *options)
{
    return spk_asked_now(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, args);
}

spk_status spk_oracle_spmm(spk_context *context, const spk_pattern *pattern, const spk_spmm *problem, const spk_spmm_args *args,
                           const int64_t *rows, int64_t row_count, double *out, double *preact, double *magnitude)
{
    return spk_asked_oracle(&(spk_asked){&spk_op_spmm, context, (spk_pattern *)pattern, problem, NULL}, args, rows, row_count, out, preact,
                            magnitude);
}

spk_status spk_default_tolerance(spk_context *context, const spk_pattern *pattern, const spk_spmm *problem, double *tolerance)
{
    return spk_asked_tolerance(&(spk_asked){&spk_op_spmm, context, (spk_pattern *)pattern, problem, NULL}, tolerance);
}

spk_status spk_list_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                         spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, spk_tune_list, report);
}

spk_status spk_tune_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                         spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, spk_tune_problem, report);
}

spk_status spk_explain_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                            spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, spk_tune_explain, report);
}

spk_status spk_race_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                         const spk_race_options *race, spk_report **report)
{
    return spk_asked_race(&(spk_asked){&spk_op_spmm, context, pattern, problem, options}, race, report);
}
