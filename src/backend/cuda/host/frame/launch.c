/* Checks what the driver would refuse with a number alone. */
#include "backend/cuda/host/frame/launch.h"

#include <stddef.h>

enum {
    MOST_BOX = 256,
    TMA_ALIGNMENT = 16,
    PROMOTE_128B = 2,
    PROMOTE_256B = 3,
    ATTRIBUTE_PROGRAMMATIC_SERIALIZATION = 6,
    FIRST_WITH_EARLY_LAUNCH = 90
};

spk_status spk_cuda_launch(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes, CUstream stream,
                           void **parameters)
{
    const spk_cuda_driver *driver = spk_cuda_of(device)->driver;
    CUresult result = driver->launch(function, grid, 1, 1, block, 1, 1, (unsigned)shared_bytes, stream, parameters, NULL);
    return result == CUDA_SUCCESS_ ? SPK_OK : spk_cuda_check(device, result, "cuLaunchKernel");
}

spk_status spk_cuda_launch_early(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes,
                                 CUstream stream, void **parameters)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    if (cuda->compute < FIRST_WITH_EARLY_LAUNCH)
        return spk_cuda_launch(device, function, grid, block, shared_bytes, stream, parameters);
    spk_launch_attribute overlap = {.id = ATTRIBUTE_PROGRAMMATIC_SERIALIZATION, .value = {1}};
    const spk_launch_config config = {grid, 1, 1, block, 1, 1, (unsigned)shared_bytes, stream, &overlap, 1};
    CUresult result = cuda->driver->launch_extended(&config, function, parameters, NULL);
    return result == CUDA_SUCCESS_ ? SPK_OK : spk_cuda_check(device, result, "cuLaunchKernelEx");
}

/* CUtensorMapSwizzle; -1: there is none. */
static int map_swizzle(int bytes)
{
    return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : -1;
}

static spk_status check_map(const spk_tensor_map_desc *desc)
{
    if (desc->rank < 1 || desc->rank > 5)
        return spk_fail(SPK_ERR_INTERNAL, "tensor map: rank = %d: the limits are 1 and 5", desc->rank);
    const spk_type *type = spk_type_of(desc->dtype);
    if (type->bytes == 0 || type->tma < 0 || map_swizzle(desc->swizzle_bytes) < 0)
        return spk_fail(SPK_ERR_INTERNAL, "tensor map: dtype %d with a swizzle of %d bytes does not exist", (int)desc->dtype,
                        desc->swizzle_bytes);
    if ((uintptr_t)desc->address % TMA_ALIGNMENT != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "tensor map: address %p is not aligned to %d bytes", desc->address, TMA_ALIGNMENT);
    const int64_t size = (int64_t)type->bytes;
    if (desc->swizzle_bytes > 0 && desc->box[0] * size > desc->swizzle_bytes)
        return spk_fail(SPK_ERR_INTERNAL, "tensor map: box[0] = %d elements of %d bytes is more than the swizzle's %d", desc->box[0],
                        (int)size, desc->swizzle_bytes);
    for (int i = 0; i < desc->rank; i++) {
        if (desc->sizes[i] < 1 || desc->sizes[i] > INT64_C(1) << 32)
            return spk_fail(SPK_ERR_UNSUPPORTED, "tensor map: sizes[%d] = %lld: the limits are 1 and 2^32", i, (long long)desc->sizes[i]);
        if (desc->box[i] < 1 || desc->box[i] > MOST_BOX)
            return spk_fail(SPK_ERR_INTERNAL, "tensor map: box[%d] = %d: the limits are 1 and %d", i, desc->box[i], MOST_BOX);
        if (i > 0 && (desc->strides[i] * size % TMA_ALIGNMENT != 0 || desc->strides[i] < 0 || desc->strides[i] * size >= INT64_C(1) << 40))
            return spk_fail(SPK_ERR_ARGUMENT, "tensor map: strides[%d] = %lld elements of %d bytes is not a multiple of %d below 2^40", i,
                            (long long)desc->strides[i], (int)size, TMA_ALIGNMENT);
    }
    return SPK_OK;
}

spk_status spk_cuda_tensor_map(const spk_cuda_driver *driver, const spk_tensor_map_desc *desc, CUtensorMap *map)
{
    const spk_type *type = spk_type_of(desc->dtype);
    uint64_t sizes[5], strides[5];
    uint32_t box[5], steps[5];
    SPK_TRY(check_map(desc));
    for (int i = 0; i < desc->rank; i++) {
        sizes[i] = (uint64_t)desc->sizes[i];
        box[i] = (uint32_t)desc->box[i];
        steps[i] = 1;
        if (i > 0)
            strides[i - 1] = (uint64_t)desc->strides[i] * type->bytes;
    }
    CUtensorMap made; /* the caller's may lie in memory that the driver would refuse for its alignment */
    CUresult result =
        driver->tensor_map_tiled(&made, type->tma, (uint32_t)desc->rank, (void *)(uintptr_t)desc->address, sizes, strides, box, steps, 0,
                                 map_swizzle(desc->swizzle_bytes), desc->short_lines ? PROMOTE_128B : PROMOTE_256B, 0);
    SPK_TRY(spk_cuda_try(driver, result, "cuTensorMapEncodeTiled"));
    *map = made;
    return SPK_OK;
}
