/* Waking other threads costs microseconds on an idle machine and milliseconds where others use its processors: small products do
 * without. */
#include "kernel/threads.h"

/* Work in FLOPs, a byte of the operands for so many: some 20 microseconds of one core, below which a second one never pays, and 600, from
 * which on all pay. */
static const double flops_a_byte = 3, least_work = 800e3, most_work = 24e6;
static const double most_under_load = 480e6; /* some 12 ms: what others do meanwhile evens out */
static const double stream_gbs_alone = 14;

bool spk_threads_for_any_work;

static double work_of(const spk_problem *problem)
{
    return spk_problem_flops(problem) + flops_a_byte * spk_problem_bytes(problem);
}

static const char tunable[] = "SERIAL";

int spk_serial_tunable(const spk_kernel *kernel)
{
    return spk_params_index(kernel, tunable);
}

bool spk_serial_is_named(const char *params)
{
    return spk_params_names(params, tunable);
}

bool spk_is_serial(const spk_kernel *kernel, const spk_params *params)
{
    const int at = spk_serial_tunable(kernel);
    return at >= 0 && params->v[at] != 0;
}

bool spk_serial_applicable(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device,
                           const char **why)
{
    if (!spk_is_serial(kernel, params))
        return true;
    if (device->executor.threads <= 1)
        *why = "there is one thread: SERIAL=0 is the same";
    else if (!spk_threads_for_any_work && work_of(problem) < least_work)
        *why = "the work is for one thread: SERIAL=0 is the same";
    else if (!spk_threads_for_any_work && work_of(problem) > most_under_load)
        *why = "SERIAL=1 is for less work";
    return *why == NULL;
}

bool spk_serial_is_for_load(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem)
{
    return spk_is_serial(kernel, params) && !spk_threads_for_any_work && work_of(problem) > most_work;
}

bool spk_runs_alone(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device)
{
    const int at = device->executor.threads > 1 ? spk_serial_tunable(kernel) : -1;
    return at >= 0 && (params->v[at] != 0 || (!spk_threads_for_any_work && work_of(problem) < least_work));
}

spk_device spk_device_alone(const spk_device *device)
{
    spk_device alone = *device;
    alone.executor.threads = 1;
    alone.peak_gflops_f32 /= device->executor.threads;
    alone.stream_gbs = device->stream_gbs < stream_gbs_alone ? device->stream_gbs : stream_gbs_alone;
    return alone;
}
