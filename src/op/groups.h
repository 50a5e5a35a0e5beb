/* Groups of a product (spk_gemm.groups), for who can read their offsets. */
#ifndef SPK_OP_GROUPS_H
#define SPK_OP_GROUPS_H

#include "op/problem.h"

/* Where a group begins and ends on the axis that is cut. */
typedef struct spk_group_range {
    int64_t begin, end;
} spk_group_range;

static inline spk_group_range spk_group_at(const spk_args *args, int64_t group)
{
    const int32_t *ends = args->offsets;
    return (spk_group_range){group > 0 ? ends[group - 1] : 0, ends[group]};
}

/* The product of one group, as one without groups, and its arguments. */
void spk_group_take(const spk_problem *problem, const spk_args *args, int64_t group, spk_problem *one, spk_args *of_one);

/* The same of an item, whether it is one of a batch or a group. */
static inline void spk_product_take(const spk_problem *problem, const spk_args *args, int64_t item, spk_problem *one, spk_args *of_one)
{
    if (problem->group_axis != SPK_GROUP_NONE) {
        spk_group_take(problem, args, item, one, of_one);
        return;
    }
    *one = spk_problem_item(problem);
    *of_one = spk_args_item(problem, args, item);
}

#endif
