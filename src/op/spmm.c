/* SpMM as a problem: a caller's spk_spmm checked, its defaults filled in; operand sizes, FLOPs, bytes, tolerance; the check of run arguments. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "op/problem.h"

static spk_status check_enum(const char *name, int value, int last)
{
    if (value < 0 || value > last)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: the values are 0..%d", name, value, last);
    return SPK_OK;
}

static spk_status check_enums(const spk_spmm *spmm)
{
    SPK_TRY(check_enum("trans_a", (int)spmm->trans_a, SPK_TRANS));
    SPK_TRY(check_enum("block_layout", (int)spmm->block_layout, SPK_COL_MAJOR));
    SPK_TRY(check_enum("layout_b", (int)spmm->layout_b, SPK_COL_MAJOR));
    SPK_TRY(check_enum("layout_d", (int)spmm->layout_d, SPK_COL_MAJOR));
    SPK_TRY(check_enum("bias", (int)spmm->bias, SPK_BIAS_PER_COL));
    SPK_TRY(check_enum("activation", (int)spmm->activation, SPK_ACT_SILU));
    SPK_TRY(check_enum("use_c", spmm->use_c, 1));
    SPK_TRY(check_enum("use_residual", spmm->use_residual, 1));
    return check_enum("keep_preact", spmm->keep_preact, 1);
}

static spk_status check_dtypes(const spk_spmm *spmm, spk_problem *problem)
{
    problem->dtype_a = spmm->dtype_a != SPK_DTYPE_DEFAULT ? spmm->dtype_a : SPK_F32;
    problem->dtype_b = spmm->dtype_b != SPK_DTYPE_DEFAULT ? spmm->dtype_b : problem->dtype_a;
    problem->dtype_d = spmm->dtype_d != SPK_DTYPE_DEFAULT ? spmm->dtype_d : problem->dtype_b;
    spk_dtype natural = problem->dtype_a == SPK_F64 ? SPK_F64 : SPK_F32;
    problem->compute = spmm->compute != SPK_DTYPE_DEFAULT ? spmm->compute : natural;
    const struct {
        const char *name;
        spk_dtype dtype;
    } all[] = {{"dtype_a", problem->dtype_a}, {"dtype_b", problem->dtype_b}, {"dtype_d", problem->dtype_d}, {"compute", problem->compute}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (spk_dtype_name(all[i].dtype) == NULL)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %d is not a dtype", all[i].name, (int)all[i].dtype);
    spk_dtype a = problem->dtype_a;
    bool half = a == SPK_F16 || a == SPK_BF16;
    if (!half && a != SPK_F32 && a != SPK_F64)
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype_a = %s: this version multiplies f32, f64, f16 and bf16", spk_dtype_name(a));
    if (problem->dtype_b != a)
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype_b = %s with dtype_a = %s: this version wants one dtype for both", spk_dtype_name(problem->dtype_b),
                        spk_dtype_name(a));
    if (problem->dtype_d != a && !(half && problem->dtype_d == SPK_F32))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype_d = %s with dtype_a = %s: this version gives %s%s", spk_dtype_name(problem->dtype_d), spk_dtype_name(a),
                        spk_dtype_name(a), half ? " or f32" : "");
    if (problem->compute != natural && !(a == SPK_F32 && problem->compute == SPK_TF32))
        return spk_fail(SPK_ERR_UNSUPPORTED, "compute = %s with dtype_a = %s: this version accumulates in %s%s", spk_dtype_name(problem->compute),
                        spk_dtype_name(a), spk_dtype_name(natural), a == SPK_F32 ? ", or multiplies tf32" : "");
    return SPK_OK;
}

/* The leading dimension of a rows x cols array: given, or tight. The whole array must stay below 2^62 bytes. */
static spk_status check_ld(const char *name, int64_t given, spk_layout layout, int64_t rows, int64_t cols, size_t element_bytes, int64_t *ld)
{
    int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols;
    const char *what = layout == SPK_ROW_MAJOR ? "row" : "column";
    int64_t use = given != 0 ? given : (length > 0 ? length : 1);
    if (use < length || use < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: a %s has %lld elements", name, (long long)given, what, (long long)length);
    if (lines > 0 && use > (INT64_C(1) << 62) / (int64_t)element_bytes / lines)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld %ss exceed 2^62 bytes", name, (long long)use, (long long)lines, what);
    *ld = use;
    return SPK_OK;
}

spk_status spk_problem_from_spmm(spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *options, spk_problem *problem)
{
    spk_spmm spmm;
    SPK_TRY(spk_struct_read(&spmm, sizeof spmm, theirs, "spk_spmm"));
    spk_problem made = {.operation = SPK_SPMM, .pattern = pattern, .batch = 1};
    SPK_TRY(check_enums(&spmm));
    SPK_TRY(check_dtypes(&spmm, &made));
    if (spmm.n < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "n = %lld: it cannot be negative", (long long)spmm.n);
    if (spmm.n > INT64_C(1) << 40)
        return spk_fail(SPK_ERR_ARGUMENT, "n = %lld: the limit is 2^40", (long long)spmm.n);
    if (spmm.batch < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld: it cannot be negative", (long long)spmm.batch);
    if (spmm.batch > 1)
        return spk_fail(SPK_ERR_UNSUPPORTED, "batch = %lld: this version multiplies one at a time", (long long)spmm.batch);
    made.n = spmm.n;
    made.trans_a = spmm.trans_a;
    made.m = spmm.trans_a == SPK_TRANS ? pattern->cols : pattern->rows;
    made.k = spmm.trans_a == SPK_TRANS ? pattern->rows : pattern->cols;
    made.block_layout = spmm.block_layout;
    made.layout_b = spmm.layout_b;
    made.layout_d = spmm.layout_d;
    made.epilogue = (spk_epilogue){.use_c = spmm.use_c != 0,
                                   .use_residual = spmm.use_residual != 0,
                                   .keep_preact = spmm.keep_preact != 0,
                                   .bias = spmm.bias,
                                   .activation = spmm.activation};
    size_t bytes_b = spk_dtype_bytes(made.dtype_b), bytes_d = spk_dtype_bytes(made.dtype_d);
    SPK_TRY(check_ld("ldb", spmm.ldb, made.layout_b, made.k, made.n, bytes_b, &made.ldb));
    SPK_TRY(check_ld("ldc", spmm.ldc, made.layout_d, made.m, made.n, bytes_d, &made.ldc));
    SPK_TRY(check_ld("ldd", spmm.ldd, made.layout_d, made.m, made.n, bytes_d, &made.ldd));
    SPK_TRY(check_ld("ldr", spmm.ldr, made.layout_d, made.m, made.n, bytes_d, &made.ldr));
    SPK_TRY(check_ld("ldp", spmm.ldp, made.layout_d, made.m, made.n, bytes_d, &made.ldp));
    if (options != NULL) {
        made.assume_finite = options->assume_finite != 0;
        made.static_values = options->static_values != 0;
        made.cache = options->cache;
    }
    *problem = made;
    return SPK_OK;
}

double spk_problem_flops(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    return 2.0 * (double)p->nnzb * p->block_rows * p->block_cols * (double)problem->n * (double)problem->batch;
}

double spk_problem_dense_flops(const spk_problem *problem)
{
    return 2.0 * (double)problem->m * (double)problem->k * (double)problem->n * (double)problem->batch;
}

double spk_problem_bytes(const spk_problem *problem)
{
    const spk_pattern *pattern = problem->pattern;
    double depth = (double)(problem->trans_a == SPK_TRANS ? pattern->block_rows : pattern->block_cols), bytes = 0;
    for (int operand = 0; operand < SPK_OPERAND_COUNT; operand++) {
        double elements = (double)spk_problem_operand_elements(problem, (spk_operand)operand);
        if (operand == SPK_OPERAND_B) /* no more of it than the stored blocks ask for */
            elements = fmin(elements, (double)pattern->nnzb * depth * (double)problem->n);
        bytes += elements * (double)spk_dtype_bytes(spk_problem_operand_dtype(problem, (spk_operand)operand));
    }
    return bytes;
}

static int64_t array_elements(spk_layout layout, int64_t rows, int64_t cols, int64_t ld)
{
    int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols;
    return length == 0 || lines == 0 ? 0 : ld * (lines - 1) + length;
}

int64_t spk_problem_operand_elements(const spk_problem *problem, spk_operand operand)
{
    const spk_problem *p = problem;
    const spk_epilogue *e = &p->epilogue;
    switch (operand) {
    case SPK_OPERAND_A:
        return p->pattern->nnzb * p->pattern->block_rows * p->pattern->block_cols;
    case SPK_OPERAND_B:
        return array_elements(p->layout_b, p->k, p->n, p->ldb);
    case SPK_OPERAND_C:
        return e->use_c ? array_elements(p->layout_d, p->m, p->n, p->ldc) : 0;
    case SPK_OPERAND_D:
        return array_elements(p->layout_d, p->m, p->n, p->ldd);
    case SPK_OPERAND_BIAS:
        return e->bias == SPK_BIAS_PER_ROW ? p->m : e->bias == SPK_BIAS_PER_COL ? p->n : 0;
    case SPK_OPERAND_RESIDUAL:
        return e->use_residual ? array_elements(p->layout_d, p->m, p->n, p->ldr) : 0;
    case SPK_OPERAND_PREACT:
        return e->keep_preact ? array_elements(p->layout_d, p->m, p->n, p->ldp) : 0;
    case SPK_OPERAND_COUNT:
        break;
    }
    return 0;
}

spk_dtype spk_problem_operand_dtype(const spk_problem *problem, spk_operand operand)
{
    return operand == SPK_OPERAND_A ? problem->dtype_a : operand == SPK_OPERAND_B ? problem->dtype_b : problem->dtype_d;
}

void spk_epilogue_text(const spk_epilogue *epilogue, char *buffer, size_t size)
{
    static const char *const activations[] = {"", "+relu", "+gelu_erf", "+gelu_tanh", "+silu"};
    static const char *const biases[] = {"", "+bias_row", "+bias_col"};
    char text[96];
    snprintf(text, sizeof text, "%s%s%s%s%s", epilogue->use_c ? "+beta" : "", biases[epilogue->bias], activations[epilogue->activation],
             epilogue->use_residual ? "+residual" : "", epilogue->keep_preact ? "+preact" : "");
    snprintf(buffer, size, "%s", text[0] == '+' ? text + 1 : "none");
}

double spk_problem_tolerance(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    double terms = (double)problem->k;
    if (problem->trans_a == SPK_NO_TRANS)
        terms = fmin(terms, (double)p->features.longest_row * p->block_cols);
    double eps = problem->compute == SPK_F64 ? DBL_EPSILON : FLT_EPSILON;
    double inputs = problem->compute == SPK_TF32 ? 0x1p-9 : 0; /* two factors with ten bits behind the point, which hardware may cut off */
    double output = problem->dtype_d == SPK_F16 ? 0x1p-11 : problem->dtype_d == SPK_BF16 ? 0x1p-8 : 0; /* |D| <= magnitude */
    return inputs + output + eps * (8.0 + 2.0 * sqrt(terms));
}

typedef struct operand_range {
    const char *name;
    const void *start;
    size_t bytes;
    int64_t ld;
} operand_range;

const char *spk_problem_operand_name(const spk_problem *problem, spk_operand operand)
{
    static const char *const names[] = {"values", "b", "c", "d", "bias", "residual", "preact"};
    (void)problem;
    return names[operand];
}

static spk_status check_pointer(const spk_problem *problem, spk_operand operand, operand_range *range)
{
    int64_t elements = spk_problem_operand_elements(problem, operand);
    size_t element_bytes = spk_dtype_bytes(spk_problem_operand_dtype(problem, operand));
    range->bytes = (size_t)elements * element_bytes;
    if (elements == 0)
        return SPK_OK;
    if (range->start == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s is NULL: %lld elements of %s are needed", range->name, (long long)elements,
                        spk_dtype_name(spk_problem_operand_dtype(problem, operand)));
    if ((uintptr_t)range->start % element_bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "args.%s = %p is not aligned to its elements of %zu bytes", range->name, range->start, element_bytes);
    return SPK_OK;
}

static bool overlap(const operand_range *a, const operand_range *b)
{
    return a->bytes > 0 && b->bytes > 0 && (uintptr_t)a->start < (uintptr_t)b->start + b->bytes && (uintptr_t)b->start < (uintptr_t)a->start + a->bytes;
}

static void operand_ranges(const spk_problem *problem, const spk_args *args, operand_range all[SPK_OPERAND_COUNT])
{
    const void *const starts[] = {args->a, args->b, args->c, args->d, args->bias, args->residual, args->preact};
    const int64_t lds[] = {0, problem->ldb, problem->ldc, problem->ldd, 0, problem->ldr, problem->ldp};
    for (int i = 0; i < SPK_OPERAND_COUNT; i++)
        all[i] = (operand_range){spk_problem_operand_name(problem, (spk_operand)i), starts[i], 0, lds[i]};
}

static spk_status check_inputs(const spk_problem *problem, const spk_args *args, operand_range all[SPK_OPERAND_COUNT])
{
    if (!isfinite(args->alpha))
        return spk_fail(SPK_ERR_ARGUMENT, "args.alpha = %g: it must be finite", args->alpha);
    if (problem->epilogue.use_c && !isfinite(args->beta))
        return spk_fail(SPK_ERR_ARGUMENT, "args.beta = %g: it must be finite", args->beta);
    for (int i = 0; i < SPK_OPERAND_COUNT; i++)
        if (i != SPK_OPERAND_D && i != SPK_OPERAND_PREACT && !(i == SPK_OPERAND_C && args->beta == 0)) /* beta = 0 never reads c */
            SPK_TRY(check_pointer(problem, (spk_operand)i, &all[i]));
    return SPK_OK;
}

spk_status spk_problem_check_inputs(const spk_problem *problem, const spk_args *args)
{
    operand_range all[SPK_OPERAND_COUNT];
    operand_ranges(problem, args, all);
    return check_inputs(problem, args, all);
}

spk_status spk_problem_check_args(const spk_problem *problem, const spk_args *args)
{
    operand_range all[SPK_OPERAND_COUNT];
    operand_ranges(problem, args, all);
    SPK_TRY(check_inputs(problem, args, all));
    static const spk_operand outputs[] = {SPK_OPERAND_D, SPK_OPERAND_PREACT};
    for (int i = 0; i < 2; i++)
        SPK_TRY(check_pointer(problem, outputs[i], &all[outputs[i]]));
    for (int i = 0; i < 2; i++)
        for (int in = 0; in < SPK_OPERAND_COUNT; in++) {
            const operand_range *a = &all[outputs[i]], *b = &all[in];
            bool may_share = outputs[i] == SPK_OPERAND_D && (in == SPK_OPERAND_C || in == SPK_OPERAND_RESIDUAL);
            if (a == b || (may_share && a->start == b->start && a->ld == b->ld) || !overlap(a, b))
                continue;
            return spk_fail(SPK_ERR_ARGUMENT, "args.%s [%p, %zu bytes] overlaps args.%s [%p, %zu bytes]", a->name, a->start, a->bytes, b->name, b->start, b->bytes);
        }
    return SPK_OK;
}
