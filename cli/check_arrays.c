/* How the arrays of a case lie, and what the drawing of one product leaves open: the operation, batches. */
#include "check.h"

enum { TIGHT, LOOSE, SIDE_BY_SIDE, SHARED };

int64_t check_place(const check_array *a, int64_t item, int64_t i, int64_t j)
{
    return item * a->stride + (a->layout == SPK_ROW_MAJOR ? i * a->ld + j : j * a->ld + i);
}

static int64_t item_span(const check_array *a)
{
    const bool by_row = a->layout == SPK_ROW_MAJOR;
    const int64_t lines = by_row ? a->rows : a->cols, length = by_row ? a->cols : a->rows;
    return lines > 0 && length > 0 ? a->ld * (lines - 1) + length : 0;
}

int64_t check_span(const check_case *c, int which)
{
    const check_array *a = &c->arrays[which];
    const int64_t span = item_span(a);
    return span > 0 ? span + (c->items - 1) * a->stride : 0;
}

spk_dtype check_dtype(const check_case *c, int which)
{
    return which == CHECK_VALUES ? c->spmm.dtype_a : which == CHECK_B ? c->spmm.dtype_b : c->spmm.dtype_d;
}

static check_array array_of(spk_layout layout, int64_t rows, int64_t cols, int64_t ld)
{
    const int64_t tight = layout == SPK_ROW_MAJOR ? cols : rows;
    return (check_array){.layout = layout, .rows = rows, .cols = cols, .ld = ld > 0 ? ld : tight > 0 ? tight : 1};
}

/* The arrays of one product, as it was drawn. */
static void lay_out(check_case *c)
{
    const spk_spmm *s = &c->spmm;
    const int64_t block = c->block_rows * c->block_cols, bias = s->bias == SPK_BIAS_PER_ROW ? c->m : s->bias == SPK_BIAS_PER_COL ? c->n : 0;
    check_array *a = c->arrays;
    a[CHECK_B] = array_of(s->layout_b, c->k, c->n, s->ldb);
    if (c->operation == SPK_SDDMM) {
        const bool by_row = s->block_layout == SPK_ROW_MAJOR;
        const check_array values =
            array_of(SPK_ROW_MAJOR, c->nnzb * (by_row ? c->block_rows : c->block_cols), by_row ? c->block_cols : c->block_rows, 0);
        a[CHECK_VALUES] = array_of(c->sddmm.layout_x, c->m, c->k, c->sddmm.ldx);
        a[CHECK_D] = values;
        a[CHECK_C] = s->use_c ? values : (check_array){.ld = 1};
        a[CHECK_BIAS] = a[CHECK_RESIDUAL] = a[CHECK_PREACT] = (check_array){.ld = 1};
        return;
    }
    a[CHECK_VALUES] = array_of(SPK_ROW_MAJOR, c->nnzb, block, 0);
    a[CHECK_D] = array_of(s->layout_d, c->m, c->n, s->ldd);
    a[CHECK_C] = s->use_c ? array_of(s->layout_d, c->m, c->n, s->ldc) : (check_array){.ld = 1};
    a[CHECK_RESIDUAL] = s->residual ? array_of(s->layout_d, c->m, c->n, s->ldr) : (check_array){.ld = 1};
    a[CHECK_PREACT] = s->keep_preact ? array_of(s->layout_d, c->m, c->n, s->ldp) : (check_array){.ld = 1};
    a[CHECK_BIAS] = array_of(SPK_ROW_MAJOR, bias > 0, bias, 0);
}

/* ------------------------------------------------------------------------------------------------ SDDMM */

static int64_t draw_depth(random_state *r, bool gpu)
{
    static const int64_t usual[] = {0, 1, 2, 7, 8, 16, 31, 32, 64, 100, 128, 200, 256};
    if (gpu && random_chance(r, 0.15))
        return 8 * random_between(r, 1, 400);
    return random_chance(r, 0.6) ? usual[random_between(r, 0, 12)] : random_between(r, 1, gpu ? 600 : 200);
}

/* Tight or a little more; of TMA's alignment at times. */
static int64_t draw_ld(random_state *r, int64_t tight)
{
    if (random_chance(r, 0.4))
        return (tight + 7) / 8 * 8 + 8 * random_between(r, 0, 2) + (tight == 0 ? 8 : 0);
    return random_chance(r, 0.5) || tight == 0 ? 0 : tight + random_between(r, 0, 17);
}

