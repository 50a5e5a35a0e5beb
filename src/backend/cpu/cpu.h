/* What kernels of the CPU backend share. */
#ifndef SPK_BACKEND_CPU_CPU_H
#define SPK_BACKEND_CPU_CPU_H

#include "kernel/kernel.h"

#define TUNABLE SPK_TUNABLE_MEMBER
#define NO_TUNABLES
#define SPK_KERNEL(operation, name, kind, isa, priority, fills_zeros, library, types, tunables) \
    SPK_KERNEL_DECLARE(name)                                                                    \
    SPK_TUNABLES_DECLARE(name, tunables)
#include "backend/cpu/kernels.def"
#undef SPK_KERNEL
#undef NO_TUNABLES
#undef TUNABLE

/* Microseconds to have so many threads begin a parallel region and to see it end, on an idle machine. */
static inline double spk_wake_us(double threads)
{
    return threads > 1 ? 1.7 + 0.15 * threads : 0;
}

/* Block rows cut into parts of nearly equal work (blocks + a constant a row), for `parts` tasks: bounds[parts + 1], bounds[0] = 0,
 * bounds[parts] = grid_rows. */
spk_status spk_partition_rows(const spk_mem *mem, const spk_bsr_view *view, int parts, int64_t **bounds);

/* The same where tasks may share a block row, whose columns they divide: cuts[parts + 1]. The fraction of a cut is the share of that block
 * row which the part before takes. */
spk_status spk_partition_cuts(const spk_mem *mem, const spk_bsr_view *view, int parts, double **cuts);

/* A finished piece of the product, still without alpha: acc[i * acc_ld + j] is the sum for D[row0 + i][col0 + j]. Applies alpha, beta,
 * bias, activation, residual and stores to D (either layout), keeping preact where asked. Rows and columns are already clipped. float32
 * sums may become a D of 16 bits. */
void spk_epilogue_f32(const spk_problem *problem, const spk_args *args, const float *acc, int64_t acc_ld, int64_t row0, int64_t rows,
                      int64_t col0, int64_t cols);
void spk_epilogue_f64(const spk_problem *problem, const spk_args *args, const double *acc, int64_t acc_ld, int64_t row0, int64_t rows,
                      int64_t col0, int64_t cols);

/* True where D = alpha * acc needs nothing else and D is row-major: kernels store straight from registers. */
bool spk_epilogue_is_plain(const spk_problem *problem, const spk_args *args);

/* Vendor libraries (vendor/library.c). names: "openblas", "blis", "mkl", "onednn", "libxsmm". */
bool spk_library_found(const spk_device *device, const char *name);
const char *spk_library_why(const spk_device *device, const char *name); /* where it is not found: as long as the device lives */
/* Symbol of a library, opened at first use; SPK_ERR_UNAVAILABLE with what was tried. */
spk_status spk_library_open(const spk_device *device, const char *name, void **handle);

struct spk_libraries;
/* For so many threads; looks at the file system only. */
spk_status spk_libraries_find(const spk_mem *mem, int threads, struct spk_libraries **libraries);
void spk_libraries_release(struct spk_libraries **libraries);
int spk_libraries_count(void);
spk_status spk_libraries_info(struct spk_libraries *libraries, int index, spk_library_info *info); /* may open */
/* "openblas:/real/path:size:mtime_ns:core;mkl:...": what belongs in the key; core: where the environment chooses one. */
bool spk_libraries_lack_stack(const struct spk_libraries *libraries); /* the calling thread's is too small for one that was found */
void spk_libraries_key(const struct spk_libraries *libraries, char *buffer, size_t size);

#endif
