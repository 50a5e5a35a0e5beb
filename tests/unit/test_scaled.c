/* Products of factors of eight bits with scale factors: what a run gives is the product of the numbers that they stand for, multiplied out
 * here. Sizes, tiles, types, layouts, batches and groups are drawn; a failure prints the seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "type/value.h"

enum { CASES = 400, MOST_SIDE = 40, MOST_ITEMS = 3 };

static const spk_dtype results[] = {SPK_F32, SPK_F16, SPK_BF16};
static const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
static spk_context *context;

static int64_t draw(spk_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)spk_rng_below(rng, (uint64_t)(high - low + 1));
}

/* One of the types that may have scale factors. */
static spk_dtype draw_type(spk_rng *rng)
{
    spk_dtype types[16];
    int count = 0;
    for (const spk_type *type = NULL; count < 16 && (type = spk_type_next(type, 1u << SPK_USE_FACTORS)) != NULL; count++)
        types[count] = type->dtype;
    return types[draw(rng, 0, count - 1)];
}

static int64_t draw_side(spk_rng *rng)
{
    static const int64_t usual[] = {SPK_SCALE_ALL, SPK_SCALE_ALL, 1, 1, 2, 3, 7, 16, 100};
    return usual[draw(rng, 0, 8)];
}

static spk_scale draw_tile(spk_rng *rng)
{
    return draw(rng, 0, 3) == 0 ? (spk_scale){0, 0} : (spk_scale){draw_side(rng), draw_side(rng)};
}

static int64_t tiles(int64_t size, int64_t tile)
{
    return tile == SPK_SCALE_ALL ? size > 0 : tile > 0 ? (size + tile - 1) / tile : 0;
}

static int64_t tile_at(int64_t at, int64_t tile)
{
    return tile == SPK_SCALE_ALL ? 0 : at / tile;
}

/* An array of one byte an element, and its factors. */
typedef struct factors {
    unsigned char *values;
    float *scales;
    spk_scale tile;
} factors;

static void fill(spk_rng *rng, spk_dtype dtype, int64_t values, int64_t scales, factors *f)
{
    f->values = calloc((size_t)values + 1, 1);
    f->scales = calloc((size_t)scales + 1, sizeof *f->scales);
    for (int64_t i = 0; i < values; i++)
        spk_value_set(f->values, dtype, i, spk_type_random(dtype, spk_rng_normal(rng)));
    for (int64_t i = 0; i < scales; i++)
        f->scales[i] = (float)spk_rng_normal(rng);
}

static void release(factors *f)
{
    free(f->values);
    free(f->scales);
}

static double scale_of(const factors *f, int64_t first, int64_t i, int64_t j, int64_t cols)
{
    return f->tile.rows == 0 ? 1
                             : (double)f->scales[first + tile_at(i, f->tile.rows) * tiles(cols, f->tile.cols) + tile_at(j, f->tile.cols)];
}

/* Whether a result is what rounding makes of `want`. size: the sum of the terms' absolute values. */
static void check(spk_dtype dtype, const void *d, int64_t at, double want, double size, double tolerance, uint64_t seed)
{
    const double got = spk_value_get(d, dtype, at), off = spk_type_difference(dtype, got, want);
    if (!(off <= tolerance * size))
        fail_msg("element %lld is %g, not %g (off by %g of %g): seed %llu", (long long)at, got, want, off, tolerance * size,
                 (unsigned long long)seed);
}

/* ------------------------------------------------------------------------------------------------ GEMM */

static int64_t place(spk_layout layout, int64_t rows, int64_t cols, int64_t i, int64_t j)
{
    return layout == SPK_ROW_MAJOR ? i * cols + j : j * rows + i;
}

