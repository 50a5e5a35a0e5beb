/* Checks that the descriptions of operations share. */
#include "op/read.h"

spk_status spk_read_enum(const char *name, int value, int last)
{
    if (value < 0 || value > last)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: the values are 0..%d", name, value, last);
    return SPK_OK;
}

spk_status spk_read_dtype(const char *name, spk_dtype given, spk_dtype usual, spk_dtype *dtype)
{
    const spk_dtype meant = given != SPK_DTYPE_DEFAULT ? given : usual;
    if (spk_dtype_name(meant) == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d is not a dtype", name, (int)meant);
    char types[SPK_TYPE_LIST_TEXT];
    if (spk_type_of(meant)->use != SPK_USE_VALUES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s = %s: this version computes with %s", name, spk_dtype_name(meant),
                        spk_type_list(1u << SPK_USE_VALUES, "and", types, sizeof types));
    *dtype = meant;
    return SPK_OK;
}

spk_status spk_read_dtypes(const spk_given_dtypes *given, spk_problem *problem)
{
    const spk_dtype a = given->a != SPK_DTYPE_DEFAULT ? given->a : SPK_F32, b = given->b != SPK_DTYPE_DEFAULT ? given->b : a;
    const spk_dtype d = given->d != SPK_DTYPE_DEFAULT ? given->d : spk_type_of(a)->results[0], natural = spk_type_of(a)->sums;
    const spk_dtype compute = given->compute != SPK_DTYPE_DEFAULT ? given->compute : natural;
    const spk_dtype reduced = spk_type_is_narrow(a) ? SPK_DTYPE_DEFAULT : spk_type_reduced(a);
    char types[SPK_TYPE_LIST_TEXT];
    const struct {
        const char *name;
        spk_dtype dtype;
    } all[] = {{given->name_a, given->a}, {given->name_b, given->b}, {"dtype_d", given->d}, {"compute", given->compute}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].dtype != SPK_DTYPE_DEFAULT && spk_dtype_name(all[i].dtype) == NULL)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %d is not a dtype", all[i].name, (int)all[i].dtype);
    if (!spk_type_holds_values(a))
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s = %s: this version multiplies %s", given->name_a, spk_dtype_name(a),
                        spk_type_list(SPK_USES_OF_VALUES, "and", types, sizeof types));
    if (b != a)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s = %s with %s = %s: this version wants one dtype for both", given->name_b,
                        spk_dtype_name(b), given->name_a, spk_dtype_name(a));
    if (!spk_type_gives(a, d))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype_d = %s with %s = %s: this version gives %s", spk_dtype_name(d), given->name_a,
                        spk_dtype_name(a), spk_type_list_of(spk_type_of(a)->results, SPK_MOST_RESULTS, "or", types, sizeof types));
    if (compute != natural && (reduced == SPK_DTYPE_DEFAULT || compute != reduced))
        return spk_fail(SPK_ERR_UNSUPPORTED, "compute = %s with %s = %s: this version accumulates in %s%s%s", spk_dtype_name(compute),
                        given->name_a, spk_dtype_name(a), spk_dtype_name(natural), reduced != SPK_DTYPE_DEFAULT ? ", or multiplies " : "",
                        reduced != SPK_DTYPE_DEFAULT ? spk_dtype_name(reduced) : "");
    problem->a.dtype = a;
    problem->b.dtype = b;
    problem->d.dtype = d;
    problem->compute = compute;
    return SPK_OK;
}

