/* Draws the cases of `check`: small shapes of every kind, ragged edges, all layouts, all epilogues. On a GPU, almost half are for the rows
 * that run on its tensor cores through TMA, which ask much of a problem: of all shapes together they would see few. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { FAMILIES_APART = 96 }; /* more than cases are on their way at once: whoever comes second finds the program compiled */

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

static void draw_dtypes(random_state *r, bool gpu, spk_spmm *s)
{
    static const spk_dtype plain[] = {SPK_F32, SPK_F32, SPK_F32, SPK_F32, SPK_F64, SPK_F64, SPK_F64, SPK_F64, SPK_F16, SPK_BF16};
    static const spk_dtype short_ones[] = {SPK_F32, SPK_F32, SPK_F64, SPK_F64, SPK_F16, SPK_F16, SPK_F16, SPK_BF16, SPK_BF16, SPK_BF16};
    spk_dtype dtype = (gpu ? short_ones : plain)[random_between(r, 0, 9)];
    bool wider = random_chance(r, 0.3), rounded = random_chance(r, 0.2);
    s->dtype_a = s->dtype_b = s->dtype_d = dtype;
    if ((dtype == SPK_F16 || dtype == SPK_BF16) && wider)
        s->dtype_d = SPK_F32;
    if (dtype == SPK_F32 && rounded)
        s->compute = SPK_TF32;
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

static void add_block(check_case *c, int64_t i, int64_t j)
{
    c->columns[c->nnzb++] = j;
    c->overhang = c->overhang || (i + 1) * c->block_rows > c->rows || (j + 1) * c->block_cols > c->cols;
}

/* A group of block rows for each of a few experts, which share the columns; some have none. */
static void draw_experts(random_state *r, check_case *c)
{
    const int64_t experts = random_between(r, 1, c->grid_cols < 6 ? c->grid_cols : 6);
    int64_t expert = 0;
    for (int64_t i = 0; i < c->grid_rows; i++) {
        while (expert < experts - 1 && random_chance(r, 0.4))
            expert++;
        for (int64_t j = c->grid_cols * expert / experts; j < c->grid_cols * (expert + 1) / experts; j++)
            add_block(c, i, j);
        c->offsets[i + 1] = c->nnzb;
    }
}

static void draw_pattern(random_state *r, check_case *c)
{
    static const double densities[] = {0, 0.02, 0.1, 0.3, 0.6, 1};
    double density = densities[random_between(r, 0, 5)], empty = random_chance(r, 0.3) ? 0.5 : 0;
    c->grid_rows = (c->rows + c->block_rows - 1) / c->block_rows;
    c->grid_cols = (c->cols + c->block_cols - 1) / c->block_cols;
    /* a row much longer than the others */
    const int64_t full = c->grid_rows > 0 && random_chance(r, 0.2) ? random_between(r, 0, c->grid_rows - 1) : -1;
    c->offsets = cli_alloc((size_t)c->grid_rows + 1, sizeof(int64_t));
    c->columns = cli_alloc((size_t)(c->grid_rows * c->grid_cols), sizeof(int64_t));
    if (c->grid_cols > 0 && random_chance(r, 0.1)) {
        draw_experts(r, c);
        return;
    }
    for (int64_t i = 0; i < c->grid_rows; i++) {
        bool none = random_chance(r, empty);
        for (int64_t j = 0; j < c->grid_cols; j++)
            if ((random_chance(r, density) && !none) || i == full)
                add_block(c, i, j);
        c->offsets[i + 1] = c->nnzb;
    }
}

/* residual: how it takes part where it does. */
static void draw_epilogue(random_state *t, random_state *r, spk_residual residual, check_case *c)
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

static void draw_layouts(random_state *t, random_state *r, check_case *c)
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
static void draw_tensor_shape(random_state *r, check_case *c)
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
    c->spmm.dtype_a = c->spmm.dtype_b = c->spmm.dtype_d = random_chance(r, 0.5) ? SPK_F16 : SPK_BF16;
    if (random_chance(r, 0.3))
        c->spmm.dtype_d = SPK_F32;
}

static void draw_shape(random_state *r, bool gpu, check_case *c)
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
}

static int64_t draw_aligned_ld(random_state *r, int64_t tight)
{
    return (tight + 7) / 8 * 8 + (random_chance(r, 0.3) ? 8 * random_between(r, 0, 3) : 0);
}

/* Leading dimensions as TMA wants them, most of the time. */
static void align_lds(random_state *t, random_state *r, check_case *c)
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

/* Pointers of little alignment: whole elements off. */
static void draw_shifts(random_state *r, check_case *c)
{
    if (random_chance(r, 0.85))
        return;
    for (int i = 0; i < CHECK_ARRAYS; i++)
        c->shifts[i] = random_chance(r, 0.5) ? (int)random_between(r, 1, 15) : 0;
}

/* Another number of whole blocks. */
static int64_t redraw_size(random_state *r, int64_t size, int64_t side)
{
    const int64_t rest = size % side, blocks = size / side;
    return size == 0 ? 0 : rest + side * random_between(r, rest == 0, blocks + blocks / 4 + 1);
}

static void redraw_sizes(random_state *r, check_case *c)
{
    c->rows = redraw_size(r, c->rows, c->block_rows);
    c->cols = redraw_size(r, c->cols, c->block_cols);
    c->m = c->spmm.trans_a ? c->cols : c->rows;
    c->k = c->spmm.trans_a ? c->rows : c->cols;
}

