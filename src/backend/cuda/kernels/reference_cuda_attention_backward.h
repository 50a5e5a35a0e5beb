/* reference_cuda_attention_backward: what both sides know. */
#ifndef SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_ATTENTION_BACKWARD_H
#define SPK_BACKEND_CUDA_KERNELS_REFERENCE_CUDA_ATTENTION_BACKWARD_H

#include "backend/cuda/device/attention/attention_backward.h"

enum { REFERENCE_BACKWARD_THREADS = 256 }; /* of a block; a warp a row of a result */

#endif
