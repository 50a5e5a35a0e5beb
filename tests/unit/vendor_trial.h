/* Random SpMM problems with their answer from the definition, and the check of a candidate against it. For test_vendor.c. */
#ifndef SPK_TESTS_VENDOR_TRIAL_H
#define SPK_TESTS_VENDOR_TRIAL_H

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/rng.h"
#include "op/product.h"

enum { SLACK = 3 };

/* ------------------------------------------------------------------------------------------------ a device and a random problem */

static spk_device *open_device(int threads)
{
    spk_executor executor = {.threads = threads};
    spk_device *device = NULL;
    assert_int_equal(spk_backend_cpu.open(&spk_mem_system, "cpu", &executor, &device), SPK_OK);
    return device;
}

typedef struct trial {
    spk_rng rng;
    uint64_t seed;
    spk_pattern *pattern;
    spk_problem problem;
    double *values, *b, *c, *bias, *residual; /* dense: by row and column, without leading dimensions */
    double *want, *preact, *magnitude;
    double alpha, beta;
    bool c_is_d;
} trial;

static int64_t pick(spk_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)spk_rng_below(rng, (uint64_t)(high - low + 1));
}

static void *get(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

/* A number that f32 holds, so that both dtypes multiply the same ones. */
static double number(spk_rng *rng)
{
    return (double)(float)spk_rng_normal(rng);
}

static double *numbers(spk_rng *rng, int64_t count)
{
    double *made = get((size_t)count, sizeof *made);
    for (int64_t i = 0; i < count; i++)
        made[i] = number(rng);
    return made;
}

static void make_pattern_of(trial *t, int64_t m, int64_t k, int block_rows, int block_cols)
{
    int64_t grid_rows = (m + block_rows - 1) / block_rows, grid_cols = (k + block_cols - 1) / block_cols;
    int64_t *offsets = get((size_t)grid_rows + 1, sizeof *offsets), *columns = get((size_t)(grid_rows * grid_cols), sizeof *columns),
            count = 0;
    int64_t full = pick(&t->rng, 0, 10);
    for (int64_t i = 0; i < grid_rows; i++) {
        bool empty = pick(&t->rng, 0, 4) == 0;
        for (int64_t j = 0; j < grid_cols; j++)
            if (!empty && pick(&t->rng, 0, 9) < full)
                columns[count++] = j;
        offsets[i + 1] = count;
    }
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                               .rows = m,
                               .cols = k,
                               .block_rows = block_rows,
                               .block_cols = block_cols,
                               .nnzb = count,
                               .row_offsets = offsets,
                               .col_indices = columns,
                               .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &t->pattern), SPK_OK);
    free(offsets);
    free(columns);
}

static void make_pattern(trial *t)
{
    static const int sizes[] = {1, 2, 3, 4, 7, 8, 16, 24, 32, 40, 64, 130, 256};
    int block_rows = sizes[pick(&t->rng, 0, 12)], block_cols = pick(&t->rng, 0, 1) ? block_rows : sizes[pick(&t->rng, 0, 12)];
    int64_t grid_rows = pick(&t->rng, 1, block_rows < 64 ? 6 : 2), grid_cols = pick(&t->rng, 1, block_cols < 64 ? 6 : 2);
    bool ragged = pick(&t->rng, 0, 1) != 0;
    int64_t m = grid_rows * block_rows - (ragged ? pick(&t->rng, 0, block_rows - 1) : 0),
            k = grid_cols * block_cols - (ragged ? pick(&t->rng, 0, block_cols - 1) : 0);
    make_pattern_of(t, m, k, block_rows, block_cols);
}

