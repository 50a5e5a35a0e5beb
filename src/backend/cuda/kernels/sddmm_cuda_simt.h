/* sddmm_cuda_simt: what both sides know: its arguments, its team's tiles, where they are gathered, a thread's sums. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SDDMM_CUDA_SIMT_H
#define SPK_BACKEND_CUDA_KERNELS_SDDMM_CUDA_SIMT_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/copy/sddmm_gather.h"
#include "backend/cuda/device/mma/simt.h"
#include "backend/cuda/device/copy/team.h"

#endif
