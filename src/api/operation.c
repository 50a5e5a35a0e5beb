/* The entry points of every operation: a caller's question becomes a problem, and the layers below know the rest. */
#include <stddef.h>
#include <string.h>

#include "api/context.h"

/* How every description and all arguments begin. */
typedef struct head {
    size_t struct_size;
    spk_operation operation;
    int reserved; /* of arguments */
} head;

/* The operation that a caller's struct says it is of. */
static spk_status find_operation(const void *theirs, const char *what, const spk_op **op)
{
    head given = {0};
    SPK_TRY(spk_check_pointer(theirs, what));
    memcpy(&given.struct_size, theirs, sizeof given.struct_size);
    if (given.struct_size < sizeof given)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "%s.struct_size is %zu: initialise the struct with SPK_SIZED, as in {SPK_SIZED(spk_spmm), .n = 512}", what,
                        given.struct_size);
    memcpy(&given.operation, (const char *)theirs + offsetof(head, operation), sizeof given.operation);
    *op = spk_op_get(given.operation);
    if (*op == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "%s.operation = %d: this version has no such operation; SPK_SIZED sets it", what,
                        (int)given.operation);
    return SPK_OK;
}

/* A question of a caller, nothing of it checked yet. options may be NULL. */
typedef struct question {
    spk_context *context;
    const spk_pattern *pattern;
    const void *problem;
    const spk_tune_options *options;
} question;

/* The problem as it was given: its items are those of the batch. */
static spk_status read_items(const question *asked, spk_tune_options *options, spk_problem *problem)
{
    const spk_op *op = NULL;
    SPK_TRY(spk_enter(asked->context));
    SPK_TRY(find_operation(asked->problem, "problem", &op));
    if (op->takes_pattern == SPK_PATTERN_NEEDED)
        SPK_TRY(spk_check_pointer(asked->pattern, "pattern"));
    else if (op->takes_pattern == SPK_PATTERN_NONE && asked->pattern != NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "pattern = %p: %s has none, give NULL", (const void *)asked->pattern, op->name);
    if (asked->pattern != NULL && asked->pattern->owner != asked->context)
        return spk_fail(SPK_ERR_ARGUMENT, "pattern = %p is of another context: make one in this context", (const void *)asked->pattern);
    SPK_TRY(spk_tune_options_read(asked->options, options));
    return spk_problem_read(op, (spk_pattern *)asked->pattern, asked->problem, options, problem);
}

static spk_status read_problem(const question *asked, spk_tune_options *options, spk_problem *problem)
{
    SPK_TRY(read_items(asked, options, problem));
    spk_problem_fold(problem);
    return SPK_OK;
}

/* Arguments, which must be of this operation. whose: how the message goes on that says they are not ("the plan was made for"). */
static spk_status read_args(const spk_op *op, const char *whose, const void *theirs, spk_args *args, void **stream)
{
    const spk_op *given = NULL;
    int reserved = 0;
    SPK_TRY(find_operation(theirs, "args", &given));
    if (given != op)
        return spk_fail(SPK_ERR_ARGUMENT, "args.operation = %d (%s): %s %s", (int)given->id, given->name, whose, op->name);
    memcpy(&reserved, (const char *)theirs + offsetof(head, reserved), sizeof reserved);
    if (reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.reserved = %d: it must be 0", reserved);
    return spk_args_read(op, theirs, args, stream);
}

spk_status spk_plan_create(spk_context *context, spk_pattern *pattern, const void *theirs, const spk_tune_options *their_options,
                           spk_plan **plan)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(&(question){context, pattern, theirs, their_options}, &options, &problem));
    SPK_TRY(spk_check_pointer(plan, "plan"));
    return spk_plan_make(context, &problem, &options, plan);
}

spk_status spk_plan_run(const spk_plan *plan, const void *theirs, void *stream)
{
    spk_args args;
    SPK_TRY(spk_plan_enter_run(plan, stream));
    SPK_TRY(read_args(plan->bound.problem.op, "the plan was made for", theirs, &args, NULL));
    return spk_plan_launch(plan, &args, stream);
}

static const char args_of_problem[] = "the problem is one of";

/* The plan of a question that was not asked lately; its arguments are read before anything is tuned. */
static spk_status find_plan(const question *asked, const void *their_args, spk_args *args, void **stream, spk_plan **plan)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(read_args(problem.op, args_of_problem, their_args, args, stream));
    SPK_TRY(spk_plan_find(asked->context, &problem, &options, plan));
    spk_recent_add(asked->context->recent, asked->pattern, asked->problem, asked->options, *plan);
    return SPK_OK;
}

