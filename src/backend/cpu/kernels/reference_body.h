/* Template of the reference product, for one REAL and T(name). */

enum { T(CHUNK) = 64 }; /* columns of D at a time */

/* Sums of D[i][j0 .. j0 + count). */
static void T(sums)(const spk_bound *bound, const spk_spmm_args *args, int64_t i, int64_t j0, int64_t count, REAL *sums)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *problem = &bound->problem;
    const int64_t down = problem->layout_b == SPK_ROW_MAJOR ? problem->ldb : 1, across = problem->layout_b == SPK_ROW_MAJOR ? 1 : problem->ldb;
    const int64_t block_row = i / view->block_rows;
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++) {
        const int64_t position = view->positions != NULL ? view->positions[p] : p, k0 = (int64_t)view->columns[p] * view->block_cols;
        const REAL *a = (const REAL *)args->values + position * view->block_stride + i % view->block_rows * view->row_stride;
        const REAL *b = (const REAL *)args->b + k0 * down + j0 * across;
        for (int64_t k = 0; k < view->block_cols && k0 + k < view->cols; k++)
            for (int64_t j = 0; j < count; j++)
                sums[j] += a[k * view->col_stride] * b[k * down + j * across];
    }
}

static void T(finish)(const spk_problem *problem, const spk_spmm_args *args, int64_t i, int64_t j, REAL sum)
{
    const spk_epilogue *epilogue = &problem->epilogue;
    const bool row_major = problem->layout_d == SPK_ROW_MAJOR;
    const int64_t line = row_major ? i : j, along = row_major ? j : i;
    REAL value = (REAL)args->alpha * sum;
    if (epilogue->use_c && args->beta != 0)
        value += (REAL)args->beta * ((const REAL *)args->c)[line * problem->ldc + along];
    if (epilogue->bias != SPK_BIAS_NONE)
        value += ((const REAL *)args->bias)[epilogue->bias == SPK_BIAS_PER_ROW ? i : j];
    if (epilogue->keep_preact)
        ((REAL *)args->preact)[line * problem->ldp + along] = value;
    if (epilogue->activation != SPK_ACT_NONE)
        value = (REAL)spk_activate_f64(epilogue->activation, (double)value);
    if (epilogue->use_residual)
        value += ((const REAL *)args->residual)[line * problem->ldr + along];
    ((REAL *)args->d)[line * problem->ldd + along] = value;
}

static void T(product)(const spk_bound *bound, const spk_spmm_args *args)
{
    const spk_problem *problem = &bound->problem;
    REAL sums[T(CHUNK)];
    for (int64_t i = 0; i < problem->m; i++)
        for (int64_t j0 = 0; j0 < problem->n; j0 += T(CHUNK)) {
            const int64_t count = problem->n - j0 < T(CHUNK) ? problem->n - j0 : T(CHUNK);
            T(sums)(bound, args, i, j0, count, sums);
            for (int64_t j = 0; j < count; j++)
                T(finish)(problem, args, i, j0 + j, sums[j]);
        }
}
