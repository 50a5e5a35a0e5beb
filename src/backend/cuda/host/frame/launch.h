/* Launching, and TMA descriptors. */
#ifndef SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_H
#define SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_H

#include "backend/cuda/runtime/program.h"

/* Launches with by-value parameters; not blocking. Inside spk_cuda_enter. */
spk_status spk_cuda_launch(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes, CUstream stream,
                           void **parameters);

/* The same, for kernels that begin with previous_launch_done (device/ptx/launch.cuh): their blocks may start before the launch before them
 * is done. */
spk_status spk_cuda_launch_early(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes,
                                 CUstream stream, void **parameters);

/* A two- or three-dimensional TMA map with 128-byte swizzle (swizzle_bytes 0, 32, 64 or 128); sizes and box in elements, innermost first;
 * strides in elements, of dimensions 1 and up. Beyond the end reads zeros. */
typedef struct spk_tensor_map_desc {
    spk_dtype dtype;
    int rank, swizzle_bytes;
    const void *address;
    int64_t sizes[5], strides[5]; /* strides[0] is not used */
    int box[5];
    bool short_lines; /* of a box, far apart: L2 fetches no more than 128 bytes for each, where 256 would take longer */
} spk_tensor_map_desc;
spk_status spk_cuda_tensor_map(const spk_cuda_driver *driver, const spk_tensor_map_desc *desc, CUtensorMap *map);

#endif
