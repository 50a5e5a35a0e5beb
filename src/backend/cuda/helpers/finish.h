/* finish: threads of a block. */
#ifndef SPK_BACKEND_CUDA_HELPERS_FINISH_H
#define SPK_BACKEND_CUDA_HELPERS_FINISH_H

enum { FINISH_THREADS = 256 };

#endif
