/* GEMM: a caller's spk_gemm as a problem, and what follows from it. The problem knows no transposition: a transposed matrix is one of the
 * other layout. */
#include <stdio.h>

#include "op/fields.h"
#include "op/gemm/gemm.h"
#include "op/read.h"

static spk_layout layout_after(spk_layout layout, spk_trans trans)
{
    return (layout == SPK_ROW_MAJOR) == (trans == SPK_NO_TRANS) ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
}

static bool has_own(const spk_problem *p, int i)
{
    switch (p->group_axis) {
    case SPK_GROUP_ROWS:
        return i == SPK_B || (i == SPK_BIAS && p->epilogue.bias == SPK_BIAS_PER_COL);
    case SPK_GROUP_COLS:
        return i == SPK_A || (i == SPK_BIAS && p->epilogue.bias == SPK_BIAS_PER_ROW);
    case SPK_GROUP_DEPTH:
        return i == SPK_C || i == SPK_D || i == SPK_RESIDUAL || i == SPK_PREACT;
    case SPK_GROUP_NONE:
        break;
    }
    return true;
}

/* Groups are items, of which only some operands have one each. */
static spk_status read_groups(const spk_gemm *g, spk_problem *p)
{
    if (g->groups < 0 || g->groups > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "groups = %lld: the limits are 0 and 2^31 - 1", (long long)g->groups);
    if (g->groups == 0 && g->group_axis != SPK_GROUP_NONE)
        return spk_fail(SPK_ERR_ARGUMENT, "group_axis = %d with groups = 0: say how many there are", (int)g->group_axis);
    if (g->groups == 0)
        return SPK_OK;
    if (g->group_axis == SPK_GROUP_NONE)
        return spk_fail(SPK_ERR_ARGUMENT, "group_axis = 0 with groups = %lld: say which axis is cut", (long long)g->groups);
    if (g->batch > 1)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld with groups = %lld: groups come one batch at a time", (long long)g->batch,
                        (long long)g->groups);
    const int64_t cut = g->group_axis == SPK_GROUP_ROWS ? g->m : g->group_axis == SPK_GROUP_COLS ? g->n : g->k;
    if (cut > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "groups = %lld of an axis of %lld: offsets are 32-bit integers", (long long)g->groups,
                        (long long)cut);
    p->group_axis = g->group_axis;
    p->batch = g->groups;
    return SPK_OK;
}

static spk_status read_sizes(const spk_gemm *g, spk_problem *p)
{
    SPK_TRY(spk_read_size("m", g->m));
    SPK_TRY(spk_read_size("n", g->n));
    SPK_TRY(spk_read_size("k", g->k));
    p->m = g->m;
    p->n = g->n;
    p->k = g->k;
    SPK_TRY(spk_read_batch(g->batch, p));
    return read_groups(g, p);
}

/* `like` is the operand itself, or D for what lies like it. */
static spk_status read_one(const spk_given_array *given, bool takes_part, int i, const spk_operand *like, spk_problem *p)
{
    spk_operand made = *like;
    if (!has_own(p, i) && given->stride != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: groups have none of their own along this axis, give 0", given->stride_name,
                        (long long)given->stride);
    SPK_TRY(spk_read_array(given, has_own(p, i) ? p->batch : 1, &made));
    if (takes_part)
        p->operand[i] = made;
    return SPK_OK;
}

