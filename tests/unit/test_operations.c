/* SDDMM and batches through the public interface, on every row of the table that can: against plain loops, with everything poisoned that must not
 * matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "matrix/matrix.h"
#include "sparsek/sparsek.h"

static spk_context *context;

static int set_up(void **state)
{
    (void)state;
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_context_destroy(&context);
    return 0;
}

static void ok(spk_status status)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", spk_status_name(status), spk_last_error(context));
}

static int64_t pick(spk_rng *rng, int64_t from, int64_t to)
{
    return from + (int64_t)spk_rng_below(rng, (uint64_t)(to - from + 1));
}

/* A pattern whose blocks the test knows too. */
typedef struct blocks {
    int64_t rows, cols, block_rows, block_cols, nnzb;
    int64_t *row, *col; /* of each stored block, in blocks */
    spk_pattern *pattern;
} blocks;

/* Sizes are there; blocks are drawn. */
static void draw_blocks(spk_rng *rng, blocks *b, double density)
{
    const int64_t grid_rows = (b->rows + b->block_rows - 1) / b->block_rows, grid_cols = (b->cols + b->block_cols - 1) / b->block_cols;
    int64_t *offsets = calloc((size_t)grid_rows + 1, sizeof *offsets);
    b->row = calloc((size_t)(grid_rows * grid_cols), sizeof *b->row);
    b->col = calloc((size_t)(grid_rows * grid_cols), sizeof *b->col);
    b->nnzb = 0;
    for (int64_t i = 0; i < grid_rows; i++) {
        for (int64_t j = 0; j < grid_cols; j++)
            if (spk_rng_uniform(rng) < density) {
                b->row[b->nnzb] = i;
                b->col[b->nnzb++] = j;
            }
        offsets[i + 1] = b->nnzb;
    }
    ok(spk_pattern_create(context,
                          &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = b->rows, .cols = b->cols, .block_rows = b->block_rows,
                                             .block_cols = b->block_cols, .nnzb = b->nnzb, .row_offsets = offsets, .col_indices = b->col,
                                             .index_type = SPK_I64},
                          &b->pattern));
    free(offsets);
}

static void make_blocks(spk_rng *rng, blocks *b)
{
    static const int64_t sizes[] = {1, 3, 4, 7, 16, 32, 40};
    b->block_rows = sizes[pick(rng, 0, 6)];
    b->block_cols = pick(rng, 0, 1) ? b->block_rows : sizes[pick(rng, 0, 6)];
    b->rows = pick(rng, 1, 4 * b->block_rows);
    b->cols = pick(rng, 1, 4 * b->block_cols);
    draw_blocks(rng, b, spk_rng_uniform(rng));
}

static void free_blocks(blocks *b)
{
    spk_pattern_destroy(&b->pattern);
    free(b->row);
    free(b->col);
}

/* Where element (r, c) of block p lies in an array of values. */
static int64_t value_at(const blocks *b, spk_layout layout, int64_t p, int64_t r, int64_t c)
{
    return p * b->block_rows * b->block_cols + (layout == SPK_ROW_MAJOR ? r * b->block_cols + c : c * b->block_rows + r);
}

/* An array of `items` of rows x cols, NaN where there is no element. */
typedef struct array {
    spk_dtype dtype;
    spk_layout layout;
    int64_t rows, cols, ld, stride, elements;
    char *memory;
} array;

static int64_t place(const array *a, int64_t item, int64_t i, int64_t j)
{
    return item * a->stride + (a->layout == SPK_ROW_MAJOR ? i * a->ld + j : j * a->ld + i);
}

static double at(const array *a, int64_t item, int64_t i, int64_t j)
{
    return spk_value_get(a->memory, a->dtype, place(a, item, i, j));
}

/* How the items of a batch lie. */
enum { TIGHT, LOOSE, SIDE_BY_SIDE, SHARED };

