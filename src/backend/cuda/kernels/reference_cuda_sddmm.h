/* reference_cuda_sddmm: what both sides know. */
#ifndef SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_SDDMM_H
#define SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_SDDMM_H

#include "backend/cuda/device/common/reference.h"

#endif
