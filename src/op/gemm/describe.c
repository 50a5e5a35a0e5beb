/* GEMM: a caller's spk_gemm as a problem, and what follows from it. The problem knows no transposition: a transposed matrix is one of the
 * other layout. */
#include "op/fields.h"
#include "op/gemm/gemm.h"
#include "op/read.h"

static spk_layout layout_after(spk_layout layout, spk_trans trans)
{
    return (layout == SPK_ROW_MAJOR) == (trans == SPK_NO_TRANS) ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
}

static spk_status read_sizes(const spk_gemm *g, spk_problem *p)
{
    SPK_TRY(spk_read_size("m", g->m));
    SPK_TRY(spk_read_size("n", g->n));
    SPK_TRY(spk_read_size("k", g->k));
    p->m = g->m;
    p->n = g->n;
    p->k = g->k;
    return spk_read_batch(g->batch, p);
}

static spk_status read_arrays(const spk_gemm *g, spk_problem *p)
{
    const bool has_residual = p->epilogue.residual != SPK_RESIDUAL_NONE;
    SPK_TRY(spk_read_array(&(spk_given_array){"lda", "stride_a", g->lda, g->stride_a, false}, p->batch, &p->a));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldb", "stride_b", g->ldb, g->stride_b, false}, p->batch, &p->b));
    SPK_TRY(spk_read_like_d(&(spk_given_array){"ldc", "stride_c", g->ldc, g->stride_c, false}, p->epilogue.use_c, p, &p->c));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldd", "stride_d", g->ldd, g->stride_d, true}, p->batch, &p->d));
    SPK_TRY(spk_read_like_d(&(spk_given_array){"ldr", "stride_r", g->ldr, g->stride_r, false}, has_residual, p, &p->residual));
    return spk_read_like_d(&(spk_given_array){"ldp", "stride_p", g->ldp, g->stride_p, true}, p->epilogue.keep_preact, p, &p->preact);
}

static void fit(spk_problem *p)
{
    p->a.rows = p->m;
    p->a.cols = p->b.rows = p->k;
    p->b.cols = p->n;
    spk_product_fit(p, p->m, p->n);
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_gemm *g = given;
    (void)pattern;
    SPK_TRY(spk_read_enum("reserved", g->reserved, 0));
    SPK_TRY(spk_read_dtypes(&(spk_given_dtypes){"dtype_a", "dtype_b", g->dtype_a, g->dtype_b, g->dtype_d, g->compute}, p));
    SPK_TRY(read_sizes(g, p));
    p->a.layout = layout_after(g->layout_a, g->trans_a);
    p->b.layout = layout_after(g->layout_b, g->trans_b);
    p->d.layout = g->layout_d;
    p->epilogue.use_c = g->use_c != 0;
    p->epilogue.keep_preact = g->keep_preact != 0;
    p->epilogue.residual = g->residual;
    p->epilogue.bias = g->bias;
    p->epilogue.activation = g->activation;
    fit(p);
    SPK_TRY(read_arrays(g, p));
    fit(p);
    return SPK_OK;
}

static void write(const spk_problem *p, void *given)
{
    *(spk_gemm *)given = (spk_gemm){SPK_SIZED(spk_gemm),
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
                                    .batch = p->batch,
                                    .stride_a = spk_given_stride(p, &p->a),
                                    .stride_b = spk_given_stride(p, &p->b),
                                    .stride_c = spk_given_stride(p, &p->c),
                                    .stride_d = p->d.stride,
                                    .stride_r = spk_given_stride(p, &p->residual),
                                    .stride_p = p->preact.stride};
}

/* A batch whose items share B and lie as the rows of one array in A and all that is like D becomes that one product; so does one that
 * shares A and lies as the columns of one array. */
static void fold(spk_problem *p)
{
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
    fit(p);
}

/* Of an array with lines far apart no more than the lines. */
static double touched(const spk_problem *p, int i)
{
    return (double)p->operand[i].rows * (double)p->operand[i].cols;
}

static double tolerance(const spk_problem *p)
{
    return spk_product_tolerance(p, (double)p->k);
}

static int device_defines(const spk_problem *p, char *text, size_t size)
{
    return spk_product_defines(p, p->d.layout, p->a.layout == SPK_ROW_MAJOR, text, size);
}

static int64_t *free_size(spk_problem *p)
{
    return &p->n;
}

static int64_t *other_size(spk_problem *p)
{
    return &p->m;
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
    SPK_PRODUCT_D(spk_gemm_args, "m x n"),
    [SPK_BIAS] = {.name = "bias", .title = "bias", .extents = "1 x m, or 1 x n", .role = SPK_ROLE_IN, .place = PLACE(bias)},
    [SPK_RESIDUAL] = {.name = "residual", .title = "residual", .extents = "m x n", .role = SPK_ROLE_IN, .place = PLACE(residual)},
    [SPK_PREACT] = {.name = "preact", .title = "preact", .extents = "m x n", .role = SPK_ROLE_OUT, .place = PLACE(preact)},
};

static const spk_scalar_row scalars[] = SPK_PRODUCT_SCALARS(spk_gemm_args);

static const spk_key_row key[] = {{.name = "a", .exact = spk_key_a},
                                  {.name = "b", .exact = spk_key_b},
                                  {.name = "d", .exact = spk_key_d},
                                  {.name = "acc", .exact = spk_key_compute},
                                  {.name = "la", .exact = spk_key_layout_a},
                                  {.name = "lb", .exact = spk_key_layout_b},
                                  {.name = "ld", .exact = spk_key_layout_d},
                                  {.name = "aa", .exact = spk_key_alignment_a},
                                  {.name = "ab", .exact = spk_key_alignment_b},
                                  {.name = "ad", .exact = spk_key_alignment_d},
                                  {.name = "ep", .exact = spk_key_epilogue},
                                  {.name = "batch", .exact = spk_key_batch},
                                  {.name = "finite", .exact = spk_key_finite},
                                  {.name = "cache", .exact = spk_key_cache},
                                  SPK_PRODUCT_KEY_BATCH,
                                  {.name = "m", .near = spk_key_m_class, .weight = 1},
                                  {.name = "n", .near = spk_key_n_class, .weight = 1},
                                  {.name = "k", .near = spk_key_k_class, .weight = 1},
                                  {.name = "items", .near = spk_key_items, .weight = 1, .optional = true},
                                  {.name = NULL}};

const spk_op spk_op_gemm = {.id = SPK_GEMM,
                            .name = "gemm",
                            .problem_type = "spk_gemm",
                            .problem_bytes = sizeof(spk_gemm),
                            SPK_ARGS_PLACES(spk_gemm_args),
                            .formula = "D = act(alpha A B + beta C + bias) + residual, or times residual",
                            .sentence = "A {m} x {k} times B {k} x {n}",
                            .fields = fields,
                            .field_count = sizeof fields / sizeof fields[0],
                            .sizes = sizes,
                            .size_count = sizeof sizes / sizeof sizes[0],
                            .operands = operands,
                            .operand_count = sizeof operands / sizeof operands[0],
                            .scalars = scalars,
                            .scalar_count = sizeof scalars / sizeof scalars[0],
                            .key = key,
                            .needs_pattern = false,
                            .read = read,
                            .write = write,
                            .device_defines = device_defines,
                            .fold = fold,
                            .fit = fit,
                            .flops = spk_product_dense_flops,
                            .dense_flops = spk_product_dense_flops,
                            .touched = touched,
                            .tolerance = tolerance,
                            .free_size = free_size,
                            .other_size = other_size,
                            .hard_rows = spk_gemm_hard_rows,
                            .oracle = spk_gemm_oracle};
