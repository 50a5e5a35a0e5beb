/* What `check` draws of products: small shapes of every kind, ragged edges, all layouts, all epilogues. On a GPU, almost half are for the
 * rows that run on its tensor cores through TMA, which ask much of a problem: of all shapes together they would see few. */
#include <string.h>

#include "cli/check/draw.h"
#include "type/type.h"

static int64_t draw_size(random_state *r)
{
    if (random_chance(r, 0.03))
        return 0;
    return random_chance(r, 0.3) ? random_between(r, 1, 20) : random_between(r, 1, 300);
}

static int64_t draw_side(random_state *r)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 40, 48, 64};
    if (random_chance(r, 0.04))
        return random_between(r, 65, 256);
    return random_chance(r, 0.6) ? usual[random_between(r, 0, 13)] : random_between(r, 1, 64);
}

static int64_t draw_gpu_side(random_state *r)
{
    static const int64_t usual[] = {16, 16, 32, 32, 64, 64, 64, 128, 128, 256, 8, 24, 40, 3};
    return random_chance(r, 0.7) ? usual[random_between(r, 0, 13)] : draw_side(r);
}

/* A type of this use; narrow: one whose sums are of a wider type. */
static spk_dtype draw_type(random_state *r, spk_type_use use, bool narrow)
{
    const spk_type *drawn = NULL;
    int64_t count = 0;
    for (const spk_type *type = NULL; (type = spk_type_next(type, 1u << use)) != NULL;)
        count += spk_type_is_narrow(type->dtype) == narrow;
    for (int64_t left = random_between(r, 1, count); left > 0; left -= spk_type_is_narrow(drawn->dtype) == narrow)
        drawn = spk_type_next(drawn, 1u << use);
    return drawn->dtype;
}

static void draw_dtypes(random_state *r, bool gpu, spk_spmm *s)
{
    const spk_dtype dtype = draw_type(r, SPK_USE_VALUES, random_chance(r, gpu ? 0.6 : 0.2));
    bool wider = random_chance(r, 0.3), rounded = random_chance(r, 0.2);
    s->dtype_a = s->dtype_b = s->dtype_d = dtype;
    if (wider)
        s->dtype_d = spk_type_of(dtype)->sums;
    if (!spk_type_is_narrow(dtype) && rounded)
        s->compute = spk_type_reduced(dtype);
}

static int64_t draw_tile_side(random_state *r, int64_t block)
{
    static const int64_t usual[] = {SPK_SCALE_ALL, SPK_SCALE_ALL, 1, 1, 2, 5, 16, 32, 64, 128};
    return random_chance(r, 0.3) ? block : usual[random_between(r, 0, 9)];
}

spk_scale check_draw_scale(random_state *r, spk_dtype dtype, int64_t rows, int64_t cols)
{
    if (!spk_type_is_scaled(dtype) || random_chance(r, 0.25))
        return (spk_scale){0, 0};
    if (random_chance(r, 0.3))
        return (spk_scale){rows, cols};
    return (spk_scale){draw_tile_side(r, rows), draw_tile_side(r, cols)};
}

/* Factors of eight bits, with scale factors or without. */
static void draw_short(random_state *r, check_draft *c)
{
    spk_spmm *s = &c->spmm;
    const bool turned = s->trans_a == SPK_TRANS;
    s->dtype_a = s->dtype_b = draw_type(r, SPK_USE_FACTORS, true);
    s->dtype_d = spk_type_of(s->dtype_a)->results[random_between(r, 0, SPK_MOST_RESULTS - 1)]; /* what is none of them is the default */
    s->compute = SPK_DTYPE_DEFAULT;
    s->scale_a = random_chance(r, 0.3)
                     ? (spk_scale){SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}
                     : check_draw_scale(r, s->dtype_a, turned ? c->block_cols : c->block_rows, turned ? c->block_rows : c->block_cols);
    s->scale_b = check_draw_scale(r, s->dtype_b, turned ? c->block_rows : c->block_cols, 16);
}

static int64_t whole_blocks(int64_t size, int64_t side)
{
    int64_t count = (size + side / 2) / side;
    return side * (size > 0 && count == 0 ? 1 : count);
}