/* The case's matrix and types, for the other operation. */
static void make_sddmm(random_state *r, bool gpu, check_case *c)
{
    spk_spmm *s = &c->spmm;
    const spk_layout layout_x = (spk_layout)random_between(r, 0, 1);
    c->m = c->rows;
    c->n = c->cols;
    c->k = draw_depth(r, gpu);
    *s = (spk_spmm){SPK_SIZED(spk_spmm),
                    .n = c->n,
                    .dtype_a = s->dtype_a,
                    .dtype_b = s->dtype_b,
                    .dtype_d = s->dtype_d,
                    .compute = s->compute,
                    .block_layout = s->block_layout,
                    .layout_b = s->layout_b,
                    .use_c = random_chance(r, 0.5)};
    s->ldb = draw_ld(r, s->layout_b == SPK_ROW_MAJOR ? c->n : c->k);
    c->alias_c = s->use_c && c->alias_c;
    c->alias_residual = c->static_values = false;
    c->beta = s->use_c ? (random_chance(r, 0.2) ? 0 : random_normal(r)) : 0;
    c->sddmm = (spk_sddmm){SPK_SIZED(spk_sddmm),
                           .k = c->k,
                           .dtype_x = s->dtype_a,
                           .dtype_y = s->dtype_b,
                           .dtype_d = s->dtype_d,
                           .compute = s->compute,
                           .block_layout = s->block_layout,
                           .layout_x = layout_x,
                           .layout_y = s->layout_b,
                           .ldy = s->ldb,
                           .use_c = s->use_c};
    c->sddmm.ldx = draw_ld(r, layout_x == SPK_ROW_MAJOR ? c->k : c->m);
}

/* ------------------------------------------------------------------------------------------------ batches */

/* Draws how the items of one array lie; returns the stride as the caller of the library gives it. */
static int64_t draw_stride(random_state *r, check_case *c, int which, int from, int to)
{
    check_array *a = &c->arrays[which];
    const int way = (int)random_between(r, from, to);
    const int64_t lines = a->layout == SPK_ROW_MAJOR ? a->rows : a->cols;
    a->stride = a->ld * lines;
    if (way == SHARED) {
        a->stride = 0;
        return SPK_STRIDE_SHARED;
    }
    if (way == SIDE_BY_SIDE) {
        a->stride = a->ld;
        a->ld *= c->items;
        return a->stride;
    }
    if (way == LOOSE)
        a->stride += random_chance(r, 0.5) ? 8 * random_between(r, 1, 4) : random_between(r, 1, 9);
    return way == TIGHT ? 0 : a->stride;
}

static void draw_spmm_batch(random_state *r, check_case *c)
{
    spk_spmm *s = &c->spmm;
    check_array *a = c->arrays;
    s->batch = c->items;
    s->stride_a = random_chance(r, 0.5) ? draw_stride(r, c, CHECK_VALUES, SHARED, SHARED) : draw_stride(r, c, CHECK_VALUES, LOOSE, LOOSE);
    s->stride_b = draw_stride(r, c, CHECK_B, TIGHT, SHARED);
    s->stride_d = draw_stride(r, c, CHECK_D, TIGHT, SIDE_BY_SIDE);
    s->stride_c = s->use_c ? draw_stride(r, c, CHECK_C, TIGHT, SHARED) : 0;
    s->stride_r = s->residual ? draw_stride(r, c, CHECK_RESIDUAL, TIGHT, SHARED) : 0;
    s->stride_p = s->keep_preact ? draw_stride(r, c, CHECK_PREACT, TIGHT, SIDE_BY_SIDE) : 0;
    if (c->alias_c) {
        a[CHECK_C] = a[CHECK_D];
        s->stride_c = s->stride_d;
    }
    if (c->alias_residual) {
        a[CHECK_RESIDUAL] = a[CHECK_D];
        s->stride_r = s->stride_d;
    }
    s->ldb = a[CHECK_B].ld;
    s->ldd = a[CHECK_D].ld;
    s->ldc = s->use_c ? a[CHECK_C].ld : 0;
    s->ldr = s->residual ? a[CHECK_RESIDUAL].ld : 0;
    s->ldp = s->keep_preact ? a[CHECK_PREACT].ld : 0;
}

static void draw_sddmm_batch(random_state *r, check_case *c)
{
    static const int of_values[] = {TIGHT, LOOSE, SHARED};
    spk_sddmm *s = &c->sddmm;
    const int way = of_values[random_between(r, 0, 2)];
    s->batch = c->items;
    s->stride_x = draw_stride(r, c, CHECK_VALUES, TIGHT, SHARED);
    s->stride_y = draw_stride(r, c, CHECK_B, TIGHT, SHARED);
    s->stride_d = draw_stride(r, c, CHECK_D, TIGHT, LOOSE);
    s->stride_c = s->use_c ? draw_stride(r, c, CHECK_C, way, way) : 0;
    if (c->alias_c) {
        c->arrays[CHECK_C] = c->arrays[CHECK_D];
        s->stride_c = s->stride_d;
    }
    s->ldx = c->arrays[CHECK_VALUES].ld;
    s->ldy = c->spmm.ldb = c->arrays[CHECK_B].ld;
}

void check_complete(random_state *t, random_state *r, const check_wish *wish, check_case *c)
{
    const bool sampled = random_chance(t, 0.25);
    c->operation = wish->operation != 0 ? wish->operation : sampled ? SPK_SDDMM : SPK_SPMM;
    c->items = 1;
    if (c->operation == SPK_SDDMM)
        make_sddmm(t, wish->gpu, c);
    lay_out(c);
    if (random_chance(t, 0.8))
        return;
    c->items = random_chance(r, 0.8) ? random_between(r, 2, 6) : random_between(r, 7, 20);
    if ((double)c->m * (double)c->n * (double)c->k > 1e7) /* the oracle takes its time */
        c->items = 2;
    if (c->operation == SPK_SDDMM)
        draw_sddmm_batch(r, c);
    else
        draw_spmm_batch(r, c);
}
