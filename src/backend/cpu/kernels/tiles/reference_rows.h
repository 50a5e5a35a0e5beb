/* Sums of a row of a reference product, S(sums), through the epilogue. */
#include "backend/cpu/kernels/tiles/reference_terms.h"

/* Sums of D[i][j0 .. j0 + count). */
static void S(sums)(const spk_bound *bound, const spk_args *args, int64_t i, int64_t j0, int64_t count, REAL *sums);

enum { S(CHUNK) = 64 }; /* columns of D at a time */

static void S(finish)(const spk_problem *problem, const spk_args *args, int64_t i, int64_t j, REAL sum)
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

static void S(product)(const spk_bound *bound, const spk_args *args)
{
    const spk_problem *problem = &bound->problem;
    REAL sums[S(CHUNK)];
    for (int64_t i = 0; i < problem->m; i++)
        for (int64_t j0 = 0; j0 < problem->n; j0 += S(CHUNK)) {
            const int64_t count = problem->n - j0 < S(CHUNK) ? problem->n - j0 : S(CHUNK);
            S(sums)(bound, args, i, j0, count, sums);
            for (int64_t j = 0; j < count; j++)
                S(finish)(problem, args, i, j0 + j, sums[j]);
        }
}
