/* rowsum: a caller's spk_rowsum as a problem, and what follows from it. */
#include <float.h>
#include <math.h>

#include "op/fields.h"
#include "op/key.h"
#include "op/read.h"
#include "op/rowsum/operands.h"
#include "op/rowsum/rowsum.h"

static void fit(spk_problem *p)
{
    for (int i = ROWSUM_X; i <= ROWSUM_S; i++) {
        p->operand[i].rows = p->m;
        p->operand[i].cols = i == ROWSUM_S ? 1 : p->n;
    }
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_rowsum *r = given;
    spk_operand *x = &p->operand[ROWSUM_X], *d = &p->operand[ROWSUM_D], *s = &p->operand[ROWSUM_S];
    (void)pattern;
    SPK_TRY(spk_read_enum("reserved", r->reserved, 0));
    SPK_TRY(spk_read_dtype("dtype", r->dtype, SPK_F32, &x->dtype));
    SPK_TRY(spk_read_size("m", r->m));
    SPK_TRY(spk_read_size("n", r->n));
    SPK_TRY(spk_read_batch(r->batch, p));
    p->m = r->m;
    p->n = r->n;
    p->compute = x->dtype == SPK_F64 ? SPK_F64 : SPK_F32;
    d->dtype = x->dtype;
    d->layout = r->layout_d;
    s->dtype = p->compute;
    s->layout = SPK_COL_MAJOR; /* the sums of an item lie side by side */
    SPK_TRY(spk_read_heads("heads", r->heads, x));
    d->heads = s->heads = x->heads;
    fit(p);
    SPK_TRY(spk_read_array_of_heads(&(spk_given_array){"ldx", "stride_x", r->ldx, r->stride_x, false}, "head_stride_x", r->head_stride_x,
                                    p->batch, x));
    SPK_TRY(spk_read_array_of_heads(&(spk_given_array){"ldd", "stride_d", r->ldd, r->stride_d, true}, "head_stride_d", r->head_stride_d,
                                    p->batch, d));
    return spk_read_array_of_heads(&(spk_given_array){"lds", "stride_s", 0, r->stride_s, true}, "head_stride_s", r->head_stride_s, p->batch,
                                   s);
}

static void write(const spk_problem *p, void *given)
{
    const spk_operand *x = &p->operand[ROWSUM_X], *d = &p->operand[ROWSUM_D];
    *(spk_rowsum *)given = (spk_rowsum){SPK_SIZED(spk_rowsum),
                                        .dtype = x->dtype,
                                        .m = p->m,
                                        .n = p->n,
                                        .layout_d = d->layout,
                                        .ldx = x->ld,
                                        .ldd = d->ld,
                                        .batch = p->batch,
                                        .stride_x = spk_given_stride(p, x),
                                        .stride_d = d->stride,
                                        .stride_s = p->operand[ROWSUM_S].stride,
                                        .heads = x->heads,
                                        .head_stride_x = x->head_stride,
                                        .head_stride_d = d->head_stride,
                                        .head_stride_s = p->operand[ROWSUM_S].head_stride};
}

static double flops(const spk_problem *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)spk_operand_heads(&p->operand[ROWSUM_X]);
}

/* D is one product, which is rounded; S a sum of n. */
static double tolerance(const spk_problem *p, int output)
{
    const spk_dtype dtype = p->operand[ROWSUM_D].dtype;
    const double eps = p->compute == SPK_F64 ? DBL_EPSILON : FLT_EPSILON, stored = dtype == SPK_F16    ? 0x1p-11
                                                                                   : dtype == SPK_BF16 ? 0x1p-8
                                                                                                       : 0;
    return output == ROWSUM_D ? stored + 2 * eps : eps * (8 + 2 * sqrt((double)p->n));
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
#define FIELDS_OF spk_rowsum
#include "op/rowsum/fields.def"
};

static const spk_size_row sizes[] = {
    {"m", SPK_SIZE_FIELD, offsetof(spk_problem, m), 2048, "rows of X and D"},
    {"n", SPK_SIZE_FIELD, offsetof(spk_problem, n), 2048, "columns of X and D"},
};

#define PLACE(name) offsetof(spk_rowsum_args, name)
static const spk_operand_row operands[] = {
    [ROWSUM_X] = {.name = "x", .title = "X", .extents = "m x n", .role = SPK_ROLE_IN, .place = PLACE(x)},
    [ROWSUM_D] = {.name = "d", .title = "D", .extents = "m x n", .role = SPK_ROLE_OUT, .place = PLACE(d)},
    [ROWSUM_S] = {.name = "s", .title = "S", .extents = "m x 1", .role = SPK_ROLE_OUT, .place = PLACE(s)},
};

static const spk_scalar_row scalars[] = {{"alpha", PLACE(alpha), -1, 0.75, 1}};

static bool key_dtype(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->operand[ROWSUM_X].dtype));
}

static bool key_layout(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, p->operand[ROWSUM_D].layout == SPK_ROW_MAJOR ? "r" : "c");
}

static bool key_heads(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(spk_operand_heads(&p->operand[ROWSUM_X]));
    return true;
}

static bool key_m(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->m);
    return true;
}

static bool key_n(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->n);
    return true;
}

static const spk_key_row key[] = {{.name = "t", .exact = key_dtype},
                                  {.name = "ld", .exact = key_layout},
                                  {.name = "batch", .exact = spk_key_batch},
                                  {.name = "finite", .exact = spk_key_finite},
                                  {.name = "cache", .exact = spk_key_cache},
                                  {.name = "heads", .near = key_heads, .weight = 1},
                                  {.name = "m", .near = key_m, .weight = 1},
                                  {.name = "n", .near = key_n, .weight = 1},
                                  {.name = "items", .near = spk_key_items, .weight = 1},
                                  {.name = NULL}};

const spk_op spk_op_rowsum = {.id = SPK_ROWSUM,
                              .name = "rowsum",
                              SPK_OP_STRUCTS(spk_rowsum, spk_rowsum_args),
                              .formula = "D = alpha X, S = sums of the rows of D",
                              .sentence = "alpha X and its sums, {m} x {n}",
                              SPK_OP_TABLES,
                              .read = read,
                              .write = write,
                              .fit = fit,
                              .flops = flops,
                              .dense_flops = flops,
                              .tolerance = tolerance,
                              .free_size = free_size,
                              .other_size = other_size,
                              .oracle = spk_rowsum_oracle};
