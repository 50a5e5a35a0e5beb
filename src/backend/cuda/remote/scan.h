/* Looks over arrays that are on the device: of the backend's table. */
#ifndef SPK_BACKEND_CUDA_REMOTE_SCAN_H
#define SPK_BACKEND_CUDA_REMOTE_SCAN_H

#include "backend/cuda/runtime/device.h"

spk_status spk_cuda_scan(spk_device *device, const spk_scan *scan, bool *clean);
spk_status spk_cuda_gather(spk_device *device, const spk_scan *scan, const int64_t *at, int count, void *to_host);
void spk_cuda_scan_build(spk_dtype dtype, spk_build *build); /* its program; no options: there is none */

#endif
