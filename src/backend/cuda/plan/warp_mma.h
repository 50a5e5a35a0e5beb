/* Host side of the kernels on mma.sync (device/warp_mma.cuh): how a block's rows and the columns are cut for the warps. */
#ifndef SPK_BACKEND_CUDA_PLAN_WARP_MMA_H
#define SPK_BACKEND_CUDA_PLAN_WARP_MMA_H

#include "backend/cuda/plan/gather.h"

enum {
    WARP_MMA_HEIGHT,
    WARP_MMA_TILE_N,
    WARP_MMA_TILE_K,
    WARP_MMA_STAGES,
    WARP_MMA_SWAP,
    WARP_MMA_SPLIT
}; /* HEIGHT: most rows of a tile */

typedef struct warp_mma_shape {
    gather_shape team;
    int warps_m, warps_n;
} warp_mma_shape;

/* The tile for blocks of so many rows, and its warps. sums: of a warp, a power of two. */
warp_mma_shape spk_warp_mma_tile(int rows, const spk_params *params, int sums);

/* adding: the entry that adds the pieces of long rows. */
warp_mma_shape spk_warp_mma_shape_of(const spk_problem *problem, const spk_params *params, int sums, const char *adding);
bool spk_warp_mma_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, int sums, const char *adding,
                             const char **why);
void spk_warp_mma_build(const spk_problem *problem, const spk_params *params, int sums, const char *file, const char *entry,
                        const char *adding, spk_build *build);

#endif
