/* Memory of the context's device, for the operands of programs that have no allocator of their own for it; and conversion of values. */
#include <stdint.h>
#include <string.h>

#include "api/context.h"
#include "matrix/matrix.h"

spk_status spk_memory_allocate(spk_context *context, size_t bytes, void **memory)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(memory, "memory"));
    void *made = NULL;
    SPK_TRY(context->device->backend->allocate(context->device, bytes, &made));
    *memory = made;
    return SPK_OK;
}

void spk_memory_release(spk_context *context, void **memory)
{
    if (context == NULL || memory == NULL || *memory == NULL)
        return;
    context->device->backend->release(context->device, *memory);
    *memory = NULL;
}

static spk_status check_side(const char *name, const void *memory, spk_memory kind, size_t bytes)
{
    if (kind != SPK_HOST && kind != SPK_DEVICE)
        return spk_fail(SPK_ERR_ARGUMENT, "%s_kind = %d: the values are 0 (SPK_HOST) and 1 (SPK_DEVICE)", name, (int)kind);
    if (memory == NULL && bytes > 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s is NULL: %zu bytes are to be copied", name, bytes);
    return SPK_OK;
}

spk_status spk_memory_copy(spk_context *context, void *to, spk_memory to_kind, const void *from, spk_memory from_kind, size_t bytes)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(check_side("to", to, to_kind, bytes));
    SPK_TRY(check_side("from", from, from_kind, bytes));
    spk_device *device = context->device;
    if (bytes == 0)
        return SPK_OK;
    if (to_kind == SPK_DEVICE && from_kind == SPK_DEVICE)
        return device->backend->copy_within(device, to, from, bytes);
    if (to_kind == SPK_DEVICE)
        return device->backend->copy_in(device, to, from, bytes);
    if (from_kind == SPK_DEVICE)
        return device->backend->copy_out(device, to, from, bytes);
    memcpy(to, from, bytes);
    return SPK_OK;
}

spk_status spk_synchronize(spk_context *context, void *stream)
{
    SPK_TRY(spk_enter(context));
    const spk_backend *backend = context->device->backend;
    return backend->synchronize != NULL ? backend->synchronize(context->device, stream) : SPK_OK;
}

static spk_status check_values(const char *name, const void *values, spk_dtype dtype, int64_t count)
{
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_ARGUMENT, "%s_dtype = %d: values are %s", name, (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    if (values == NULL && count > 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s is NULL for %lld values", name, (long long)count);
    if (count > (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(dtype))
        return spk_fail(SPK_ERR_ARGUMENT, "count = %lld: %s exceeds 2^62 bytes", (long long)count, name);
    if ((uintptr_t)values % spk_dtype_bytes(dtype) != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %p is not aligned to its elements of %zu bytes", name, values, spk_dtype_bytes(dtype));
    return SPK_OK;
}

spk_status spk_cast_values(spk_context *context, spk_dtype to_dtype, void *to, spk_dtype from_dtype, const void *from, int64_t count)
{
    SPK_TRY(spk_enter(context));
    if (count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "count = %lld: it cannot be negative", (long long)count);
    SPK_TRY(check_values("to", to, to_dtype, count));
    SPK_TRY(check_values("from", from, from_dtype, count));
    const uintptr_t to_start = (uintptr_t)to, from_start = (uintptr_t)from;
    if (count > 0 && to_start < from_start + (size_t)count * spk_dtype_bytes(from_dtype) &&
        from_start < to_start + (size_t)count * spk_dtype_bytes(to_dtype))
        return spk_fail(SPK_ERR_ARGUMENT, "to = %p overlaps from = %p", to, from);
    spk_values_convert(to_dtype, to, from_dtype, from, count);
    return SPK_OK;
}
