/* reference_cuda_attention: what both sides know. */
#ifndef SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_ATTENTION_H
#define SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_ATTENTION_H

#include "backend/cuda/device/attention/attention.h"

enum { REFERENCE_ATTENTION_THREADS = 256 }; /* of a block; a warp a query */

#endif
