/* The oracle: plain loops from the definitions of SpMM and SDDMM, one row of D at a time. float64 inputs accumulate in long
 * double (where that is wider), the others in float64, so that its own rounding stays far below every tolerance. Results are not rounded to
 * D's dtype. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "matrix/matrix.h"
#include "op/problem.h"

typedef struct oracle {
    const spk_problem *problem;
    const spk_args *args;
    const spk_bsr_view *view;
    int64_t a_row_stride, a_col_stride; /* of X */
    int64_t b_row_stride, b_col_stride, cols;
    int64_t row0, col0; /* SDDMM: of the first element of the block that the present row of D is in */
} oracle;

/* sum[j] += a B[k][j] and size[j] += |a B[k][j]| over one row of op(A). */
#define ACCUMULATE(name, element, wide, load)                                                                             \
    static void name(const oracle *o, int64_t row, wide *sum, wide *size)                                                 \
    {                                                                                                                     \
        const spk_bsr_view *v = o->view;                                                                                  \
        const element *values = o->args->a, *b = o->args->b;                                                              \
        int64_t block_row = row / v->block_rows, inner = row % v->block_rows;                                             \
        for (int64_t p = v->offsets[block_row]; p < v->offsets[block_row + 1]; p++) {                                     \
            const element *block = values + (v->positions != NULL ? v->positions[p] : p) * v->block_stride;               \
            int64_t k0 = (int64_t)v->columns[p] * v->block_cols;                                                          \
            int64_t width = k0 + v->block_cols <= v->cols ? v->block_cols : v->cols - k0; /* the overhang is not there */ \
            for (int64_t k = 0; k < width; k++) {                                                                         \
                wide a = (wide)load(block[inner * v->row_stride + k * v->col_stride]);                                    \
                const element *b_row = b + (k0 + k) * o->b_row_stride;                                                    \
                for (int64_t j = 0; j < o->cols; j++) {                                                                   \
                    wide term = a * (wide)load(b_row[j * o->b_col_stride]);                                               \
                    sum[j] += term;                                                                                       \
                    size[j] += term < 0 ? -term : term;                                                                   \
                }                                                                                                         \
            }                                                                                                             \
        }                                                                                                                 \
    }

ACCUMULATE(accumulate_f32, float, double, )
ACCUMULATE(accumulate_f64, double, long double, )
ACCUMULATE(accumulate_f16, uint16_t, double, spk_f16_to_float)
ACCUMULATE(accumulate_bf16, uint16_t, double, spk_bf16_to_float)

/* SDDMM: where element j of a row of D lies in X Y; false: in the overhang, where there is nothing. */
static bool place_of(const oracle *o, int64_t row, int64_t j, int64_t *i, int64_t *column)
{
    const bool by_row = o->problem->block_layout == SPK_ROW_MAJOR;
    const int64_t line = row % (by_row ? o->view->block_rows : o->view->block_cols);
    *i = o->row0 + (by_row ? line : j);
    *column = o->col0 + (by_row ? j : line);
    return *i < o->view->rows && *column < o->view->cols;
}

/* The same over one row of blocks' elements: sum[j] = sum over k of X[i][k] Y[k][column]. */
#define ACCUMULATE_SAMPLED(name, element, wide, load)                                                \
    static void name(const oracle *o, int64_t row, wide *sum, wide *size)                            \
    {                                                                                                \
        for (int64_t j = 0; j < o->cols; j++) {                                                      \
            int64_t i, column;                                                                       \
            if (!place_of(o, row, j, &i, &column))                                                   \
                continue;                                                                            \
            const element *x = (const element *)o->args->a + i * o->a_row_stride;                    \
            const element *y = (const element *)o->args->b + column * o->b_col_stride;               \
            for (int64_t k = 0; k < o->problem->k; k++) {                                            \
                wide term = (wide)load(x[k * o->a_col_stride]) * (wide)load(y[k * o->b_row_stride]); \
                sum[j] += term;                                                                      \
                size[j] += term < 0 ? -term : term;                                                  \
            }                                                                                        \
        }                                                                                            \
    }

ACCUMULATE_SAMPLED(sampled_f32, float, double, )
ACCUMULATE_SAMPLED(sampled_f64, double, long double, )
ACCUMULATE_SAMPLED(sampled_f16, uint16_t, double, spk_f16_to_float)
ACCUMULATE_SAMPLED(sampled_bf16, uint16_t, double, spk_bf16_to_float)

