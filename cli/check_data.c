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

/* An array of normal numbers, and NaN in its gaps. */
static void *dense(random_state *r, const check_case *c, int which)
{
    const check_array *a = &c->arrays[which];
    const spk_dtype dtype = check_dtype(c, which);
    void *array = poisoned(dtype, check_span(c, which));
    for (int64_t item = 0; item < (a->stride ? c->items : 1); item++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->cols; j++)
                put(dtype, array, check_place(a, item, i, j), random_normal(r));
    return array;
}

/* NaN in what stored blocks have beyond the edges of the matrix, in an array of values. */
static void poison_overhang(const check_case *c, int which, void *array)
{
    const int64_t size = c->block_rows * c->block_cols;
    const bool by_row = c->spmm.block_layout == SPK_ROW_MAJOR;
    for (int64_t item = 0; item < (c->arrays[which].stride ? c->items : 1); item++)
        for (int64_t i = 0; i < c->grid_rows; i++)
            for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++)
                for (int64_t a = 0; a < c->block_rows; a++)
                    for (int64_t b = 0; b < c->block_cols; b++)
                        if (i * c->block_rows + a >= c->rows || c->columns[e] * c->block_cols + b >= c->cols)
                            put(check_dtype(c, which), array,
                                item * c->arrays[which].stride + e * size + (by_row ? a * c->block_cols + b : b * c->block_rows + a), NAN);
}

/* Marks the rows or columns of op(A)'s blocks that hold a stored one: `size` of them. */
static bool *touched(const check_case *c, bool by_row, int64_t size)
{
    bool *marks = cli_alloc((size_t)size, sizeof(bool));
    const int64_t side = by_row ? c->block_rows : c->block_cols;
    for (int64_t i = 0; i < c->grid_rows; i++)
        for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++) {
            const int64_t first = (by_row ? i : c->columns[e]) * side;
            for (int64_t a = first; a < first + side && a < size; a++)
                marks[a] = true;
        }
    return marks;
}

/* Puts inf and NaN into the lines of an operand that no stored block touches, and with inf_in_use into one element of one that is; says
 * whether it did. along_rows: the lines are the array's rows. */
static bool make_hostile(random_state *r, const check_case *c, int which, bool along_rows, const bool *marks, void *array)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const check_array *a = &c->arrays[which];
    const int64_t lines = along_rows ? a->rows : a->cols, length = along_rows ? a->cols : a->rows;
    bool once = c->inf_in_use, any = false;
    for (int64_t i = 0; i < lines; i++) {
        if (marks[i] && !(once && random_chance(r, 0.1)))
            continue;
        once = once && !marks[i];
        any = any || length > 0;
        for (int64_t item = 0; item < (a->stride ? c->items : 1); item++)
            for (int64_t j = 0; j < length; j++)
                if (!marks[i] || j == length / 2)
                    put(check_dtype(c, which), array, check_place(a, item, along_rows ? i : j, along_rows ? j : i),
                        bad[random_between(r, 0, 2)]);
    }
    return any;
}

spk_status check_pattern_make(const check_case *c, spk_context *context, spk_pattern **pattern)
{
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),  .rows = c->rows, .cols = c->cols, .block_rows = c->block_rows,
                               .block_cols = c->block_cols, .nnzb = c->nnzb};
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

/* D's memory before a run: NaN, or what it shares with an input. */
static void *image_of_d(const check_case *c, const check_data *d)
{
    const spk_dtype dtype = c->spmm.dtype_d;
    const check_array *a = &c->arrays[CHECK_D];
    void *image = poisoned(dtype, check_span(c, CHECK_D));
    const int from = c->alias_c ? CHECK_C : CHECK_RESIDUAL;
    for (int64_t item = 0; (c->alias_c || c->alias_residual) && item < c->items; item++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->cols; j++)
                put(dtype, image, check_place(a, item, i, j), value_get(dtype, d->arrays[from], check_place(&c->arrays[from], item, i, j)));
    return image;
}

/* What no result may see: rows of B that no stored block touches; of SDDMM rows of X and columns of Y. */
static bool spoil(random_state *r, const check_case *c, check_data *d)
{
    const bool sampled = c->operation == SPK_SDDMM;
    bool *marks = sampled ? touched(c, false, c->n) : touched(c, c->spmm.trans_a == SPK_TRANS, c->k);
    bool any = make_hostile(r, c, CHECK_B, !sampled, marks, d->arrays[CHECK_B]);
    free(marks);
    if (!sampled)
        return any;
    marks = touched(c, true, c->m);
    any = make_hostile(r, c, CHECK_VALUES, true, marks, d->arrays[CHECK_VALUES]) || any;
    free(marks);
    return any;
}