static void gemm_once(uint64_t seed)
{
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    const int64_t m = draw(&rng, 1, MOST_SIDE), n = draw(&rng, 1, MOST_SIDE), k = draw(&rng, 1, 3 * MOST_SIDE),
                  items = draw(&rng, 1, MOST_ITEMS);
    const bool share_a = draw(&rng, 0, 1), share_b = draw(&rng, 0, 1);
    spk_gemm p = {SPK_SIZED(spk_gemm), .m = m, .n = n, .k = k, .batch = items};
    p.dtype_a = draw_type(&rng);
    p.dtype_d = results[draw(&rng, 0, 2)];
    p.layout_a = (spk_layout)draw(&rng, 0, 1);
    p.layout_b = (spk_layout)draw(&rng, 0, 1);
    p.trans_a = (spk_trans)draw(&rng, 0, 1);
    p.stride_a = share_a ? SPK_STRIDE_SHARED : 0;
    p.stride_b = share_b ? SPK_STRIDE_SHARED : 0;
    factors a = {.tile = draw_tile(&rng)}, b = {.tile = draw_tile(&rng)};
    p.scale_a = a.tile;
    p.scale_b = b.tile;
    const int64_t of_a = tiles(m, a.tile.rows) * tiles(k, a.tile.cols), of_b = tiles(k, b.tile.rows) * tiles(n, b.tile.cols);
    fill(&rng, p.dtype_a, items * m * k, a.tile.rows != 0 ? items * of_a : 0, &a);
    fill(&rng, p.dtype_a, items * k * n, b.tile.rows != 0 ? items * of_b : 0, &b);
    void *d = calloc((size_t)(items * m * n), sizeof(double));
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = a.values,      .b = b.values, .d = d, .alpha = 0.5,
                                .scale_a = a.scales,      .scale_b = b.scales};
    double tolerance;
    assert_int_equal(spk_compute_gemm(context, &p, &args, &estimate), SPK_OK);
    assert_int_equal(spk_default_tolerance(context, NULL, &p, 3, &tolerance), SPK_OK);
    const bool across = (p.layout_a == SPK_ROW_MAJOR) == (p.trans_a == SPK_NO_TRANS);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t own_a = share_a ? 0 : item, own_b = share_b ? 0 : item;
                double sum = 0, size = 0;
                for (int64_t x = 0; x < k; x++) {
                    const double term =
                        spk_value_get(a.values, p.dtype_a, own_a * m * k + place(across ? SPK_ROW_MAJOR : SPK_COL_MAJOR, m, k, i, x)) *
                        scale_of(&a, own_a * of_a, i, x, k) *
                        spk_value_get(b.values, p.dtype_a, own_b * k * n + place(p.layout_b, k, n, x, j)) *
                        scale_of(&b, own_b * of_b, x, j, n);
                    sum += term;
                    size += fabs(term);
                }
                check(p.dtype_d, d, item * m * n + i * n + j, 0.5 * sum, 0.5 * size, tolerance, seed);
            }
    free(d);
    release(&a);
    release(&b);
}

static void dense_products(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++)
        gemm_once(seed);
}