/* SDDMM: the block that a row of D is in. */
static void find_block(oracle *o, int64_t row)
{
    const spk_bsr_view *v = o->view;
    const int64_t block = row / (o->problem->block_layout == SPK_ROW_MAJOR ? v->block_rows : v->block_cols);
    int64_t low = 0, high = v->grid_rows; /* offsets[low] <= block < offsets[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (v->offsets[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    o->row0 = low * v->block_rows;
    o->col0 = (int64_t)v->columns[block] * v->block_cols;
}

static void accumulate(const oracle *o, int64_t row, double *sum, double *size)
{
    const bool sampled = o->problem->operation == SPK_SDDMM;
    switch (o->problem->dtype_a) {
    case SPK_F16:
        (sampled ? sampled_f16 : accumulate_f16)(o, row, sum, size);
        break;
    case SPK_BF16:
        (sampled ? sampled_bf16 : accumulate_bf16)(o, row, sum, size);
        break;
    default:
        (sampled ? sampled_f32 : accumulate_f32)(o, row, sum, size);
    }
}

static int64_t at(const spk_problem *p, int64_t ld, int64_t i, int64_t j)
{
    return p->layout_d == SPK_ROW_MAJOR ? i * ld + j : j * ld + i;
}

/* One element through the epilogue. The magnitude bounds what rounding the terms and the activation (slope below 1.13) can do. */
static double finish(const oracle *o, int64_t i, int64_t j, long double sum, long double size, double *preact, double *magnitude)
{
    const spk_problem *p = o->problem;
    const spk_args *args = o->args;
    long double value = (long double)args->alpha * sum, total = fabsl((long double)args->alpha) * size;
    if (p->epilogue.use_c && args->beta != 0) {
        long double term = (long double)args->beta * spk_value_get(args->c, p->dtype_d, at(p, p->ldc, i, j));
        value += term;
        total += fabsl(term);
    }
    if (p->epilogue.bias != SPK_BIAS_NONE) {
        long double term = spk_value_get(args->bias, p->dtype_d, p->epilogue.bias == SPK_BIAS_PER_ROW ? i : j);
        value += term;
        total += fabsl(term);
    }
    *preact = (double)value;
    double result = p->epilogue.activation == SPK_ACT_NONE ? (double)value : spk_activate_f64(p->epilogue.activation, (double)value);
    if (p->epilogue.activation != SPK_ACT_NONE)
        total *= 1.13L;
    if (p->epilogue.residual != SPK_RESIDUAL_NONE) {
        double term = spk_value_get(args->residual, p->dtype_d, at(p, p->ldr, i, j));
        bool factor = p->epilogue.residual == SPK_RESIDUAL_MULTIPLY;
        result = factor ? result * term : result + term;
        /* What is kept before it is judged by the same magnitude. */
        total = !factor ? total + fabs(term) : p->epilogue.keep_preact ? total * fmax(1, fabs(term)) : total * fabs(term);
    }
    *magnitude = (double)total;
    return result;
}

/* One row of D: its sums, and what the epilogue makes of them. */
static void run_row(oracle *o, int64_t row, char *sums, double *out, double *preact, double *magnitude)
{
    const bool wide = o->problem->dtype_a == SPK_F64, sampled = o->problem->operation == SPK_SDDMM;
    char *sizes = sums + (size_t)o->cols * (wide ? sizeof(long double) : sizeof(double));
    memset(sums, 0, 2 * (size_t)(sizes - sums));
    if (sampled)
        find_block(o, row);
    if (wide)
        (sampled ? sampled_f64 : accumulate_f64)(o, row, (long double *)(void *)sums, (long double *)(void *)sizes);
    else
        accumulate(o, row, (double *)(void *)sums, (double *)(void *)sizes);
    for (int64_t j = 0; j < o->cols; j++) {
        long double sum = wide ? ((long double *)(void *)sums)[j] : (long double)((double *)(void *)sums)[j];
        long double size = wide ? ((long double *)(void *)sizes)[j] : (long double)((double *)(void *)sizes)[j];
        double before = 0, total = 0;
        int64_t i, column;
        out[j] = sampled && !place_of(o, row, j, &i, &column) ? 0 : finish(o, row, j, sum, size, &before, &total);
        if (preact != NULL)
            preact[j] = before;
        if (magnitude != NULL)
            magnitude[j] = total;
    }
}

spk_status spk_oracle_run(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const int64_t *rows, int64_t row_count,
                          double *out, double *preact, double *magnitude)
{
    spk_bsr_view view;
    SPK_TRY(spk_pattern_view(problem->pattern, problem->trans_a, problem->block_layout, &view));
    oracle o = {.problem = problem, .view = &view, .cols = spk_problem_d_cols(problem)};
    o.a_row_stride = problem->layout_a == SPK_ROW_MAJOR ? problem->lda : 1;
    o.a_col_stride = problem->layout_a == SPK_ROW_MAJOR ? 1 : problem->lda;
    o.b_row_stride = problem->layout_b == SPK_ROW_MAJOR ? problem->ldb : 1;
    o.b_col_stride = problem->layout_b == SPK_ROW_MAJOR ? 1 : problem->ldb;
    char *sums = NULL;
    const int64_t n = o.cols, item_rows = spk_problem_d_rows(problem);
    SPK_TRY(spk_alloc(mem, 2 * (size_t)n, problem->dtype_a == SPK_F64 ? sizeof(long double) : sizeof(double), &sums));
    for (int64_t r = 0; r < row_count; r++) {
        const int64_t row = rows != NULL ? rows[r] : r;
        const spk_args item = spk_args_item(problem, args, row / item_rows);
        o.args = &item;
        run_row(&o, row % item_rows, sums, out + r * n, preact != NULL ? preact + r * n : NULL,
                magnitude != NULL ? magnitude + r * n : NULL);
    }
    spk_free(mem, sums);
    return SPK_OK;
}