spk_status spk_read_size(const char *name, int64_t value)
{
    if (value < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", name, (long long)value);
    if (value > INT64_C(1) << 40)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: the limit is 2^40", name, (long long)value);
    return SPK_OK;
}

spk_status spk_read_batch(int64_t given, spk_problem *problem)
{
    if (given < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld: it cannot be negative", (long long)given);
    if (given > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld: the limit is 2^31 - 1", (long long)given);
    problem->batch = given > 0 ? given : 1;
    return SPK_OK;
}

spk_status spk_read_heads(const char *name, int64_t given, spk_operand *operand)
{
    if (given < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", name, (long long)given);
    if (given > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: the limit is 2^31 - 1", name, (long long)given);
    operand->heads = given > 0 ? given : 1;
    return SPK_OK;
}

/* Whether no two lines share an element: the steps of lines, heads and items (of `items` items) lie in one another. */
static bool is_apart(const spk_operand *o, int64_t items)
{
    struct {
        int64_t count, step;
    } of[] = {{spk_operand_lines(o), o->ld}, {spk_operand_heads(o), o->head_stride}, {items, o->stride}};
    int64_t extent = spk_operand_length(o);
    for (int taken = 0; taken < 3; taken++) {
        int least = -1;
        for (int i = 0; i < 3; i++)
            if (of[i].count > 1 && (least < 0 || of[i].step < of[least].step))
                least = i;
        if (least < 0)
            break;
        if (of[least].step < extent)
            return false;
        extent += of[least].step * (of[least].count - 1);
        of[least].count = 1;
    }
    return true;
}

static spk_status check_output(const spk_given_array *array, const char *head_stride_name, int64_t batch, const spk_operand *o)
{
    if (spk_operand_is_empty(o))
        return SPK_OK;
    if (!is_apart(o, 1))
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: heads of %lld elements would overlap", head_stride_name, (long long)o->head_stride,
                        (long long)spk_operand_matrix_elements(o));
    if (!is_apart(o, batch))
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: items of %lld elements would overlap", array->stride_name, (long long)o->stride,
                        (long long)spk_operand_item_elements(o));
    return SPK_OK;
}

static spk_status read_lines(const spk_given_array *array, int64_t most, spk_operand *o)
{
    const int64_t length = spk_operand_length(o), lines = spk_operand_lines(o) > 0 ? spk_operand_lines(o) : 1; /* of none, too */
    const char *what = o->layout == SPK_ROW_MAJOR ? "row" : "column";
    o->ld = array->ld != 0 ? array->ld : (length > 0 ? length : 1);
    if (o->ld < length || o->ld < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: a %s has %lld elements", array->ld_name, (long long)o->ld, what, (long long)length);
    if (o->ld > most / lines)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld %ss exceed 2^62 bytes", array->ld_name, (long long)o->ld, (long long)lines,
                        what);
    return SPK_OK;
}

static spk_status read_head_stride(const char *head_stride_name, int64_t head_stride, int64_t most, spk_operand *o)
{
    const int64_t heads = spk_operand_heads(o);
    o->head_stride = 0;
    if (head_stride < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", head_stride_name, (long long)head_stride);
    if (heads == 1)
        return SPK_OK;
    o->head_stride = head_stride != 0 ? head_stride : o->ld * spk_operand_lines(o);
    if (o->head_stride > (most - spk_operand_matrix_elements(o)) / heads)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld heads exceed 2^62 bytes", head_stride_name, (long long)o->head_stride,
                        (long long)heads);
    return SPK_OK;
}

spk_status spk_read_array_of_heads(const spk_given_array *array, const char *head_stride_name, int64_t head_stride, int64_t batch,
                                   spk_operand *o)
{
    const int64_t most = (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(o->dtype);
    o->stride = o->head_stride = 0;
    SPK_TRY(read_lines(array, most, o));
    SPK_TRY(read_head_stride(head_stride_name, head_stride, most, o));
    if (array->stride < SPK_STRIDE_SHARED)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: it cannot be negative", array->stride_name, (long long)array->stride);
    if (array->stride == SPK_STRIDE_SHARED && array->output)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: an output cannot be one for all items", array->stride_name, SPK_STRIDE_SHARED);
    if (batch > 1 && array->stride != SPK_STRIDE_SHARED) {
        const int64_t lines = o->ld * spk_operand_lines(o), heads = spk_operand_heads(o) * o->head_stride;
        o->stride = array->stride != 0 ? array->stride : lines > heads ? lines : heads;
        if (o->stride > (most - spk_operand_item_elements(o)) / (batch - 1))
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: %lld items exceed 2^62 bytes", array->stride_name, (long long)o->stride,
                            (long long)batch);
    }
    return array->output ? check_output(array, head_stride_name, batch, o) : SPK_OK;
}

spk_status spk_read_array(const spk_given_array *array, int64_t batch, spk_operand *o)
{
    return spk_read_array_of_heads(array, "", 0, batch, o);
}

int64_t spk_given_stride(const spk_problem *problem, const spk_operand *input)
{
    return problem->batch > 1 && input->stride == 0 ? SPK_STRIDE_SHARED : input->stride;
}

spk_status spk_read_like_d(const spk_given_array *array, bool takes_part, const spk_problem *problem, spk_operand *operand)
{
    spk_operand like_d = problem->d;
    SPK_TRY(spk_read_array(array, problem->batch, &like_d));
    if (takes_part)
        *operand = like_d;
    return SPK_OK;
}