spk_status spk_compute(spk_context *context, spk_pattern *pattern, const void *theirs, const void *their_args,
                       const spk_tune_options *their_options)
{
    spk_args args;
    void *stream = NULL;
    spk_status status;
    SPK_TRY(spk_enter(context));
    spk_plan *plan = spk_recent_find(context->recent, pattern, theirs, their_options);
    if (plan != NULL)
        SPK_GOTO(read_args(plan->bound.problem.op, args_of_problem, their_args, &args, &stream));
    else
        SPK_TRY(find_plan(&(question){context, pattern, theirs, their_options}, their_args, &args, &stream, &plan));
    status = spk_plan_launch(plan, &args, stream);
done:
    spk_plan_release(&plan);
    return status;
}

static spk_status check_operand(const spk_problem *problem, int operand)
{
    if (operand < 0 || operand >= problem->op->operand_count)
        return spk_fail(SPK_ERR_ARGUMENT, "operand = %d: %s has %d operands", operand, problem->op->name, problem->op->operand_count);
    return SPK_OK;
}

/* The output that a caller means: an operand, or the first one that the problem has. */
static spk_status find_output(const spk_problem *problem, int operand, int *output)
{
    if (operand == SPK_FIRST_OUTPUT)
        operand = spk_problem_first_output(problem);
    SPK_TRY(check_operand(problem, operand));
    const char *name = problem->op->operands[operand].name;
    if (problem->op->operands[operand].role != SPK_ROLE_OUT)
        return spk_fail(SPK_ERR_ARGUMENT, "operand = %d: %s is no output of %s", operand, name, problem->op->name);
    if (problem->operand[operand].dtype == SPK_DTYPE_DEFAULT)
        return spk_fail(SPK_ERR_ARGUMENT, "operand = %d: this problem has no %s", operand, name);
    *output = operand;
    return SPK_OK;
}

/* The oracle on a caller's rows, which are checked. */
static spk_status oracle_rows(const spk_context *context, const spk_problem *problem, const spk_args *args, spk_oracle_ask *ask)
{
    const int64_t most = spk_problem_output_rows(problem, ask->output);
    if (ask->rows == NULL)
        ask->row_count = most;
    if (ask->row_count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_count = %lld: it cannot be negative", (long long)ask->row_count);
    for (int64_t i = 0; ask->rows != NULL && i < ask->row_count; i++)
        if (ask->rows[i] < 0 || ask->rows[i] >= most)
            return spk_fail(SPK_ERR_ARGUMENT, "rows[%lld] = %lld: the rows are 0..%lld", (long long)i, (long long)ask->rows[i],
                            (long long)most - 1);
    if (ask->row_count == 0 || !spk_problem_writes(problem, ask->output))
        return SPK_OK;
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_fetch(problem->pattern));
    SPK_TRY(spk_check_pointer(ask->want, "out"));
    SPK_TRY(spk_problem_check_inputs(problem, args));
    SPK_TRY(spk_problem_check_indices(problem, args));
    ask->cols = problem->operand[ask->output].cols;
    return problem->op->oracle(&context->mem, problem, args, ask);
}

spk_status spk_oracle(spk_context *context, const spk_pattern *pattern, const void *theirs, const void *their_args, int operand,
                      const int64_t *rows, int64_t row_count, double *out, double *magnitude)
{
    spk_tune_options options;
    spk_problem problem;
    spk_args args;
    spk_oracle_ask ask = {.rows = rows, .row_count = row_count, .want = out, .magnitude = magnitude};
    SPK_TRY(read_items(&(question){context, pattern, theirs, NULL}, &options, &problem));
    SPK_TRY(read_args(problem.op, "the problem is one of", their_args, &args, NULL));
    SPK_TRY(find_output(&problem, operand, &ask.output));
    return oracle_rows(context, &problem, &args, &ask);
}

spk_status spk_default_tolerance(spk_context *context, const spk_pattern *pattern, const void *theirs, int operand, double *tolerance)
{
    spk_tune_options options;
    spk_problem problem;
    int output = 0;
    SPK_TRY(read_problem(&(question){context, pattern, theirs, NULL}, &options, &problem));
    SPK_TRY(find_output(&problem, operand, &output));
    SPK_TRY(spk_check_pointer(tolerance, "tolerance"));
    *tolerance = spk_problem_tolerance(&problem, output);
    return SPK_OK;
}

