/* NVRTC, the run-time compiler of CUDA C, opened when a device program must be compiled. It needs no device. */
#ifndef SPK_BACKEND_CUDA_NVRTC_H
#define SPK_BACKEND_CUDA_NVRTC_H

#include "backend/search.h"
#include "base/mem.h"

/* Where it lies: SPARSEK_NVRTC (a full path, or "none"), loaded already, the loader's folders, beside PyTorch or the CUDA runtime of this
 * process, the Python environment, /usr/local/cuda*. Opens nothing. */
void spk_cuda_nvrtc_find(spk_library_file *file);

/* Opens it, once in the process; "13.0" to version (may be NULL). SPK_ERR_UNAVAILABLE with what was tried. Thread safe. */
spk_status spk_cuda_nvrtc_open(char *version, size_t size);

/* Compiles an embedded source file to a cubin. options are NUL-terminated words; file as in spk_build. *log (may be NULL) gets the
 * compiler's messages; it is written on failure too. Thread safe, and threads compile side by side. */
spk_status spk_cuda_nvrtc_compile(const spk_mem *mem, const char *file, const char *const *options, int option_count, void **cubin,
                                  size_t *bytes, char **log);

#endif
