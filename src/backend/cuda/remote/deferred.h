/* Patterns whose indices are on the device, and may be written there when a plan is made. spk_cuda_defer is of the backend's table. */
#ifndef SPK_BACKEND_CUDA_REMOTE_DEFERRED_H
#define SPK_BACKEND_CUDA_REMOTE_DEFERRED_H

#include "backend/cuda/runtime/device.h"

spk_status spk_cuda_defer(spk_device *device, const spk_bsr_indices *indices, spk_pattern_remote *remote);
/* Where a pattern's remote indices lie, as 32-bit numbers. Refuses those of another device. */
spk_status spk_cuda_deferred_indices(const spk_device *device, const spk_pattern *pattern, const int **offsets, const int **columns);
/* Memory for what else is made of remote indices on the device, ordered by their stream, which is where it must be made. */
spk_status spk_cuda_deferred_take(const spk_pattern *pattern, size_t bytes, void **memory);
void spk_cuda_deferred_give(const spk_pattern *pattern, size_t bytes, void *memory);
CUstream spk_cuda_deferred_stream(const spk_pattern *pattern);
/* the program of kernels/sddmm_sm90_wgmma.c that does so */
void spk_cuda_list_tiles_build(int block_rows, int block_cols, int width, spk_build *build);
/* At the end of a device; driver NULL: it is lost. */
void spk_cuda_deferrals_release(const spk_cuda_driver *driver, const spk_mem *mem, struct spk_cuda_deferrals **deferrals);
void spk_cuda_deferred_build(spk_index_type type, bool settle, spk_build *build); /* its programs */

#endif