static spk_status read_arrays(const spk_gemm *g, spk_problem *p)
{
    const spk_epilogue *e = &p->epilogue;
    const spk_operand like_d = p->d;
    SPK_TRY(read_one(&(spk_given_array){"lda", "stride_a", g->lda, g->stride_a, false}, true, SPK_A, &p->a, p));
    SPK_TRY(read_one(&(spk_given_array){"ldb", "stride_b", g->ldb, g->stride_b, false}, true, SPK_B, &p->b, p));
    SPK_TRY(read_one(&(spk_given_array){"ldc", "stride_c", g->ldc, g->stride_c, false}, e->use_c, SPK_C, &like_d, p));
    SPK_TRY(read_one(&(spk_given_array){"ldd", "stride_d", g->ldd, g->stride_d, true}, true, SPK_D, &like_d, p));
    const bool has_residual = e->residual != SPK_RESIDUAL_NONE;
    SPK_TRY(read_one(&(spk_given_array){"ldr", "stride_r", g->ldr, g->stride_r, false}, has_residual, SPK_RESIDUAL, &like_d, p));
    return read_one(&(spk_given_array){"ldp", "stride_p", g->ldp, g->stride_p, true}, e->keep_preact, SPK_PREACT, &like_d, p);
}

static void fit_operands(spk_problem *p)
{
    p->a.rows = p->m;
    p->a.cols = p->b.rows = p->k;
    p->b.cols = p->n;
    spk_product_fit(p, p->m, p->n);
    if (p->group_axis == SPK_GROUP_NONE)
        return;
    p->bias.stride = has_own(p, SPK_BIAS) ? p->bias.cols : 0;
    p->offsets = (spk_operand){.rows = 1, .cols = p->batch, .ld = p->batch, .dtype = SPK_INT32};
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_gemm *g = given;
    (void)pattern;
    SPK_TRY(spk_read_dtypes(&(spk_given_dtypes){"dtype_a", "dtype_b", g->dtype_a, g->dtype_b, g->dtype_d, g->compute}, p));
    SPK_TRY(read_sizes(g, p));
    p->a.layout = layout_after(g->layout_a, g->trans_a);
    p->b.layout = layout_after(g->layout_b, g->trans_b);
    p->d.layout = g->layout_d;
    SPK_TRY(spk_read_enum("reserved", g->reserved, 0));
    p->assume_finite = g->assume_finite != 0;
    p->epilogue.use_c = g->use_c != 0;
    p->epilogue.keep_preact = g->keep_preact != 0;
    p->epilogue.residual = g->residual;
    p->epilogue.bias = g->bias;
    p->epilogue.activation = g->activation;
    fit_operands(p);
    SPK_TRY(read_arrays(g, p));
    SPK_TRY(spk_read_scale("scale_a", 0, g->scale_a, p));
    SPK_TRY(spk_read_scale("scale_b", 1, g->scale_b, p));
    fit_operands(p);
    return SPK_OK;
}

/* As a caller gives it: 0 where groups have none of their own. */
static int64_t stride_of(const spk_problem *p, int i)
{
    const bool input = p->op->operands[i].role != SPK_ROLE_OUT;
    return !has_own(p, i) ? 0 : input ? spk_given_stride(p, &p->operand[i]) : p->operand[i].stride;
}

static void write(const spk_problem *p, void *given)
{
    const bool grouped = p->group_axis != SPK_GROUP_NONE;
    *(spk_gemm *)given = (spk_gemm){SPK_SIZED(spk_gemm),
                                    .group_axis = p->group_axis,
                                    .groups = grouped ? p->batch : 0,
                                    .m = p->m,
                                    .n = p->n,
                                    .k = p->k,
                                    .dtype_a = p->a.dtype,
                                    .dtype_b = p->b.dtype,
                                    .dtype_d = p->d.dtype,
                                    .compute = p->compute,
                                    .layout_a = p->a.layout,
                                    .layout_b = p->b.layout,
                                    .layout_d = p->d.layout,
                                    .lda = p->a.ld,
                                    .ldb = p->b.ld,
                                    .ldc = p->c.ld,
                                    .ldd = p->d.ld,
                                    .ldr = p->residual.ld,
                                    .ldp = p->preact.ld,
                                    .use_c = p->epilogue.use_c,
                                    .bias = p->epilogue.bias,
                                    .activation = p->epilogue.activation,
                                    .residual = p->epilogue.residual,
                                    .keep_preact = p->epilogue.keep_preact,
                                    .batch = grouped ? 1 : p->batch,
                                    .stride_a = stride_of(p, SPK_A),
                                    .stride_b = stride_of(p, SPK_B),
                                    .stride_c = stride_of(p, SPK_C),
                                    .stride_d = stride_of(p, SPK_D),
                                    .stride_r = stride_of(p, SPK_RESIDUAL),
                                    .stride_p = stride_of(p, SPK_PREACT),
                                    .scale_a = spk_given_scale(p, 0),
                                    .scale_b = spk_given_scale(p, 1),
                                    .assume_finite = p->assume_finite};
}

