/* spmm_sm80_dmma: what both sides know: its arguments, its team's tiles, where they are gathered, a warp's part. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_DMMA_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_DMMA_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/copy/gather.h"
#include "backend/cuda/device/copy/team.h"
#include "backend/cuda/device/mma/warp_mma.h"

#endif
