/* gemm_cuda_simt: what both sides know: its arguments, its team's tiles, a thread's part. */
#ifndef SPK_BACKEND_CUDA_KERNELS_GEMM_CUDA_SIMT_H
#define SPK_BACKEND_CUDA_KERNELS_GEMM_CUDA_SIMT_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/copy/dense.h"
#include "backend/cuda/device/mma/simt.h"

#endif
