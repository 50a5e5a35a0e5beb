/* Operands on a device with memory of its own. */
#include "cli/base/device_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"

bool device_is_far(spk_context *context)
{
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    return spk_context_get_device(context, &info) == SPK_OK && strcmp(info.kind, "cpu") != 0;
}

static size_t whole_bytes(const device_array *a)
{
    return a->bytes + 2 * DEVICE_GUARD_BYTES;
}

/* The array with its guards, in the device's memory. */
static void *placed(const device_array *a)
{
    return (char *)a->memory + a->shift;
}

/* The array between its guards, in host memory. */
static void *image(const device_array *a)
{
    char *whole = cli_alloc(whole_bytes(a), 1);
    memset(whole, DEVICE_GUARD, whole_bytes(a));
    if (a->bytes)
        memcpy(whole + DEVICE_GUARD_BYTES, a->host, a->bytes);
    return whole;
}

spk_status device_arrays_in(spk_context *context, device_array *list, int count)
{
    spk_status status = SPK_OK;
    for (int i = 0; i < count && status == SPK_OK; i++) {
        device_array *a = &list[i];
        if (!*a->pointer)
            continue;
        a->host = *a->pointer;
        void *made = a->output ? NULL : image(a);
        const void *from = a->output ? (const char *)a->host - DEVICE_GUARD_BYTES : made;
        status = spk_memory_allocate(context, whole_bytes(a) + a->shift, &a->memory);
        if (status == SPK_OK)
            status = spk_memory_copy(context, placed(a), SPK_DEVICE, from, SPK_HOST, whole_bytes(a));
        if (status == SPK_OK)
            *a->pointer = (char *)placed(a) + DEVICE_GUARD_BYTES;
        free(made);
    }
    return status;
}

static spk_status bring(spk_context *context, const device_array *a, const char **why)
{
    if (a->output)
        return spk_memory_copy(context, (char *)(uintptr_t)a->host - DEVICE_GUARD_BYTES, SPK_HOST, placed(a), SPK_DEVICE, whole_bytes(a));
    void *before = image(a), *now = cli_alloc(whole_bytes(a), 1);
    spk_status status = spk_memory_copy(context, now, SPK_HOST, placed(a), SPK_DEVICE, whole_bytes(a));
    if (status == SPK_OK && memcmp(before, now, whole_bytes(a)) != 0)
        *why = "an input, or the memory around it, was changed";
    free(before);
    free(now);
    return status;
}

spk_status device_arrays_out(spk_context *context, device_array *list, int count, spk_status status)
{
    const char *why = NULL;
    for (int i = 0; i < count; i++) {
        device_array *a = &list[i];
        if (!a->memory)
            continue;
        if (status == SPK_OK)
            status = bring(context, a, &why);
        spk_memory_release(context, &a->memory);
        *a->pointer = a->host;
    }
    if (why) {
        fprintf(stderr, "sparsek: %s\n", why);
        status = SPK_ERR_INTERNAL;
    }
    return status;
}
