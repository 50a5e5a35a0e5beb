/* The oracle of SpMM: plain loops from its definition, one row of D at a time. */
#include "op/oracle_rows.h"
#include "op/spmm/spmm.h"

/* sum[j] += a B[k][j] and size[j] += |a B[k][j]| over one row of op(A). */
#define ACCUMULATE(name, element, wide, load)                                                                                         \
    static void name(const spk_row_oracle *o, int64_t row, void *sums, void *sizes)                                                   \
    {                                                                                                                                 \
        const spk_bsr_view *v = o->view;                                                                                              \
        const spk_operand *b_is = &o->problem->b;                                                                                     \
        const int64_t b_row_step = spk_operand_row_step(b_is), b_col_step = spk_operand_col_step(b_is);                               \
        const element *values = o->args->a, *b = (const element *)o->args->b + o->col0 * b_col_step;                                  \
        wide *sum = sums, *size = sizes;                                                                                              \
        int64_t block_row = row / v->block_rows, inner = row % v->block_rows;                                                         \
        for (int64_t p = v->offsets[block_row]; p < v->offsets[block_row + 1]; p++) {                                                 \
            const element *block = values + (v->positions != NULL ? v->positions[p] : p) * v->block_stride;                           \
            int64_t k0 = (int64_t)v->columns[p] * v->block_cols;                                                                      \
            int64_t width = k0 + v->block_cols <= v->cols ? v->block_cols : v->cols - k0; /* the overhang is not there */             \
            for (int64_t k = 0; k < width; k++) {                                                                                     \
                wide a = (wide)load(block[inner * v->row_stride + k * v->col_stride]);                                                \
                const element *b_row = b + (k0 + k) * b_row_step;                                                                     \
                for (int64_t j = 0; j < o->cols; j++) {                                                                               \
                    wide term = a * (wide)load(b_row[j * b_col_step]);                                                                \
                    if (o->is_scaled)                                                                                                 \
                        term *= (wide)spk_scale_at(&o->scales, row, k0 + k, o->col0 + j, v->positions != NULL ? v->positions[p] : p); \
                    sum[j] += term;                                                                                                   \
                    size[j] += term < 0 ? -term : term;                                                                               \
                }                                                                                                                     \
            }                                                                                                                         \
        }                                                                                                                             \
    }

#include "op/oracle_types.h"

spk_status spk_spmm_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask)
{
    spk_bsr_view view;
    SPK_TRY(spk_pattern_view(problem->pattern, problem->trans_a, problem->block_layout, &view));
    spk_row_oracle oracle = {.problem = problem, .view = &view, .sums = sums_of_types};
    return spk_oracle_rows(mem, &oracle, args, ask);
}

/* Of the longest and of an empty block row, and at the edges. */
spk_status spk_spmm_hard_rows(const spk_problem *p, int output, spk_rng *rng, spk_row_list *list)
{
    const int64_t item_row = p->m * (p->batch - 1); /* of the last item */
    spk_bsr_view view;
    (void)output;
    SPK_TRY(spk_pattern_view(p->pattern, p->trans_a, p->block_layout, &view));
    int64_t longest = 0, empty = -1;
    for (int64_t i = 0; i < view.grid_rows; i++) {
        const int64_t length = view.offsets[i + 1] - view.offsets[i];
        if (length > view.offsets[longest + 1] - view.offsets[longest])
            longest = i;
        if (length == 0 && empty < 0)
            empty = i;
    }
    const int64_t height = view.block_rows;
    spk_row_list_add(list, item_row + p->m - 1);
    spk_row_list_add(list, 0);
    spk_row_list_add(list, item_row + longest * height + (int64_t)spk_rng_below(rng, (uint64_t)height));
    if (empty >= 0)
        spk_row_list_add(list, item_row + empty * height);
    spk_row_list_add(list, height - 1);
    spk_row_list_add(list, item_row + (view.grid_rows - 1) * height);
    spk_row_list_add(list, longest * height);
    return SPK_OK;
}
