/* A CUDA device as all parts of the backend know it: its context, errors, waiting, captures. */
#ifndef SPK_BACKEND_CUDA_RUNTIME_DEVICE_H
#define SPK_BACKEND_CUDA_RUNTIME_DEVICE_H

#include <pthread.h>

#include "backend/cuda/runtime/driver.h"
#include "kernel/kernel.h"

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
    struct spk_cuda_shared_indices *shared_indices; /* host/indices/index.c */
    struct spk_cuda_deferrals *deferrals;           /* remote/deferred.c; NULL before the first */
    pthread_mutex_t deferrals_lock;
    struct spk_cuda_programs *programs;   /* program_load.c */
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

/* Whether a kernel died or never ended: nothing more is asked of the driver. */
bool spk_cuda_is_lost(const spk_cuda *cuda);
spk_status spk_cuda_refuse_lost(const spk_cuda *cuda); /* says so */

/* Calls that a capture under way would forbid, another thread's or this one's, are between these two: allocating, loading programs, work on
 * cuda->stream and waiting for it. None of it enters the captured graph, so that a plan may be made during a capture; nothing here may
 * touch the captured stream. */
int spk_cuda_capture_relax(const spk_cuda *cuda);
void spk_cuda_capture_restore(const spk_cuda *cuda, int mode);

/* Waits for cuda->stream; gives up after watchdog_s and counts the device as lost then, as a hung kernel cannot be stopped. */
spk_status spk_cuda_wait(const spk_device *device);
spk_status spk_cuda_wait_for(const spk_device *device, CUstream stream); /* the same of another stream */

#endif
