/* fill_dense: threads of a block. */
#ifndef SPK_BACKEND_CUDA_HELPERS_FILL_DENSE_H
#define SPK_BACKEND_CUDA_HELPERS_FILL_DENSE_H

enum { FILL_DENSE_THREADS = 256 };

#endif