static void make_array(spk_rng *rng, array *a, spk_dtype dtype, spk_layout layout, int64_t rows, int64_t cols, int64_t items, int how)
{
    const int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols;
    *a = (array){.dtype = dtype, .layout = layout, .rows = rows, .cols = cols};
    a->ld = (length > 0 ? length : 1) + pick(rng, 0, 3);
    a->stride = a->ld * lines + (how == LOOSE ? pick(rng, 1, 9) : 0);
    if (how == SIDE_BY_SIDE) {
        a->stride = a->ld;
        a->ld *= items;
    } else if (how == SHARED) {
        a->stride = 0;
    }
    a->elements = length > 0 && lines > 0 ? (items - 1) * a->stride + a->ld * (lines - 1) + length : 0;
    a->memory = malloc((size_t)a->elements * spk_dtype_bytes(dtype) + 1);
    for (int64_t e = 0; e < a->elements; e++)
        spk_value_set(a->memory, dtype, e, (double)NAN);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                spk_value_set(a->memory, dtype, place(a, item, i, j), spk_rng_normal(rng));
}

/* The stride as a caller gives it. */
static int64_t given(const array *a, int how)
{
    return how == TIGHT ? 0 : how == SHARED ? SPK_STRIDE_SHARED : a->stride;
}

static void random_dtypes(spk_rng *rng, spk_dtype *in, spk_dtype *out)
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    *in = dtypes[pick(rng, 0, 3)];
    *out = (*in == SPK_F16 || *in == SPK_BF16) && pick(rng, 0, 1) ? SPK_F32 : *in;
}

/* ------------------------------------------------------------------------------------------------ SDDMM */

typedef struct sddmm_case {
    blocks b;
    spk_sddmm problem;
    spk_sddmm_args args;
    int64_t items, values; /* values: elements of D of an item */
    array x, y, c, d;
    double *want, *magnitude; /* of each element of D, item by item */
    double tolerance;
} sddmm_case;

static void expect_values(sddmm_case *t)
{
    const blocks *b = &t->b;
    t->want = calloc((size_t)(t->items * t->values + 1), sizeof *t->want);
    t->magnitude = calloc((size_t)(t->items * t->values + 1), sizeof *t->magnitude);
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++) {
                    const int64_t i = b->row[p] * b->block_rows + r, j = b->col[p] * b->block_cols + q, v = value_at(b, t->problem.block_layout, p, r, q);
                    double *want = &t->want[item * t->values + v], *magnitude = &t->magnitude[item * t->values + v];
                    if (i >= b->rows || j >= b->cols)
                        continue;
                    for (int64_t k = 0; k < t->problem.k; k++) {
                        const double term = t->args.alpha * at(&t->x, item, i, k) * at(&t->y, item, k, j);
                        *want += term;
                        *magnitude += fabs(term);
                    }
                    if (t->problem.use_c && t->args.beta != 0) {
                        const double term = t->args.beta * spk_value_get(t->c.memory, t->c.dtype, item * t->c.stride + v);
                        *want += term;
                        *magnitude += fabs(term);
                    }
                }
}

/* C is NaN in the overhang, and everywhere where beta is 0. */
static void spoil_c(sddmm_case *t)
{
    const blocks *b = &t->b;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++)
                    if (t->args.beta == 0 || b->row[p] * b->block_rows + r >= b->rows || b->col[p] * b->block_cols + q >= b->cols)
                        spk_value_set(t->c.memory, t->c.dtype, item * t->c.stride + value_at(b, t->problem.block_layout, p, r, q), (double)NAN);
}

/* An array of values: one line an item. */
static void make_values(spk_rng *rng, array *a, spk_dtype dtype, int64_t values, int64_t items, int how)
{
    make_array(rng, a, dtype, SPK_ROW_MAJOR, values > 0 ? 1 : 0, values, items, SHARED);
    free(a->memory);
    a->ld = values;
    a->stride = how == SHARED ? 0 : values + (how == LOOSE ? pick(rng, 1, 9) : 0);
    a->elements = values > 0 ? (items - 1) * a->stride + values : 0;
    a->memory = malloc((size_t)a->elements * spk_dtype_bytes(dtype) + 1);
    for (int64_t e = 0; e < a->elements; e++)
        spk_value_set(a->memory, dtype, e, spk_rng_normal(rng));
}

