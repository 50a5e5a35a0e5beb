/* Runs that must be refused, with nothing written: arrays that are missing, arguments of another size or operation, scalars that are no
 * numbers, outputs that are inputs, workspaces that are too small. */
#include "hostile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(trial *t, const given *args, const char *what, const char *which, tally *sum)
{
    const spk_status status = spk_plan_run(t->plan, args, NULL);
    sum->wrong_runs++;
    if (status == SPK_OK)
        fail(t, "a run is not refused: %s %s", which, what);
    else
        check_refused(t, what);
    for (int i = 0; i < t->op->info.operand_count; i++)
        if (t->memory[i] != NULL && memcmp(t->memory[i], t->before[i], (size_t)array_bytes(&t->arrays[i])) != 0)
            fail(t, "a run that is refused (%s %s) wrote %s", which, what, t->op->operands[i].name);
}

void trial_give_values(trial *t, tally *sum)
{
    if (t->packed < 0)
        return;
    void *values = t->memory[t->packed];
    if (values != NULL) {
        refuse(t, &t->args, "were not given", t->op->operands[t->packed].name, sum);
        sum->wrong_runs++;
        if (spk_plan_update_values(t->plan, NULL, NULL) == SPK_OK)
            fail(t, "no values at all are taken");
        else
            check_refused(t, "values");
    }
    if (spk_plan_update_values(t->plan, values, NULL) != SPK_OK)
        fail(t, "values are refused: %s", spk_last_error(t->context));
}

/* Whether a run reads or writes an operand for certain. */
static bool is_needed(const trial *t, int operand)
{
    return t->memory[operand] != NULL && t->op->operands[operand].role != SPK_ROLE_IN_SCALED;
}

static void without_an_array(trial *t, tally *sum)
{
    const int operand = (int)draw_below(&t->d, t->op->info.operand_count);
    given args = t->args;
    if (!is_needed(t, operand) || operand == t->packed) /* which a run does not take */
        return;
    memset(args.bytes + t->op->operands[operand].offset, 0, sizeof(void *));
    refuse(t, &args, "is NULL", t->op->operands[operand].name, sum);
}

static void of_another_size(trial *t, tally *sum)
{
    static const size_t sizes[] = {0, 1, 8, 12, SIZE_MAX, SIZE_MAX - 7, (size_t)1 << 32};
    given args = t->args;
    args.head.struct_size = draw_chance(&t->d, 30) ? t->op->info.args_bytes - 4 : sizes[draw_below(&t->d, 7)];
    char which[48];
    (void)snprintf(which, sizeof which, "struct_size = %zu", args.head.struct_size);
    refuse(t, &args, "is wrong", which, sum);
}

static void of_another_operation(trial *t, tally *sum)
{
    given args = t->args;
    args.head.operation = (spk_operation)((int)t->op->info.operation + 1 + (int)draw_below(&t->d, 3));
    refuse(t, &args, "is another's", "operation", sum);
}

static void with_no_number(trial *t, tally *sum)
{
    if (t->op->info.scalar_count == 0)
        return;
    const spk_scalar_info *scalar = &t->op->scalars[draw_below(&t->d, t->op->info.scalar_count)];
    const double value = (double[]){NAN, INFINITY, -INFINITY}[draw_below(&t->d, 3)];
    given args = t->args;
    if (scalar->operand >= 0 && t->arrays[scalar->operand].dtype == SPK_DTYPE_DEFAULT)
        return;
    memcpy(args.bytes + scalar->offset, &value, sizeof value);
    refuse(t, &args, "is no number", scalar->name, sum);
}

/* An output at the place of an input that it may not be. */
static void over_an_input(trial *t, tally *sum)
{
    const int out = (int)draw_below(&t->d, t->op->info.operand_count), in = (int)draw_below(&t->d, t->op->info.operand_count);
    given args = t->args;
    if (!is_needed(t, out) || !array_is_out(t, out) || !is_needed(t, in) || in == out || (t->op->operands[out].may_be >> in & 1) != 0)
        return;
    if (array_bytes(&t->arrays[out]) > array_bytes(&t->arrays[in])) /* a run that is not refused would leave the array */
        return;
    memcpy(args.bytes + t->op->operands[out].offset, &t->memory[in], sizeof(void *));
    refuse(t, &args, "is an input's array", t->op->operands[out].name, sum);
}

static bool writes_nothing(const trial *t)
{
    for (int i = 0; i < t->op->info.operand_count; i++)
        if (array_is_out(t, i) && t->memory[i] != NULL)
            return false;
    return true;
}

static void with_little_workspace(trial *t, tally *sum)
{
    const size_t needed = t->workspace_bytes, less = needed > 0 ? (size_t)draw_below(&t->d, (int64_t)needed) : 0;
    given args = t->args;
    if (needed == 0 || writes_nothing(t)) /* then it is not used */
        return;
    void *workspace = aligned_alloc(64, (needed + 63) / 64 * 64);
    memcpy(args.bytes + t->op->info.workspace_offset, &workspace, sizeof workspace);
    memcpy(args.bytes + t->op->info.workspace_bytes_offset, &less, sizeof less);
    refuse(t, &args, "is too small", "workspace_bytes", sum);
    free(workspace);
}

void trial_run_wrongly(trial *t, tally *sum)
{
    static void (*const ways[])(trial * t, tally * sum) = {without_an_array, of_another_size, of_another_operation,
                                                           with_no_number,   over_an_input,   with_little_workspace};
    for (int left = 3; left > 0; left--)
        ways[draw_below(&t->d, sizeof ways / sizeof ways[0])](t, sum);
}
