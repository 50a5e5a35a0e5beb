#include "op/oracle_rows.h"

#include <string.h>

static void run_row(spk_row_oracle *o, int64_t row, char *sums, const spk_oracle_ask *ask, int64_t offset)
{
    const bool wide = spk_type_is_double(o->problem->a.dtype);
    char *sizes = sums + (size_t)o->cols * (wide ? sizeof(long double) : sizeof(double));
    memset(sums, 0, 2 * (size_t)(sizes - sums));
    if (o->begin_row != NULL)
        o->begin_row(o, row);
    o->sums[o->problem->a.dtype](o, row, sums, sizes);
    for (int64_t j = 0; j < o->cols; j++) {
        const long double sum = wide ? ((long double *)(void *)sums)[j] : (long double)((double *)(void *)sums)[j];
        const long double size = wide ? ((long double *)(void *)sizes)[j] : (long double)((double *)(void *)sizes)[j];
        spk_finished element = {0, 0};
        if (o->is_there == NULL || o->is_there(o, row, o->col0 + j))
            element = spk_product_finish(o->problem, o->args, ask->output, row, o->col0 + j, sum, size);
        if (ask->want != NULL)
            ask->want[offset + j] = element.value;
        if (ask->magnitude != NULL)
            ask->magnitude[offset + j] = element.magnitude;
    }
}

spk_status spk_oracle_rows(const spk_mem *mem, spk_row_oracle *o, const spk_args *args, const spk_oracle_ask *ask)
{
    const spk_problem *p = o->problem;
    char *sums = NULL;
    o->col0 = ask->col0;
    o->cols = ask->cols;
    o->is_scaled = spk_problem_is_scaled(p);
    SPK_TRY(spk_alloc(mem, 2 * (size_t)o->cols, spk_type_is_double(p->a.dtype) ? sizeof(long double) : sizeof(double), &sums));
    for (int64_t r = 0; r < ask->row_count; r++) {
        const int64_t row = ask->rows != NULL ? ask->rows[r] : r;
        const spk_args item = spk_args_item(p, args, row / p->d.rows);
        o->args = &item;
        o->scales = spk_scales_of(p, &item);
        run_row(o, row % p->d.rows, sums, ask, r * o->cols);
    }
    spk_free(mem, sums);
    return SPK_OK;
}
