/* What the host sides of the SDDMM rows share: splitting K, whose sums meet in a second launch (device/epilogue/sddmm_reduce.cuh). */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_SDDMM_H
#define SPK_BACKEND_CUDA_HOST_TILES_SDDMM_H

#include "backend/cuda/host/indices/index.h"

typedef struct sddmm_functions {
    CUfunction multiply, reduce; /* reduce: where K is split */
} sddmm_functions;

bool spk_sddmm_ragged(const spk_problem *problem);

/* Of D, in all items of the batch. */
double spk_sddmm_elements(const spk_problem *problem);
spk_status spk_sddmm_load(const spk_bound *bound, const spk_build *program, int parts, sddmm_functions *functions);
size_t spk_sddmm_workspace(const spk_bound *bound, int parts);

/* D from the parts' sums. Inside spk_cuda_enter. */
spk_status spk_sddmm_launch_reduce(const spk_bound *bound, const sddmm_functions *functions, spk_cuda_arguments *arguments, int parts,
                                   CUstream stream);

/* What splitting K costs beside the products, in microseconds: the launch, and writing and reading the sums. */
double spk_sddmm_split_us(const spk_problem *problem, int parts);

/* least: elements of K that a part has at least; tiles: of D, in all items of the batch. */
bool spk_sddmm_split_fits(const spk_problem *problem, const spk_device *device, int parts, int64_t least, double tiles, const char **why);

#endif