/* Blocks are there; all else is drawn. */
static void draw_sddmm(spk_rng *rng, sddmm_case *t, int64_t k, int64_t most_items)
{
    static const int input_ways[] = {TIGHT, LOOSE, SIDE_BY_SIDE, SHARED};
    spk_sddmm *p = &t->problem;
    *p = (spk_sddmm){SPK_SIZED(spk_sddmm), .k = k};
    random_dtypes(rng, &p->dtype_x, &p->dtype_d);
    p->compute = p->dtype_x == SPK_F32 && pick(rng, 0, 3) == 0 ? SPK_TF32 : SPK_DTYPE_DEFAULT;
    p->block_layout = (spk_layout)pick(rng, 0, 1);
    p->layout_x = (spk_layout)pick(rng, 0, 1);
    p->layout_y = (spk_layout)pick(rng, 0, 1);
    p->use_c = (int)pick(rng, 0, 1);
    t->items = pick(rng, 0, 1) || most_items == 1 ? 1 : pick(rng, 2, most_items);
    p->batch = t->items;
    t->values = t->b.nnzb * t->b.block_rows * t->b.block_cols;
    const int x_way = input_ways[pick(rng, 0, 3)], y_way = input_ways[pick(rng, 0, 3)], d_way = (int)pick(rng, TIGHT, LOOSE),
              c_way = input_ways[pick(rng, 0, 1)];
    make_array(rng, &t->x, p->dtype_x, p->layout_x, t->b.rows, p->k, t->items, x_way);
    make_array(rng, &t->y, p->dtype_x, p->layout_y, p->k, t->b.cols, t->items, y_way);
    make_values(rng, &t->d, p->dtype_d, t->values, t->items, d_way);
    make_values(rng, &t->c, p->dtype_d, t->values, t->items, c_way);
    p->ldx = t->x.ld;
    p->ldy = t->y.ld;
    p->stride_x = given(&t->x, x_way);
    p->stride_y = given(&t->y, y_way);
    p->stride_d = given(&t->d, d_way);
    p->stride_c = given(&t->c, c_way);
    t->args = (spk_sddmm_args){SPK_SIZED(spk_sddmm_args), .x = t->x.memory, .y = t->y.memory, .c = t->c.memory, .d = t->d.memory};
    t->args.alpha = pick(rng, 0, 1) ? 1 : spk_rng_normal(rng);
    t->args.beta = pick(rng, 0, 2) == 0 ? 0 : spk_rng_normal(rng);
    spoil_c(t);
    expect_values(t);
    ok(spk_default_tolerance_sddmm(context, t->b.pattern, p, &t->tolerance));
}

static void make_sddmm(spk_rng *rng, sddmm_case *t)
{
    memset(t, 0, sizeof *t);
    make_blocks(rng, &t->b);
    draw_sddmm(rng, t, pick(rng, 0, 5) == 0 ? 0 : pick(rng, 1, 70), 11);
}

static void free_sddmm(sddmm_case *t)
{
    array *all[] = {&t->x, &t->y, &t->c, &t->d};
    for (int i = 0; i < 4; i++)
        free(all[i]->memory);
    free(t->want);
    free(t->magnitude);
    free_blocks(&t->b);
}

