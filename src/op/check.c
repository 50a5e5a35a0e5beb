/* The arguments of a run against their problem. */
#include <math.h>
#include <stdint.h>

#include "op/overlap.h"
#include "op/problem.h"

typedef struct operand_range {
    const char *name;
    const void *start;
    size_t bytes;
    int64_t ld, stride;
} operand_range;

static spk_status check_pointer(const spk_problem *problem, spk_operand operand, operand_range *range)
{
    int64_t elements = spk_problem_operand_elements(problem, operand);
    size_t element_bytes = spk_dtype_bytes(spk_problem_operand_dtype(problem, operand));
    range->bytes = (size_t)elements * element_bytes;
    if (elements == 0)
        return SPK_OK;
    if (range->start == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s is NULL: %lld elements of %s are needed", range->name, (long long)elements,
                        spk_dtype_name(spk_problem_operand_dtype(problem, operand)));
    if ((uintptr_t)range->start % element_bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s = %p is not aligned to its elements of %zu bytes", range->name, range->start,
                        element_bytes);
    return SPK_OK;
}

static bool apart(const operand_range *a, const operand_range *b)
{
    return a->bytes == 0 || b->bytes == 0 || (uintptr_t)a->start >= (uintptr_t)b->start + b->bytes ||
           (uintptr_t)b->start >= (uintptr_t)a->start + a->bytes;
}

/* The lines of all items of an operand that has elements. */
static spk_area operand_area(const spk_problem *problem, spk_operand operand, const void *start)
{
    spk_lines l = spk_problem_operand_lines(problem, operand);
    const int64_t bytes = (int64_t)spk_dtype_bytes(spk_problem_operand_dtype(problem, operand));
    if (l.ld == l.length) /* one long line, whatever the other array's leading dimension */
        l = (spk_lines){1, l.lines * l.length, l.lines * l.length};
    return (spk_area){.start = (uintptr_t)start,
                      .width = l.length * bytes,
                      .dims = {{l.lines, l.ld * bytes}, {problem->batch, spk_problem_operand_stride(problem, operand) * bytes}}};
}

/* Whether two operands share an element. */
static bool overlap(const spk_problem *problem, const operand_range all[SPK_OPERAND_COUNT], spk_operand one, spk_operand other)
{
    if (apart(&all[one], &all[other]))
        return false;
    const spk_area a = operand_area(problem, one, all[one].start), b = operand_area(problem, other, all[other].start);
    return spk_areas_meet(&a, &b);
}

static void operand_ranges(const spk_problem *problem, const spk_args *args, operand_range all[SPK_OPERAND_COUNT])
{
    const int64_t lds[] = {problem->lda, problem->ldb, problem->ldc, problem->ldd, 0, problem->ldr, problem->ldp};
    for (int i = 0; i < SPK_OPERAND_COUNT; i++) {
        const spk_operand operand = (spk_operand)i;
        all[i] = (operand_range){spk_problem_operand_name(problem, operand), spk_args_get(args, operand), 0, lds[i],
                                 spk_problem_operand_stride(problem, operand)};
    }
}

static spk_status check_inputs(const spk_problem *problem, const spk_args *args, operand_range all[SPK_OPERAND_COUNT])
{
    if (!isfinite(args->alpha))
        return spk_fail(SPK_ERR_ARGUMENT, "args.alpha = %g: it must be finite", args->alpha);
    if (problem->epilogue.use_c && !isfinite(args->beta))
        return spk_fail(SPK_ERR_ARGUMENT, "args.beta = %g: it must be finite", args->beta);
    for (int i = 0; i < SPK_OPERAND_COUNT; i++)
        if (i != SPK_OPERAND_D && i != SPK_OPERAND_PREACT && !(i == SPK_OPERAND_C && args->beta == 0)) /* beta = 0 never reads c */
            SPK_TRY(check_pointer(problem, (spk_operand)i, &all[i]));
    return SPK_OK;
}

spk_status spk_problem_check_inputs(const spk_problem *problem, const spk_args *args)
{
    operand_range all[SPK_OPERAND_COUNT];
    operand_ranges(problem, args, all);
    return check_inputs(problem, args, all);
}

spk_status spk_problem_check_args(const spk_problem *problem, const spk_args *args)
{
    operand_range all[SPK_OPERAND_COUNT];
    operand_ranges(problem, args, all);
    SPK_TRY(check_inputs(problem, args, all));
    static const spk_operand outputs[] = {SPK_OPERAND_D, SPK_OPERAND_PREACT};
    for (int i = 0; i < 2; i++)
        SPK_TRY(check_pointer(problem, outputs[i], &all[outputs[i]]));
    for (int i = 0; i < 2; i++)
        for (int in = 0; in < SPK_OPERAND_COUNT; in++) {
            const operand_range *a = &all[outputs[i]], *b = &all[in];
            bool may_share = outputs[i] == SPK_OPERAND_D && (in == SPK_OPERAND_C || in == SPK_OPERAND_RESIDUAL);
            if (a == b || (may_share && a->start == b->start && a->ld == b->ld && a->stride == b->stride) ||
                !overlap(problem, all, outputs[i], (spk_operand)in))
                continue;
            return spk_fail(SPK_ERR_ARGUMENT, "args.%s [%p, %zu bytes] overlaps args.%s [%p, %zu bytes]", a->name, a->start, a->bytes,
                            b->name, b->start, b->bytes);
        }
    return SPK_OK;
}
