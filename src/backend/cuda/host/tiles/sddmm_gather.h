/* Host side of the SDDMM rows that gather tiles (device/copy/sddmm_gather.cuh): the tiles of a pattern, the program's options, binding and
 * running. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_SDDMM_GATHER_H
#define SPK_BACKEND_CUDA_HOST_TILES_SDDMM_GATHER_H

#include "backend/cuda/device/copy/sddmm_gather.h"
#include "backend/cuda/host/tiles/gather.h"
#include "backend/cuda/host/tiles/sddmm.h"

void spk_sddmm_gather_complete(const spk_problem *problem, gather_shape *s);
bool spk_sddmm_gather_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, const char **why);
void spk_sddmm_gather_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build);

/* Microseconds, as spk_gather_predict. */
double spk_sddmm_gather_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, double tflops);
void spk_sddmm_gather_unbind(spk_bound *bound);
spk_status spk_sddmm_gather_bind(spk_bound *bound, const gather_shape *s, const spk_build *build, int parts);
spk_status spk_sddmm_gather_run(const spk_bound *bound, const spk_args *args, void *stream);

#endif