static void poison_d(sddmm_case *t)
{
    memset(t->d.memory, 0xff, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
}

static void check_sddmm(const sddmm_case *t, uint64_t seed, const char *choice)
{
    for (int64_t item = 0; item < t->items; item++) {
        for (int64_t v = 0; v < t->values; v++) {
            const double got = spk_value_get(t->d.memory, t->d.dtype, item * t->d.stride + v), want = t->want[item * t->values + v];
            const double error = t->d.dtype == SPK_F16 ? fmax(fabs(got - want) - 0x1p-25, 0) : fabs(got - want); /* denormals */
            if (!(error <= t->tolerance * t->magnitude[item * t->values + v]))
                fail_msg("seed %llu, %s: item %lld value %lld is %.9g, expected %.9g", (unsigned long long)seed, choice, (long long)item, (long long)v, got,
                         want);
        }
        for (int64_t v = t->values; t->values > 0 && item + 1 < t->items && v < t->d.stride; v++)
            assert_true(isnan(spk_value_get(t->d.memory, t->d.dtype, item * t->d.stride + v)));
    }
}

static void check_oracle(const sddmm_case *t, uint64_t seed)
{
    double *out = malloc((size_t)(t->items * t->values + 1) * sizeof *out), *magnitude = malloc((size_t)(t->items * t->values + 1) * sizeof *magnitude);
    ok(spk_oracle_sddmm(context, t->b.pattern, &t->problem, &t->args, NULL, 0, out, magnitude));
    for (int64_t v = 0; v < t->items * t->values; v++)
        if (!(fabs(out[v] - t->want[v]) <= 1e-13 * t->magnitude[v]) || !(fabs(magnitude[v] - t->magnitude[v]) <= 1e-13 * t->magnitude[v]))
            fail_msg("seed %llu: oracle %lld is %.17g (%g), expected %.17g (%g)", (unsigned long long)seed, (long long)v, out[v], magnitude[v], t->want[v],
                     t->magnitude[v]);
    if (t->values > 0) { /* one row alone: the last */
        const int64_t length = t->problem.block_layout == SPK_ROW_MAJOR ? t->b.block_cols : t->b.block_rows, last = t->items * t->values / length - 1;
        ok(spk_oracle_sddmm(context, t->b.pattern, &t->problem, &t->args, &last, 1, magnitude, NULL));
        assert_memory_equal(magnitude, out + last * length, (size_t)length * sizeof *out);
    }
    free(out);
    free(magnitude);
}

/* Every candidate that can, once; returns how many. */
static int run_sddmm(sddmm_case *t, uint64_t seed)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    ok(spk_list_sddmm(context, t->b.pattern, &t->problem, NULL, &report));
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        ok(spk_report_candidate(report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan *plan = NULL;
        ok(spk_plan_sddmm(context, t->b.pattern, &t->problem, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan));
        poison_d(t);
        ok(spk_run_sddmm(plan, &t->args, NULL));
        check_sddmm(t, seed, choice);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&report);
    return ran;
}

/* D may be C, where they lie alike. */
static void run_in_place(sddmm_case *t, uint64_t seed)
{
    if (!t->problem.use_c || t->c.stride != t->d.stride)
        return;
    memcpy(t->d.memory, t->c.memory, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
    for (int64_t item = 0; t->values > 0 && item + 1 < t->items; item++) /* what check_sddmm wants to find between the items */
        for (int64_t v = t->values; v < t->d.stride; v++)
            spk_value_set(t->d.memory, t->d.dtype, item * t->d.stride + v, (double)NAN);
    spk_sddmm_args args = t->args;
    args.c = args.d;
    ok(spk_matmul_sampled(context, t->b.pattern, &t->problem, &args, &(spk_tune_options){SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE}));
    check_sddmm(t, seed, "in place");
}

static void test_sddmm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        spk_rng rng;
        sddmm_case t;
        spk_rng_seed(&rng, seed);
        make_sddmm(&rng, &t);
        check_oracle(&t, seed);
        assert_true(run_sddmm(&t, seed) >= 1);
        run_in_place(&t, seed);
        free_sddmm(&t);
    }
}

/* So much of X and Y that kernels take them in steps, and the longest one in chunks of Y. */
static void test_long_sddmm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        spk_rng rng;
        sddmm_case t = {.b = {.rows = 45, .cols = 90, .block_rows = 20, .block_cols = 24}};
        spk_rng_seed(&rng, 3000 + seed);
        if (seed > 8)
            t.b = (blocks){.rows = 19, .cols = 700, .block_rows = 20, .block_cols = 7};
        draw_blocks(&rng, &t.b, seed > 8 ? 0.03 : 0.5);
        draw_sddmm(&rng, &t, seed > 8 ? 2700 : pick(&rng, 250, 1300), 1);
        assert_true(run_sddmm(&t, seed) >= 1);
        free_sddmm(&t);
    }
}

/* ------------------------------------------------------------------------------------------------ batches of SpMM */

typedef struct batch_case {
    blocks b;
    spk_spmm problem;
    spk_spmm_args args;
    int64_t items, m, k, value_stride;
    array values, x, c, d, residual, preact, bias;
    double *want, *before, *magnitude; /* [item][m][n] */
    double tolerance;
} batch_case;