/* Groups along each axis: each with factors of its own where it has a matrix of its own. */
static void groups_once(uint64_t seed)
{
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    enum { GROUPS = 4 };
    const spk_group_axis axis = (spk_group_axis)draw(&rng, SPK_GROUP_ROWS, SPK_GROUP_DEPTH);
    const int64_t m = draw(&rng, 1, MOST_SIDE), n = draw(&rng, 1, MOST_SIDE), k = draw(&rng, 1, MOST_SIDE);
    const int64_t size = axis == SPK_GROUP_ROWS ? m : axis == SPK_GROUP_COLS ? n : k;
    const bool own_a = axis == SPK_GROUP_COLS, own_b = axis == SPK_GROUP_ROWS, own_d = axis == SPK_GROUP_DEPTH;
    spk_gemm p = {SPK_SIZED(spk_gemm), .group_axis = axis, .groups = GROUPS, .m = m, .n = n, .k = k};
    p.dtype_a = draw_type(&rng);
    p.dtype_d = results[draw(&rng, 0, 2)];
    factors a = {.tile = draw_tile(&rng)}, b = {.tile = draw_tile(&rng)};
    int64_t *const cut[] = {&a.tile.rows, &b.tile.cols, &a.tile.cols, &b.tile.rows};
    for (int i = 0; i < 4; i++)
        if (*cut[i] > 1 && axis == (i == 0 ? SPK_GROUP_ROWS : i == 1 ? SPK_GROUP_COLS : SPK_GROUP_DEPTH))
            *cut[i] = SPK_SCALE_ALL;
    p.scale_a = a.tile;
    p.scale_b = b.tile;
    const int64_t of_a = tiles(m, a.tile.rows) * tiles(k, a.tile.cols), of_b = tiles(k, b.tile.rows) * tiles(n, b.tile.cols);
    fill(&rng, p.dtype_a, GROUPS * m * k, a.tile.rows != 0 ? GROUPS * of_a : 0, &a);
    fill(&rng, p.dtype_a, GROUPS * k * n, b.tile.rows != 0 ? GROUPS * of_b : 0, &b);
    int32_t ends[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        ends[g] = (int32_t)draw(&rng, g > 0 ? ends[g - 1] : 0, size);
    void *d = calloc((size_t)(GROUPS * m * n), sizeof(double));
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = a.values, .b = b.values,       .d = d,
                                .offsets = ends,          .alpha = 1,    .scale_a = a.scales, .scale_b = b.scales};
    double tolerance;
    assert_int_equal(spk_compute_gemm(context, &p, &args, &estimate), SPK_OK);
    assert_int_equal(spk_default_tolerance(context, NULL, &p, 3, &tolerance), SPK_OK);
    for (int g = 0; g < GROUPS; g++) {
        const int64_t begin = g > 0 ? ends[g - 1] : 0, end = ends[g];
        const int64_t i0 = axis == SPK_GROUP_ROWS ? begin : 0, i1 = axis == SPK_GROUP_ROWS ? end : m;
        const int64_t j0 = axis == SPK_GROUP_COLS ? begin : 0, j1 = axis == SPK_GROUP_COLS ? end : n;
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j++) {
                double sum = 0, total = 0;
                for (int64_t x = own_d ? begin : 0; x < (own_d ? end : k); x++) {
                    const double term = spk_value_get(a.values, p.dtype_a, (own_a ? g : 0) * m * k + i * k + x) *
                                        scale_of(&a, (own_a ? g : 0) * of_a, i, x, k) *
                                        spk_value_get(b.values, p.dtype_a, (own_b ? g : 0) * k * n + x * n + j) *
                                        scale_of(&b, (own_b ? g : 0) * of_b, x, j, n);
                    sum += term;
                    total += fabs(term);
                }
                check(p.dtype_d, d, (own_d ? g : 0) * m * n + i * n + j, sum, total, tolerance, seed);
            }
    }
    free(d);
    release(&a);
    release(&b);
}

static void products_in_groups(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++)
        groups_once(seed);
}

/* ------------------------------------------------------------------------------------------------ sparse products */

typedef struct blocks {
    int64_t rows, cols, block_rows, block_cols, across, nnzb;
    int64_t offsets[MOST_SIDE + 2], columns[MOST_SIDE * MOST_SIDE];
    spk_pattern *pattern;
} blocks;

static void draw_blocks(spk_rng *rng, blocks *s)
{
    s->rows = draw(rng, 1, MOST_SIDE);
    s->cols = draw(rng, 1, MOST_SIDE);
    s->block_rows = draw(rng, 1, 9);
    s->block_cols = draw(rng, 1, 9);
    s->across = (s->cols + s->block_cols - 1) / s->block_cols;
    const int64_t down = (s->rows + s->block_rows - 1) / s->block_rows;
    for (int64_t i = 0; i < down; i++) {
        s->offsets[i] = s->nnzb;
        for (int64_t j = 0; j < s->across; j++)
            if (draw(rng, 0, 2) == 0)
                s->columns[s->nnzb++] = j;
    }
    s->offsets[down] = s->nnzb;
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),  .rows = s->rows, .cols = s->cols,           .block_rows = s->block_rows,
                                     .block_cols = s->block_cols, .nnzb = s->nnzb, .row_offsets = s->offsets, .col_indices = s->columns,
                                     .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_create(context, &indices, &s->pattern), SPK_OK);
}

