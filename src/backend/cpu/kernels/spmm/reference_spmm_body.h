/* The reference SpMM, for A and B of TYPE. D, C, bias and residual have a dtype of their own. */
#include "backend/cpu/kernels/tiles/reference_terms.h"

/* Sums of D[i][j0 .. j0 + count). */
static void S(sums)(const spk_bound *bound, const spk_args *args, int64_t i, int64_t j0, int64_t count, REAL *sums)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *problem = &bound->problem;
    const int64_t down = problem->b.layout == SPK_ROW_MAJOR ? problem->b.ld : 1,
                  across = problem->b.layout == SPK_ROW_MAJOR ? 1 : problem->b.ld;
    const int64_t block_row = i / view->block_rows;
    const spk_scales scales = spk_scales_of(problem, args);
    (void)scales;
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++) {
        const int64_t position = view->positions != NULL ? view->positions[p] : p, k0 = (int64_t)view->columns[p] * view->block_cols;
        const STORED *a = (const STORED *)args->a + position * view->block_stride + i % view->block_rows * view->row_stride;
        const STORED *b = (const STORED *)args->b + k0 * down + j0 * across;
        for (int64_t k = 0; k < view->block_cols && k0 + k < view->cols; k++)
            for (int64_t j = 0; j < count; j++)
                sums[j] += SCALED(LOAD(a[k * view->col_stride]) * LOAD(b[k * down + j * across]), i, k0 + k, j0 + j, position);
    }
}

#include "backend/cpu/kernels/tiles/reference_rows.h"
