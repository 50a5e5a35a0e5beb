/* What the parts of the CUDA backend share: the device, its memory, device programs. What kernels need beside it: host/. */
#ifndef SPK_BACKEND_CUDA_CUDA_H
#define SPK_BACKEND_CUDA_CUDA_H

#include <pthread.h>

#include "backend/cuda/runtime/driver.h"
#include "kernel/kernel.h"

#define TUNABLE SPK_TUNABLE_MEMBER
#define NO_TUNABLES
#define SPK_KERNEL(operation, name, kind, isa, priority, fills_zeros, library, types, tunables) \
    SPK_KERNEL_DECLARE(name)                                                                    \
    SPK_TUNABLES_DECLARE(name, tunables)
#include "backend/cuda/kernels.def"
#undef SPK_KERNEL
#undef NO_TUNABLES
#undef TUNABLE

struct spk_cuda_programs;
struct spk_cuda_libraries;

/* spk_device.state of a CUDA device. */
typedef struct spk_cuda {
    const spk_cuda_driver *driver;
    int ordinal;
    CUdevice handle;
    CUcontext context; /* the device's primary context, retained */
    CUstream stream;   /* of tuning and copies; non-blocking */
    /* held while something is put on the stream and awaited: another thread's copy must not end up in a graph */
    pthread_mutex_t stream_lock;
    atomic_int *lost;   /* of all contexts on this device: a kernel died or never ended, nothing more is asked of the driver */
    double watchdog_s;  /* a run in tuning that takes longer counts as hung */
    int driver_version; /* 13000 */
    int compute;        /* 90 */
    char arch[16];      /* "sm_90a": what device programs are compiled for */
    int processors;     /* streaming multiprocessors */
    int64_t l2_bytes;
    int shared_bytes;                               /* that one block may ask for */
    int shared_processor_bytes;                     /* of a multiprocessor */
    struct spk_cuda_shared_indices *shared_indices; /* host/frame/index.c */
    struct spk_cuda_deferrals *deferrals;           /* deferred.c; NULL before the first */
    pthread_mutex_t deferrals_lock;
    struct spk_cuda_programs *programs;   /* program.c */
    struct spk_cuda_libraries *libraries; /* vendor/library.c */
} spk_cuda;

static inline spk_cuda *spk_cuda_of(const spk_device *device)
{
    return (spk_cuda *)device->state;
}

/* bytes, up to the next multiple of `to`. */
static inline size_t spk_round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Makes the device's context current for this thread, where it is not; leave undoes it. Every function of the backend that calls the driver
 * is between the two. */
typedef struct spk_cuda_scope {
    const spk_cuda_driver *driver;
    int pushed;
} spk_cuda_scope;
spk_status spk_cuda_enter(const spk_device *device, spk_cuda_scope *scope);
void spk_cuda_leave(spk_cuda_scope *scope);

/* spk_cuda_try for what a device was asked: after an error that kills its context, later calls on this device fail at once. */
spk_status spk_cuda_check(const spk_device *device, CUresult result, const char *call);

/* Calls that a capture under way would forbid, another thread's or this one's, are between these two: allocating, loading programs, work on
 * cuda->stream and waiting for it. None of it enters the captured graph, so that a plan may be made during a capture; nothing here may
 * touch the captured stream. */
int spk_cuda_capture_relax(const spk_cuda *cuda);
void spk_cuda_capture_restore(const spk_cuda *cuda, int mode);

/* Waits for cuda->stream; gives up after watchdog_s and counts the device as lost then, as a hung kernel cannot be stopped. */
spk_status spk_cuda_wait(const spk_device *device);

/* time.c, check.c: of the backend's table; watch.h, too */
spk_status spk_cuda_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs, double *out_us);
spk_status spk_cuda_check_args(spk_device *device, const spk_problem *problem, const spk_args *args);

/* Refuses an address that is no memory of this device; owner and name are for the message. Inside spk_cuda_enter. */
spk_status spk_cuda_check_pointer(const spk_cuda *cuda, const char *owner, const char *name, const void *pointer);

/* ---- deferred.c: of the backend's table */

spk_status spk_cuda_defer(spk_device *device, const spk_bsr_indices *indices, spk_pattern_remote *remote);
/* Where a pattern's remote indices lie, as 32-bit numbers. Refuses those of another device. */
spk_status spk_cuda_deferred_indices(const spk_device *device, const spk_pattern *pattern, const int **offsets, const int **columns);
/* Memory for what else is made of remote indices on the device, ordered by their stream, which is where it must be made. */
spk_status spk_cuda_deferred_take(const spk_pattern *pattern, size_t bytes, void **memory);
void spk_cuda_deferred_give(const spk_pattern *pattern, size_t bytes, void *memory);
CUstream spk_cuda_deferred_stream(const spk_pattern *pattern);
/* the program of kernels/sddmm_sm90_wgmma.c that does so */
void spk_cuda_list_tiles_build(int block_rows, int block_cols, int width, spk_build *build);
/* At the end of a device; driver NULL: it is lost. */
void spk_cuda_deferrals_release(const spk_cuda_driver *driver, const spk_mem *mem, struct spk_cuda_deferrals **deferrals);
void spk_cuda_deferred_build(spk_index_type type, bool settle, spk_build *build); /* its programs */

/* ---- scan.c */

spk_status spk_cuda_scan(spk_device *device, const spk_scan *scan, bool *clean);
spk_status spk_cuda_gather(spk_device *device, const spk_scan *scan, const int64_t *at, int count, void *to_host);
void spk_cuda_scan_build(spk_dtype dtype, spk_build *build); /* its program; no options: there is none */

/* ---- program.c: compiled with NVRTC for this device, kept on disk, loaded once a process and device */

/* The function of a device program (kernel.h, spk_build) with its dynamic shared memory opted in. Compiles where the cache does not have
 * it. Owned by the device. Thread safe. Inside spk_cuda_enter. */
spk_status spk_cuda_function(const spk_device *device, const spk_build *build, CUfunction *function);

/* Whether that would compile nothing. */
bool spk_cuda_compiled(const spk_mem *mem, const spk_build *build, const char *arch);

/* Compiles to a cubin without a device, or takes it from the cache on disk. *log (may be NULL; freed with spk_free) gets the compiler's and
 * ptxas's messages, also of a failure; it is always compiled then. */
spk_status spk_cuda_compile(const spk_mem *mem, const spk_build *build, const char *arch, void **cubin, size_t *bytes, char **log);

#endif