/* The stored block that has element (i, j), -1: none. */
static int64_t block_at(const blocks *s, int64_t i, int64_t j)
{
    for (int64_t e = s->offsets[i / s->block_rows]; e < s->offsets[i / s->block_rows + 1]; e++)
        if (s->columns[e] == j / s->block_cols)
            return e;
    return -1;
}

static int64_t value_at(const blocks *s, int64_t e, int64_t i, int64_t j)
{
    return (e * s->block_rows + i % s->block_rows) * s->block_cols + j % s->block_cols;
}

static void spmm_once(uint64_t seed)
{
    spk_rng rng;
    blocks s = {0};
    spk_rng_seed(&rng, seed);
    draw_blocks(&rng, &s);
    const bool turned = draw(&rng, 0, 1), by_block = draw(&rng, 0, 2) == 0;
    const int64_t m = turned ? s.cols : s.rows, k = turned ? s.rows : s.cols, n = draw(&rng, 1, MOST_SIDE);
    spk_spmm p = {SPK_SIZED(spk_spmm), .n = n, .trans_a = turned ? SPK_TRANS : SPK_NO_TRANS};
    p.dtype_a = draw_type(&rng);
    p.dtype_d = results[draw(&rng, 0, 2)];
    p.layout_b = (spk_layout)draw(&rng, 0, 1);
    factors a = {.tile = draw_tile(&rng)}, b = {.tile = draw_tile(&rng)};
    const bool like_blocks = !by_block && draw(&rng, 0, 3) == 0; /* a grid all the same */
    if (like_blocks)
        a.tile = turned ? (spk_scale){s.block_cols, s.block_rows} : (spk_scale){s.block_rows, s.block_cols};
    if (by_block)
        a.tile = (spk_scale){SPK_SCALE_BLOCK, SPK_SCALE_BLOCK};
    p.scale_a = a.tile;
    p.scale_b = b.tile;
    const int64_t values = s.nnzb * s.block_rows * s.block_cols;
    fill(&rng, p.dtype_a, values, by_block ? s.nnzb : tiles(m, a.tile.rows) * tiles(k, a.tile.cols), &a);
    fill(&rng, p.dtype_a, k * n, tiles(k, b.tile.rows) * tiles(n, b.tile.cols), &b);
    void *d = calloc((size_t)(m * n), sizeof(double));
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = a.values, .b = b.values, .d = d, .alpha = 1,
                                .scale_a = a.scales,      .scale_b = b.scales};
    double tolerance;
    assert_int_equal(spk_compute_spmm(context, s.pattern, &p, &args, &estimate), SPK_OK);
    assert_int_equal(spk_default_tolerance(context, s.pattern, &p, 3, &tolerance), SPK_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t x = 0; x < k; x++) {
                const int64_t row = turned ? x : i, col = turned ? i : x, e = block_at(&s, row, col);
                if (e < 0)
                    continue;
                const double term = spk_value_get(a.values, p.dtype_a, value_at(&s, e, row, col)) *
                                    (by_block ? (double)a.scales[e] : scale_of(&a, 0, i, x, k)) *
                                    spk_value_get(b.values, p.dtype_a, place(p.layout_b, k, n, x, j)) * scale_of(&b, 0, x, j, n);
                sum += term;
                size += fabs(term);
            }
            check(p.dtype_d, d, i * n + j, sum, size, tolerance, seed);
        }
    free(d);
    release(&a);
    release(&b);
    spk_pattern_destroy(&s.pattern);
}

static void sparse_products(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++)
        spmm_once(seed);
}

