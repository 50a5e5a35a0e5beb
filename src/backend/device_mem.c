/* Device memory that a caller's allocator may give. */
#include <stdint.h>

#include "backend/backend.h"

enum { ALIGNMENT = 256 };

spk_status spk_device_take(spk_device *device, size_t bytes, void *stream, void **memory)
{
    const spk_device_mem *from = &device->device_mem;
    if (from->allocate == NULL)
        return device->backend->allocate(device, bytes, memory);
    void *made = from->allocate(from->user, bytes, stream);
    if (made == NULL)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "device_allocate gave no %zu bytes", bytes);
    if ((uintptr_t)made % ALIGNMENT != 0) {
        from->release(from->user, made, bytes, stream);
        return spk_fail(SPK_ERR_ARGUMENT, "device_allocate gave %p, which is not aligned to %d bytes", made, ALIGNMENT);
    }
    *memory = made;
    return SPK_OK;
}

void spk_device_give(spk_device *device, void *memory, size_t bytes, void *stream)
{
    const spk_device_mem *to = &device->device_mem;
    if (memory == NULL)
        return;
    if (to->allocate == NULL)
        device->backend->release(device, memory);
    else
        to->release(to->user, memory, bytes, stream);
}

void *spk_device_own_stream(spk_device *device)
{
    return device->backend->own_stream != NULL ? device->backend->own_stream(device) : NULL;
}
