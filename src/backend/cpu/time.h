/* Timing on host threads. */
#ifndef SPK_BACKEND_CPU_TIME_H
#define SPK_BACKEND_CPU_TIME_H

#include "kernel/kernel.h"

/* spk_backend's time_runs: microseconds of each run, less what other programs took from it while they shared the processors. */
spk_status spk_cpu_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs, double *out_us);

#endif
