/* The time of one run on a caller's stream: an event before it and one behind it, read once both have passed. Where the stream has nothing
 * to do, the run would begin while the host still launches it, and the host's time would count: a launch that only waits is put before. */
#include <math.h>

#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/timing/watch.h"

static const long long delay_ns = 20000; /* most runs are launched by then */

struct spk_watch {
    CUevent from, to;
    CUfunction delay; /* NULL: it could not be compiled */
};

void spk_cuda_delay_build(spk_build *build)
{
    *build = (spk_build){.file = "delay.cu", .entry = "delay"};
}

static spk_status make_events(const spk_device *device, struct spk_watch *watch)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    const int mode = spk_cuda_capture_relax(cuda);
    spk_status status = spk_cuda_check(device, cuda->driver->event_create(&watch->from, 0), "cuEventCreate");
    if (status == SPK_OK)
        status = spk_cuda_check(device, cuda->driver->event_create(&watch->to, 0), "cuEventCreate");
    spk_cuda_capture_restore(cuda, mode);
    return status;
}

spk_status spk_cuda_watch_make(spk_device *device, struct spk_watch **out)
{
    struct spk_watch *made = NULL;
    spk_build program;
    spk_cuda_scope scope;
    SPK_TRY(spk_calloc(&device->mem, 1, sizeof *made, &made));
    spk_status status = spk_cuda_enter(device, &scope);
    if (status == SPK_OK) {
        spk_cuda_delay_build(&program);
        if (spk_cuda_function(device, &program, &made->delay) != SPK_OK)
            made->delay = NULL;
        status = make_events(device, made);
        spk_cuda_leave(&scope);
    }
    if (status != SPK_OK)
        spk_cuda_watch_release(device, &made);
    *out = made;
    return status;
}

void spk_cuda_watch_release(spk_device *device, struct spk_watch **watch)
{
    struct spk_watch *old = *watch;
    spk_cuda_scope scope;
    *watch = NULL;
    if (old == NULL)
        return;
    if (spk_cuda_enter(device, &scope) == SPK_OK) { /* a lost device: they go with the process */
        if (old->from != NULL)
            spk_cuda_of(device)->driver->event_destroy(old->from);
        if (old->to != NULL)
            spk_cuda_of(device)->driver->event_destroy(old->to);
        spk_cuda_leave(&scope);
    }
    spk_free(&device->mem, old);
}

static spk_status start(const spk_device *device, const struct spk_watch *watch, CUstream stream)
{
    const spk_cuda_driver *driver = spk_cuda_of(device)->driver;
    long long ns = delay_ns;
    void *parameters[] = {&ns};
    if (watch->delay != NULL && driver->stream_query(stream) == CUDA_SUCCESS_)
        SPK_TRY(spk_cuda_launch(device, watch->delay, 1, 1, 0, stream, parameters));
    return spk_cuda_check(device, driver->event_record(watch->from, stream), "cuEventRecord");
}

spk_status spk_cuda_watch_start(spk_device *device, struct spk_watch *watch, void *stream)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    const spk_status status = start(device, watch, stream);
    spk_cuda_leave(&scope);
    return status;
}

spk_status spk_cuda_watch_stop(spk_device *device, struct spk_watch *watch, void *stream)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    const spk_status status = spk_cuda_check(device, spk_cuda_of(device)->driver->event_record(watch->to, stream), "cuEventRecord");
    spk_cuda_leave(&scope);
    return status;
}

bool spk_cuda_watch_read(spk_device *device, const struct spk_watch *watch, double *us)
{
    spk_cuda_scope scope;
    float ms = 0;
    *us = INFINITY;
    if (spk_cuda_enter(device, &scope) != SPK_OK)
        return true;
    const CUresult result = spk_cuda_of(device)->driver->event_elapsed(&ms, watch->from, watch->to);
    spk_cuda_leave(&scope);
    if (result == CUDA_ERROR_NOT_READY_)
        return false;
    if (result == CUDA_SUCCESS_)
        *us = 1e3 * (double)ms;
    return true;
}
