/* The oracle of GEMM: plain loops from its definition, one row of D at a time. */
#include <string.h>

#include "op/gemm/gemm.h"
#include "op/groups.h"
#include "op/oracle_rows.h"

/* sum[j] = sum over k of A[row][k] B[k][j], B read along its lines. */
#define ACCUMULATE(name, element, wide, load)                                                                                          \
    static void name(const spk_row_oracle *o, int64_t row, void *sums, void *sizes)                                                    \
    {                                                                                                                                  \
        const spk_operand *a_is = &o->problem->a, *b_is = &o->problem->b;                                                              \
        const int64_t a_step = spk_operand_col_step(a_is), b_down = spk_operand_row_step(b_is), b_across = spk_operand_col_step(b_is), \
                      depth = o->problem->k;                                                                                           \
        const bool along_row = b_is->layout == SPK_ROW_MAJOR;                                                                          \
        const int64_t outer = along_row ? depth : o->cols, inner = along_row ? o->cols : depth;                                        \
        const element *a = (const element *)o->args->a + row * spk_operand_row_step(a_is);                                             \
        const element *b = (const element *)o->args->b + o->col0 * b_across;                                                           \
        wide *sum = sums, *size = sizes;                                                                                               \
        for (int64_t x = 0; x < outer; x++)                                                                                            \
            for (int64_t y = 0; y < inner; y++) {                                                                                      \
                const int64_t k = along_row ? x : y, j = along_row ? y : x;                                                            \
                wide term = (wide)load(a[k * a_step]) * (wide)load(b[k * b_down + j * b_across]);                                      \
                if (o->is_scaled)                                                                                                      \
                    term *= (wide)spk_scale_at(&o->scales, row, k, o->col0 + j, 0);                                                    \
                sum[j] += term;                                                                                                        \
                size[j] += term < 0 ? -term : term;                                                                                    \
            }                                                                                                                          \
    }

#include "op/oracle_types.h"

static spk_status ask_one(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask)
{
    spk_row_oracle oracle = {.problem = problem, .sums = sums_of_types};
    return spk_oracle_rows(mem, &oracle, args, ask);
}

/* The part of a row that a group has, if any; what no group has stays as it is. */
static spk_status ask_group(const spk_mem *mem, const spk_problem *problem, const spk_args *args, int64_t group, int64_t row,
                            const spk_oracle_ask *ask)
{
    const spk_group_range range = spk_group_at(args, group);
    const bool rows = problem->group_axis == SPK_GROUP_ROWS, columns = problem->group_axis == SPK_GROUP_COLS;
    int64_t inner = rows ? row - range.begin : columns ? row : row % problem->m, begin = ask->col0, end = ask->col0 + ask->cols;
    spk_oracle_ask part = *ask;
    spk_problem one;
    spk_args of_one;
    if (rows && (row < range.begin || row >= range.end))
        return SPK_OK;
    if (problem->group_axis == SPK_GROUP_DEPTH && row / problem->m != group)
        return SPK_OK;
    if (columns) {
        begin = begin > range.begin ? begin : range.begin;
        end = end < range.end ? end : range.end;
    }
    if (begin >= end)
        return SPK_OK;
    part.want += part.want != NULL ? begin - ask->col0 : 0;
    part.magnitude += part.magnitude != NULL ? begin - ask->col0 : 0;
    part.rows = &inner;
    part.row_count = 1;
    part.col0 = columns ? begin - range.begin : begin;
    part.cols = end - begin;
    spk_group_take(problem, args, group, &one, &of_one);
    return ask_one(mem, &one, &of_one, &part);
}

static spk_status ask_groups(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask)
{
    for (int64_t r = 0; r < ask->row_count; r++) {
        spk_oracle_ask row = *ask;
        double **const both[] = {&row.want, &row.magnitude};
        for (int which = 0; which < 2; which++)
            if (*both[which] != NULL) {
                *both[which] += r * ask->cols;
                memset(*both[which], 0, (size_t)ask->cols * sizeof(double));
            }
        for (int64_t group = 0; group < problem->batch; group++)
            SPK_TRY(ask_group(mem, problem, args, group, ask->rows != NULL ? ask->rows[r] : r, &row));
    }
    return SPK_OK;
}

spk_status spk_gemm_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask)
{
    return (problem->group_axis != SPK_GROUP_NONE ? ask_groups : ask_one)(mem, problem, args, ask);
}

/* The last and the first, and those on both sides of where tiles of the usual heights meet. */
spk_status spk_gemm_hard_rows(const spk_problem *p, int output, spk_rng *rng, spk_row_list *list)
{
    static const int64_t heights[] = {256, 128, 64};
    const int64_t item_row = p->m * (spk_operand_items(&p->d, p->batch) - 1); /* of the last item */
    (void)output;
    (void)rng;
    spk_row_list_add(list, item_row + p->m - 1);
    spk_row_list_add(list, 0);
    spk_row_list_add(list, p->m - 1);
    spk_row_list_add(list, item_row);
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++)
        if (p->m > heights[i]) {
            const int64_t edge = (p->m - 1) / heights[i] * heights[i];
            spk_row_list_add(list, item_row + edge);
            spk_row_list_add(list, edge - 1);
        }
    return SPK_OK;
}
