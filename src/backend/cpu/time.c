/* How long runs take on host threads, without the time in which other programs had the processors. On a quiet machine that is what the
 * monotonic clock says. */
#include <math.h>

#include "backend/cpu/time.h"
#include "base/callback.h"
#include "base/clock.h"
#include "base/load.h"

/* Where others have been seen, processor time is read for so long; whether there are any is asked so often. Reading it costs about a
 * microsecond a run, which short runs would show. */
static const double watched_us = 200e3, asked_us = 20e3;
static const double most_lost_us = 20; /* less is no loss: interrupts, and reading the clocks */

typedef struct watch {
    double until_us, asked_at_us;
    long switches;
} watch;

/* Whether other programs may take processors from what runs next. */
static bool may_lose(watch *w, int threads)
{
    const double now_us = spk_now_us();
    const long switches = spk_load_forced_switches();
    bool seen = switches != w->switches;
    w->switches = switches;
    if (now_us > w->asked_at_us + asked_us) {
        w->asked_at_us = now_us;
        seen |= spk_executor_left(threads) < threads;
    }
    if (seen)
        w->until_us = now_us + watched_us;
    return now_us < w->until_us;
}

/* A library's own threads cannot be asked one by one: the calling thread's processor time, or the process's divided by the threads,
 * whichever is more. Threads that wait busily count as working, so that this errs on the side of what the clock says. */
static double library_us(const spk_device *device, double cpu_us, double process_us)
{
    return fmax(cpu_us, process_us / device->executor.threads);
}

static spk_status run_watched(spk_device *device, const spk_bound *bound, const spk_args *args, double *out_us)
{
    spk_preempted note = {0};
    const bool library = bound->kernel->library != NULL;
    const double process_begin_us = library ? spk_process_cpu_us() : 0, cpu_begin_us = spk_thread_cpu_us();
    spk_executor_note(&note);
    const double begin_us = spk_now_us();
    const spk_status status = spk_bound_run(bound, args, NULL);
    const double took_us = spk_now_us() - begin_us;
    spk_executor_note(NULL);
    const double cpu_us = spk_thread_cpu_us() - cpu_begin_us;
    double lost_us = took_us - note.regions_us - (cpu_us - note.regions_cpu_us); /* of the calling thread, outside of regions */
    if (library && note.regions_us == 0)
        lost_us = took_us - library_us(device, cpu_us, spk_process_cpu_us() - process_begin_us);
    lost_us = (lost_us > most_lost_us ? lost_us : 0) + note.lost_us;
    lost_us = fmin(lost_us, took_us);
    spk_work_lost(lost_us);
    *out_us = took_us - lost_us;
    return status;
}

static spk_status run_plainly(const spk_bound *bound, const spk_args *args, double *out_us)
{
    const double begin_us = spk_now_us();
    const spk_status status = spk_bound_run(bound, args, NULL);
    *out_us = spk_now_us() - begin_us;
    return status;
}

spk_status spk_cpu_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs, double *out_us)
{
    static _Thread_local watch watches;
    /* a clock of a test's is not that of the processors */
    const bool watched = spk_clock_is_real() && may_lose(&watches, device->executor.threads);
    spk_status status = SPK_OK;
    spk_executor_steady(true);
    for (int i = 0; i < runs && status == SPK_OK; i++)
        status = watched ? run_watched(device, bound, &args[i % count], &out_us[i]) : run_plainly(bound, &args[i % count], &out_us[i]);
    spk_executor_steady(false);
    return status;
}
