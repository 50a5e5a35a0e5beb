/* Template of the reference product, for one ELEMENT of A and B, LOAD(element) as a REAL, and T(name). D, C, bias and residual have a dtype
 * of their own. */

enum { T(CHUNK) = 64 }; /* columns of D at a time */

/* Sums of D[i][j0 .. j0 + count). */
static void T(sums)(const spk_bound *bound, const spk_args *args, int64_t i, int64_t j0, int64_t count, REAL *sums)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *problem = &bound->problem;
    const int64_t down = problem->b.layout == SPK_ROW_MAJOR ? problem->b.ld : 1,
                  across = problem->b.layout == SPK_ROW_MAJOR ? 1 : problem->b.ld;
    const int64_t block_row = i / view->block_rows;
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++) {
        const int64_t position = view->positions != NULL ? view->positions[p] : p, k0 = (int64_t)view->columns[p] * view->block_cols;
        const ELEMENT *a = (const ELEMENT *)args->a + position * view->block_stride + i % view->block_rows * view->row_stride;
        const ELEMENT *b = (const ELEMENT *)args->b + k0 * down + j0 * across;
        for (int64_t k = 0; k < view->block_cols && k0 + k < view->cols; k++)
            for (int64_t j = 0; j < count; j++)
                sums[j] += LOAD(a[k * view->col_stride]) * LOAD(b[k * down + j * across]);
    }
}

static void T(finish)(const spk_problem *problem, const spk_args *args, int64_t i, int64_t j, REAL sum)
{
    const spk_epilogue *epilogue = &problem->epilogue;
    const spk_dtype dtype = problem->d.dtype;
    const bool row_major = problem->d.layout == SPK_ROW_MAJOR;
    const int64_t line = row_major ? i : j, along = row_major ? j : i;
    REAL value = (REAL)args->alpha * sum;
    if (epilogue->use_c && args->beta != 0)
        value += (REAL)args->beta * (REAL)spk_value_get(args->c, dtype, line * problem->c.ld + along);
    if (epilogue->bias != SPK_BIAS_NONE)
        value += (REAL)spk_value_get(args->bias, dtype, epilogue->bias == SPK_BIAS_PER_ROW ? i : j);
    if (epilogue->keep_preact)
        spk_value_set(args->preact, dtype, line * problem->preact.ld + along, (double)value);
    if (epilogue->activation != SPK_ACT_NONE)
        value = (REAL)spk_activate_f64(epilogue->activation, (double)value);
    if (epilogue->residual != SPK_RESIDUAL_NONE) {
        const REAL other = (REAL)spk_value_get(args->residual, dtype, line * problem->residual.ld + along);
        value = epilogue->residual == SPK_RESIDUAL_MULTIPLY ? value * other : value + other;
    }
    spk_value_set(args->d, dtype, line * problem->d.ld + along, (double)value);
}

static void T(product)(const spk_bound *bound, const spk_args *args)
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