/* A batch whose items share B and lie as the rows of one array in A and all that is like D becomes that one product; so does one that
 * shares A and lies as the columns of one array. */
static void fold(spk_problem *p)
{
    if (p->group_axis != SPK_GROUP_NONE)
        return;
    const bool rows = p->b.stride == 0 && p->epilogue.bias != SPK_BIAS_PER_ROW,
               columns = p->a.stride == 0 && p->epilogue.bias != SPK_BIAS_PER_COL;
    const bool down = rows && spk_operand_goes_on_down(&p->a, p->batch) && spk_product_goes_on(p, spk_operand_goes_on_down);
    if (!down && !(columns && spk_operand_goes_on_across(&p->b, p->batch) && spk_product_goes_on(p, spk_operand_goes_on_across)))
        return;
    const int64_t size = down ? p->m : p->n, batch = p->batch;
    if (size == 0 || size > (INT64_C(1) << 40) / batch)
        return;
    *p = spk_problem_item(p);
    *(down ? &p->m : &p->n) = size * batch;
    fit_operands(p);
}

/* Of an array with lines far apart no more than the lines. */
static double touched(const spk_problem *p, int i)
{
    return (double)p->operand[i].rows * (double)p->operand[i].cols;
}

static double tolerance(const spk_problem *p, int output)
{
    (void)output;
    return spk_product_tolerance(p, (double)p->k);
}

static int device_defines(const spk_problem *p, char *text, size_t size)
{
    const int used = spk_product_defines(p, p->d.layout, p->a.layout == SPK_ROW_MAJOR, text, size);
    if (p->group_axis == SPK_GROUP_NONE || used < 0)
        return used;
    const bool fits = (size_t)used < size;
    return used + snprintf(fits ? text + used : NULL, fits ? size - (size_t)used : 0, " -DGROUP_AXIS=%d", (int)p->group_axis);
}

/* Of an item: the groups make up the whole. */
static double flops(const spk_problem *p)
{
    return spk_product_dense_flops(p) / (p->group_axis != SPK_GROUP_NONE ? (double)p->batch : 1);
}

/* Not the size that groups cut: they would be of another kind. */
static int64_t *free_size(spk_problem *p)
{
    return p->group_axis == SPK_GROUP_COLS ? &p->m : &p->n;
}

static int64_t *other_size(spk_problem *p)
{
    return p->group_axis == SPK_GROUP_NONE || p->group_axis == SPK_GROUP_DEPTH ? &p->m : NULL;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_gemm
#include "op/gemm/fields.def"
};

static const spk_size_row sizes[] = {
    {"m", SPK_SIZE_FIELD, offsetof(spk_problem, m), 2048, "rows of A and of D"},
    {"n", SPK_SIZE_FIELD, offsetof(spk_problem, n), 2048, "columns of B and of D"},
    {"k", SPK_SIZE_FIELD, offsetof(spk_problem, k), 2048, "columns of A, rows of B"},
};