static void spoil_overhang(batch_case *t)
{
    const blocks *b = &t->b;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++)
                    if (b->row[p] * b->block_rows + r >= b->rows || b->col[p] * b->block_cols + q >= b->cols)
                        spk_value_set(t->values.memory, t->values.dtype, item * t->value_stride + value_at(b, t->problem.block_layout, p, r, q), (double)NAN);
}

static void expect_batch(batch_case *t)
{
    /* The oracle of each item alone: it has tests of its own. */
    const size_t item_size = (size_t)(t->m * t->problem.n);
    t->want = calloc((size_t)t->items * item_size + 1, sizeof *t->want);
    t->before = calloc((size_t)t->items * item_size + 1, sizeof *t->before);
    t->magnitude = calloc((size_t)t->items * item_size + 1, sizeof *t->magnitude);
    spk_spmm alone = t->problem;
    alone.batch = 1;
    for (int64_t item = 0; item < t->items; item++) {
        spk_spmm_args args = t->args;
#define SHIFT(field, from, step) args.field = (from).memory + item * (step) * (int64_t)spk_dtype_bytes((from).dtype)
        SHIFT(values, t->values, t->value_stride);
        SHIFT(b, t->x, t->x.stride);
        SHIFT(c, t->c, t->c.stride);
        SHIFT(residual, t->residual, t->residual.stride);
#undef SHIFT
        const size_t from = (size_t)item * item_size;
        ok(spk_oracle_spmm(context, t->b.pattern, &alone, &args, NULL, 0, t->want + from, t->before + from, t->magnitude + from));
    }
}

static void make_batch(spk_rng *rng, batch_case *t)
{
    memset(t, 0, sizeof *t);
    make_blocks(rng, &t->b);
    spk_spmm *p = &t->problem;
    *p = (spk_spmm){SPK_SIZED(spk_spmm), .n = pick(rng, 0, 1) ? pick(rng, 1, 9) : pick(rng, 10, 50), .trans_a = (spk_trans)pick(rng, 0, 1)};
    random_dtypes(rng, &p->dtype_a, &p->dtype_d);
    p->block_layout = (spk_layout)pick(rng, 0, 1);
    p->layout_b = (spk_layout)pick(rng, 0, 1);
    p->layout_d = (spk_layout)pick(rng, 0, 1);
    if (pick(rng, 0, 2) > 0) {
        p->use_c = (int)pick(rng, 0, 1);
        p->bias = (spk_bias)pick(rng, 0, 2);
        p->activation = (spk_activation)pick(rng, 0, 4);
        p->use_residual = (int)pick(rng, 0, 1);
        p->keep_preact = (int)pick(rng, 0, 1);
    }
    t->items = p->batch = pick(rng, 2, 19);
    t->m = p->trans_a == SPK_TRANS ? t->b.cols : t->b.rows;
    t->k = p->trans_a == SPK_TRANS ? t->b.rows : t->b.cols;
    const int a_way = pick(rng, 0, 1) ? SHARED : (int)pick(rng, TIGHT, LOOSE), b_way = (int)pick(rng, TIGHT, SHARED), c_way = (int)pick(rng, TIGHT, SHARED);
    const int d_way = (int)pick(rng, TIGHT, SIDE_BY_SIDE), r_way = (int)pick(rng, TIGHT, SHARED), p_way = (int)pick(rng, TIGHT, SIDE_BY_SIDE);
    make_values(rng, &t->values, p->dtype_a, t->b.nnzb * t->b.block_rows * t->b.block_cols, t->items, a_way);
    make_array(rng, &t->x, p->dtype_a, p->layout_b, t->k, p->n, t->items, b_way);
    make_array(rng, &t->c, p->dtype_d, p->layout_d, t->m, p->n, t->items, c_way);
    make_array(rng, &t->d, p->dtype_d, p->layout_d, t->m, p->n, t->items, d_way);
    make_array(rng, &t->residual, p->dtype_d, p->layout_d, t->m, p->n, t->items, r_way);
    make_array(rng, &t->preact, p->dtype_d, p->layout_d, t->m, p->n, t->items, p_way);
    make_array(rng, &t->bias, p->dtype_d, SPK_ROW_MAJOR, 1, t->m > p->n ? t->m : p->n, 1, TIGHT);
    t->value_stride = p->stride_a = t->values.stride;
    p->ldb = t->x.ld;
    p->ldc = t->c.ld;
    p->ldd = t->d.ld;
    p->ldr = t->residual.ld;
    p->ldp = t->preact.ld;
    p->stride_b = given(&t->x, b_way);
    p->stride_c = given(&t->c, c_way);
    p->stride_d = given(&t->d, d_way);
    p->stride_r = given(&t->residual, r_way);
    p->stride_p = given(&t->preact, p_way);
    t->args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = t->values.memory, .b = t->x.memory, .c = t->c.memory, .d = t->d.memory};
    t->args.bias = t->bias.memory;
    t->args.residual = t->residual.memory;
    t->args.preact = t->preact.memory;
    t->args.alpha = spk_rng_normal(rng);
    t->args.beta = pick(rng, 0, 2) == 0 ? 0 : spk_rng_normal(rng);
    spoil_overhang(t);
    expect_batch(t);
    ok(spk_default_tolerance(context, t->b.pattern, p, &t->tolerance));
}

