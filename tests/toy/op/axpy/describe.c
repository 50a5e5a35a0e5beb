/* axpy: a caller's spk_axpy as a problem, and what follows from it. */
#include <float.h>

#include "op/axpy/axpy.h"
#include "op/axpy/operands.h"
#include "op/fields.h"
#include "op/key.h"
#include "op/read.h"

static void fit(spk_problem *p)
{
    for (int i = AXPY_X; i <= AXPY_D; i++) {
        p->operand[i].rows = p->m;
        p->operand[i].cols = p->n;
    }
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_axpy *a = given;
    const spk_given_array arrays[] = {{.ld_name = "ldx", .ld = a->ldx}, {.ld_name = "ldy", .ld = a->ldy}, {.ld_name = "ldd", .ld = a->ldd}};
    spk_dtype dtype;
    (void)pattern;
    SPK_TRY(spk_read_dtype("dtype", a->dtype, SPK_F32, &dtype));
    SPK_TRY(spk_read_size("m", a->m));
    SPK_TRY(spk_read_size("n", a->n));
    p->m = a->m;
    p->n = a->n;
    p->batch = 1;
    p->compute = dtype == SPK_F64 ? SPK_F64 : SPK_F32;
    fit(p);
    for (int i = AXPY_X; i <= AXPY_D; i++) {
        p->operand[i].dtype = dtype;
        SPK_TRY(spk_read_array(&arrays[i], 1, &p->operand[i]));
    }
    return SPK_OK;
}

static void write(const spk_problem *p, void *given)
{
    *(spk_axpy *)given =
        (spk_axpy){SPK_SIZED(spk_axpy),          .dtype = p->operand[AXPY_D].dtype, .m = p->m, .n = p->n, .ldx = p->operand[AXPY_X].ld,
                   .ldy = p->operand[AXPY_Y].ld, .ldd = p->operand[AXPY_D].ld};
}

static double flops(const spk_problem *p)
{
    return 2.0 * (double)p->m * (double)p->n;
}

/* Of lines far apart no more than the lines. */
static double touched(const spk_problem *p, int i)
{
    (void)i;
    return (double)p->m * (double)p->n;
}

/* A product and a sum are rounded, and then the result. */
static double tolerance(const spk_problem *p, int output)
{
    const spk_dtype dtype = p->operand[output].dtype;
    const double stored = dtype == SPK_F16 ? 0x1p-11 : dtype == SPK_BF16 ? 0x1p-8 : 0;
    return stored + 2 * (dtype == SPK_F64 ? DBL_EPSILON : FLT_EPSILON);
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
#define FIELDS_OF spk_axpy
#include "op/axpy/fields.def"
};

static const spk_size_row sizes[] = {
    {"m", SPK_SIZE_FIELD, offsetof(spk_problem, m), 2048, "rows of X, Y and D"},
    {"n", SPK_SIZE_FIELD, offsetof(spk_problem, n), 2048, "columns of X, Y and D"},
};

static const spk_operand_row operands[] = {
    [AXPY_X] = {.name = "x", .title = "X", .extents = "m x n", .role = SPK_ROLE_IN, .place = offsetof(spk_axpy_args, x)},
    [AXPY_Y] = {.name = "y", .title = "Y", .extents = "m x n", .role = SPK_ROLE_IN, .place = offsetof(spk_axpy_args, y)},
    [AXPY_D] =
        {.name = "d", .title = "D", .extents = "m x n", .role = SPK_ROLE_OUT, .may_be = 1u << AXPY_Y, .place = offsetof(spk_axpy_args, d)},
};

static const spk_scalar_row scalars[] = {[AXPY_ALPHA] = {"alpha", offsetof(spk_axpy_args, alpha), -1, 0.75, 1}};

static bool key_dtype(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->operand[AXPY_D].dtype));
}

static bool key_alignment(const spk_problem *p, char *text, size_t size)
{
    int64_t steps = 0;
    for (int i = AXPY_X; i <= AXPY_D; i++)
        steps |= spk_operand_steps(&p->operand[i]);
    return spk_key_whole(text, size, spk_key_alignment(steps));
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
                                  {.name = "al", .exact = key_alignment},
                                  {.name = "finite", .exact = spk_key_finite},
                                  {.name = "cache", .exact = spk_key_cache},
                                  {.name = "m", .near = key_m, .weight = 1},
                                  {.name = "n", .near = key_n, .weight = 1},
                                  {.name = NULL}};

const spk_op spk_op_axpy = {.id = SPK_AXPY,
                            .name = "axpy",
                            SPK_OP_STRUCTS(spk_axpy, spk_axpy_args),
                            .formula = "D = alpha X + Y",
                            .sentence = "alpha X + Y, {m} x {n}",
                            SPK_OP_TABLES,
                            .read = read,
                            .write = write,
                            .fit = fit,
                            .flops = flops,
                            .dense_flops = flops,
                            .touched = touched,
                            .tolerance = tolerance,
                            .free_size = free_size,
                            .other_size = other_size,
                            .oracle = spk_axpy_oracle};