static void make_problem(trial *t, bool plain)
{
    spk_rng *rng = &t->rng;
    spk_dtype dtype = pick(rng, 0, 1) ? SPK_F32 : SPK_F64;
    bool wide = t->pattern->rows * t->pattern->cols < 10000 && pick(rng, 0, 2) == 0;
    spk_spmm spmm = {SPK_SIZED(spk_spmm),
                     .n = pick(rng, 1, wide ? 700 : 70),
                     .dtype_a = dtype,
                     .trans_a = (spk_trans)pick(rng, 0, 1),
                     .block_layout = (spk_layout)pick(rng, 0, 1),
                     .layout_b = (spk_layout)pick(rng, 0, 1),
                     .layout_d = (spk_layout)pick(rng, 0, 1)};
    if (!plain) {
        spmm.use_c = (int)pick(rng, 0, 1);
        spmm.bias = (spk_bias)pick(rng, 0, 2);
        spmm.activation = (spk_activation)pick(rng, 0, 4);
        spmm.residual = (spk_residual)pick(rng, SPK_RESIDUAL_NONE, SPK_RESIDUAL_MULTIPLY);
        spmm.keep_preact = (int)pick(rng, 0, 1);
    }
    int64_t m = spmm.trans_a ? t->pattern->cols : t->pattern->rows, k = spmm.trans_a ? t->pattern->rows : t->pattern->cols;
    int64_t length_b = spmm.layout_b == SPK_ROW_MAJOR ? spmm.n : k, length_d = spmm.layout_d == SPK_ROW_MAJOR ? spmm.n : m;
    t->c_is_d = spmm.use_c && pick(rng, 0, 1);
    spmm.ldb = length_b + pick(rng, 0, SLACK);
    spmm.ldd = length_d + pick(rng, 0, SLACK);
    spmm.ldc = t->c_is_d ? spmm.ldd : length_d + pick(rng, 0, SLACK);
    spmm.ldr = length_d + pick(rng, 0, SLACK);
    spmm.ldp = length_d + pick(rng, 0, SLACK);
    spmm.assume_finite = 1;
    spmm.static_values = (int)pick(rng, 0, 1);
    assert_int_equal(spk_problem_read(&spk_op_spmm, t->pattern, &spmm, NULL, &t->problem), SPK_OK);
    t->alpha = pick(rng, 0, 3) == 0 ? 1 : pick(rng, 0, 5) == 0 ? 0 : 0.75;
    t->beta = pick(rng, 0, 3) == 0 ? 0 : -1.25;
}

static double activation(spk_activation kind, double x)
{
    switch (kind) {
    case SPK_ACT_RELU:
        return x > 0 ? x : 0;
    case SPK_ACT_GELU_ERF:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case SPK_ACT_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case SPK_ACT_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

/* The answer from the definition, in double. */
static void solve(trial *t)
{
    const spk_problem *p = &t->problem;
    const spk_pattern *a = t->pattern;
    for (int64_t i = 0; i < a->index.grid_rows; i++)
        for (int64_t q = a->index.offsets[i]; q < a->index.offsets[i + 1]; q++)
            for (int64_t e = 0; e < (int64_t)a->block_rows * a->block_cols; e++) {
                bool row_major = p->block_layout == SPK_ROW_MAJOR;
                int64_t row = i * a->block_rows + (row_major ? e / a->block_cols : e % a->block_rows);
                int64_t col = (int64_t)a->index.columns[q] * a->block_cols + (row_major ? e % a->block_cols : e / a->block_rows);
                if (row >= a->rows || col >= a->cols)
                    continue;
                double value = t->values[q * a->block_rows * a->block_cols + e];
                int64_t m = p->trans_a ? col : row, k = p->trans_a ? row : col;
                for (int64_t j = 0; j < p->n; j++) {
                    t->want[m * p->n + j] += t->alpha * value * t->b[k * p->n + j];
                    t->magnitude[m * p->n + j] += fabs(t->alpha * value * t->b[k * p->n + j]);
                }
            }
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double bias = p->epilogue.bias == SPK_BIAS_PER_ROW   ? t->bias[i / p->n]
                      : p->epilogue.bias == SPK_BIAS_PER_COL ? t->bias[i % p->n]
                                                             : 0;
        double c = p->epilogue.use_c && t->beta != 0 ? t->beta * t->c[i] : 0,
               residual = p->epilogue.residual != SPK_RESIDUAL_NONE ? t->residual[i] : 0;
        t->preact[i] = t->want[i] + c + bias;
        const double active = activation(p->epilogue.activation, t->preact[i]), terms = t->magnitude[i] + fabs(c) + fabs(bias);
        const bool factor = p->epilogue.residual == SPK_RESIDUAL_MULTIPLY;
        t->want[i] = factor ? active * residual : active + residual;
        t->magnitude[i] = (factor ? terms * fmax(1, fabs(residual)) : terms + fabs(residual)) + 1e-30;
    }
}

static void trial_fill(trial *t)
{
    const spk_problem *p = &t->problem;
    t->values = numbers(&t->rng, t->pattern->nnzb * t->pattern->block_rows * t->pattern->block_cols);
    t->b = numbers(&t->rng, p->k * p->n);
    t->c = numbers(&t->rng, p->m * p->n);
    t->bias = numbers(&t->rng, p->m + p->n);
    t->residual = numbers(&t->rng, p->m * p->n);
    t->want = get((size_t)(p->m * p->n), sizeof *t->want);
    t->preact = get((size_t)(p->m * p->n), sizeof *t->preact);
    t->magnitude = get((size_t)(p->m * p->n), sizeof *t->magnitude);
    solve(t);
}

static void trial_start(trial *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->seed = seed;
    spk_rng_seed(&t->rng, seed);
}

static void trial_make(trial *t, uint64_t seed, bool plain)
{
    trial_start(t, seed);
    make_pattern(t);
    make_problem(t, plain);
    trial_fill(t);
}

/* A plain f64 problem in the layouts of the trial's own arrays, which every row computes. */
static void trial_make_simple(trial *t, uint64_t seed)
{
    trial_start(t, seed);
    make_pattern_of(t, 48, 64, 8, 8);
    spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 33, .dtype_a = SPK_F64, .assume_finite = 1};
    assert_int_equal(spk_problem_read(&spk_op_spmm, t->pattern, &spmm, NULL, &t->problem), SPK_OK);
    t->alpha = 0.5;
    trial_fill(t);
}