static void free_batch(batch_case *t)
{
    array *all[] = {&t->values, &t->x, &t->c, &t->d, &t->residual, &t->preact, &t->bias};
    for (int i = 0; i < 7; i++)
        free(all[i]->memory);
    free(t->want);
    free(t->before);
    free(t->magnitude);
    free_blocks(&t->b);
}

/* Every element as expected, and as many NaN left as there is no element. */
static void check_output(const batch_case *t, const array *got, const double *want, uint64_t seed, const char *choice)
{
    int64_t unwritten = 0;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->problem.n; j++) {
                const int64_t e = (item * t->m + i) * t->problem.n + j;
                const double value = at(got, item, i, j);
                const double error = got->dtype == SPK_F16 ? fmax(fabs(value - want[e]) - 0x1p-25, 0) : fabs(value - want[e]);
                if (!(error <= t->tolerance * t->magnitude[e]))
                    fail_msg("seed %llu, %s: item %lld (%lld, %lld) is %.9g, expected %.9g", (unsigned long long)seed, choice, (long long)item, (long long)i,
                             (long long)j, value, want[e]);
            }
    for (int64_t e = 0; e < got->elements; e++)
        unwritten += isnan(spk_value_get(got->memory, got->dtype, e));
    assert_int_equal(unwritten, got->elements - t->items * t->m * t->problem.n);
}

static int run_batch(batch_case *t, uint64_t seed, bool fixed)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .static_values = fixed};
    ok(spk_list_spmm(context, t->b.pattern, &t->problem, &options, &report));
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        ok(spk_report_candidate(report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE || candidate.kind == SPK_KIND_DENSE)
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan *plan = NULL;
        options.choice = choice;
        ok(spk_plan_spmm(context, t->b.pattern, &t->problem, &options, &plan));
        if (fixed)
            ok(spk_plan_update_values(plan, t->values.memory, NULL));
        memset(t->d.memory, 0xff, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
        memset(t->preact.memory, 0xff, (size_t)t->preact.elements * spk_dtype_bytes(t->preact.dtype));
        ok(spk_run_spmm(plan, &t->args, NULL));
        check_output(t, &t->d, t->want, seed, choice);
        if (t->problem.keep_preact)
            check_output(t, &t->preact, t->before, seed, choice);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&report);
    return ran;
}

static void test_batches(void **state)
{
    (void)state;
    int most = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        spk_rng rng;
        batch_case t;
        spk_rng_seed(&rng, seed);
        make_batch(&rng, &t);
        const int ran = run_batch(&t, seed, seed % 4 == 0);
        assert_true(ran >= 1);
        most = ran > most ? ran : most;
        free_batch(&t);
    }
    assert_true(most > 3);
}

/* ------------------------------------------------------------------------------------------------ tuning */

static void make_square(spk_pattern **pattern, int64_t size, int64_t block)
{
    spk_matrix *matrix = NULL;
    ok(spk_matrix_generate(context,
                           &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = size, .cols = size, .block_rows = block,
                                           .block_cols = block, .density = 0.2, .seed = 5},
                           &matrix, NULL));
    ok(spk_pattern_from_matrix(context, matrix, pattern));
    spk_matrix_destroy(&matrix);
}

