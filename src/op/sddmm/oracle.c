/* The oracle of SDDMM: plain loops from its definition, one line of a block at a time. */
#include "op/oracle_rows.h"
#include "op/sddmm/sddmm.h"

/* Where element j of a row of D lies in X Y; false: in the overhang, where there is nothing. */
static bool place_of(const spk_row_oracle *o, int64_t row, int64_t j, int64_t *i, int64_t *column)
{
    const bool by_row = o->problem->block_layout == SPK_ROW_MAJOR;
    const int64_t line = row % (by_row ? o->view->block_rows : o->view->block_cols);
    *i = o->row0 + (by_row ? line : j);
    *column = o->col_of_block + (by_row ? j : line);
    return *i < o->view->rows && *column < o->view->cols;
}

static bool is_there(const spk_row_oracle *o, int64_t row, int64_t j)
{
    int64_t i, column;
    return place_of(o, row, j, &i, &column);
}

/* sum[j] = sum over k of X[i][k] Y[k][column]. */
#define ACCUMULATE(name, element, wide, load)                                                     \
    static void name(const spk_row_oracle *o, int64_t row, void *sums, void *sizes)               \
    {                                                                                             \
        const spk_operand *x_is = &o->problem->a, *y_is = &o->problem->b;                         \
        const int64_t x_step = spk_operand_col_step(x_is), y_step = spk_operand_row_step(y_is);   \
        wide *sum = sums, *size = sizes;                                                          \
        for (int64_t j = 0; j < o->cols; j++) {                                                   \
            int64_t i, column;                                                                    \
            if (!place_of(o, row, o->col0 + j, &i, &column))                                      \
                continue;                                                                         \
            const element *x = (const element *)o->args->a + i * spk_operand_row_step(x_is);      \
            const element *y = (const element *)o->args->b + column * spk_operand_col_step(y_is); \
            for (int64_t k = 0; k < o->problem->k; k++) {                                         \
                wide term = (wide)load(x[k * x_step]) * (wide)load(y[k * y_step]);                \
                if (o->is_scaled)                                                                 \
                    term *= (wide)spk_scale_at(&o->scales, i, k, column, 0);                      \
                sum[j] += term;                                                                   \
                size[j] += term < 0 ? -term : term;                                               \
            }                                                                                     \
        }                                                                                         \
    }

#include "op/oracle_types.h"

/* The block that a row of D is in. */
static void find_block(spk_row_oracle *o, int64_t row)
{
    const spk_bsr_view *v = o->view;
    const int64_t block = row / (o->problem->block_layout == SPK_ROW_MAJOR ? v->block_rows : v->block_cols);
    int64_t low = 0, high = v->grid_rows; /* offsets[low] <= block < offsets[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (v->offsets[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    o->row0 = low * v->block_rows;
    o->col_of_block = (int64_t)v->columns[block] * v->block_cols;
}

spk_status spk_sddmm_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask)
{
    spk_bsr_view view;
    SPK_TRY(spk_pattern_view(problem->pattern, SPK_NO_TRANS, problem->block_layout, &view));
    spk_row_oracle oracle = {.problem = problem, .view = &view, .sums = sums_of_types};
    oracle.begin_row = find_block;
    oracle.is_there = is_there;
    return spk_oracle_rows(mem, &oracle, args, ask);
}

/* The edges of the first block, of the last, and of the last of the first block row, which may hang over. */
spk_status spk_sddmm_hard_rows(const spk_problem *p, int output, spk_rng *rng, spk_row_list *list)
{
    const int64_t rows = p->d.rows, item_row = rows * (p->batch - 1), height = rows / p->pattern->nnzb, edge = p->pattern->index.offsets[1];
    (void)output;
    (void)rng;
    spk_row_list_add(list, item_row + rows - 1);
    spk_row_list_add(list, 0);
    spk_row_list_add(list, item_row + rows - height);
    spk_row_list_add(list, height - 1);
    spk_row_list_add(list, item_row + edge * height - 1);
    return SPK_OK;
}
