/* Memory of a device: of the backend's table. */
#ifndef SPK_BACKEND_CUDA_RUNTIME_MEMORY_H
#define SPK_BACKEND_CUDA_RUNTIME_MEMORY_H

#include "backend/cuda/runtime/device.h"

spk_status spk_cuda_allocate(spk_device *device, size_t bytes, void **memory);
void spk_cuda_release(spk_device *device, void *memory);
spk_status spk_cuda_copy_in(spk_device *device, void *to, const void *from_host, size_t bytes);
spk_status spk_cuda_copy_out(spk_device *device, void *to_host, const void *from, size_t bytes);
spk_status spk_cuda_copy_within(spk_device *device, void *to, const void *from, size_t bytes);
spk_status spk_cuda_fill(spk_device *device, void *to, unsigned char byte, size_t bytes);
int64_t spk_cuda_free_memory(spk_device *device);

#endif
