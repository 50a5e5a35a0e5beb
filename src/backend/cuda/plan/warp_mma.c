/* Tiles for mma.sync, and what of them fits a problem. */
#include "backend/cuda/plan/warp_mma.h"

#include <stdio.h>

enum { WARP_MMA_MOST_WARPS = 8 };

warp_mma_shape spk_warp_mma_tile(int rows, const spk_params *params, int sums)
{
    const int most = params->v[WARP_MMA_HEIGHT], tile_n = params->v[WARP_MMA_TILE_N];
    const int step = params->v[WARP_MMA_SWAP] ? 8 : 16, parts = (rows + most - 1) / most,
              height = spk_gather_round((rows + parts - 1) / parts, step);
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

warp_mma_shape spk_warp_mma_shape_of(const spk_problem *problem, const spk_params *params, int sums, const char *adding)
{
    warp_mma_shape shape = spk_warp_mma_tile(spk_gather_block_rows(problem), params, sums);
    shape.team.adding = params->v[WARP_MMA_SPLIT] ? adding : NULL;
    spk_gather_complete(problem, &shape.team);
    return shape;
}

bool spk_warp_mma_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, int sums, const char *adding,
                             const char **why)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), swap = params->v[WARP_MMA_SWAP],
              most = params->v[WARP_MMA_HEIGHT];
    const int least = sums / 32; /* HEIGHT: what the table offers at least */
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, params, sums, adding);
    if (swap && spk_gather_round(rows, 16) == spk_gather_round(rows, 8))
        *why = "blocks of so many rows fill the side of 16";
    else if (!swap && rows <= 8)
        *why = "blocks of so few rows fill the side of 8 only";
    else if (most > least && spk_gather_round(rows, swap ? 8 : 16) <= most / 2)
        *why = "a lower tile holds the block's rows";
    else if (params->v[WARP_MMA_TILE_N] > 64 && params->v[WARP_MMA_TILE_N] / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (params->v[WARP_MMA_TILE_K] > 32 && cols % params->v[WARP_MMA_TILE_K] != 0)
        *why = "a step so deep must lie inside a block";
    else if (shape.team.tile_m / shape.warps_m * (shape.team.tile_n / shape.warps_n) > 2 * sums)
        *why = "a warp would keep too many sums";
    else
        spk_gather_applicable(problem, device, &shape.team, why);
    return *why == NULL;
}

void spk_warp_mma_build(const spk_problem *problem, const spk_params *params, int sums, const char *file, const char *entry,
                        const char *adding, spk_build *build)
{
    char more[64];
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, params, sums, adding);
    snprintf(more, sizeof more, "-DSWAP=%d -DWARPS_M=%d -DWARPS_N=%d", params->v[WARP_MMA_SWAP], shape.warps_m, shape.warps_n);
    spk_gather_build(problem, &shape.team, file, entry, more, build);
}
