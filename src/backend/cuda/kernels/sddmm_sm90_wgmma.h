/* sddmm_sm90_wgmma: what both sides derive of the constants that the program is compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SDDMM_SM90_WGMMA_H
#define SPK_BACKEND_CUDA_KERNELS_SDDMM_SM90_WGMMA_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/schedule/sddmm_tile.h"
#include "backend/cuda/device/common/sm90.h"

typedef struct sddmm_work {
    const int *words;   /* of the tiles (device/schedule/sddmm_tile.h) */
    int tiles, parts;   /* of a pattern; of K */
    int steps;          /* of SDDMM_CHUNK along K */
    long long elements; /* of an item's D */
} sddmm_work;

/* The constants.
 *   BLOCK_ROWS BLOCK_COLS RAGGED   as in block_store.cuh
 *   CELL_ROWS CELL_COLS   16, 32 or 64
 *   HEIGHT                128: each warpgroup has rows of its own; 64: both have the same, and columns side by side
 *   WIDTH SLOTS           columns of a warpgroup's window; cells' columns of a tile
 *   CLUSTER               blocks of threads that share a tile, a part of K each; each adds up some of its columns
 *   SHARE                 2: two blocks of threads take neighbouring tiles, which have the same rows, and each brings half of X to both */
#define SDDMM_CONSTANTS(C)    \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(RAGGED, ragged)         \
    C(CELL_ROWS, cell_rows)   \
    C(CELL_COLS, cell_cols)   \
    C(HEIGHT, height)         \
    C(WIDTH, width)           \
    C(SLOTS, slots)           \
    C(CLUSTER, cluster)       \
    C(SHARE, share)
typedef struct sddmm_constants {
    SDDMM_CONSTANTS(SPK_CONSTANT_MEMBER)
} sddmm_constants;

enum { SDDMM_CHUNK = 64, SDDMM_LINE_BYTES = SDDMM_CHUNK * 2, SDDMM_THREADS = 384 }; /* CHUNK: of K, in a stage */

typedef struct sddmm_shape {
    int rows, tile_rows, tile_cols;           /* cells: of a tile, of a warpgroup */
    int x_cell, y_cell, x_bytes, stage_bytes; /* of a stage */
    int staging_bytes;
    int own;             /* sums of a thread that it adds up for the cluster */
    int exchanged_bytes; /* what a cluster's blocks send into a ring */
    int stages, producers, shared_bytes;
} sddmm_shape;

/* row_major: D's blocks are. */
SPK_BOTH sddmm_shape sddmm_shape_of(sddmm_constants c, int row_major)
{
    sddmm_shape s = {0};
    s.rows = c.height / c.cell_rows;
    s.tile_rows = 64 / c.cell_rows;
    s.tile_cols = c.width / c.cell_cols;
    s.x_cell = c.cell_rows * SDDMM_LINE_BYTES;
    s.y_cell = c.cell_cols * SDDMM_LINE_BYTES;
    s.x_bytes = s.rows * s.x_cell;
    s.stage_bytes = s.x_bytes + c.slots * s.y_cell;
    s.staging_bytes = 8 * 4 * sddmm_staging(c.cell_cols, row_major);
    s.own = c.width / 2 / c.cluster;
    s.exchanged_bytes = (c.cluster - 1) * s.own * 1024;
    s.stages = sm90_stages(SM90_SHARED_BYTES - SM90_SHARED_SLACK - s.staging_bytes, s.stage_bytes, SM90_MOST_STAGES);
    s.producers = s.stages < 4 ? 2 : 4;
    s.shared_bytes = SM90_ALIGNMENT_BYTES + s.stages * s.stage_bytes + s.staging_bytes;
    return s;
}

#endif
