/* The arguments of a run against their problem. */
#include <math.h>
#include <stdint.h>

#include "op/operation.h"
#include "op/overlap.h"

/* Bytes from the first to the last of each operand; 0 where it has none, or is not looked at. */
typedef struct ranges {
    size_t bytes[SPK_MAX_OPERANDS];
} ranges;

static spk_status check_pointer(const spk_problem *problem, const spk_args *args, int i, ranges *all)
{
    const spk_operand *o = &problem->operand[i];
    const char *name = problem->op->operands[i].name;
    const int64_t elements = spk_problem_operand_elements(problem, i);
    if (elements == 0)
        return SPK_OK;
    const size_t element_bytes = spk_dtype_bytes(o->dtype);
    all->bytes[i] = (size_t)elements * element_bytes;
    if (args->at[i] == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s is NULL: %lld elements of %s are needed", name, (long long)elements,
                        spk_dtype_name(o->dtype));
    if ((uintptr_t)args->at[i] % element_bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s = %p is not aligned to its elements of %zu bytes", name, args->at[i], element_bytes);
    return SPK_OK;
}

static bool is_apart(const spk_args *args, const ranges *all, int i, int j)
{
    const uintptr_t a = (uintptr_t)args->at[i], b = (uintptr_t)args->at[j];
    return all->bytes[i] == 0 || all->bytes[j] == 0 || a >= b + all->bytes[j] || b >= a + all->bytes[i];
}

/* The lines of all items of an operand that has elements. */
static spk_area operand_area(const spk_problem *problem, const spk_args *args, int i)
{
    const spk_operand *o = &problem->operand[i];
    const int64_t bytes = (int64_t)spk_dtype_bytes(o->dtype);
    int64_t lines = spk_operand_lines(o), length = spk_operand_length(o), ld = o->ld;
    if (ld == length) { /* one long line, whatever the other array's leading dimension */
        length = ld = lines * length;
        lines = 1;
    }
    return (spk_area){.start = (uintptr_t)args->at[i],
                      .width = length * bytes,
                      .dims = {{lines, ld * bytes}, {spk_operand_heads(o), o->head_stride * bytes}, {problem->batch, o->stride * bytes}}};
}

/* Whether output i may be the very array j, and is. */
static bool is_same(const spk_problem *problem, const spk_args *args, int i, int j)
{
    const spk_operand *a = &problem->operand[i], *b = &problem->operand[j];
    return (problem->op->operands[i].may_be >> j & 1) != 0 && args->at[i] == args->at[j] && a->ld == b->ld && a->stride == b->stride &&
           a->head_stride == b->head_stride;
}

static spk_status check_overlap(const spk_problem *problem, const spk_args *args, const ranges *all, int i, int j)
{
    if (i == j || is_apart(args, all, i, j) || is_same(problem, args, i, j))
        return SPK_OK;
    const spk_area a = operand_area(problem, args, i), b = operand_area(problem, args, j);
    if (!spk_areas_meet(&a, &b))
        return SPK_OK;
    return spk_fail(SPK_ERR_ARGUMENT, "args.%s [%p, %zu bytes] overlaps args.%s [%p, %zu bytes]", problem->op->operands[i].name,
                    args->at[i], all->bytes[i], problem->op->operands[j].name, args->at[j], all->bytes[j]);
}

/* Of what is computed in 32 bits, where a larger one, or its product with a constant of the kernel, would be infinite. */
static const double most_of_float = 1e38;

static spk_status check_scalar(const spk_problem *problem, const spk_scalar_row *s, double value)
{
    if (s->operand >= 0 && problem->operand[s->operand].dtype == SPK_DTYPE_DEFAULT)
        return SPK_OK;
    if (!isfinite(value))
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s = %g: it must be finite", s->name, value);
    if (!spk_type_is_double(problem->compute) && fabs(value) > most_of_float)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s = %g: it must be between -%g and %g, as sums are in float32", s->name, value,
                        most_of_float, most_of_float);
    return SPK_OK;
}

static spk_status check_inputs(const spk_problem *problem, const spk_args *args, ranges *all)
{
    const spk_op *op = problem->op;
    for (int i = 0; i < op->scalar_count; i++)
        SPK_TRY(check_scalar(problem, &op->scalars[i], args->scalar[i]));
    for (int i = 0; i < op->operand_count; i++)
        if (spk_problem_reads(problem, args, i))
            SPK_TRY(check_pointer(problem, args, i, all));
    return SPK_OK;
}

spk_status spk_problem_check_inputs(const spk_problem *problem, const spk_args *args)
{
    ranges all = {{0}};
    return check_inputs(problem, args, &all);
}

spk_status spk_problem_check_args(const spk_problem *problem, const spk_args *args)
{
    const spk_op *op = problem->op;
    ranges all = {{0}};
    SPK_TRY(check_inputs(problem, args, &all));
    for (int i = 0; i < op->operand_count; i++)
        if (spk_problem_writes(problem, i))
            SPK_TRY(check_pointer(problem, args, i, &all));
    for (int i = 0; i < op->operand_count; i++) {
        if (op->operands[i].role != SPK_ROLE_OUT || all.bytes[i] == 0)
            continue;
        for (int j = 0; j < op->operand_count; j++)
            if (all.bytes[j] > 0)
                SPK_TRY(check_overlap(problem, args, &all, i, j));
    }
    return SPK_OK;
}

spk_status spk_problem_check_workspace(const spk_problem *problem, const spk_args *args, size_t bytes)
{
    const spk_area workspace = {.start = (uintptr_t)args->workspace, .width = (int64_t)bytes, .dims = {{1, 0}, {1, 0}, {1, 0}}};
    for (int i = 0; i < problem->op->operand_count; i++) {
        if (!spk_problem_writes(problem, i) && !spk_problem_reads(problem, args, i))
            continue;
        const spk_area area = operand_area(problem, args, i);
        if (spk_areas_meet(&workspace, &area))
            return spk_fail(SPK_ERR_ARGUMENT, "args.workspace [%p, %zu bytes] overlaps args.%s [%p, %zu bytes]", args->workspace, bytes,
                            problem->op->operands[i].name, args->at[i], spk_operand_bytes(&problem->operand[i], problem->batch));
    }
    return SPK_OK;
}
