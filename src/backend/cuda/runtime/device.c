/* A lost device is one whose kernel died or never ended: its context is gone, and every call says so at once. */
#include "backend/cuda/runtime/device.h"

#include <time.h>

#include "base/clock.h"

enum { CAPTURE_RELAXED = 2 };
static const double spin_us = 200; /* of waiting without sleep: most runs are shorter */

static spk_status refuse_lost(const spk_cuda *cuda)
{
    return spk_fail(SPK_ERR_UNAVAILABLE, "cuda:%d is lost to this process: a kernel %s; start a new process", cuda->ordinal,
                    atomic_load_explicit(cuda->lost, memory_order_relaxed) == 2 ? "did not end"
                                                                                : "died and took the device's context with it");
}

static bool is_lost(const spk_cuda *cuda)
{
    return atomic_load_explicit(cuda->lost, memory_order_relaxed) != 0;
}

bool spk_cuda_is_lost(const spk_cuda *cuda)
{
    return is_lost(cuda);
}

spk_status spk_cuda_refuse_lost(const spk_cuda *cuda)
{
    return is_lost(cuda) ? refuse_lost(cuda) : SPK_OK;
}

spk_status spk_cuda_check(const spk_device *device, CUresult result, const char *call)
{
    spk_cuda *cuda = spk_cuda_of(device);
    if (spk_cuda_is_sticky(result))
        atomic_store(cuda->lost, 1);
    return spk_cuda_try(cuda->driver, result, call);
}

spk_status spk_cuda_enter(const spk_device *device, spk_cuda_scope *scope)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    CUcontext current = NULL;
    *scope = (spk_cuda_scope){.driver = cuda->driver};
    if (is_lost(cuda))
        return refuse_lost(cuda);
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->context_current(&current), "cuCtxGetCurrent"));
    if (current == cuda->context)
        return SPK_OK;
    SPK_TRY(spk_cuda_check(device, cuda->driver->context_push(cuda->context), "cuCtxPushCurrent"));
    scope->pushed = 1;
    return SPK_OK;
}

void spk_cuda_leave(spk_cuda_scope *scope)
{
    CUcontext context;
    if (scope->pushed)
        scope->driver->context_pop(&context);
    scope->pushed = 0;
}

int spk_cuda_capture_relax(const spk_cuda *cuda)
{
    int mode = CAPTURE_RELAXED;
    return cuda->driver->capture_mode(&mode) == CUDA_SUCCESS_ ? mode : CAPTURE_RELAXED;
}

void spk_cuda_capture_restore(const spk_cuda *cuda, int mode)
{
    cuda->driver->capture_mode(&mode);
}

spk_status spk_cuda_wait_for(const spk_device *device, CUstream stream)
{
    spk_cuda *cuda = spk_cuda_of(device);
    double start = spk_now_us();
    for (;;) {
        CUresult result = cuda->driver->stream_query(stream);
        if (result != CUDA_ERROR_NOT_READY_)
            return spk_cuda_check(device, result, "cuStreamQuery");
        double waited = spk_now_us() - start;
        if (waited > cuda->watchdog_s * 1e6) {
            atomic_store(cuda->lost, 2);
            return spk_fail(SPK_ERR_INTERNAL,
                            "the device did not finish within %.3g s: a kernel hangs, and cuda:%d is lost to this process",
                            cuda->watchdog_s, cuda->ordinal);
        }
        if (waited > spin_us)
            nanosleep(&(struct timespec){.tv_nsec = waited > 1e5 ? 1000000 : 20000}, NULL);
    }
}

spk_status spk_cuda_wait(const spk_device *device)
{
    return spk_cuda_wait_for(device, spk_cuda_of(device)->stream);
}
