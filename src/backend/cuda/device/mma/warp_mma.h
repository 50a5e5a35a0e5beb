/* A team's tile with the warps' tensor instructions (warp_mma.cuh): what both sides know beside the team's constants. */
#ifndef SPK_CUDA_WARP_MMA_H
#define SPK_CUDA_WARP_MMA_H

#include "backend/cuda/device/copy/team.h"

/* The constants.
 *   SWAP              1: the block's rows are on the instruction's side of 8; 0: on that of 16
 *   WARPS_M WARPS_N   warps of a team down and across the tile */
#define WARP_MMA_CONSTANTS(C) \
    C(SWAP, swap)             \
    C(WARPS_M, warps_m)       \
    C(WARPS_N, warps_n)
typedef struct warp_mma_constants {
    WARP_MMA_CONSTANTS(SPK_CONSTANT_MEMBER)
} warp_mma_constants;

SPK_BOTH int warp_mma_threads(int warps_m, int warps_n)
{
    return 32 * warps_m * warps_n;
}

#endif