static int64_t draw_n(random_state *r)
{
    static const int64_t usual[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 200};
    return random_chance(r, 0.5) ? usual[random_between(r, 0, 17)] : random_between(r, 1, 200);
}

static double draw_factor(random_state *r)
{
    static const double usual[] = {1, 0, -1, 0.5};
    return random_chance(r, 0.7) ? usual[random_between(r, 0, 3)] : random_normal(r);
}

/* Leading dimension: 0 (tight), or tight and a little. */
static int64_t draw_ld(random_state *r, spk_layout layout, int64_t rows, int64_t cols)
{
    int64_t tight = layout == SPK_ROW_MAJOR ? cols : rows;
    return random_chance(r, 0.5) || tight == 0 ? 0 : tight + random_between(r, 0, 17);
}

/* residual: how it takes part where it does. */
void check_draw_epilogue(random_state *t, random_state *r, spk_residual residual, check_draft *c)
{
    spk_spmm *s = &c->spmm;
    c->alpha = random_chance(r, 0.5) ? 1 : draw_factor(r);
    if (random_chance(t, 0.4))
        return;
    s->use_c = random_chance(t, 0.5);
    s->bias = (spk_bias)random_between(t, 0, 2);
    s->activation = random_chance(t, 0.4) ? SPK_ACT_NONE : (spk_activation)random_between(t, 1, 4);
    s->residual = random_chance(t, 0.3) ? residual : SPK_RESIDUAL_NONE;
    s->keep_preact = random_chance(t, 0.3);
    c->beta = s->use_c ? draw_factor(r) : 0;
}

void check_draw_layouts(random_state *t, random_state *r, check_draft *c)
{
    spk_spmm *s = &c->spmm;
    s->block_layout = (spk_layout)random_between(t, 0, 1);
    s->layout_b = (spk_layout)random_between(t, 0, 1);
    s->layout_d = (spk_layout)random_between(t, 0, 1);
    s->ldb = draw_ld(t, s->layout_b, c->k, c->n);
    s->ldd = draw_ld(r, s->layout_d, c->m, c->n);
    s->ldc = s->use_c ? draw_ld(r, s->layout_d, c->m, c->n) : 0;
    s->ldr = s->residual ? draw_ld(r, s->layout_d, c->m, c->n) : 0;
    s->ldp = s->keep_preact ? draw_ld(r, s->layout_d, c->m, c->n) : 0;
    c->alias_c = s->use_c && random_chance(r, 0.4);
    c->alias_residual = s->residual && !c->alias_c && random_chance(r, 0.4);
    if (c->alias_c)
        s->ldc = s->ldd;
    if (c->alias_residual)
        s->ldr = s->ldd;
}

/* Blocks, sizes and types for tensor cores and TMA: op(A)'s blocks have 16 to 256 rows and whole sixteens of columns, up to more tiles than
 * a GPU has multiprocessors. */
static void draw_tensor_shape(random_state *r, check_draft *c)
{
    static const int64_t downs[] = {16, 16, 32, 32, 64, 64, 64, 64, 128, 256}, others[] = {16, 32, 48, 64, 64, 128, 128, 256};
    static const int64_t columns[] = {1, 8, 16, 24, 32, 48, 64, 96, 128, 128, 136, 192, 200, 256, 256, 320, 512};
    const bool large = random_chance(r, 0.1);
    const int64_t down = downs[random_between(r, 0, 9)];
    const int64_t across = random_chance(r, 0.5)   ? down
                           : random_chance(r, 0.8) ? others[random_between(r, 0, 7)]
                                                   : 16 * random_between(r, 1, 16);
    c->spmm.trans_a = random_chance(r, 0.35) ? SPK_TRANS : SPK_NO_TRANS;
    c->m = down * random_between(r, 1, (large ? 3000 : 700) / down + 1);
    c->k = across * random_between(r, 1, (large ? 800 : 600) / across + 1);
    if (random_chance(r, 0.35))
        c->m -= random_between(r, 0, down - 1);
    if (random_chance(r, 0.35))
        c->k -= random_between(r, 0, across - 1);
    c->n = random_chance(r, 0.6) ? columns[random_between(r, 0, 16)] : random_between(r, 1, large ? 600 : 300);
    c->rows = c->spmm.trans_a ? c->k : c->m;
    c->cols = c->spmm.trans_a ? c->m : c->k;
    c->block_rows = c->spmm.trans_a ? across : down;
    c->block_cols = c->spmm.trans_a ? down : across;
    c->spmm.dtype_a = c->spmm.dtype_b = c->spmm.dtype_d = draw_type(r, SPK_USE_VALUES, true);
    if (random_chance(r, 0.3))
        c->spmm.dtype_d = spk_type_of(c->spmm.dtype_a)->sums;
}

