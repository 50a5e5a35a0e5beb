/* A product whose answer the test knows too: everything that does not fix its sizes is drawn. */
#ifndef GEMM_CASE_H
#define GEMM_CASE_H

#include "op/product.h"
#include "operation_case.h"

typedef struct gemm_case {
    spk_gemm problem;
    spk_gemm_args args;
    int64_t items; /* of D */
    int32_t *ends; /* of the groups */
    array a, b, c, d, residual, preact, bias;
    /* of each element of D and of preact, item by item, row by row; NaN: it is not written */
    double *want, *before, *magnitude, *before_magnitude;
    double tolerance;
} gemm_case;

/* Element (i, j) of op(X). */
static inline double after(const array *x, spk_trans trans, int64_t item, int64_t i, int64_t j)
{
    return trans == SPK_TRANS ? at(x, item, j, i) : at(x, item, i, j);
}

/* The group that `index` of the axis that is cut lies in; -1: none. */
static inline int64_t group_of(const gemm_case *t, int64_t index)
{
    for (int64_t group = 0; group < t->problem.groups; group++)
        if (index < t->ends[group])
            return group;
    return -1;
}

/* Which items of A, B and bias an element is made of, and from where to where the sum goes; false: it belongs to no group. */
static inline bool parts_of(const gemm_case *t, int64_t item, int64_t i, int64_t j, int64_t of[3], int64_t *first, int64_t *end)
{
    const spk_gemm *p = &t->problem;
    const spk_group_axis axis = p->groups > 0 ? p->group_axis : SPK_GROUP_NONE;
    *first = 0;
    *end = p->k;
    of[0] = of[1] = axis == SPK_GROUP_NONE ? item : 0;
    of[2] = 0;
    if (axis == SPK_GROUP_DEPTH) {
        *first = item > 0 ? t->ends[item - 1] : 0;
        *end = t->ends[item];
    } else if (axis != SPK_GROUP_NONE) {
        const bool rows = axis == SPK_GROUP_ROWS;
        const int64_t group = group_of(t, rows ? i : j);
        of[rows ? 1 : 0] = group;
        of[2] = p->bias == (rows ? SPK_BIAS_PER_COL : SPK_BIAS_PER_ROW) ? group : 0;
        return group >= 0;
    }
    return true;
}

static inline void expect_element(gemm_case *t, int64_t item, int64_t i, int64_t j)
{
    const spk_gemm *p = &t->problem;
    const int64_t place = (item * p->m + i) * p->n + j;
    int64_t of[3], first, end;
    double sum = 0, size = 0;
    if (!parts_of(t, item, i, j, of, &first, &end)) {
        t->want[place] = t->before[place] = NAN;
        return;
    }
    for (int64_t k = first; k < end; k++) {
        const double term = t->args.alpha * after(&t->a, p->trans_a, of[0], i, k) * after(&t->b, p->trans_b, of[1], k, j);
        sum += term;
        size += fabs(term);
    }
    if (p->use_c && t->args.beta != 0) {
        const double term = t->args.beta * at(&t->c, item, i, j);
        sum += term;
        size += fabs(term);
    }
    if (p->bias != SPK_BIAS_NONE) {
        const double term = at(&t->bias, 0, of[2], p->bias == SPK_BIAS_PER_ROW ? i : j);
        sum += term;
        size += fabs(term);
    }
    t->before[place] = sum;
    t->before_magnitude[place] = size;
    if (p->activation != SPK_ACT_NONE) {
        sum = spk_activate_f64(p->activation, sum);
        size *= 1.13;
    }
    if (p->residual != SPK_RESIDUAL_NONE) {
        const double term = at(&t->residual, item, i, j);
        const bool factor = p->residual == SPK_RESIDUAL_MULTIPLY;
        sum = factor ? sum * term : sum + term;
        size = factor ? size * fabs(term) : size + fabs(term);
    }
    t->want[place] = sum;
    t->magnitude[place] = size;
}

static inline void expect_all(gemm_case *t)
{
    const spk_gemm *p = &t->problem;
    const size_t count = (size_t)(t->items * p->m * p->n) + 1;
    t->want = calloc(4 * count, sizeof *t->want);
    t->before = t->want + count;
    t->magnitude = t->before + count;
    t->before_magnitude = t->magnitude + count;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                expect_element(t, item, i, j);
}

