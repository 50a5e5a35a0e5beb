/* The reference GEMM, for A and B of TYPE. D, C, bias and residual have a dtype of their own. */
#include "backend/cpu/kernels/tiles/reference_terms.h"

/* Sums of D[i][j0 .. j0 + count). */
static void S(sums)(const spk_bound *bound, const spk_args *args, int64_t i, int64_t j0, int64_t count, REAL *sums)
{
    const spk_problem *problem = &bound->problem;
    const int64_t down = spk_operand_row_step(&problem->b), across = spk_operand_col_step(&problem->b),
                  step = spk_operand_col_step(&problem->a);
    const STORED *a = (const STORED *)args->a + i * spk_operand_row_step(&problem->a), *b = (const STORED *)args->b + j0 * across;
    const spk_scales scales = spk_scales_of(problem, args);
    (void)scales;
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t k = 0; k < problem->k; k++)
        for (int64_t j = 0; j < count; j++)
            sums[j] += SCALED(LOAD(a[k * step]) * LOAD(b[k * down + j * across]), i, k, j0 + j, 0);
}

#include "backend/cpu/kernels/tiles/reference_rows.h"
