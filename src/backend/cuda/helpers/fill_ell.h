/* fill_ell: threads of a block. */
#ifndef SPK_BACKEND_CUDA_HELPERS_FILL_ELL_H
#define SPK_BACKEND_CUDA_HELPERS_FILL_ELL_H

enum { FILL_ELL_THREADS = 256 };

#endif
