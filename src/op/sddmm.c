/* SDDMM as a problem: a caller's spk_sddmm checked, its defaults filled in. */
#include "op/desc.h"

static spk_status check_enums(const spk_sddmm *sddmm)
{
    SPK_TRY(spk_desc_enum("block_layout", (int)sddmm->block_layout, SPK_COL_MAJOR));
    SPK_TRY(spk_desc_enum("layout_x", (int)sddmm->layout_x, SPK_COL_MAJOR));
    SPK_TRY(spk_desc_enum("layout_y", (int)sddmm->layout_y, SPK_COL_MAJOR));
    return spk_desc_enum("use_c", sddmm->use_c, 1);
}

static spk_status read_arrays(const spk_sddmm *sddmm, spk_problem *made)
{
    const spk_desc_array x = {"ldx", "stride_x", sddmm->ldx, sddmm->stride_x, made->layout_a, made->m, made->k, made->dtype_a, false};
    const spk_desc_array y = {"ldy", "stride_y", sddmm->ldy, sddmm->stride_y, made->layout_b, made->k, made->n, made->dtype_b, false};
    spk_desc_array values = {
        "ldd", "stride_d", 0, sddmm->stride_d, SPK_ROW_MAJOR, spk_problem_d_rows(made), spk_problem_d_cols(made), made->dtype_d, true};
    SPK_TRY(spk_desc_array_read(&x, made->batch, &made->lda, &made->stride_a));
    SPK_TRY(spk_desc_array_read(&y, made->batch, &made->ldb, &made->stride_b));
    SPK_TRY(spk_desc_array_read(&values, made->batch, &made->ldd, &made->stride_d));
    values.stride_name = "stride_c";
    values.stride = sddmm->stride_c;
    values.output = false;
    return spk_desc_array_read(&values, made->batch, &made->ldc, &made->stride_c);
}

spk_status spk_problem_from_sddmm(spk_pattern *pattern, const spk_sddmm *theirs, const spk_tune_options *options, spk_problem *problem)
{
    spk_sddmm sddmm;
    SPK_TRY(spk_struct_read(&sddmm, sizeof sddmm, theirs, "spk_sddmm"));
    spk_problem made = {
        .operation = SPK_SDDMM, .pattern = pattern, .m = pattern->rows, .n = pattern->cols, .k = sddmm.k, .ldr = 1, .ldp = 1};
    SPK_TRY(check_enums(&sddmm));
    SPK_TRY(
        spk_desc_dtypes_read(&(spk_desc_dtypes){"dtype_x", "dtype_y", sddmm.dtype_x, sddmm.dtype_y, sddmm.dtype_d, sddmm.compute}, &made));
    SPK_TRY(spk_desc_size("k", sddmm.k));
    SPK_TRY(spk_desc_batch(sddmm.batch, &made));
    made.block_layout = sddmm.block_layout;
    made.layout_a = sddmm.layout_x;
    made.layout_b = sddmm.layout_y;
    made.epilogue.use_c = sddmm.use_c != 0;
    SPK_TRY(read_arrays(&sddmm, &made));
    spk_desc_options(options, &made);
    if (made.static_values)
        return spk_fail(SPK_ERR_ARGUMENT, "static_values = 1: this product reads no values of the pattern");
    *problem = made;
    return SPK_OK;
}