uint64_t check_family(int64_t number)
{
    return (uint64_t)(number / (2 * FAMILIES_APART) * FAMILIES_APART + number % FAMILIES_APART);
}

void check_draw(uint64_t seed, int64_t number, const check_wish *wish, check_case *out)
{
    const bool gpu = wish->gpu;
    random_state family = random_for(seed, check_family(number), "family"), one = random_for(seed, (uint64_t)number, NULL);
    random_state *t = gpu ? &family : &one, *r = &one; /* t: the traits that a family shares */
    check_case c = {.seed = seed, .number = number, .spmm = {SPK_SIZED(spk_spmm)}};
    const bool tensor = gpu && random_chance(t, 0.45);
    if (tensor)
        draw_tensor_shape(t, &c);
    else
        draw_shape(t, gpu, &c);
    if (gpu)
        redraw_sizes(r, &c);
    c.spmm.n = c.n;
    c.index_type = (spk_index_type)random_between(r, 0, 1);
    draw_pattern(r, &c);
    random_state kind = random_for(seed, gpu ? check_family(number) : (uint64_t)number, "residual");
    draw_epilogue(t, r, (spk_residual)random_between(&kind, SPK_RESIDUAL_ADD, SPK_RESIDUAL_MULTIPLY), &c);
    draw_layouts(t, r, &c);
    if (tensor)
        align_lds(t, r, &c);
    c.assume_finite = random_chance(t, tensor ? 0.6 : 0.4);
    c.inf_in_use = random_chance(r, tensor ? 0.3 : 0.15);
    c.static_values = random_chance(r, 0.3);
    c.own_workspace = random_chance(r, 0.5);
    c.threads = (int)random_between(r, 1, 4);
    if (gpu)
        draw_shifts(r, &c);
    random_state more = random_for(seed, (uint64_t)number, "operation"),
                 more_family = random_for(seed, check_family(number), "operation of the family");
    check_complete(gpu ? &more_family : &more, &more, wish, &c);
    *out = c;
}

bool check_is_shifted(const check_case *c)
{
    bool shifted = false;
    for (int i = 0; i < CHECK_ARRAYS; i++)
        shifted = shifted || c->shifts[i] != 0;
    return shifted;
}

void check_release(check_case *c)
{
    free(c->offsets);
    free(c->columns);
    *c = (check_case){0};
}

static char *sddmm_text(const check_case *c, const char *batch)
{
    const spk_sddmm *s = &c->sddmm;
    return cli_format("SDDMM %s%s%s%s, %lldx%lld in %lld blocks of %lldx%lld (%s inside), k %lld, X %s ld %lld, Y %s ld %lld, alpha "
                      "%g%s%s%s%s, %d threads",
                      spk_dtype_name(s->dtype_x), s->dtype_d != s->dtype_x ? " to " : "",
                      s->dtype_d != s->dtype_x ? spk_dtype_name(s->dtype_d) : "", s->compute == SPK_TF32 ? " by tf32" : "",
                      (long long)c->rows, (long long)c->cols, (long long)c->nnzb, (long long)c->block_rows, (long long)c->block_cols,
                      s->block_layout ? "col" : "row", (long long)s->k, s->layout_x ? "col" : "row", (long long)s->ldx,
                      s->layout_y ? "col" : "row", (long long)s->ldy, c->alpha, s->use_c ? (c->beta == 0 ? " C (beta 0)" : " C") : "",
                      c->alias_c ? " (D is C)" : "", batch, check_is_shifted(c) ? " shifted" : "", c->threads);
}

char *check_text(const check_case *c)
{
    const spk_spmm *s = &c->spmm;
    char batch[64] = "";
    if (c->items > 1)
        snprintf(batch, sizeof(batch), ", %lld items%s", (long long)c->items, c->arrays[CHECK_VALUES].stride == 0 ? " of one A" : "");
    if (c->operation == SPK_SDDMM)
        return sddmm_text(c, batch);
    static const char *const bias[] = {"", " bias-row", " bias-col"};
    static const char *const activation[] = {"", " relu", " gelu_erf", " gelu_tanh", " silu"};
    static const char *const residual[] = {"", " residual", " factor"};
    return cli_format("%s%s%s%s %s, A %lldx%lld in %lld blocks of %lldx%lld (%s inside), n %lld, B %s ld %lld, D %s ld %lld, alpha "
                      "%g%s%s%s%s%s%s%s%s%s%s, %d threads",
                      spk_dtype_name(s->dtype_a), s->dtype_d != s->dtype_a ? " to " : "",
                      s->dtype_d != s->dtype_a ? spk_dtype_name(s->dtype_d) : "", s->compute == SPK_TF32 ? " by tf32" : "",
                      s->trans_a ? "op T" : "op N", (long long)c->rows, (long long)c->cols, (long long)c->nnzb, (long long)c->block_rows,
                      (long long)c->block_cols, s->block_layout ? "col" : "row", (long long)c->n, s->layout_b ? "col" : "row",
                      (long long)s->ldb, s->layout_d ? "col" : "row", (long long)s->ldd, c->alpha,
                      s->use_c ? (c->beta == 0 ? " C (beta 0)" : " C") : "", c->alias_c ? " (D is C)" : "", bias[s->bias],
                      activation[s->activation], residual[s->residual], c->alias_residual ? " (is D)" : "", s->keep_preact ? " preact" : "",
                      c->static_values ? " static-values" : "", check_is_shifted(c) ? " shifted" : "", batch, c->threads);
}