static void trial_free(trial *t)
{
    spk_pattern_release(&t->pattern);
    double **all[] = {&t->values, &t->b, &t->c, &t->bias, &t->residual, &t->want, &t->preact, &t->magnitude};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(*all[i]);
}

/* ------------------------------------------------------------------------------------------------ arrays as a caller has them */

static void put(void *array, spk_dtype dtype, int64_t index, double value)
{
    if (dtype == SPK_F32)
        ((float *)array)[index] = (float)value;
    else
        ((double *)array)[index] = value;
}

static double at(const void *array, spk_dtype dtype, int64_t index)
{
    return dtype == SPK_F32 ? (double)((const float *)array)[index] : ((const double *)array)[index];
}

static int64_t place(spk_layout layout, int64_t ld, int64_t i, int64_t j)
{
    return layout == SPK_ROW_MAJOR ? i * ld + j : i + j * ld;
}

/* An array of exactly the elements that the problem promises, NaN where nothing belongs. source NULL: NaN everywhere. */
static void *lay_out(const spk_problem *p, int operand, spk_layout layout, int64_t ld, int64_t height, const double *source)
{
    int64_t elements = spk_problem_operand_elements(p, operand);
    void *array = malloc((size_t)elements * spk_dtype_bytes(p->a.dtype) + 1);
    assert_non_null(array);
    for (int64_t i = 0; i < elements; i++)
        put(array, p->a.dtype, i, NAN);
    for (int64_t i = 0; source != NULL && elements > 0 && i < height; i++)
        for (int64_t j = 0; j < p->n; j++)
            put(array, p->a.dtype, place(layout, ld, i, j), source[i * p->n + j]);
    return array;
}

static void *lay_out_list(const spk_problem *p, int operand, const double *source)
{
    int64_t elements = spk_problem_operand_elements(p, operand);
    void *array = malloc((size_t)elements * spk_dtype_bytes(p->a.dtype) + 1);
    assert_non_null(array);
    for (int64_t i = 0; i < elements; i++)
        put(array, p->a.dtype, i, source[i]);
    return array;
}

/* Poisons the overhang of edge blocks: it must never reach a result. */
static void poison_overhang(const trial *t, void *values)
{
    const spk_pattern *a = t->pattern;
    for (int64_t i = 0; i < a->index.grid_rows; i++)
        for (int64_t q = a->index.offsets[i]; q < a->index.offsets[i + 1]; q++)
            for (int64_t e = 0; e < (int64_t)a->block_rows * a->block_cols; e++) {
                bool row_major = t->problem.block_layout == SPK_ROW_MAJOR;
                int64_t row = i * a->block_rows + (row_major ? e / a->block_cols : e % a->block_rows);
                int64_t col = (int64_t)a->index.columns[q] * a->block_cols + (row_major ? e % a->block_cols : e / a->block_rows);
                if (row >= a->rows || col >= a->cols)
                    put(values, t->problem.a.dtype, q * a->block_rows * a->block_cols + e, NAN);
            }
}

/* Rows of B that no stored block meets hold NaN: rows that fill no zeros must not notice. */
static void poison_unused_rows(const trial *t, void *b)
{
    const spk_problem *p = &t->problem;
    spk_bsr_view view;
    assert_int_equal(spk_pattern_view(t->pattern, p->trans_a, p->block_layout, &view), SPK_OK);
    bool *used = get((size_t)view.grid_cols, sizeof *used);
    for (int64_t i = 0; i < view.nnzb; i++)
        used[view.columns[i]] = true;
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t j = 0; !used[k / view.block_cols] && j < p->n; j++)
            put(b, p->a.dtype, place(p->b.layout, p->b.ld, k, j), NAN);
    free(used);
}