static inline void draw_array(spk_rng *rng, array *a, spk_dtype dtype, spk_layout layout, int64_t rows, int64_t cols, int64_t items,
                              bool output, int64_t *ld, int64_t *stride)
{
    const int way = items == 1 ? TIGHT : (int)pick(rng, TIGHT, output ? SIDE_BY_SIDE : SHARED);
    make_array(rng, a, dtype, layout, rows, cols, items, way);
    *ld = a->ld;
    *stride = given(a, way);
}

static inline void draw_epilogue(spk_rng *rng, spk_gemm *p)
{
    p->use_c = (int)pick(rng, 0, 1);
    p->bias = (spk_bias)pick(rng, 0, 2);
    p->activation = (spk_activation)pick(rng, 0, 4);
    p->residual = (spk_residual)pick(rng, 0, 2);
    p->keep_preact = (int)pick(rng, 0, 1);
    if (pick(rng, 0, 2) == 0) {
        p->bias = SPK_BIAS_NONE;
        p->activation = SPK_ACT_NONE;
        p->residual = SPK_RESIDUAL_NONE;
        p->use_c = p->keep_preact = 0;
    }
}

/* Where groups end: some are empty, and the last may leave something over. */
static inline void draw_groups(spk_rng *rng, gemm_case *t)
{
    spk_gemm *p = &t->problem;
    p->groups = pick(rng, 1, 6);
    p->group_axis = (spk_group_axis)pick(rng, SPK_GROUP_ROWS, SPK_GROUP_DEPTH);
    const int64_t cut = p->group_axis == SPK_GROUP_ROWS ? p->m : p->group_axis == SPK_GROUP_COLS ? p->n : p->k;
    t->ends = malloc((size_t)p->groups * sizeof *t->ends);
    int64_t end = 0;
    for (int64_t group = 0; group < p->groups; group++) {
        end += pick(rng, 0, 3) == 0 ? 0 : pick(rng, 0, (cut - end) * 2 / 3 + 1);
        end = end < cut ? end : cut;
        t->ends[group] = (int32_t)end;
    }
    if (pick(rng, 0, 1))
        t->ends[p->groups - 1] = (int32_t)cut;
}

static inline void draw_arrays(spk_rng *rng, gemm_case *t)
{
    spk_gemm *p = &t->problem;
    const int64_t m = p->m, n = p->n, k = p->k, items = p->groups > 0 ? p->groups : p->batch;
    const spk_group_axis axis = p->groups > 0 ? p->group_axis : SPK_GROUP_NONE;
    const bool ta = p->trans_a == SPK_TRANS, tb = p->trans_b == SPK_TRANS, bias_rows = p->bias == SPK_BIAS_PER_ROW;
    const int64_t of_a = axis == SPK_GROUP_NONE || axis == SPK_GROUP_COLS ? items : 1,
                  of_b = axis == SPK_GROUP_NONE || axis == SPK_GROUP_ROWS ? items : 1,
                  of_bias = axis == (bias_rows ? SPK_GROUP_COLS : SPK_GROUP_ROWS) ? items : 1;
    t->items = axis == SPK_GROUP_NONE || axis == SPK_GROUP_DEPTH ? items : 1;
    draw_array(rng, &t->a, p->dtype_a, p->layout_a, ta ? k : m, ta ? m : k, of_a, false, &p->lda, &p->stride_a);
    draw_array(rng, &t->b, p->dtype_a, p->layout_b, tb ? n : k, tb ? k : n, of_b, false, &p->ldb, &p->stride_b);
    draw_array(rng, &t->c, p->dtype_d, p->layout_d, m, n, t->items, false, &p->ldc, &p->stride_c);
    draw_array(rng, &t->d, p->dtype_d, p->layout_d, m, n, t->items, true, &p->ldd, &p->stride_d);
    draw_array(rng, &t->residual, p->dtype_d, p->layout_d, m, n, t->items, false, &p->ldr, &p->stride_r);
    draw_array(rng, &t->preact, p->dtype_d, p->layout_d, m, n, t->items, true, &p->ldp, &p->stride_p);
    make_array(rng, &t->bias, p->dtype_d, SPK_ROW_MAJOR, of_bias, bias_rows ? m : n, 1, SHARED);
    if (t->bias.ld != t->bias.cols) { /* lines of bias are tight */
        for (int64_t line = 0; line < of_bias; line++)
            for (int64_t e = 0; e < t->bias.cols; e++)
                spk_value_set(t->bias.memory, p->dtype_d, line * t->bias.cols + e, spk_rng_normal(rng));
        t->bias.ld = t->bias.cols;
    }
}

