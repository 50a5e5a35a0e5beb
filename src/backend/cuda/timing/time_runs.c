/* Timing on the device: events around one launch, or around a graph of several, so that the host's time to launch them is not measured. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/timing/time_runs.h"
#include "backend/cuda/vendor/vendor.h"

enum { CAPTURE_THREAD_LOCAL = 1, RECORD_EXTERNAL = 1, MOST_RETAKES = 3, COOL_NS = 25000000 };

typedef struct timing {
    spk_device *device;
    spk_cuda *cuda;
    const spk_bound *bound;
    const spk_args *args;
    int count, runs;
    CUevent from, to;
} timing;

static spk_status run_all(const timing *t)
{
    for (int i = 0; i < t->runs; i++)
        SPK_TRY(spk_bound_run(t->bound, &t->args[i % t->count], t->cuda->stream));
    return SPK_OK;
}

static spk_status elapsed(const timing *t, double *us)
{
    float ms = 0;
    SPK_TRY(spk_cuda_wait(t->device));
    SPK_TRY(spk_cuda_check(t->device, t->cuda->driver->event_elapsed(&ms, t->from, t->to), "cuEventElapsedTime"));
    *us = 1000.0 * (double)ms / t->runs;
    return SPK_OK;
}

static spk_status time_direct(const timing *t, double *us)
{
    const spk_cuda_driver *driver = t->cuda->driver;
    SPK_TRY(spk_cuda_check(t->device, driver->event_record(t->from, t->cuda->stream), "cuEventRecord"));
    spk_status status = run_all(t);
    if (status != SPK_OK) {
        char why[300]; /* what was launched before it must end all the same: memory is released next */
        snprintf(why, sizeof why, "%s", spk_error_last());
        spk_cuda_wait(t->device);
        return spk_fail(status, "%s", why);
    }
    SPK_TRY(spk_cuda_check(t->device, driver->event_record(t->to, t->cuda->stream), "cuEventRecord"));
    return elapsed(t, us);
}

/* The events are nodes of the graph, so that the time from its launch to its first kernel does not count. NULL: this kernel's runs cannot
 * be recorded. */
static CUgraph record(const timing *t)
{
    const spk_cuda_driver *driver = t->cuda->driver;
    CUgraph graph = NULL;
    if (driver->stream_begin_capture(t->cuda->stream, CAPTURE_THREAD_LOCAL) != CUDA_SUCCESS_)
        return NULL;
    bool good = driver->event_record_flags(t->from, t->cuda->stream, RECORD_EXTERNAL) == CUDA_SUCCESS_ && run_all(t) == SPK_OK &&
                driver->event_record_flags(t->to, t->cuda->stream, RECORD_EXTERNAL) == CUDA_SUCCESS_;
    if (driver->stream_end_capture(t->cuda->stream, &graph) != CUDA_SUCCESS_)
        return NULL;
    if (!good && graph != NULL)
        driver->graph_destroy(graph);
    return good ? graph : NULL;
}

static spk_status launch_graph(const timing *t, CUgraphExec executable, double *us)
{
    const spk_cuda_driver *driver = t->cuda->driver;
    SPK_TRY(spk_cuda_check(t->device, driver->graph_upload(executable, t->cuda->stream), "cuGraphUpload"));
    SPK_TRY(spk_cuda_wait(t->device));
    SPK_TRY(spk_cuda_check(t->device, driver->graph_launch(executable, t->cuda->stream), "cuGraphLaunch"));
    return elapsed(t, us);
}

/* *timed: whether a graph was launched; else nothing happened. */
static spk_status time_graph(const timing *t, double *us, bool *timed)
{
    const spk_cuda_driver *driver = t->cuda->driver;
    CUgraphExec executable = NULL;
    CUgraph graph = record(t);
    *timed = false;
    if (graph == NULL)
        return SPK_OK;
    CUresult result = driver->graph_instantiate(&executable, graph, 0);
    driver->graph_destroy(graph);
    if (result != CUDA_SUCCESS_)
        return SPK_OK;
    *timed = true;
    spk_status status = launch_graph(t, executable, us);
    if (atomic_load(t->cuda->lost) == 0)
        driver->graph_executable_destroy(executable);
    return status;
}

static spk_status time_locked(timing *t, double *us)
{
    const spk_cuda_driver *driver = t->cuda->driver;
    SPK_TRY(spk_cuda_check(t->device, driver->event_create(&t->from, 0), "cuEventCreate"));
    spk_status status = spk_cuda_check(t->device, driver->event_create(&t->to, 0), "cuEventCreate");
    bool timed = false;
    if (status == SPK_OK && t->runs > 1)
        status = time_graph(t, us, &timed);
    if (status == SPK_OK && !timed)
        status = time_direct(t, us);
    if (atomic_load(t->cuda->lost) != 0)
        return status;
    driver->event_destroy(t->from);
    if (t->to != NULL)
        driver->event_destroy(t->to);
    return status;
}

static spk_status time_alone(timing *t, double *us)
{
    pthread_mutex_lock(&t->cuda->stream_lock);
    int mode = spk_cuda_capture_relax(t->cuda);
    spk_status status = time_locked(t, us);
    spk_cuda_capture_restore(t->cuda, mode);
    pthread_mutex_unlock(&t->cuda->stream_lock);
    return status;
}

spk_status spk_cuda_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs, double *out_us)
{
    timing t = {.device = device, .cuda = spk_cuda_of(device), .bound = bound, .args = args, .count = count, .runs = runs};
    double us = 0;
    spk_cuda_scope scope;
    if (runs <= 0)
        return SPK_OK;
    SPK_TRY(spk_cuda_enter(device, &scope));
    spk_status status = time_alone(&t, &us);
    /* the device was slowed down: once more, a little later */
    for (int i = 0; status == SPK_OK && i < MOST_RETAKES && spk_nvml_disturbed(device); i++) {
        nanosleep(&(struct timespec){.tv_nsec = COOL_NS}, NULL);
        status = time_alone(&t, &us);
    }
    spk_cuda_leave(&scope);
    if (status != SPK_OK && atomic_load(t.cuda->lost) != 0) {
        char why[300];
        snprintf(why, sizeof why, "%s", spk_error_last());
        return spk_fail(status, "%s; the device's context in this process is lost", why);
    }
    for (int i = 0; status == SPK_OK && i < runs; i++)
        out_us[i] = us;
    return status;
}
