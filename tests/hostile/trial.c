/* A case: a problem, what is said of it, a plan, runs. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

static const double MOST_BYTES = 3e7, MOST_FLOPS = 2e7; /* of a problem that runs: sanitizers are slow */

/* What is said of a problem must be so, however large it is. */
static void look(trial *t, double *bytes)
{
    trial_look_at_arrays(t, bytes);
    if (!(t->info.flops >= 0) || !(t->info.bytes >= 0) || !(t->info.dense_flops >= 0) || t->info.items < 0)
        fail(t, "flops = %g, dense_flops = %g, bytes = %g, items = %lld", t->info.flops, t->info.dense_flops, t->info.bytes,
             (long long)t->info.items);
}

/* One of the rows of the operation on the processor. */
static const char *draw_row(trial *t)
{
    const char *names[256];
    int count = 0;
    for (int i = 0; i < spk_kernel_count() && count < 256; i++) {
        spk_kernel_info row = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &row) == SPK_OK && row.operation == t->op->info.operation && strcmp(row.device, "cpu") == 0)
            names[count++] = row.name;
    }
    return count > 0 ? names[draw_below(&t->d, count)] : NULL;
}

/* The operand that the problem promises to keep. */
static int packed_operand(const trial *t)
{
    const spk_field_info *promise = field_named(t->op, "static_values");
    for (int i = 0; promise != NULL && field_get(promise, &t->problem) != 0 && i < t->op->info.operand_count; i++)
        if (t->op->operands[i].may_be_static)
            return i;
    return -1;
}

static void plan(trial *t, bool large)
{
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE, .tuning = SPK_TUNING_NEVER};
    t->packed = packed_operand(t);
    t->in_place = !large && t->packed < 0 && draw_chance(&t->d, 6); /* with values that are packed this would be tuning, of seconds */
    if (t->in_place)
        options = (spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    options.only = draw_chance(&t->d, 80) ? draw_row(t) : NULL;
    spk_status status = spk_plan_create(t->context, t->pattern, &t->problem, &options, &t->plan);
    if (status == SPK_ERR_NO_CANDIDATE && options.only != NULL) { /* the row does not compute it */
        options.only = NULL;
        status = spk_plan_create(t->context, t->pattern, &t->problem, &options, &t->plan);
    }
    t->workspace_bytes = spk_plan_workspace_bytes(t->plan);
    if (status == SPK_OK)
        return;
    check_refused(t, "a plan");
    if (!large || (status != SPK_ERR_OUT_OF_MEMORY && status != SPK_ERR_NO_CANDIDATE))
        fail(t, "a problem that is taken gets no plan: %s", spk_last_error(t->context));
}

/* Half of the runs have a workspace of their own, as large as the plan asks for by now. */
static spk_status run_once(trial *t)
{
    given args = t->args;
    const size_t bytes = draw_chance(&t->d, 50) ? spk_plan_workspace_bytes(t->plan) : 0;
    void *workspace = bytes > 0 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    memcpy(args.bytes + t->op->info.workspace_offset, &workspace, sizeof workspace);
    memcpy(args.bytes + t->op->info.workspace_bytes_offset, &bytes, sizeof bytes);
    const spk_status status = spk_plan_run(t->plan, &args, NULL);
    free(workspace);
    return status;
}

/* Runs rightly between wrong runs: a plan is as good as new after those. */
static void run(trial *t, tally *sum)
{
    trial_make_arrays(t);
    trial_give_values(t, sum);
    trial_run_wrongly(t, sum);
    spk_status status = SPK_OK;
    for (int64_t left = t->in_place ? 1 + draw_below(&t->d, 90) : 1; left > 0 && status == SPK_OK && t->failures == 0; left--) {
        trial_poison_outputs(t);
        status = run_once(t);
        if (status != SPK_OK)
            fail(t, "a right run is refused: %s", spk_last_error(t->context));
        else
            trial_compare(t, sum);
    }
    trial_poison_outputs(t);
    trial_run_wrongly(t, sum);
    trial_release_arrays(t);
}

/* A problem too large to be run: a run without arrays is refused all the same. */
static void run_without_arrays(trial *t)
{
    const given args = given_args(t->op);
    bool needs = false;
    for (int i = 0; i < t->op->info.operand_count; i++)
        needs = needs || (t->arrays[i].elements > 0 && array_is_out(t, i));
    if (needs && spk_plan_run(t->plan, &args, NULL) == SPK_OK)
        fail(t, "a run without arrays is not refused");
}

static void go_on(trial *t, tally *sum)
{
    double bytes = 0;
    look(t, &bytes);
    const bool large = bytes > MOST_BYTES || t->info.flops > MOST_FLOPS || t->info.dense_flops > 100 * MOST_FLOPS;
    plan(t, large);
    sum->planned += t->plan != NULL;
    sum->too_large += large;
    if (t->plan != NULL && large)
        run_without_arrays(t);
    else if (t->plan != NULL)
        run(t, sum);
}

void trial_run(trial *t, tally *sum)
{
    t->wrong = draw_chance(&t->d, 40);
    trial_draw_problem(t);
    t->info = (spk_problem_info){SPK_SIZED(spk_problem_info)};
    sum->cases++;
    if (spk_problem_get_info(t->context, t->pattern, &t->problem, &t->info) == SPK_OK) {
        if (t->problem.head.operation == t->op->info.operation)
            go_on(t, sum);
        else /* by chance the struct is right for another operation, whose arrays are not these */
            plan(t, true);
        spk_plan_destroy(&t->plan);
    } else {
        sum->refused++;
        check_refused(t, "a problem");
        if (spk_plan_create(t->context, t->pattern, &t->problem, NULL, &t->plan) == SPK_OK)
            fail(t, "a plan is made of a problem that is refused");
        spk_plan_destroy(&t->plan);
    }
    spk_pattern_destroy(&t->pattern);
}