#define PLACE(name) offsetof(spk_gemm_args, name)
static const spk_operand_row operands[] = {
    [SPK_A] = {.name = "a", .title = "A", .extents = "m x k", .role = SPK_ROLE_IN, .place = PLACE(a)},
    [SPK_B] = {.name = "b", .title = "B", .extents = "k x n", .role = SPK_ROLE_IN, .place = PLACE(b)},
    SPK_PRODUCT_C(spk_gemm_args, "m x n"),
    SPK_PRODUCT_D(spk_gemm_args, "m x n", 1u << SPK_C | 1u << SPK_RESIDUAL),
    [SPK_BIAS] = {.name = "bias", .title = "bias", .extents = "1 x m, or 1 x n", .role = SPK_ROLE_IN, .place = PLACE(bias)},
    [SPK_RESIDUAL] = {.name = "residual", .title = "residual", .extents = "m x n", .role = SPK_ROLE_IN, .place = PLACE(residual)},
    [SPK_PREACT] = {.name = "preact", .title = "preact", .extents = "m x n", .role = SPK_ROLE_OUT, .place = PLACE(preact)},
    [SPK_OFFSETS] = {.name = "offsets", .title = "offsets", .extents = "1 x groups", .role = SPK_ROLE_IN, .place = PLACE(offsets)},
    SPK_PRODUCT_SCALES(spk_gemm_args, SPK_OFFSETS + 1, a, b),
};

static const spk_scalar_row scalars[] = SPK_PRODUCT_SCALARS(spk_gemm_args);

static bool key_group(const spk_problem *p, char *text, size_t size)
{
    static const char *const names[] = {"none", "rows", "cols", "depth"};
    snprintf(text, size, "%s", names[p->group_axis]);
    return p->group_axis != SPK_GROUP_NONE;
}

static const spk_key_row key[] = {{.name = "a", .exact = spk_key_a},
                                  {.name = "b", .exact = spk_key_b},
                                  {.name = "d", .exact = spk_key_d},
                                  {.name = "acc", .exact = spk_key_compute},
                                  {.name = "la", .exact = spk_key_layout_a, .token_group = 1},
                                  {.name = "lb", .exact = spk_key_layout_b, .token_group = 1},
                                  {.name = "ld", .exact = spk_key_layout_d, .token_group = 1},
                                  {.name = "aa", .exact = spk_key_alignment_a, .token_group = 1},
                                  {.name = "ab", .exact = spk_key_alignment_b, .token_group = 1},
                                  {.name = "ad", .exact = spk_key_alignment_d, .token_group = 1},
                                  {.name = "ep", .exact = spk_key_epilogue},
                                  {.name = "batch", .exact = spk_key_batch},
                                  {.name = "group", .exact = key_group},
                                  {.name = "finite", .exact = spk_key_finite},
                                  {.name = "cache", .exact = spk_key_cache},
                                  {.name = "scale", .exact = spk_key_scales},
                                  SPK_PRODUCT_KEY_BATCH,
                                  {.name = "m", .near = spk_key_m_class, .weight = 1, .token_group = 1},
                                  {.name = "n", .near = spk_key_n_class, .weight = 1, .token_group = 2},
                                  {.name = "k", .near = spk_key_k_class, .weight = 1, .token_group = 3},
                                  {.name = "items", .near = spk_key_items, .weight = 1, .token_group = 4},
                                  {.name = NULL}};

const spk_op spk_op_gemm = {.id = SPK_GEMM,
                            .name = "gemm",
                            SPK_OP_STRUCTS(spk_gemm, spk_gemm_args),
                            .formula = "D = act(alpha A B + beta C + bias) + residual, or times residual",
                            .sentence = "A {m} x {k} times B {k} x {n}",
                            SPK_OP_TABLES,
                            .scales = SPK_OFFSETS + 1,
                            .takes_pattern = SPK_PATTERN_NONE,
                            .read = read,
                            .write = write,
                            .device_defines = device_defines,
                            .fold = fold,
                            .fit = fit_operands,
                            .flops = flops,
                            .dense_flops = flops,
                            .touched = touched,
                            .tolerance = tolerance,
                            .draw_index = spk_gemm_draw_offsets,
                            .check_indices = spk_gemm_check_offsets,
                            .free_size = free_size,
                            .other_size = other_size,
                            .hard_rows = spk_gemm_hard_rows,
                            .oracle = spk_gemm_oracle};
