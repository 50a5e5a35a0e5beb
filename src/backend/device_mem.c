/* Device memory that a caller's allocator may give. */
#include <stdint.h>

#include "backend/backend.h"

enum { ALIGNMENT = 256 };

/* A caller's allocator may call the driver, and another thread may be recording a graph meanwhile, which that would end. */
static int spare_captures(const spk_device *device)
{
    return device->backend->captures_spare != NULL ? device->backend->captures_spare(device) : 0;
}

static void restore(const spk_device *device, int mode)
{
    if (device->backend->captures_restore != NULL)
        device->backend->captures_restore(device, mode);
}

spk_status spk_device_take(spk_device *device, size_t bytes, void *stream, void **memory)
{
    const spk_device_mem *from = &device->device_mem;
    if (from->allocate == NULL)
        return device->backend->allocate(device, bytes, memory);
    const int mode = spare_captures(device);
    void *made = from->allocate(from->user, bytes, stream);
    restore(device, mode);
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
    if (to->allocate == NULL) {
        device->backend->release(device, memory);
        return;
    }
    const int mode = spare_captures(device);
    to->release(to->user, memory, bytes, stream);
    restore(device, mode);
}

void *spk_device_own_stream(spk_device *device)
{
    return device->backend->own_stream != NULL ? device->backend->own_stream(device) : NULL;
}
