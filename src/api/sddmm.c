/* The entry points of SDDMM. */
#include "api/context.h"

spk_status spk_plan_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_tune_options *options,
                          spk_plan **plan)
{
    return spk_asked_plan(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, plan);
}

spk_status spk_run_sddmm(const spk_plan *plan, const spk_sddmm_args *args, void *stream)
{
    return spk_asked_run(&spk_op_sddmm, plan, args, stream);
}

spk_status spk_matmul_sampled(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_sddmm_args *args,
                              const spk_tune_options *options)
{
    return spk_asked_now(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, args);
}

spk_status spk_oracle_sddmm(spk_context *context, const spk_pattern *pattern, const spk_sddmm *problem, const spk_sddmm_args *args,
                            const int64_t *rows, int64_t row_count, double *out, double *magnitude)
{
    return spk_asked_oracle(&(spk_asked){&spk_op_sddmm, context, (spk_pattern *)pattern, problem, NULL}, args, rows, row_count, out, NULL,
                            magnitude);
}

spk_status spk_default_tolerance_sddmm(spk_context *context, const spk_pattern *pattern, const spk_sddmm *problem, double *tolerance)
{
    return spk_asked_tolerance(&(spk_asked){&spk_op_sddmm, context, (spk_pattern *)pattern, problem, NULL}, tolerance);
}

spk_status spk_list_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_tune_options *options,
                          spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, spk_tune_list, report);
}

spk_status spk_tune_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_tune_options *options,
                          spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, spk_tune_problem, report);
}

spk_status spk_explain_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_tune_options *options,
                             spk_report **report)
{
    return spk_asked_report(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, spk_tune_explain, report);
}

spk_status spk_race_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_tune_options *options,
                          const spk_race_options *race, spk_report **report)
{
    return spk_asked_race(&(spk_asked){&spk_op_sddmm, context, pattern, problem, options}, race, report);
}
