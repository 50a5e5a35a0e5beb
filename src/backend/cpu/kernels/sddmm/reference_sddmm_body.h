/* The reference SDDMM, for X and Y of TYPE. C and D have a dtype of their own. */
#include "backend/cpu/kernels/tiles/reference_terms.h"

typedef struct S(sampling) {
    const spk_bound *bound;
    const spk_args *args;
} S(sampling);

static REAL S(dot)(const spk_problem *problem, const spk_args *args, int64_t i, int64_t j)
{
    const int64_t x_step = problem->a.layout == SPK_ROW_MAJOR ? 1 : problem->a.ld,
                  y_step = problem->b.layout == SPK_ROW_MAJOR ? problem->b.ld : 1;
    const STORED *x = (const STORED *)args->a + (problem->a.layout == SPK_ROW_MAJOR ? i * problem->a.ld : i);
    const STORED *y = (const STORED *)args->b + (problem->b.layout == SPK_ROW_MAJOR ? j : j * problem->b.ld);
    const spk_scales scales = spk_scales_of(problem, args);
    REAL sum = 0;
    (void)scales;
    for (int64_t k = 0; k < problem->k; k++)
        sum += SCALED(LOAD(x[k * x_step]) * LOAD(y[k * y_step]), i, k, j, 0);
    return sum;
}

/* The block that begins at (row0, col0) and lies at `at` of C and D. */
static void S(sample_block)(const S(sampling) *s, int64_t row0, int64_t col0, int64_t at)
{
    const spk_bsr_view *view = &s->bound->view;
    const spk_problem *problem = &s->bound->problem;
    const spk_args *args = s->args;
    const bool with_c = problem->epilogue.use_c && args->beta != 0;
    for (int64_t i = 0; i < view->block_rows; i++)
        for (int64_t j = 0; j < view->block_cols; j++) {
            const int64_t place = at + i * view->row_stride + j * view->col_stride;
            REAL value = 0; /* what hangs over */
            if (row0 + i < view->rows && col0 + j < view->cols) {
                value = (REAL)args->alpha * S(dot)(problem, args, row0 + i, col0 + j);
                if (with_c)
                    value += (REAL)args->beta * (REAL)spk_value_get(args->c, problem->d.dtype, place);
            }
            spk_value_set(args->d, problem->d.dtype, place, (double)value);
        }
}

static void S(sample_block_row)(void *arg, int64_t block_row)
{
    const S(sampling) *s = arg;
    const spk_bsr_view *view = &s->bound->view;
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++)
        S(sample_block)(s, block_row * view->block_rows, (int64_t)view->columns[p] * view->block_cols, p * view->block_stride);
}

static void S(product)(const spk_bound *bound, const spk_args *args)
{
    S(sampling) s = {bound, args};
    spk_execute(&bound->device->executor, bound->view.grid_rows, S(sample_block_row), &s);
}
