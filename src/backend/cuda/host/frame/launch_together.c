#include "backend/cuda/host/frame/launch_together.h"

enum { ATTRIBUTE_COOPERATIVE = 2 };

spk_status spk_cuda_launch_together(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes,
                                    CUstream stream, void **parameters)
{
    spk_launch_attribute together = {.id = ATTRIBUTE_COOPERATIVE, .value = {1}};
    const spk_launch_config config = {grid, 1, 1, block, 1, 1, (unsigned)shared_bytes, stream, &together, 1};
    const CUresult result = spk_cuda_of(device)->driver->launch_extended(&config, function, parameters, NULL);
    return result == CUDA_SUCCESS_ ? SPK_OK : spk_cuda_check(device, result, "cuLaunchKernelEx");
}