/* Every candidate that was measured was right, one was chosen, and the summary tells of it. */
static void check_report(spk_report **report)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_report_get_info(*report, &info));
    assert_true(info.chosen >= 0);
    assert_true(strlen(info.summary) > 10);
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_candidate(*report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_WRONG || candidate.status == SPK_CANDIDATE_FAILED)
            fail_msg("%s %s: %s", candidate.name, candidate.params, candidate.why);
    }
    spk_report_destroy(report);
}

static void test_tuning(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    spk_plan *plan = NULL;
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    make_square(&pattern, 100, 16);
    for (int cold = 0; cold < 2; cold++) {
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .budget_s = 0.3, .cache = cold ? SPK_COLD : SPK_WARM};
        const spk_sddmm sddmm[] = {{SPK_SIZED(spk_sddmm), .k = 64, .use_c = 1},
                                   {SPK_SIZED(spk_sddmm), .k = 64, .batch = 12, .layout_x = SPK_COL_MAJOR},
                                   {SPK_SIZED(spk_sddmm), .k = 64, .batch = 3, .stride_y = SPK_STRIDE_SHARED, .stride_d = 40001}};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(spk_explain_sddmm(context, pattern, &sddmm[i], &options, &report), SPK_ERR_UNKNOWN_CLASS);
            ok(spk_tune_sddmm(context, pattern, &sddmm[i], &options, &report));
            check_report(&report);
            ok(spk_explain_sddmm(context, pattern, &sddmm[i], &options, &report));
            check_report(&report);
            ok(spk_plan_sddmm(context, pattern, &sddmm[i], &options, &plan));
            ok(spk_plan_get_info(plan, &info));
            assert_int_equal(info.from_store, 1);
            spk_plan_destroy(&plan);
        }
        const spk_spmm spmm[] = {{SPK_SIZED(spk_spmm), .n = 40, .batch = 12, .use_c = 1},
                                 {SPK_SIZED(spk_spmm), .n = 40, .batch = 3, .stride_a = 120000, .trans_a = SPK_TRANS},
                                 {SPK_SIZED(spk_spmm), .n = 40, .batch = 4, .ldd = 170, .stride_d = 41, .keep_preact = 1, .layout_b = SPK_COL_MAJOR}};
        for (int i = 0; i < 3; i++) {
            ok(spk_tune_spmm(context, pattern, &spmm[i], &options, &report));
            check_report(&report);
            ok(spk_plan_spmm(context, pattern, &spmm[i], &options, &plan));
            ok(spk_plan_get_info(plan, &info));
            assert_int_equal(info.from_store, 1);
            spk_plan_destroy(&plan);
        }
    }
    ok(spk_race_sddmm(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 30}, &(spk_tune_options){SPK_SIZED(spk_tune_options), .budget_s = 0.3},
                      &(spk_race_options){SPK_SIZED(spk_race_options), .rounds = 3}, &report));
    check_report(&report);
    spk_pattern_destroy(&pattern);
}

/* So large that samples of items, of block rows and of K decide. */
static void test_sampling(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    make_square(&pattern, 2048, 32);
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .budget_s = 0.2};
    ok(spk_tune_sddmm(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 1024, .dtype_x = SPK_F16}, &options, &report));
    check_report(&report);
    ok(spk_tune_sddmm(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = 128, .batch = 40}, &options, &report));
    check_report(&report);
    ok(spk_tune_spmm(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 128, .batch = 40}, &options, &report));
    check_report(&report);
    spk_pattern_destroy(&pattern);
}

