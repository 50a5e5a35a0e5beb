/* Host side of the kernels on mma.sync (device/mma/warp_mma.cuh): how a block's rows and the columns are cut for the warps. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_WARP_MMA_H
#define SPK_BACKEND_CUDA_HOST_TILES_WARP_MMA_H

#include "backend/cuda/device/mma/warp_mma.h"
#include "backend/cuda/host/tiles/gather.h"

/* The tunables of a row. */
typedef struct warp_mma_tunables {
    int height, tile_n, tile_k, stages, swap, split; /* height: most rows of a tile */
} warp_mma_tunables;
#define WARP_MMA_TUNED(row, params)                                                                                      \
    ((warp_mma_tunables){SPK_TUNED(row, params, HEIGHT), SPK_TUNED(row, params, TILE_N), SPK_TUNED(row, params, TILE_K), \
                         SPK_TUNED(row, params, STAGES), SPK_TUNED(row, params, SWAP), SPK_TUNED(row, params, SPLIT)})

typedef struct warp_mma_shape {
    gather_shape team;
    warp_mma_constants c;
} warp_mma_shape;

/* The tile for blocks of so many rows, and its warps. sums: of a warp, a power of two. */
warp_mma_shape spk_warp_mma_tile(int rows, warp_mma_tunables tuned, int sums);

/* A tile of that size, a dense product's, in warps that are as square as can be, four of them where it is large enough. */
warp_mma_shape spk_warp_mma_square(int height, int width, int sums);

/* Whether instructions fill its warps, and warps keep no more than so many sums. */
bool spk_warp_mma_fills(const warp_mma_shape *shape, int sums);
/* The share of its time that a warp multiplies: the rest it loads operands, an element along its sides in `load` times that of a sum. */
double spk_warp_mma_busy(const warp_mma_shape *shape, double load);

/* adding: the entry that adds the pieces of long rows. */
warp_mma_shape spk_warp_mma_shape_of(const spk_problem *problem, warp_mma_tunables tuned, int sums, const char *adding);
bool spk_warp_mma_applicable(const spk_problem *problem, const spk_device *device, warp_mma_tunables tuned, int sums, const char *adding,
                             const char **why);
/* What the program is compiled with beyond the team's constants. */
void spk_warp_mma_define(warp_mma_constants constants, spk_build *build);
void spk_warp_mma_build(const spk_problem *problem, warp_mma_tunables tuned, int sums, const char *file, const char *entry,
                        const char *adding, spk_build *build);

#endif