/* Sizes are there; all else is drawn. */
static inline void draw_product(spk_rng *rng, gemm_case *t, int64_t m, int64_t n, int64_t k, int64_t most_items, bool grouped)
{
    spk_gemm *p = &t->problem;
    memset(t, 0, sizeof *t);
    *p = (spk_gemm){SPK_SIZED(spk_gemm), .m = m, .n = n, .k = k};
    random_dtypes(rng, &p->dtype_a, &p->dtype_d);
    p->compute = p->dtype_a == SPK_F32 && pick(rng, 0, 3) == 0 ? SPK_TF32 : SPK_DTYPE_DEFAULT;
    p->trans_a = (spk_trans)pick(rng, 0, 1);
    p->trans_b = (spk_trans)pick(rng, 0, 1);
    p->layout_a = (spk_layout)pick(rng, 0, 1);
    p->layout_b = (spk_layout)pick(rng, 0, 1);
    p->layout_d = (spk_layout)pick(rng, 0, 1);
    draw_epilogue(rng, p);
    if (grouped)
        draw_groups(rng, t);
    p->batch = p->groups > 0 || pick(rng, 0, 1) || most_items == 1 ? 1 : pick(rng, 2, most_items);
    draw_arrays(rng, t);
    t->args = (spk_gemm_args){SPK_SIZED(spk_gemm_args),
                              .a = t->a.memory,
                              .b = t->b.memory,
                              .c = t->c.memory,
                              .d = t->d.memory,
                              .bias = t->bias.memory,
                              .residual = t->residual.memory,
                              .preact = t->preact.memory,
                              .offsets = t->ends};
    t->args.alpha = pick(rng, 0, 1) ? 1 : spk_rng_normal(rng);
    t->args.beta = pick(rng, 0, 2) == 0 ? 0 : spk_rng_normal(rng);
    if (t->args.beta == 0)
        for (int64_t e = 0; e < t->c.elements; e++)
            spk_value_set(t->c.memory, t->c.dtype, e, (double)NAN);
    expect_all(t);
    ok(spk_default_tolerance(context, NULL, p, SPK_FIRST_OUTPUT, &t->tolerance));
}

static inline void draw_gemm(spk_rng *rng, gemm_case *t, int64_t m, int64_t n, int64_t k, int64_t most_items)
{
    draw_product(rng, t, m, n, k, most_items, false);
}

/* The same in groups. */
static inline void draw_grouped(spk_rng *rng, gemm_case *t, int64_t m, int64_t n, int64_t k)
{
    draw_product(rng, t, m, n, k, 1, true);
}

static inline void free_gemm(gemm_case *t)
{
    array *all[] = {&t->a, &t->b, &t->c, &t->d, &t->residual, &t->preact, &t->bias};
    for (int i = 0; i < 7; i++)
        free(all[i]->memory);
    free(t->want);
    free(t->ends);
}

static inline void poison(array *a)
{
    memset(a->memory, 0xff, (size_t)a->elements * spk_dtype_bytes(a->dtype));
}

/* Every element is there, and every other still what it was: no number. */
static inline void check_array(const gemm_case *t, const array *got, const double *want, const double *magnitude, uint64_t seed,
                               const char *choice, const char *name)
{
    const spk_gemm *p = &t->problem;
    char *seen = calloc((size_t)got->elements + 1, 1);
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t e = (item * p->m + i) * p->n + j;
                const double is = at(got, item, i, j);
                if (isnan(want[e]))
                    continue;
                seen[place(got, item, i, j)] = 1;
                if (!(spk_type_difference(got->dtype, is, want[e]) <= t->tolerance * magnitude[e]))
                    fail_msg("seed %llu, %s: %s[%lld][%lld][%lld] is %.9g, expected %.9g", (unsigned long long)seed, choice, name,
                             (long long)item, (long long)i, (long long)j, is, want[e]);
            }
    for (int64_t e = 0; e < got->elements; e++)
        if (!seen[e] && !isnan(spk_value_get(got->memory, got->dtype, e)))
            fail_msg("seed %llu, %s: %s is written beside its elements, at %lld", (unsigned long long)seed, choice, name, (long long)e);
    free(seen);
}

static inline void check_gemm(const gemm_case *t, uint64_t seed, const char *choice)
{
    check_array(t, &t->d, t->want, t->magnitude, seed, choice, "D");
    if (t->problem.keep_preact)
        check_array(t, &t->preact, t->before, t->before_magnitude, seed, choice, "preact");
}

#endif
