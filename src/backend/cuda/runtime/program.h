/* Device programs: compiled with NVRTC for this device, kept on disk, loaded once a process and device. */
#ifndef SPK_BACKEND_CUDA_PROGRAM_H
#define SPK_BACKEND_CUDA_PROGRAM_H

#include "backend/cuda/runtime/device.h"
#include "base/stop.h"

/* The function of a device program (kernel.h, spk_build) with its dynamic shared memory opted in. Compiles where the cache does not have
 * it. Owned by the device. Thread safe. Inside spk_cuda_enter. */
spk_status spk_cuda_function(const spk_device *device, const spk_build *build, CUfunction *function);

/* Whether that would compile nothing. */
bool spk_cuda_compiled(const spk_mem *mem, const spk_build *build, const char *arch);

/* Compiles to a cubin without a device, or takes it from the cache on disk. *log (may be NULL; freed with spk_free) gets the compiler's and
 * ptxas's messages, also of a failure; it is always compiled then. */
spk_status spk_cuda_compile(const spk_mem *mem, const spk_build *build, const char *arch, void **cubin, size_t *bytes, char **log);

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
