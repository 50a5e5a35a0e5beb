/* Host side of the kernels on mma.sync (device/warp_mma.cuh): how a block's rows and the columns are cut for the warps. */
#ifndef SPK_BACKEND_CUDA_KERNELS_WARP_MMA_H
#define SPK_BACKEND_CUDA_KERNELS_WARP_MMA_H

#include "backend/cuda/kernels/gather.h"

enum {
    WARP_MMA_HEIGHT,
    WARP_MMA_TILE_N,
    WARP_MMA_TILE_K,
    WARP_MMA_STAGES,
    WARP_MMA_SWAP,
    WARP_MMA_SPLIT
}; /* HEIGHT: most rows of a tile */
enum { WARP_MMA_MOST_WARPS = 8 };

typedef struct warp_mma_shape {
    gather_shape team;
    int warps_m, warps_n;
} warp_mma_shape;

/* The tile for blocks of so many rows, and its warps. sums: of a warp, a power of two. */
static inline warp_mma_shape warp_mma_tile(int rows, const spk_params *params, int sums)
{
    const int most = params->v[WARP_MMA_HEIGHT], tile_n = params->v[WARP_MMA_TILE_N];
    const int step = params->v[WARP_MMA_SWAP] ? 8 : 16, parts = (rows + most - 1) / most,
              height = gather_round((rows + parts - 1) / parts, step);
    warp_mma_shape shape = {.warps_m = 1, .warps_n = 1};
    while (shape.warps_n < WARP_MMA_MOST_WARPS && tile_n / shape.warps_n >= 64 && height * (tile_n / shape.warps_n) > sums)
        shape.warps_n *= 2; /* a warp is at least 32 columns wide */
    while (shape.warps_m * shape.warps_n < WARP_MMA_MOST_WARPS && height / shape.warps_m % (2 * step) == 0 &&
           height / shape.warps_m * (tile_n / shape.warps_n) > sums)
        shape.warps_m *= 2;
    /* Warps that are long strips load more than square ones. */
    while (height / shape.warps_m >= 64 && height / shape.warps_m % (2 * step) == 0 && tile_n / shape.warps_n <= 32 && shape.warps_n > 1) {
        shape.warps_n /= 2;
        shape.warps_m *= 2;
    }
    shape.team = (gather_shape){.tile_m = height,
                                .tile_n = tile_n,
                                .tile_k = params->v[WARP_MMA_TILE_K],
                                .stages = params->v[WARP_MMA_STAGES],
                                .threads = 32 * shape.warps_m * shape.warps_n};
    return shape;
}

/* adding: the entry that adds the pieces of long rows. */
static inline warp_mma_shape warp_mma_shape_of(const spk_problem *problem, const spk_params *params, int sums, const char *adding)
{
    warp_mma_shape shape = warp_mma_tile(gather_block_rows(problem), params, sums);
    shape.team.adding = params->v[WARP_MMA_SPLIT] ? adding : NULL;
    gather_complete(problem, &shape.team);
    return shape;
}

static inline bool warp_mma_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, int sums,
                                       const char *adding, const char **why)
{
    const int rows = gather_block_rows(problem), cols = gather_block_cols(problem), swap = params->v[WARP_MMA_SWAP],
              most = params->v[WARP_MMA_HEIGHT];
    const int least = sums / 32; /* HEIGHT: what the table offers at least */
    const warp_mma_shape shape = warp_mma_shape_of(problem, params, sums, adding);
    if (swap && gather_round(rows, 16) == gather_round(rows, 8))
        *why = "blocks of so many rows fill the side of 16";
    else if (!swap && rows <= 8)
        *why = "blocks of so few rows fill the side of 8 only";
    else if (most > least && gather_round(rows, swap ? 8 : 16) <= most / 2)
        *why = "a lower tile holds the block's rows";
    else if (params->v[WARP_MMA_TILE_N] > 64 && params->v[WARP_MMA_TILE_N] / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (params->v[WARP_MMA_TILE_K] > 32 && cols % params->v[WARP_MMA_TILE_K] != 0)
        *why = "a step so deep must lie inside a block";
    else if (shape.team.tile_m / shape.warps_m * (shape.team.tile_n / shape.warps_n) > 2 * sums)
        *why = "a warp would keep too many sums";
    else
        gather_applicable(problem, device, &shape.team, why);
    return *why == NULL;
}

static inline void warp_mma_build(const spk_problem *problem, const spk_params *params, int sums, const char *file, const char *entry,
                                  const char *adding, spk_build *build)
{
    char more[64];
    const warp_mma_shape shape = warp_mma_shape_of(problem, params, sums, adding);
    snprintf(more, sizeof more, "-DSWAP=%d -DWARPS_M=%d -DWARPS_N=%d", params->v[WARP_MMA_SWAP], shape.warps_m, shape.warps_n);
    gather_build(problem, &shape.team, file, entry, more, build);
}

#endif
