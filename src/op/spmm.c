/* SpMM as a problem: a caller's spk_spmm checked, its defaults filled in. */
#include "op/desc.h"

static spk_status check_enums(const spk_spmm *spmm)
{
    SPK_TRY(spk_desc_enum("trans_a", (int)spmm->trans_a, SPK_TRANS));
    SPK_TRY(spk_desc_enum("block_layout", (int)spmm->block_layout, SPK_COL_MAJOR));
    SPK_TRY(spk_desc_enum("layout_b", (int)spmm->layout_b, SPK_COL_MAJOR));
    SPK_TRY(spk_desc_enum("layout_d", (int)spmm->layout_d, SPK_COL_MAJOR));
    SPK_TRY(spk_desc_enum("bias", (int)spmm->bias, SPK_BIAS_PER_COL));
    SPK_TRY(spk_desc_enum("activation", (int)spmm->activation, SPK_ACT_SILU));
    SPK_TRY(spk_desc_enum("use_c", spmm->use_c, 1));
    SPK_TRY(spk_desc_enum("residual", (int)spmm->residual, SPK_RESIDUAL_MULTIPLY));
    return spk_desc_enum("keep_preact", spmm->keep_preact, 1);
}

/* The step from one item's values to the next: nothing can be tight here, as 0 is one A for all. */
static spk_status read_stride_a(int64_t given, spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    const int64_t values = p->nnzb * p->block_rows * p->block_cols, most = (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(problem->dtype_a);
    if (given < SPK_STRIDE_SHARED)
        return spk_fail(SPK_ERR_ARGUMENT, "stride_a = %lld: it cannot be negative", (long long)given);
    problem->stride_a = problem->batch > 1 && given > 0 ? given : 0;
    if (problem->batch > 1 && problem->stride_a > (most - values) / (problem->batch - 1))
        return spk_fail(SPK_ERR_ARGUMENT, "stride_a = %lld: %lld items exceed 2^62 bytes", (long long)given, (long long)problem->batch);
    return SPK_OK;
}

static spk_status read_arrays(const spk_spmm *spmm, spk_problem *made)
{
    spk_desc_array b = {.ld_name = "ldb", .stride_name = "stride_b", .ld = spmm->ldb, .stride = spmm->stride_b, .layout = made->layout_b};
    b.rows = made->k;
    b.cols = made->n;
    b.dtype = made->dtype_b;
    SPK_TRY(read_stride_a(spmm->stride_a, made));
    SPK_TRY(spk_desc_array_read(&b, made->batch, &made->ldb, &made->stride_b));
    const struct {
        const char *ld_name, *stride_name;
        int64_t ld_given, stride_given, *ld, *stride;
        bool output;
    } like_d[] = {{"ldc", "stride_c", spmm->ldc, spmm->stride_c, &made->ldc, &made->stride_c, false},
                  {"ldd", "stride_d", spmm->ldd, spmm->stride_d, &made->ldd, &made->stride_d, true},
                  {"ldr", "stride_r", spmm->ldr, spmm->stride_r, &made->ldr, &made->stride_r, false},
                  {"ldp", "stride_p", spmm->ldp, spmm->stride_p, &made->ldp, &made->stride_p, true}};
    for (size_t i = 0; i < sizeof like_d / sizeof like_d[0]; i++) {
        const spk_desc_array array = {.ld_name = like_d[i].ld_name,
                                      .stride_name = like_d[i].stride_name,
                                      .ld = like_d[i].ld_given,
                                      .stride = like_d[i].stride_given,
                                      .layout = made->layout_d,
                                      .rows = made->m,
                                      .cols = made->n,
                                      .dtype = made->dtype_d,
                                      .output = like_d[i].output};
        SPK_TRY(spk_desc_array_read(&array, made->batch, like_d[i].ld, like_d[i].stride));
    }
    return SPK_OK;
}

/* Whether the items of an array follow one another as the columns of one array do. */
static bool goes_on(const spk_problem *p, spk_operand operand, spk_layout layout, int64_t ld)
{
    const int64_t stride = spk_problem_operand_stride(p, operand);
    if (spk_problem_item_elements(p, operand) == 0)
        return true;
    return layout == SPK_ROW_MAJOR ? stride == p->n && ld / p->n >= p->batch : stride == ld * p->n;
}

void spk_problem_fold(spk_problem *problem)
{
    const spk_problem *p = problem;
    if (p->operation != SPK_SPMM || p->batch == 1 || p->stride_a != 0 || p->n == 0 || p->epilogue.bias == SPK_BIAS_PER_COL ||
        p->n > (INT64_C(1) << 40) / p->batch)
        return;
    if (!goes_on(p, SPK_OPERAND_B, p->layout_b, p->ldb) || !goes_on(p, SPK_OPERAND_C, p->layout_d, p->ldc) ||
        !goes_on(p, SPK_OPERAND_D, p->layout_d, p->ldd) || !goes_on(p, SPK_OPERAND_RESIDUAL, p->layout_d, p->ldr) ||
        !goes_on(p, SPK_OPERAND_PREACT, p->layout_d, p->ldp))
        return;
    const int64_t n = p->n * p->batch;
    *problem = spk_problem_item(p);
    problem->n = n;
}

spk_status spk_problem_from_spmm(spk_pattern *pattern, const spk_spmm *theirs, const spk_tune_options *options, spk_problem *problem)
{
    spk_spmm spmm;
    SPK_TRY(spk_struct_read(&spmm, sizeof spmm, theirs, "spk_spmm"));
    spk_problem made = {.operation = SPK_SPMM, .pattern = pattern};
    SPK_TRY(check_enums(&spmm));
    SPK_TRY(spk_desc_dtypes_read(&(spk_desc_dtypes){"dtype_a", "dtype_b", spmm.dtype_a, spmm.dtype_b, spmm.dtype_d, spmm.compute}, &made));
    SPK_TRY(spk_desc_size("n", spmm.n));
    SPK_TRY(spk_desc_batch(spmm.batch, &made));
    made.n = spmm.n;
    made.trans_a = spmm.trans_a;
    made.m = spmm.trans_a == SPK_TRANS ? pattern->cols : pattern->rows;
    made.k = spmm.trans_a == SPK_TRANS ? pattern->rows : pattern->cols;
    made.block_layout = spmm.block_layout;
    made.layout_b = spmm.layout_b;
    made.layout_d = spmm.layout_d;
    made.epilogue = (spk_epilogue){.use_c = spmm.use_c != 0,
                                   .keep_preact = spmm.keep_preact != 0,
                                   .residual = spmm.residual,
                                   .bias = spmm.bias,
                                   .activation = spmm.activation};
    SPK_TRY(read_arrays(&spmm, &made));
    spk_desc_options(options, &made);
    *problem = made;
    return SPK_OK;
}
