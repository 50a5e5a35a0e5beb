/* reference_cuda_spmm: what both sides know. */
#ifndef SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_H
#define SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_H

#include "backend/cuda/device/common/reference.h"

#endif
