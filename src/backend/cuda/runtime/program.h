/* Device programs: inside the backend. */
#ifndef SPK_BACKEND_CUDA_PROGRAM_H
#define SPK_BACKEND_CUDA_PROGRAM_H

#include "backend/cuda/cuda.h"
#include "base/stop.h"

/* The loaded programs of a device: made with it, released before its context is (inside spk_cuda_enter; unloads all). */
spk_status spk_cuda_programs_make(const spk_mem *mem, struct spk_cuda_programs **programs);
void spk_cuda_programs_release(const spk_cuda_driver *driver, struct spk_cuda_programs **programs); /* accepts NULL */

/* Whether a program came with the library. */
bool spk_cuda_is_shipped(const spk_build *build, const char *arch);

/* Compiles what the cache on disk lacks, on `threads` threads (0: one for each processor this process may run on). statuses[i] says what
 * came of builds[i]; whys (may be NULL) its message. What stop ends is SPK_ERR_INTERRUPTED. */
spk_status spk_cuda_compile_all(const spk_mem *mem, const char *arch, const spk_build *builds, int count, int threads, spk_status *statuses,
                                char (*whys)[200], const spk_stop *stop);

#endif
