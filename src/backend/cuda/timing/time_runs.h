/* spk_backend.time_runs. */
#ifndef SPK_BACKEND_CUDA_TIMING_TIME_RUNS_H
#define SPK_BACKEND_CUDA_TIMING_TIME_RUNS_H

#include "backend/cuda/runtime/device.h"

spk_status spk_cuda_time_runs(spk_device *device, const spk_bound *bound, const spk_args *args, int count, int runs, double *out_us);

#endif