static void make_operands(const check_case *c, bool finite, check_data *d)
{
    const spk_spmm *s = &c->spmm;
    random_state r = random_for(c->seed, (uint64_t)c->number, finite ? "finite" : "hostile");
    d->arrays[CHECK_VALUES] = dense(&r, c, CHECK_VALUES);
    if (c->operation == SPK_SPMM)
        poison_overhang(c, CHECK_VALUES, d->arrays[CHECK_VALUES]);
    d->arrays[CHECK_B] = dense(&r, c, CHECK_B);
    if (!finite)
        d->hostile = spoil(&r, c, d);
    if (s->use_c) {
        d->arrays[CHECK_C] = dense(&r, c, CHECK_C);
        if (c->operation == SPK_SDDMM)
            poison_overhang(c, CHECK_C, d->arrays[CHECK_C]);
        for (int64_t i = 0; c->beta == 0 && i < check_span(c, CHECK_C); i++) /* never to be read */
            put(s->dtype_d, d->arrays[CHECK_C], i, NAN);
    }
    if (s->residual)
        d->arrays[CHECK_RESIDUAL] = dense(&r, c, CHECK_RESIDUAL);
    if (s->bias)
        d->arrays[CHECK_BIAS] = dense(&r, c, CHECK_BIAS);
    d->arrays[CHECK_D] = image_of_d(c, d);
}

spk_tune_options check_options(const check_case *c, bool finite)
{
    return (spk_tune_options){SPK_SIZED(spk_tune_options), .assume_finite = finite, .static_values = c->static_values};
}

const void *check_problem(const check_case *c)
{
    return c->operation == SPK_SDDMM ? (const void *)&c->sddmm : &c->spmm;
}

spk_sddmm_args check_sddmm_args(const spk_spmm_args *given)
{
    return (spk_sddmm_args){SPK_SIZED(spk_sddmm_args),
                            .x = given->values,
                            .y = given->b,
                            .c = given->c,
                            .d = given->d,
                            .alpha = given->alpha,
                            .beta = given->beta,
                            .workspace = given->workspace,
                            .workspace_bytes = given->workspace_bytes};
}

static spk_status ask_oracle(const check_case *c, spk_context *context, check_data *d)
{
    spk_spmm_args run_args = {SPK_SIZED(spk_spmm_args), .values = d->arrays[CHECK_VALUES], .b = d->arrays[CHECK_B],
                              .c = d->arrays[CHECK_C]};
    run_args.bias = d->arrays[CHECK_BIAS];
    run_args.residual = d->arrays[CHECK_RESIDUAL];
    run_args.alpha = c->alpha;
    run_args.beta = c->beta;
    if (c->operation == SPK_SDDMM) {
        const spk_sddmm_args sampled = check_sddmm_args(&run_args);
        spk_status status = spk_oracle(context, d->pattern, &c->sddmm, &sampled, NULL, 0, d->out, NULL, d->magnitude);
        if (status == SPK_OK)
            memcpy(d->preact, d->out, sizeof(double) * (size_t)(c->items * c->arrays[CHECK_D].rows * c->arrays[CHECK_D].cols));
        return status == SPK_OK ? spk_default_tolerance(context, d->pattern, &c->sddmm, &d->tolerance) : status;
    }
    spk_status status = spk_oracle(context, d->pattern, &c->spmm, &run_args, NULL, 0, d->out, d->preact, d->magnitude);
    return status == SPK_OK ? spk_default_tolerance(context, d->pattern, &c->spmm, &d->tolerance) : status;
}

spk_status check_data_make(const check_case *c, spk_context *context, spk_pattern *pattern, bool finite, check_data *out)
{
    check_data d = {.c = c, .context = context, .pattern = pattern, .finite = finite};
    make_operands(c, finite, &d);
    const size_t count = (size_t)(c->items * c->arrays[CHECK_D].rows * c->arrays[CHECK_D].cols);
    d.out = cli_alloc(count, sizeof(double));
    d.preact = cli_alloc(count, sizeof(double));
    d.magnitude = cli_alloc(count, sizeof(double));
    const spk_status status = ask_oracle(c, context, &d);
    if (status == SPK_OK)
        *out = d;
    else
        check_data_release(&d);
    return status;
}

void check_data_release(check_data *d)
{
    for (int i = 0; i < CHECK_ARRAYS; i++)
        free(d->arrays[i]);
    free(d->out);
    free(d->preact);
    free(d->magnitude);
    *d = (check_data){0};
}
