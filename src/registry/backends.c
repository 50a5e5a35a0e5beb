/* Finds the backend of a device name. */
#include "registry/registry.h"

#include <string.h>

const spk_backend *spk_backend_of(spk_backend_id id)
{
    return id == SPK_BACKEND_CUDA ? &spk_backend_cuda : &spk_backend_cpu;
}

spk_status spk_backend_find(const char *device, const spk_backend **backend)
{
    if (device == NULL || strcmp(device, "cpu") == 0) {
        *backend = &spk_backend_cpu;
        return SPK_OK;
    }
    if (strncmp(device, "cuda", 4) == 0 && (device[4] == '\0' || device[4] == ':')) {
        *backend = &spk_backend_cuda;
        return SPK_OK;
    }
    return spk_fail(SPK_ERR_ARGUMENT, "device = \"%s\": the devices are \"cpu\", \"cuda\" and \"cuda:N\"", device);
}
