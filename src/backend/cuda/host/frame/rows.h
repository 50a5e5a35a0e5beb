/* The rows of CUDA devices, and the tunables of each as a struct. */
#ifndef SPK_BACKEND_CUDA_HOST_FRAME_ROWS_H
#define SPK_BACKEND_CUDA_HOST_FRAME_ROWS_H

#include "backend/cuda/runtime/program.h"

#define TUNABLE SPK_TUNABLE_MEMBER
#define NO_TUNABLES
#define SPK_KERNEL(operation, name, kind, isa, priority, fills_zeros, library, types, tunables) \
    SPK_KERNEL_DECLARE(name)                                                                    \
    SPK_TUNABLES_DECLARE(name, tunables)
#include "backend/cuda/kernels.def"
#undef SPK_KERNEL
#undef NO_TUNABLES
#undef TUNABLE

#endif
