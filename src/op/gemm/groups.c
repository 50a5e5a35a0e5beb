/* Products that are cut into groups: their offsets, and each group as a product of its own. */
#include "op/groups.h"

#include "op/gemm/gemm.h"

static int64_t size_cut(const spk_problem *p)
{
    return p->group_axis == SPK_GROUP_ROWS ? p->m : p->group_axis == SPK_GROUP_COLS ? p->n : p->k;
}

/* Uneven ones: each group has half to three halves of an equal share, but for one in sixteen, which is empty. The last ends the whole. */
void spk_gemm_draw_offsets(const spk_problem *p, int i, spk_rng *rng, int32_t *out)
{
    const spk_rng start = *rng;
    double total = 0, so_far = 0;
    (void)i;
    for (int turn = 0; turn < 2; turn++) { /* the same draws again: the sum first */
        *rng = start;
        for (int64_t group = 0; group < p->batch; group++) {
            const double share = 0.5 + spk_rng_uniform(rng), weight = spk_rng_below(rng, 16) == 0 ? 0 : share;
            if (turn == 0) {
                total += weight;
                continue;
            }
            so_far += weight;
            out[group] = total > 0 ? (int32_t)(so_far / total * (double)size_cut(p)) : 0;
        }
    }
    out[p->batch - 1] = (int32_t)size_cut(p);
}

spk_status spk_gemm_check_offsets(const spk_problem *p, const spk_args *args)
{
    if (p->group_axis == SPK_GROUP_NONE)
        return SPK_OK;
    for (int64_t group = 0; group < p->batch; group++) {
        const spk_group_range range = spk_group_at(args, group);
        if (range.end < range.begin || range.end > size_cut(p))
            return spk_fail(SPK_ERR_ARGUMENT, "args.offsets[%lld] = %lld: the group begins at %lld, and the axis has %lld elements",
                            (long long)group, (long long)range.end, (long long)range.begin, (long long)size_cut(p));
    }
    return SPK_OK;
}

/* From row `row` and column `col` of operand i on. */
static void shift(const spk_problem *p, int i, int64_t row, int64_t col, spk_args *args)
{
    const spk_operand *o = &p->operand[i];
    if (args->at[i] != NULL && o->dtype != SPK_DTYPE_DEFAULT)
        args->at[i] =
            (char *)args->at[i] + (row * spk_operand_row_step(o) + col * spk_operand_col_step(o)) * (int64_t)spk_dtype_bytes(o->dtype);
}

/* Along the axis that is cut a factor is of one element, or of all. */
static void shift_scales(const spk_problem *p, int64_t begin, spk_args *args)
{
    const spk_group_axis axis = p->group_axis;
    const bool each[2][2] = {{p->scaled_a.rows == 1 && axis == SPK_GROUP_ROWS, p->scaled_a.cols == 1 && axis == SPK_GROUP_DEPTH},
                             {p->scaled_b.rows == 1 && axis == SPK_GROUP_DEPTH, p->scaled_b.cols == 1 && axis == SPK_GROUP_COLS}};
    for (int which = 0; which < 2; which++)
        shift(p, p->op->scales + which, each[which][0] ? begin : 0, each[which][1] ? begin : 0, args);
}

void spk_group_take(const spk_problem *problem, const spk_args *args, int64_t group, spk_problem *one, spk_args *of_one)
{
    static const int like_d[] = {SPK_C, SPK_D, SPK_RESIDUAL, SPK_PREACT};
    const spk_group_range range = spk_group_at(args, group);
    const bool rows = problem->group_axis == SPK_GROUP_ROWS, columns = problem->group_axis == SPK_GROUP_COLS;
    *of_one = spk_args_item(problem, args, group);
    for (size_t i = 0; i < sizeof like_d / sizeof like_d[0] && (rows || columns); i++)
        shift(problem, like_d[i], rows ? range.begin : 0, columns ? range.begin : 0, of_one);
    if (!columns)
        shift(problem, SPK_A, rows ? range.begin : 0, rows ? 0 : range.begin, of_one);
    if (!rows)
        shift(problem, SPK_B, columns ? 0 : range.begin, columns ? range.begin : 0, of_one);
    if (problem->epilogue.bias == (rows ? SPK_BIAS_PER_ROW : SPK_BIAS_PER_COL) && (rows || columns))
        shift(problem, SPK_BIAS, 0, range.begin, of_one);
    shift_scales(problem, range.begin, of_one);
    *one = spk_problem_item(problem);
    one->group_axis = SPK_GROUP_NONE;
    one->offsets = (spk_operand){0};
    *(rows ? &one->m : columns ? &one->n : &one->k) = range.end - range.begin;
    one->op->fit(one);
    for (int which = 0; which < 2; which++) /* factors lie as they did */
        one->operand[one->op->scales + which].ld = problem->operand[problem->op->scales + which].ld;
}