static void sddmm_once(uint64_t seed)
{
    spk_rng rng;
    blocks s = {0};
    spk_rng_seed(&rng, seed);
    draw_blocks(&rng, &s);
    const int64_t k = draw(&rng, 1, 3 * MOST_SIDE), values = s.nnzb * s.block_rows * s.block_cols;
    spk_sddmm p = {SPK_SIZED(spk_sddmm), .k = k};
    p.dtype_x = draw_type(&rng);
    p.dtype_d = results[draw(&rng, 0, 2)];
    factors x = {.tile = draw_tile(&rng)}, y = {.tile = draw_tile(&rng)};
    p.scale_x = x.tile;
    p.scale_y = y.tile;
    fill(&rng, p.dtype_x, s.rows * k, tiles(s.rows, x.tile.rows) * tiles(k, x.tile.cols), &x);
    fill(&rng, p.dtype_x, k * s.cols, tiles(k, y.tile.rows) * tiles(s.cols, y.tile.cols), &y);
    void *d = calloc((size_t)values + 1, sizeof(double));
    const spk_sddmm_args args = {SPK_SIZED(spk_sddmm_args), .x = x.values,      .y = y.values, .d = d, .alpha = 1,
                                 .scale_x = x.scales,       .scale_y = y.scales};
    double tolerance;
    assert_int_equal(spk_compute_sddmm(context, s.pattern, &p, &args, &estimate), SPK_OK);
    assert_int_equal(spk_default_tolerance(context, s.pattern, &p, 3, &tolerance), SPK_OK);
    for (int64_t i = 0; i < s.rows; i++)
        for (int64_t j = 0; j < s.cols; j++) {
            const int64_t e = block_at(&s, i, j);
            double sum = 0, size = 0;
            for (int64_t z = 0; e >= 0 && z < k; z++) {
                const double term = spk_value_get(x.values, p.dtype_x, i * k + z) * scale_of(&x, 0, i, z, k) *
                                    spk_value_get(y.values, p.dtype_x, z * s.cols + j) * scale_of(&y, 0, z, j, s.cols);
                sum += term;
                size += fabs(term);
            }
            if (e >= 0)
                check(p.dtype_d, d, value_at(&s, e, i, j), sum, size, tolerance, seed);
        }
    free(d);
    release(&x);
    release(&y);
    spk_pattern_destroy(&s.pattern);
}

static void sampled_products(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++)
        sddmm_once(seed);
}

/* ------------------------------------------------------------------------------------------------ what is refused, and what is kept */

#define REFUSED(status, words, ...)                                                       \
    do {                                                                                  \
        spk_gemm bad = good;                                                              \
        spk_plan *none = NULL;                                                            \
        __VA_ARGS__;                                                                      \
        assert_int_equal(spk_plan_create(context, NULL, &bad, &estimate, &none), status); \
        if (strstr(spk_last_error(context), words) == NULL)                               \
            fail_msg("\"%s\" does not say \"%s\"", spk_last_error(context), words);       \
    } while (0)

static void what_is_refused(void **state)
{
    (void)state;
    const spk_gemm good = {SPK_SIZED(spk_gemm), .m = 8, .n = 8, .k = 8, .dtype_a = SPK_F8E4M3, .scale_a = {1, SPK_SCALE_ALL}};
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create(context, NULL, &good, &estimate, &plan), SPK_OK);
    spk_plan_destroy(&plan);
    REFUSED(SPK_ERR_ARGUMENT, "scale_a.cols = 0: a factor covers 1 element or more", bad.scale_a.cols = 0);
    REFUSED(SPK_ERR_ARGUMENT, "scale_b.rows = -2", bad.scale_b = ((spk_scale){-2, 1}));
    REFUSED(SPK_ERR_ARGUMENT, "scale_a: a factor for each stored block: this matrix has no stored blocks",
            bad.scale_a = ((spk_scale){SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}));
    REFUSED(SPK_ERR_UNSUPPORTED, "scale_a with f32: this version scales f8e4m3, f8e5m2 and i8", bad.dtype_a = SPK_F32);
    REFUSED(SPK_ERR_UNSUPPORTED, "dtype_d = f8e4m3 with dtype_a = f8e4m3: this version gives f32, f16 or bf16", bad.dtype_d = SPK_F8E4M3);
    REFUSED(SPK_ERR_UNSUPPORTED, "dtype_b = i8", bad.dtype_b = SPK_INT8);
    REFUSED(SPK_ERR_UNSUPPORTED, "scale_a.rows = 2: along the axis that groups cut", bad.scale_a.rows = 2; bad.groups = 2;
            bad.group_axis = SPK_GROUP_ROWS);
    const unsigned char bytes[64] = {0};
    float d[64];
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = bytes, .b = bytes, .d = d, .alpha = 1};
    assert_int_equal(spk_compute_gemm(context, &good, &args, &estimate), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.scale_a is NULL: 8 elements of f32 are needed"));
}

