/* The reference rows: what both sides know. */
#ifndef SPK_CUDA_REFERENCE_H
#define SPK_CUDA_REFERENCE_H

#include "backend/cuda/device/common/arguments.h"

enum { REFERENCE_THREADS = 256 }; /* of a block; one an element of D */

#endif
