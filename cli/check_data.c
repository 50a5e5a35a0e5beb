/* Operands of a case. Hostile on purpose: NaN in every gap, in what beta = 0 must not read, in the overhang of edge blocks, and (where
 * finiteness is not promised) inf and NaN in the rows of B that no stored block touches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "values.h"

static void put(spk_dtype dtype, void *array, int64_t index, double value)
{
    value_put(dtype, array, index, value);
}

/* An array of NaN. */
static void *poisoned(spk_dtype dtype, int64_t count)
{
    void *array = cli_alloc((size_t)count, spk_dtype_bytes(dtype));
    for (int64_t i = 0; i < count; i++)
        put(dtype, array, i, NAN);
    return array;
}

static int64_t span(spk_layout layout, int64_t ld, int64_t rows, int64_t cols)
{
    int64_t lines = layout == SPK_ROW_MAJOR ? rows : cols, length = layout == SPK_ROW_MAJOR ? cols : rows;
    return lines && length ? (ld ? ld : length) * (lines - 1) + length : 0;
}

static int64_t place(spk_layout layout, int64_t ld, int64_t rows, int64_t cols, int64_t i, int64_t j)
{
    int64_t step = ld ? ld : layout == SPK_ROW_MAJOR ? cols : rows;
    return layout == SPK_ROW_MAJOR ? i * step + j : j * step + i;
}

static void *dense(random_state *r, spk_dtype dtype, spk_layout layout, int64_t ld, int64_t rows, int64_t cols, int64_t *count)
{
    *count = span(layout, ld, rows, cols);
    void *array = poisoned(dtype, *count);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            put(dtype, array, place(layout, ld, rows, cols, i, j), random_normal(r));
    return array;
}

/* Values of the blocks; the overhang of edge blocks stays NaN. */
static void *block_values(random_state *r, const check_case *c, int64_t *count)
{
    int64_t size = c->block_rows * c->block_cols;
    *count = c->nnzb * size;
    void *array = poisoned(c->spmm.dtype_a, *count);
    for (int64_t i = 0; i < c->grid_rows; i++)
        for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++)
            for (int64_t a = 0; a < c->block_rows && i * c->block_rows + a < c->rows; a++)
                for (int64_t b = 0; b < c->block_cols && c->columns[e] * c->block_cols + b < c->cols; b++)
                    put(c->spmm.dtype_a, array, e * size + place(c->spmm.block_layout, 0, c->block_rows, c->block_cols, a, b), random_normal(r));
    return array;
}

/* Marks the rows of B (of op(A)'s columns) that a stored block touches. */
static bool *touched_rows(const check_case *c)
{
    bool *touched = cli_alloc((size_t)c->k, sizeof(bool));
    int64_t side = c->spmm.trans_a ? c->block_rows : c->block_cols;
    for (int64_t i = 0; i < c->grid_rows; i++)
        for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++) {
            int64_t first = (c->spmm.trans_a ? i : c->columns[e]) * side;
            for (int64_t a = first; a < first + side && a < c->k; a++)
                touched[a] = true;
        }
    return touched;
}

/* Puts inf and NaN there, and says whether it did. */
static bool make_hostile(random_state *r, const check_case *c, void *b)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    bool *touched = touched_rows(c);
    bool once = c->inf_in_use, any = false;
    for (int64_t i = 0; i < c->k; i++) {
        if (touched[i] && !(once && random_chance(r, 0.1)))
            continue;
        once = once && !touched[i];
        any = any || c->n > 0;
        for (int64_t j = 0; j < c->n; j++)
            if (!touched[i] || j == c->n / 2)
                put(c->spmm.dtype_a, b, place(c->spmm.layout_b, c->spmm.ldb, c->k, c->n, i, j), bad[random_between(r, 0, 2)]);
    }
    free(touched);
    return any;
}

spk_status check_pattern_make(const check_case *c, spk_context *context, spk_pattern **pattern)
{
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = c->rows, .cols = c->cols, .block_rows = c->block_rows, .block_cols = c->block_cols, .nnzb = c->nnzb};
    indices.row_offsets = c->offsets;
    indices.col_indices = c->columns;
    indices.index_type = c->index_type;
    if (c->index_type == SPK_I64)
        return spk_pattern_create(context, &indices, pattern);
    int32_t *offsets = cli_alloc((size_t)c->grid_rows + 1, sizeof(int32_t)), *columns = cli_alloc((size_t)c->nnzb, sizeof(int32_t));
    for (int64_t i = 0; i <= c->grid_rows; i++)
        offsets[i] = (int32_t)c->offsets[i];
    for (int64_t i = 0; i < c->nnzb; i++)
        columns[i] = (int32_t)c->columns[i];
    indices.row_offsets = offsets;
    indices.col_indices = columns;
    spk_status status = spk_pattern_create(context, &indices, pattern);
    free(offsets);
    free(columns);
    return status;
}