/* Sums of bytes are exact beyond what a float counts, and what is not finite stays so. */
static void exact_and_not_finite(void **state)
{
    (void)state;
    enum { DEPTH = 70001 };
    signed char *a = malloc(DEPTH), *b = malloc(DEPTH);
    float d = 0;
    memset(a, 127, DEPTH);
    memset(b, 127, DEPTH);
    a[0] = 1;
    b[0] = 1; /* 127^2 (DEPTH - 1) + 1 */
    const spk_gemm p = {SPK_SIZED(spk_gemm), .m = 1, .n = 1, .k = DEPTH, .dtype_a = SPK_INT8};
    spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = a, .b = b, .d = &d, .alpha = 1};
    assert_int_equal(spk_compute_gemm(context, &p, &args, &estimate), SPK_OK);
    assert_true(d == (float)(127.0 * 127.0 * (DEPTH - 1) + 1));
    const unsigned char not_a_number = 0x7f, infinite = 0x7c, one_e4m3 = 0x38, one_e5m2 = 0x3c;
    const spk_gemm e4m3 = {SPK_SIZED(spk_gemm), .m = 1, .n = 1, .k = 1, .dtype_a = SPK_F8E4M3},
                   e5m2 = {SPK_SIZED(spk_gemm), .m = 1, .n = 1, .k = 1, .dtype_a = SPK_F8E5M2};
    args.a = &not_a_number;
    args.b = &one_e4m3;
    assert_int_equal(spk_compute_gemm(context, &e4m3, &args, &estimate), SPK_OK);
    assert_true(isnan(d));
    args.a = &infinite;
    args.b = &one_e5m2;
    assert_int_equal(spk_compute_gemm(context, &e5m2, &args, &estimate), SPK_OK);
    assert_true(isinf(d));
    free(a);
    free(b);
}

/* A class of its own for each way to scale: tuned, stored, and found again. */
static void tuned_and_stored(void **state)
{
    (void)state;
    const spk_tune_options tune = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.05, .cache = SPK_WARM};
    spk_gemm p = {SPK_SIZED(spk_gemm), .m = 64, .n = 64, .k = 64, .dtype_a = SPK_F8E4M3, .scale_a = {1, 32}, .scale_b = {32, 32}};
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_tune(context, NULL, &p, &tune, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    assert_non_null(strstr(info.class_key, ";a=f8e4m3;b=f8e4m3;d=f32;"));
    assert_non_null(strstr(info.class_key, ";scale=a=1x32,b=32x32;"));
    spk_report_destroy(&report);
    spk_tune_options only_known = tune;
    only_known.tuning = SPK_TUNING_AHEAD_EACH;
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create(context, NULL, &p, &only_known, &plan), SPK_OK);
    spk_plan_destroy(&plan);
    p.scale_b = (spk_scale){SPK_SCALE_ALL, 1};
    assert_int_equal(spk_plan_create(context, NULL, &p, &only_known, &plan), SPK_ERR_UNKNOWN_CLASS);
}

static int set_up(void **state)
{
    (void)state;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1};
    return spk_context_create(&options, &context) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_context_destroy(&context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense_products),  cmocka_unit_test(products_in_groups),
                                       cmocka_unit_test(sparse_products), cmocka_unit_test(sampled_products),
                                       cmocka_unit_test(what_is_refused), cmocka_unit_test(exact_and_not_finite),
                                       cmocka_unit_test(tuned_and_stored)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
