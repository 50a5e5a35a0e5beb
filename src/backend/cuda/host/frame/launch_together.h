/* Launching a kernel whose blocks wait for each other. */
#ifndef SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_TOGETHER_H
#define SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_TOGETHER_H

#include "backend/cuda/runtime/program.h"

/* As spk_cuda_launch, but that all blocks run at once: none starts before there is room for all. Without it two such kernels on two streams
 * could each hold multiprocessors that the other's blocks wait for, for ever. A device that never has room for all, as where another
 * process may use a part of it only, refuses the launch. Inside spk_cuda_enter. */
spk_status spk_cuda_launch_together(const spk_device *device, CUfunction function, unsigned grid, unsigned block, int shared_bytes,
                                    CUstream stream, void **parameters);

#endif
