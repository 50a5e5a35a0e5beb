/* Template of the reference SDDMM, for one ELEMENT of X and Y, LOAD(element) as a REAL, and T(name). C and D have a dtype of their own. */

typedef struct T(sampling) {
    const spk_bound *bound;
    const spk_args *args;
} T(sampling);

static REAL T(dot)(const spk_problem *problem, const spk_args *args, int64_t i, int64_t j)
{
    const int64_t x_step = problem->a.layout == SPK_ROW_MAJOR ? 1 : problem->a.ld,
                  y_step = problem->b.layout == SPK_ROW_MAJOR ? problem->b.ld : 1;
    const ELEMENT *x = (const ELEMENT *)args->a + (problem->a.layout == SPK_ROW_MAJOR ? i * problem->a.ld : i);
    const ELEMENT *y = (const ELEMENT *)args->b + (problem->b.layout == SPK_ROW_MAJOR ? j : j * problem->b.ld);
    const spk_scales scales = spk_scales_of(problem, args);
    REAL sum = 0;
    (void)scales;
    for (int64_t k = 0; k < problem->k; k++)
        sum += SCALED(LOAD(x[k * x_step]) * LOAD(y[k * y_step]), i, k, j, 0);
    return sum;
}

/* The block that begins at (row0, col0) and lies at `at` of C and D. */
static void T(sample_block)(const T(sampling) *s, int64_t row0, int64_t col0, int64_t at)
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
                value = (REAL)args->alpha * T(dot)(problem, args, row0 + i, col0 + j);
                if (with_c)
                    value += (REAL)args->beta * (REAL)spk_value_get(args->c, problem->d.dtype, place);
            }
            spk_value_set(args->d, problem->d.dtype, place, (double)value);
        }
}

static void T(sample_block_row)(void *arg, int64_t block_row)
{
    const T(sampling) *s = arg;
    const spk_bsr_view *view = &s->bound->view;
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++)
        T(sample_block)(s, block_row * view->block_rows, (int64_t)view->columns[p] * view->block_cols, p * view->block_stride);
}

static void T(product)(const spk_bound *bound, const spk_args *args)
{
    T(sampling) s = {bound, args};
    spk_execute(&bound->device->executor, bound->view.grid_rows, T(sample_block_row), &s);
}