static void compare(const trial *t, const char *row, const char *params, const char *name, const void *got, int64_t ld, int64_t elements,
                    const double *want)
{
    const spk_problem *p = &t->problem;
    double tolerance = spk_problem_tolerance(p, SPK_D);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double x = at(got, p->a.dtype, place(p->d.layout, ld, i, j)), error = fabs(x - want[i * p->n + j]);
            /* GELU and SILU have a slope up to 1.13 and a rounding of their own. */
            if (!(error <= 1.2 * tolerance * (t->magnitude[i * p->n + j] + fabs(t->preact[i * p->n + j]))))
                fail_msg("%s %s, seed %llu: %s[%lld][%lld] is %.9g, not %.9g", row, params, (unsigned long long)t->seed, name, (long long)i,
                         (long long)j, x, want[i * p->n + j]);
        }
    int64_t length = p->d.layout == SPK_ROW_MAJOR ? p->n : p->m;
    for (int64_t i = 0; i < elements; i++)
        if (i % ld >= length && !isnan(at(got, p->a.dtype, i)))
            fail_msg("%s %s, seed %llu: it wrote between the lines of %s", row, params, (unsigned long long)t->seed, name);
}

/* Runs a candidate on fresh arrays and checks D and preact. */
static void check_candidate(const trial *t, const spk_kernel *kernel, const spk_params *params, spk_device *device)
{
    const spk_problem *p = &t->problem;
    char text[SPK_MAX_PARAMS_TEXT];
    spk_params_text(kernel, params, text, sizeof text);
    spk_bound bound;
    spk_status status = spk_bind(kernel, params, p, device, &bound);
    if (status != SPK_OK)
        fail_msg("%s %s, seed %llu: bind: %s", kernel->name, text, (unsigned long long)t->seed, spk_error_message(0));
    void *values = lay_out_list(p, SPK_A, t->values), *bias = lay_out_list(p, SPK_BIAS, t->bias);
    void *b = lay_out(p, SPK_B, p->b.layout, p->b.ld, p->k, t->b);
    void *c = lay_out(p, SPK_C, p->d.layout, p->c.ld, p->m, t->beta != 0 ? t->c : NULL);
    void *d = t->c_is_d ? c : lay_out(p, SPK_D, p->d.layout, p->d.ld, p->m, NULL);
    void *residual = lay_out(p, SPK_RESIDUAL, p->d.layout, p->residual.ld, p->m, t->residual);
    void *preact = lay_out(p, SPK_PREACT, p->d.layout, p->preact.ld, p->m, NULL);
    poison_overhang(t, values);
    if (!kernel->fills_zeros)
        poison_unused_rows(t, b);
    void *workspace = aligned_alloc(64, (bound.workspace_bytes + 127) / 64 * 64);
    assert_non_null(workspace);
    memset(workspace, 0xff, bound.workspace_bytes);
    spk_args args = {.a = values,
                     .b = b,
                     .c = p->epilogue.use_c ? c : NULL,
                     .d = d,
                     .bias = bias,
                     .residual = residual,
                     .preact = preact,
                     .alpha = t->alpha,
                     .beta = t->beta,
                     .workspace = workspace,
                     .workspace_bytes = bound.workspace_bytes};
    if (p->static_values && kernel->ops->update_values != NULL) {
        assert_int_equal(spk_bound_update_values(&bound, values), SPK_OK);
        assert_int_equal(spk_bound_update_values(&bound, values), SPK_OK);
        args.a = NULL; /* it has its own by now */
    }
    status = spk_bound_run(&bound, &args, NULL);
    if (status != SPK_OK)
        fail_msg("%s %s, seed %llu: run: %s", kernel->name, text, (unsigned long long)t->seed, spk_error_message(0));
    compare(t, kernel->name, text, "D", d, p->d.ld, spk_problem_operand_elements(p, SPK_D), t->want);
    if (p->epilogue.keep_preact)
        compare(t, kernel->name, text, "preact", preact, p->preact.ld, spk_problem_operand_elements(p, SPK_PREACT), t->preact);
    assert_true(kernel->ops->predict_us(p, device, params) > 0);
    spk_unbind(&bound);
    void *all[] = {values, bias, b, c, t->c_is_d ? NULL : d, residual, preact, workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

#endif
