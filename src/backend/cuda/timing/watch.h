/* spk_backend.watch_*: the time of one run on a caller's stream. */
#ifndef SPK_BACKEND_CUDA_TIMING_WATCH_H
#define SPK_BACKEND_CUDA_TIMING_WATCH_H

#include "backend/cuda/runtime/device.h"

spk_status spk_cuda_watch_make(spk_device *device, struct spk_watch **watch);
void spk_cuda_watch_release(spk_device *device, struct spk_watch **watch);
spk_status spk_cuda_watch_start(spk_device *device, struct spk_watch *watch, void *stream);
spk_status spk_cuda_watch_stop(spk_device *device, struct spk_watch *watch, void *stream);
bool spk_cuda_watch_read(spk_device *device, const struct spk_watch *watch, double *us);

void spk_cuda_delay_build(spk_build *build); /* its program */

#endif
