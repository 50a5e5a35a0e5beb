/* Checks that the descriptions of all operations share. */
#include "op/desc.h"

spk_status spk_desc_enum(const char *name, int value, int last)
{
    if (value < 0 || value > last)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: the values are 0..%d", name, value, last);
    return SPK_OK;
}

spk_status spk_desc_dtypes_read(const spk_desc_dtypes *given, spk_problem *problem)
{
    problem->dtype_a = given->a != SPK_DTYPE_DEFAULT ? given->a : SPK_F32;
    problem->dtype_b = given->b != SPK_DTYPE_DEFAULT ? given->b : problem->dtype_a;
    problem->dtype_d = given->d != SPK_DTYPE_DEFAULT ? given->d : problem->dtype_b;
    spk_dtype natural = problem->dtype_a == SPK_F64 ? SPK_F64 : SPK_F32;
    problem->compute = given->compute != SPK_DTYPE_DEFAULT ? given->compute : natural;
    const struct {
        const char *name;
        spk_dtype dtype;
    } all[] = {
        {given->name_a, problem->dtype_a}, {given->name_b, problem->dtype_b}, {"dtype_d", problem->dtype_d}, {"compute", problem->compute}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (spk_dtype_name(all[i].dtype) == NULL)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %d is not a dtype", all[i].name, (int)all[i].dtype);
    spk_dtype a = problem->dtype_a;
    bool half = a == SPK_F16 || a == SPK_BF16;
    if (!half && a != SPK_F32 && a != SPK_F64)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s = %s: this version multiplies f32, f64, f16 and bf16", given->name_a, spk_dtype_name(a));
    if (problem->dtype_b != a)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s = %s with %s = %s: this version wants one dtype for both", given->name_b,
                        spk_dtype_name(problem->dtype_b), given->name_a, spk_dtype_name(a));
    if (problem->dtype_d != a && !(half && problem->dtype_d == SPK_F32))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype_d = %s with %s = %s: this version gives %s%s", spk_dtype_name(problem->dtype_d),
                        given->name_a, spk_dtype_name(a), spk_dtype_name(a), half ? " or f32" : "");
    if (problem->compute != natural && !(a == SPK_F32 && problem->compute == SPK_TF32))
        return spk_fail(SPK_ERR_UNSUPPORTED, "compute = %s with %s = %s: this version accumulates in %s%s",
                        spk_dtype_name(problem->compute), given->name_a, spk_dtype_name(a), spk_dtype_name(natural),
                        a == SPK_F32 ? ", or multiplies tf32" : "");
    return SPK_OK;
}

spk_status spk_desc_size(const char *name, int64_t value)
{
    if (value < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", name, (long long)value);
    if (value > INT64_C(1) << 40)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: the limit is 2^40", name, (long long)value);
    return SPK_OK;
}

spk_status spk_desc_batch(int64_t given, spk_problem *problem)
{
    if (given < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld: it cannot be negative", (long long)given);
    if (given > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld: the limit is 2^31 - 1", (long long)given);
    problem->batch = given > 0 ? given : 1;
    return SPK_OK;
}

/* Outputs: item after item, or side by side within each line. */
static spk_status check_output(const spk_desc_array *array, int64_t batch, int64_t ld, int64_t stride, int64_t length, int64_t extent)
{
    const bool apart = stride >= extent, side_by_side = stride >= length && (batch - 1) * stride + length <= ld;
    if (extent > 0 && !apart && !side_by_side)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: items of %lld elements would overlap", array->stride_name, (long long)stride,
                        (long long)extent);
    return SPK_OK;
}

spk_status spk_desc_array_read(const spk_desc_array *array, int64_t batch, int64_t *ld, int64_t *stride)
{
    const bool by_row = array->layout == SPK_ROW_MAJOR;
    const int64_t length = by_row ? array->cols : array->rows, lines = by_row ? array->rows : array->cols;
    const int64_t most = (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(array->dtype);
    const char *what = by_row ? "row" : "column";
    const int64_t use = array->ld != 0 ? array->ld : (length > 0 ? length : 1);
    if (use < length || use < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: a %s has %lld elements", array->ld_name, (long long)use, what, (long long)length);
    if (lines > 0 && use > most / lines)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld %ss exceed 2^62 bytes", array->ld_name, (long long)use, (long long)lines, what);
    *ld = use;
    *stride = 0;
    const int64_t extent = length > 0 && lines > 0 ? use * (lines - 1) + length : 0;
    if (array->stride < SPK_STRIDE_SHARED)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", array->stride_name, (long long)array->stride);
    if (array->stride == SPK_STRIDE_SHARED && array->output)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: an output cannot be one for all items", array->stride_name, SPK_STRIDE_SHARED);
    if (batch == 1 || array->stride == SPK_STRIDE_SHARED)
        return SPK_OK;
    *stride = array->stride != 0 ? array->stride : use * lines;
    if (*stride > (most - extent) / (batch - 1))
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld items exceed 2^62 bytes", array->stride_name, (long long)*stride,
                        (long long)batch);
    return array->output ? check_output(array, batch, use, *stride, length, extent) : SPK_OK;
}

void spk_desc_options(const spk_tune_options *options, spk_problem *problem)
{
    if (options == NULL)
        return;
    problem->assume_finite = options->assume_finite != 0;
    problem->static_values = options->static_values != 0;
    problem->cache = options->cache;
}