spk_status spk_problem_get_info(spk_context *context, const spk_pattern *pattern, const void *theirs, spk_problem_info *info)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_items(&(question){context, pattern, theirs, NULL}, &options, &problem));
    SPK_TRY(spk_check_pointer(info, "info"));
    spk_problem_info ours = {.operation = problem.op->id,
                             .compute = problem.compute,
                             .items = problem.batch,
                             .flops = spk_problem_flops(&problem),
                             .dense_flops = spk_problem_dense_flops(&problem),
                             .bytes = spk_problem_bytes(&problem)};
    for (int i = 0; i < problem.op->size_count; i++)
        memcpy(&ours.sizes[i], (const char *)&problem + problem.op->sizes[i].place, sizeof ours.sizes[i]);
    return spk_struct_write(info, &ours, sizeof ours, "spk_problem_info");
}

spk_status spk_problem_get_array(spk_context *context, const spk_pattern *pattern, const void *theirs, int operand, spk_array_info *info)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_items(&(question){context, pattern, theirs, NULL}, &options, &problem));
    SPK_TRY(spk_check_pointer(info, "info"));
    SPK_TRY(check_operand(&problem, operand));
    const spk_operand *o = &problem.operand[operand];
    const spk_array_info ours = {.rows = o->rows,
                                 .cols = o->cols,
                                 .ld = o->ld,
                                 .stride = o->stride,
                                 .elements = spk_problem_operand_elements(&problem, operand),
                                 .dtype = o->dtype,
                                 .layout = o->layout,
                                 .heads = o->dtype != SPK_DTYPE_DEFAULT ? spk_operand_heads(o) : 0,
                                 .head_stride = o->head_stride};
    return spk_struct_write(info, &ours, sizeof ours, "spk_array_info");
}

spk_status spk_problem_fill(spk_context *context, const spk_pattern *pattern, const void *theirs, int operand, uint64_t seed, void *out)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_items(&(question){context, pattern, theirs, NULL}, &options, &problem));
    SPK_TRY(check_operand(&problem, operand));
    const int64_t elements = spk_problem_operand_elements(&problem, operand);
    if (elements == 0)
        return SPK_OK;
    SPK_TRY(spk_check_pointer(out, "out"));
    if (!spk_problem_is_index(&problem, operand))
        return spk_generate_values(problem.operand[operand].dtype, elements, seed, out);
    spk_problem_draw_index(&problem, operand, seed, out);
    return SPK_OK;
}

typedef spk_status (*report_maker)(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                   spk_report **report);

static spk_status make_report(const question *asked, report_maker maker, spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    SPK_TRY(read_problem(asked, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    const spk_tuner tuner = spk_context_tuner_for(asked->context, &options);
    return maker(&tuner, &problem, &options, report);
}

spk_status spk_list_candidates(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                               spk_report **report)
{
    return make_report(&(question){context, pattern, problem, options}, spk_tune_list, report);
}

spk_status spk_tune(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options, spk_report **report)
{
    return make_report(&(question){context, pattern, problem, options}, spk_tune_problem, report);
}

spk_status spk_explain(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                       spk_report **report)
{
    return make_report(&(question){context, pattern, problem, options}, spk_tune_explain, report);
}

spk_status spk_race_kernels(spk_context *context, spk_pattern *pattern, const void *their_problem, const spk_tune_options *their_options,
                            const spk_race_options *theirs, spk_report **report)
{
    spk_tune_options options;
    spk_problem problem;
    spk_race_options race = {SPK_SIZED(spk_race_options)};
    SPK_TRY(read_problem(&(question){context, pattern, their_problem, their_options}, &options, &problem));
    SPK_TRY(spk_check_pointer(report, "report"));
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&race, sizeof race, theirs, "spk_race_options"));
    if (race.rounds < 0 || race.rounds > 10000)
        return spk_fail(SPK_ERR_ARGUMENT, "rounds = %d: the limits are 0 (20 rounds) and 10000", race.rounds);
    if (race.all != 0 && race.all != 1)
        return spk_fail(SPK_ERR_ARGUMENT, "race.all = %d: it is 0 or 1", race.all);
    const spk_tuner tuner = spk_context_tuner_for(context, &options);
    return spk_tune_race(&tuner, &problem, &options, &race, report);
}
