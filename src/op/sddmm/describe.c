/* SDDMM: a caller's spk_sddmm as a problem, and what follows from it. */
#include <math.h>

#include "op/fields.h"
#include "op/read.h"
#include "op/sddmm/sddmm.h"

static void fit_operands(spk_problem *p)
{
    p->m = p->pattern->rows;
    p->n = p->pattern->cols;
    p->a.rows = p->m;
    p->a.cols = p->b.rows = p->k;
    p->b.cols = p->n;
    spk_values_fit(p->pattern, p->block_layout, &p->d);
    spk_product_fit(p, p->d.rows, p->d.cols);
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_sddmm *s = given;
    spk_operand c;
    SPK_TRY(spk_read_dtypes(&(spk_given_dtypes){"dtype_x", "dtype_y", s->dtype_x, s->dtype_y, s->dtype_d, s->compute}, p));
    SPK_TRY(spk_read_size("k", s->k));
    SPK_TRY(spk_read_batch(s->batch, p));
    p->pattern = pattern;
    p->k = s->k;
    p->block_layout = s->block_layout;
    p->a.layout = s->layout_x;
    p->b.layout = s->layout_y;
    p->assume_finite = s->assume_finite != 0;
    p->epilogue.use_c = s->use_c != 0;
    fit_operands(p);
    SPK_TRY(spk_read_array(&(spk_given_array){"ldx", "stride_x", s->ldx, s->stride_x, false}, p->batch, &p->a));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldy", "stride_y", s->ldy, s->stride_y, false}, p->batch, &p->b));
    SPK_TRY(spk_read_array(&(spk_given_array){"ldd", "stride_d", 0, s->stride_d, true}, p->batch, &p->d));
    c = p->d;
    SPK_TRY(spk_read_array(&(spk_given_array){"ldc", "stride_c", 0, s->stride_c, false}, p->batch, &c));
    if (s->use_c != 0)
        p->c = c;
    SPK_TRY(spk_read_scale("scale_x", 0, s->scale_x, p));
    SPK_TRY(spk_read_scale("scale_y", 1, s->scale_y, p));
    fit_operands(p);
    return SPK_OK;
}

static void write(const spk_problem *p, void *given)
{
    *(spk_sddmm *)given = (spk_sddmm){SPK_SIZED(spk_sddmm),
                                      .assume_finite = p->assume_finite,
                                      .k = p->k,
                                      .dtype_x = p->a.dtype,
                                      .dtype_y = p->b.dtype,
                                      .dtype_d = p->d.dtype,
                                      .compute = p->compute,
                                      .block_layout = p->block_layout,
                                      .layout_x = p->a.layout,
                                      .layout_y = p->b.layout,
                                      .ldx = p->a.ld,
                                      .ldy = p->b.ld,
                                      .use_c = p->epilogue.use_c,
                                      .batch = p->batch,
                                      .stride_x = spk_given_stride(p, &p->a),
                                      .stride_y = spk_given_stride(p, &p->b),
                                      .stride_c = spk_given_stride(p, &p->c),
                                      .stride_d = p->d.stride,
                                      .scale_x = spk_given_scale(p, 0),
                                      .scale_y = spk_given_scale(p, 1)};
}

static double flops(const spk_problem *p)
{
    return 2.0 * (double)spk_operand_item_elements(&p->d) * (double)p->k;
}

/* Of X and Y no more than the stored blocks ask for. */
static double touched(const spk_problem *p, int i)
{
    const spk_pattern *pattern = p->pattern;
    return i <= SPK_B ? (double)pattern->nnzb * (i == SPK_A ? pattern->block_rows : pattern->block_cols) * (double)p->k : INFINITY;
}

static double tolerance(const spk_problem *p, int output)
{
    (void)output;
    return spk_product_tolerance(p, (double)p->k);
}

static int device_defines(const spk_problem *p, char *text, size_t size)
{
    return spk_product_defines(p, p->block_layout, p->a.layout == SPK_ROW_MAJOR, text, size);
}

static int64_t *free_size(spk_problem *p)
{
    return &p->k;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_sddmm
#include "op/sddmm/fields.def"
};

static const spk_size_row sizes[] = {
    {"m", SPK_SIZE_PATTERN_ROWS, offsetof(spk_problem, m), 2048, "rows of X and of the pattern"},
    {"k", SPK_SIZE_FIELD, offsetof(spk_problem, k), 512, "columns of X, rows of Y"},
    {"n", SPK_SIZE_PATTERN_COLS, offsetof(spk_problem, n), 2048, "columns of Y and of the pattern"},
};

static const spk_operand_row operands[] = {
    [SPK_A] = {.name = "x", .title = "X", .extents = "m x k", .role = SPK_ROLE_IN, .place = offsetof(spk_sddmm_args, x)},
    [SPK_B] = {.name = "y", .title = "Y", .extents = "k x n", .role = SPK_ROLE_IN, .place = offsetof(spk_sddmm_args, y)},
    SPK_PRODUCT_C(spk_sddmm_args, SPK_EXTENTS_VALUES),
    SPK_PRODUCT_D(spk_sddmm_args, SPK_EXTENTS_VALUES, 1u << SPK_C),
    SPK_PRODUCT_SCALES(spk_sddmm_args, SPK_D + 1, x, y),
};

static const spk_scalar_row scalars[] = SPK_PRODUCT_SCALARS(spk_sddmm_args);

static const spk_key_row key[] = {SPK_PRODUCT_KEY_FIRST,
                                  {.name = "la", .exact = spk_key_layout_a, .token_group = 1},
                                  {.name = "aa", .exact = spk_key_alignment_a, .token_group = 1},
                                  SPK_PRODUCT_KEY_BATCH,
                                  {.name = "m", .near = spk_key_m, .weight = 1},
                                  {.name = "k", .near = spk_key_k_class, .weight = 1, .token_group = 1},
                                  SPK_PRODUCT_KEY_BLOCKS,
                                  {.name = "n", .near = spk_key_n, .weight = 1},
                                  SPK_PRODUCT_KEY_LAST,
                                  {.name = NULL}};

const spk_op spk_op_sddmm = {.id = SPK_SDDMM,
                             .name = "sddmm",
                             SPK_OP_STRUCTS(spk_sddmm, spk_sddmm_args),
                             .formula = "D = alpha (X Y at the pattern's blocks) + beta C",
                             .sentence = "X {m} x {k} times Y {k} x {n} at the blocks of a pattern {pattern}",
                             SPK_OP_TABLES,
                             .scales = SPK_D + 1,
                             .takes_pattern = SPK_PATTERN_NEEDED,
                             .read = read,
                             .write = write,
                             .device_defines = device_defines,
                             .fit = fit_operands,
                             .flops = flops,
                             .dense_flops = spk_product_dense_flops,
                             .touched = touched,
                             .tolerance = tolerance,
                             .free_size = free_size,
                             .hard_rows = spk_sddmm_hard_rows,
                             .oracle = spk_sddmm_oracle};