static void copy_elements(const check_case *c, const void *from, int64_t from_ld, void *to, int64_t to_ld)
{
    size_t bytes = spk_dtype_bytes(c->spmm.dtype_d);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++)
            memcpy((char *)to + (size_t)place(c->spmm.layout_d, to_ld, c->m, c->n, i, j) * bytes,
                   (const char *)from + (size_t)place(c->spmm.layout_d, from_ld, c->m, c->n, i, j) * bytes, bytes);
}

static void make_operands(const check_case *c, bool finite, check_data *d)
{
    const spk_spmm *s = &c->spmm;
    random_state r = random_for(c->seed, (uint64_t)c->number, finite ? "finite" : "hostile");
    d->values = block_values(&r, c, &d->value_count);
    d->b = dense(&r, s->dtype_b, s->layout_b, s->ldb, c->k, c->n, &d->b_count);
    if (!finite)
        d->hostile = make_hostile(&r, c, d->b);
    if (s->use_c) {
        d->c_in = dense(&r, s->dtype_d, s->layout_d, s->ldc, c->m, c->n, &d->c_count);
        for (int64_t i = 0; c->beta == 0 && i < d->c_count; i++) /* never to be read */
            put(s->dtype_d, d->c_in, i, NAN);
    }
    if (s->use_residual)
        d->residual = dense(&r, s->dtype_d, s->layout_d, s->ldr, c->m, c->n, &d->r_count);
    d->bias_count = s->bias == SPK_BIAS_PER_ROW ? c->m : s->bias == SPK_BIAS_PER_COL ? c->n : 0;
    if (s->bias) {
        d->bias = cli_alloc((size_t)d->bias_count, spk_dtype_bytes(s->dtype_d));
        for (int64_t i = 0; i < d->bias_count; i++)
            put(s->dtype_d, d->bias, i, random_normal(&r));
    }
    d->d_count = span(s->layout_d, s->ldd, c->m, c->n);
    d->d_image = poisoned(s->dtype_d, d->d_count);
    if (c->alias_c)
        copy_elements(c, d->c_in, s->ldc, d->d_image, s->ldd);
    if (c->alias_residual)
        copy_elements(c, d->residual, s->ldr, d->d_image, s->ldd);
    d->p_count = s->keep_preact ? span(s->layout_d, s->ldp, c->m, c->n) : 0;
}

spk_tune_options check_options(const check_case *c, bool finite)
{
    return (spk_tune_options){SPK_SIZED(spk_tune_options), .assume_finite = finite, .static_values = c->static_values};
}

spk_status check_data_make(const check_case *c, spk_context *context, spk_pattern *pattern, bool finite, check_data *out)
{
    check_data d = {.c = c, .context = context, .pattern = pattern, .finite = finite};
    make_operands(c, finite, &d);
    int64_t count = c->m * c->n;
    d.out = cli_alloc((size_t)count, sizeof(double));
    d.preact = cli_alloc((size_t)count, sizeof(double));
    d.magnitude = cli_alloc((size_t)count, sizeof(double));
    spk_spmm_args run_args = {SPK_SIZED(spk_spmm_args), .values = d.values, .b = d.b, .c = d.c_in, .bias = d.bias, .residual = d.residual};
    run_args.alpha = c->alpha;
    run_args.beta = c->beta;
    spk_status status = spk_oracle_spmm(context, d.pattern, &c->spmm, &run_args, NULL, c->m, d.out, d.preact, d.magnitude);
    if (status == SPK_OK)
        status = spk_default_tolerance(context, d.pattern, &c->spmm, &d.tolerance);
    if (status == SPK_OK)
        *out = d;
    else
        check_data_release(&d);
    return status;
}

void check_data_release(check_data *d)
{
    void *all[] = {d->values, d->b, d->c_in, d->d_image, d->residual, d->bias, d->out, d->preact, d->magnitude};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        free(all[i]);
    *d = (check_data){0};
}
