/* SpMM: a caller's spk_spmm as a problem, and what follows from it. */
#include <math.h>

#include "op/fields.h"
#include "op/read.h"
#include "op/spmm/spmm.h"

/* The step from one item's values to the next: nothing can be tight here, as 0 is one A for all. */
static spk_status read_stride_a(int64_t given, spk_problem *problem)
{
    const int64_t values = spk_operand_item_elements(&problem->a), most = (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(problem->a.dtype);
    if (given < SPK_STRIDE_SHARED)
        return spk_fail(SPK_ERR_ARGUMENT, "stride_a = %lld: it cannot be negative", (long long)given);
    problem->a.stride = problem->batch > 1 && given > 0 ? given : 0;
    if (problem->batch > 1 && problem->a.stride > (most - values) / (problem->batch - 1))
        return spk_fail(SPK_ERR_ARGUMENT, "stride_a = %lld: %lld items exceed 2^62 bytes", (long long)given, (long long)problem->batch);
    return SPK_OK;
}

static spk_status read_arrays(const spk_spmm *s, spk_problem *p)
{
    SPK_TRY(read_stride_a(s->stride_a, p));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldb", "stride_b", s->ldb, s->stride_b, false}, p->batch, &p->b));
    SPK_TRY(spk_read_like_d(&(spk_given_array){"ldc", "stride_c", s->ldc, s->stride_c, false}, p->epilogue.use_c, p, &p->c));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldd", "stride_d", s->ldd, s->stride_d, true}, p->batch, &p->d));
    const bool has_residual = p->epilogue.residual != SPK_RESIDUAL_NONE;
    SPK_TRY(spk_read_like_d(&(spk_given_array){"ldr", "stride_r", s->ldr, s->stride_r, false}, has_residual, p, &p->residual));
    return spk_read_like_d(&(spk_given_array){"ldp", "stride_p", s->ldp, s->stride_p, true}, p->epilogue.keep_preact, p, &p->preact);
}

static void fit_operands(spk_problem *p)
{
    const spk_pattern *pattern = p->pattern;
    p->m = p->trans_a == SPK_TRANS ? pattern->cols : pattern->rows;
    p->k = p->trans_a == SPK_TRANS ? pattern->rows : pattern->cols;
    spk_values_fit(pattern, p->block_layout, &p->a);
    p->a.ld = p->a.cols;
    p->b.rows = p->k;
    p->b.cols = p->n;
    spk_product_fit(p, p->m, p->n);
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_spmm *s = given;
    SPK_TRY(spk_read_dtypes(&(spk_given_dtypes){"dtype_a", "dtype_b", s->dtype_a, s->dtype_b, s->dtype_d, s->compute}, p));
    SPK_TRY(spk_read_size("n", s->n));
    SPK_TRY(spk_read_batch(s->batch, p));
    p->pattern = pattern;
    p->n = s->n;
    p->trans_a = s->trans_a;
    p->block_layout = s->block_layout;
    p->b.layout = s->layout_b;
    p->d.layout = s->layout_d;
    p->epilogue.use_c = s->use_c != 0;
    p->assume_finite = s->assume_finite != 0;
    p->static_values = s->static_values != 0;
    p->epilogue.keep_preact = s->keep_preact != 0;
    p->epilogue.residual = s->residual;
    p->epilogue.bias = s->bias;
    p->epilogue.activation = s->activation;
    fit_operands(p);
    SPK_TRY(read_arrays(s, p));
    SPK_TRY(spk_read_scale("scale_a", 0, s->scale_a, p));
    SPK_TRY(spk_read_scale("scale_b", 1, s->scale_b, p));
    fit_operands(p);
    return SPK_OK;
}

static void write(const spk_problem *p, void *given)
{
    *(spk_spmm *)given = (spk_spmm){SPK_SIZED(spk_spmm),
                                    .n = p->n,
                                    .dtype_a = p->a.dtype,
                                    .dtype_b = p->b.dtype,
                                    .dtype_d = p->d.dtype,
                                    .compute = p->compute,
                                    .trans_a = p->trans_a,
                                    .block_layout = p->block_layout,
                                    .layout_b = p->b.layout,
                                    .layout_d = p->d.layout,
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
                                    .stride_a = p->a.stride,
                                    .stride_b = spk_given_stride(p, &p->b),
                                    .stride_c = spk_given_stride(p, &p->c),
                                    .stride_d = p->d.stride,
                                    .stride_r = spk_given_stride(p, &p->residual),
                                    .stride_p = p->preact.stride,
                                    .scale_a = spk_given_scale(p, 0),
                                    .scale_b = spk_given_scale(p, 1),
                                    .assume_finite = p->assume_finite,
                                    .static_values = p->static_values};
}

/* A batch of one A whose items of B and D lie as the columns of one array becomes that one product. */
static void fold(spk_problem *p)
{
    if (p->a.stride != 0 || p->n == 0 || p->epilogue.bias == SPK_BIAS_PER_COL || p->n > (INT64_C(1) << 40) / p->batch)
        return;
    if (!spk_operand_goes_on_across(&p->b, p->batch) || !spk_product_goes_on(p, spk_operand_goes_on_across))
        return;
    const int64_t n = p->n * p->batch;
    *p = spk_problem_item(p);
    p->n = n;
    fit_operands(p);
}

static double flops(const spk_problem *p)
{
    return 2.0 * (double)spk_operand_item_elements(&p->a) * (double)p->n;
}

/* Of B no more than the stored blocks ask for. */
static double touched(const spk_problem *p, int i)
{
    const spk_pattern *pattern = p->pattern;
    const int width = p->trans_a == SPK_TRANS ? pattern->block_rows : pattern->block_cols;
    return i == SPK_B ? (double)pattern->nnzb * width * (double)p->n : INFINITY;
}

static double tolerance(const spk_problem *p, int output)
{
    (void)output;
    double terms = (double)p->k;
    if (p->trans_a == SPK_NO_TRANS)
        terms = fmin(terms, (double)p->pattern->features.longest_row * p->pattern->block_cols);
    return spk_product_tolerance(p, terms);
}

static int device_defines(const spk_problem *p, char *text, size_t size)
{
    const bool a_along_k = (p->block_layout == SPK_ROW_MAJOR) != (p->trans_a == SPK_TRANS);
    return spk_product_defines(p, p->d.layout, a_along_k, text, size);
}

static int64_t *free_size(spk_problem *p)
{
    return &p->n;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_spmm
#include "op/spmm/fields.def"
};

static const spk_size_row sizes[] = {
    {"m", SPK_SIZE_PATTERN_ROWS, offsetof(spk_problem, m), 2048, "rows of op(A) and of D"},
    {"k", SPK_SIZE_PATTERN_COLS, offsetof(spk_problem, k), 2048, "columns of op(A), rows of B"},
    {"n", SPK_SIZE_FIELD, offsetof(spk_problem, n), 512, "columns of B and D"},
};

#define PLACE(name) offsetof(spk_spmm_args, name)
static const spk_operand_row operands[] = {
    [SPK_A] = {.name = "values",
               .title = "values",
               .extents = SPK_EXTENTS_VALUES,
               .role = SPK_ROLE_IN,
               .place = PLACE(values),
               .may_be_static = true},
    [SPK_B] = {.name = "b", .title = "B", .extents = "k x n", .role = SPK_ROLE_IN, .place = PLACE(b)},
    SPK_PRODUCT_C(spk_spmm_args, "m x n"),
    SPK_PRODUCT_D(spk_spmm_args, "m x n", 1u << SPK_C | 1u << SPK_RESIDUAL),
    [SPK_BIAS] = {.name = "bias", .title = "bias", .extents = "1 x m, or 1 x n", .role = SPK_ROLE_IN, .place = PLACE(bias)},
    [SPK_RESIDUAL] = {.name = "residual", .title = "residual", .extents = "m x n", .role = SPK_ROLE_IN, .place = PLACE(residual)},
    [SPK_PREACT] = {.name = "preact", .title = "preact", .extents = "m x n", .role = SPK_ROLE_OUT, .place = PLACE(preact)},
    SPK_PRODUCT_SCALES(spk_spmm_args, SPK_PREACT + 1, a, b),
};

static const spk_scalar_row scalars[] = SPK_PRODUCT_SCALARS(spk_spmm_args);

static const spk_key_row key[] = {SPK_PRODUCT_KEY_FIRST,
                                  SPK_PRODUCT_KEY_BATCH,
                                  {.name = "m", .near = spk_key_m, .weight = 1},
                                  {.name = "k", .near = spk_key_k, .weight = 1},
                                  SPK_PRODUCT_KEY_BLOCKS,
                                  {.name = "n", .near = spk_key_n_class, .weight = 1, .token_group = 1},
                                  SPK_PRODUCT_KEY_LAST,
                                  {.name = NULL}};

const spk_op spk_op_spmm = {.id = SPK_SPMM,
                            .name = "spmm",
                            SPK_OP_STRUCTS(spk_spmm, spk_spmm_args),
                            .formula = "D = act(alpha op(A) B + beta C + bias) + residual, or times residual",
                            .sentence = "A{transposed} {m} x {k} {pattern} times B {k} x {n}",
                            SPK_OP_TABLES,
                            .scales = SPK_PREACT + 1,
                            .takes_pattern = SPK_PATTERN_NEEDED,
                            .read = read,
                            .write = write,
                            .device_defines = device_defines,
                            .fold = fold,
                            .fit = fit_operands,
                            .flops = flops,
                            .dense_flops = spk_product_dense_flops,
                            .touched = touched,
                            .tolerance = tolerance,
                            .free_size = free_size,
                            .hard_rows = spk_spmm_hard_rows,
                            .oracle = spk_spmm_oracle};