static void draw_shape(random_state *r, bool gpu, check_draft *c)
{
    c->rows = draw_size(r);
    c->cols = draw_size(r);
    if (gpu && random_chance(r, 0.5)) {
        c->rows *= 3;
        c->cols *= 3;
    }
    c->block_rows = gpu ? draw_gpu_side(r) : draw_side(r);
    c->block_cols = random_chance(r, 0.5) ? c->block_rows : gpu ? draw_gpu_side(r) : draw_side(r);
    if (random_chance(r, 0.4)) { /* no ragged edges: some rows of the table want that */
        c->rows = whole_blocks(c->rows, c->block_rows);
        c->cols = whole_blocks(c->cols, c->block_cols);
    }
    c->n = draw_n(r);
    draw_dtypes(r, gpu, &c->spmm);
    c->spmm.trans_a = random_chance(r, 0.35) ? SPK_TRANS : SPK_NO_TRANS;
    c->m = c->spmm.trans_a ? c->cols : c->rows;
    c->k = c->spmm.trans_a ? c->rows : c->cols;
    if (!gpu && random_chance(r, 0.15))
        draw_short(r, c);
}

static int64_t draw_aligned_ld(random_state *r, int64_t tight)
{
    return (tight + 7) / 8 * 8 + (random_chance(r, 0.3) ? 8 * random_between(r, 0, 3) : 0);
}

/* Leading dimensions as TMA wants them, most of the time. */
void check_align_lds(random_state *t, random_state *r, check_draft *c)
{
    spk_spmm *s = &c->spmm;
    const int64_t tight_b = s->layout_b == SPK_ROW_MAJOR ? c->n : c->k, tight_d = s->layout_d == SPK_ROW_MAJOR ? c->n : c->m;
    if (random_chance(t, 0.93))
        s->ldb = (tight_b + 7) / 8 * 8 + (random_chance(t, 0.5) ? 8 * random_between(t, 0, 3) : 0);
    if (random_chance(r, 0.7))
        s->ldd = draw_aligned_ld(r, tight_d);
    if (s->use_c && random_chance(r, 0.8))
        s->ldc = draw_aligned_ld(r, tight_d);
    if (s->residual && random_chance(r, 0.8))
        s->ldr = draw_aligned_ld(r, tight_d);
    if (c->alias_c)
        s->ldc = s->ldd;
    if (c->alias_residual)
        s->ldr = s->ldd;
}

/* Another number of whole blocks. */
static int64_t redraw_size(random_state *r, int64_t size, int64_t side)
{
    const int64_t rest = size % side, blocks = size / side;
    return size == 0 ? 0 : rest + side * random_between(r, rest == 0, blocks + blocks / 4 + 1);
}

void check_redraw_sizes(random_state *r, check_draft *c)
{
    c->rows = redraw_size(r, c->rows, c->block_rows);
    c->cols = redraw_size(r, c->cols, c->block_cols);
    c->m = c->spmm.trans_a ? c->cols : c->rows;
    c->k = c->spmm.trans_a ? c->rows : c->cols;
}

void check_draw_shape(random_state *r, bool gpu, bool tensor, check_draft *c)
{
    if (tensor)
        draw_tensor_shape(r, c);
    else
        draw_shape(r, gpu, c);
}

void check_draw_spmm(random_state *r, bool gpu, check_draft *draft, operation_struct *given)
{
    (void)r;
    (void)gpu;
    memcpy(given->bytes, &draft->spmm, sizeof(draft->spmm));
}