static void test_errors(void **state)
{
    (void)state;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    static float numbers[16 * 1024];
    make_square(&pattern, 32, 16);
    const spk_sddmm good = {SPK_SIZED(spk_sddmm), .k = 8};
    spk_sddmm p;
#define REFUSE(field, value, status, piece)                                      \
    p = good;                                                                    \
    p.field = value;                                                             \
    assert_int_equal(spk_plan_sddmm(context, pattern, &p, NULL, &plan), status); \
    if (strstr(spk_last_error(context), piece) == NULL)                          \
    fail_msg("\"%s\" lacks \"%s\"", spk_last_error(context), piece)
    REFUSE(struct_size, 0, SPK_ERR_ARGUMENT, "spk_sddmm.struct_size is 0");
    REFUSE(k, -1, SPK_ERR_ARGUMENT, "k = -1");
    REFUSE(dtype_x, SPK_F8E4M3, SPK_ERR_UNSUPPORTED, "dtype_x = f8e4m3");
    REFUSE(dtype_y, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_y = f16 with dtype_x = f32");
    REFUSE(dtype_d, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_d = f16 with dtype_x = f32");
    REFUSE(layout_x, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_x = 2");
    REFUSE(layout_y, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_y = 2");
    REFUSE(block_layout, (spk_layout)2, SPK_ERR_ARGUMENT, "block_layout = 2");
    REFUSE(use_c, 2, SPK_ERR_ARGUMENT, "use_c = 2");
    REFUSE(ldx, 7, SPK_ERR_ARGUMENT, "ldx = 7: a row has 8 elements");
    REFUSE(ldy, 31, SPK_ERR_ARGUMENT, "ldy = 31: a row has 32 elements");
    REFUSE(batch, -1, SPK_ERR_ARGUMENT, "batch = -1");
    REFUSE(stride_x, -2, SPK_ERR_ARGUMENT, "stride_x = -2");
    REFUSE(stride_d, (p.batch = 2, 100), SPK_ERR_ARGUMENT, "stride_d = 100: items of");
    REFUSE(stride_d, (p.batch = 2, SPK_STRIDE_SHARED), SPK_ERR_ARGUMENT, "stride_d = -1");
#undef REFUSE
    assert_int_equal(spk_plan_sddmm(context, pattern, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .static_values = 1}, &plan), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_sddmm(context, NULL, &good, NULL, &plan), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_sddmm(context, pattern, NULL, NULL, &plan), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_sddmm(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    ok(spk_plan_sddmm(context, pattern, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "reference_sddmm"}, &plan));
    const spk_sddmm_args fine = {SPK_SIZED(spk_sddmm_args), .x = numbers, .y = numbers + 1024, .d = numbers + 4096, .alpha = 1};
    spk_sddmm_args args;
#define REFUSE(field, value, piece)                                       \
    args = fine;                                                          \
    args.field = value;                                                   \
    assert_int_equal(spk_run_sddmm(plan, &args, NULL), SPK_ERR_ARGUMENT); \
    if (strstr(spk_last_error(context), piece) == NULL)                   \
    fail_msg("\"%s\" lacks \"%s\"", spk_last_error(context), piece)
    ok(spk_run_sddmm(plan, &fine, NULL));
    REFUSE(struct_size, 0, "spk_sddmm_args.struct_size is 0");
    REFUSE(x, NULL, "args.x is NULL: 256 elements of f32");
    REFUSE(y, NULL, "args.y is NULL");
    REFUSE(d, NULL, "args.d is NULL");
    REFUSE(d, numbers + 1024, "args.d [");
    REFUSE(y, (const char *)numbers + 2, "args.y = ");
    REFUSE(alpha, (double)NAN, "args.alpha = nan");
#undef REFUSE
    assert_int_equal(spk_run_sddmm(plan, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_run_sddmm(NULL, &fine, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args)}, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "the plan was made for sddmm"));
    assert_int_equal(spk_oracle_sddmm(context, pattern, &good, &fine, &(int64_t){1 << 20}, 1, (double[16]){0}, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_oracle_sddmm(context, pattern, &good, NULL, NULL, 0, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_matmul_sampled(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_default_tolerance_sddmm(context, pattern, &good, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_list_sddmm(context, pattern, &good, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_race_sddmm(context, pattern, &good, NULL, &(spk_race_options){SPK_SIZED(spk_race_options), .rounds = -1}, &(spk_report *){NULL}),
                     SPK_ERR_ARGUMENT);
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sddmm), cmocka_unit_test(test_long_sddmm), cmocka_unit_test(test_batches), cmocka_unit_test(test_tuning),
        cmocka_unit_test(test_sampling), cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
