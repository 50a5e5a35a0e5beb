/* spmm_sm90_groups: what both sides derive of the constants that the program is compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_SM90_GROUPS_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_SM90_GROUPS_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/schedule/group_lists.h"
#include "backend/cuda/device/common/sm90.h"
#include "backend/cuda/device/schedule/tile_order.h"

/* The constants.
 *   BLOCK_ROWS BLOCK_COLS  of op(A): 16, 32 or 64 rows; a multiple of 16 columns
 *   HEIGHT                 rows of a group, 128 or 256: half of them to each of two multiplying warpgroups
 *   BN PRODUCERS           columns of a tile; warps that load
 *   SLOTS                  columns of the union in one stage
 *   CLUSTER                blocks of a cluster: neighbouring column tiles of one group, each of which brings its share of A's blocks to all
 *   EDGE_K B_WHOLE         as in spmm_sm90_wgmma.h */
#define GROUPS_CONSTANTS(C)   \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(HEIGHT, height)         \
    C(BN, bn)                 \
    C(PRODUCERS, producers)   \
    C(SLOTS, slots)           \
    C(CLUSTER, cluster)       \
    C(EDGE_K, edge_k)         \
    C(B_WHOLE, b_whole)
typedef struct groups_constants {
    GROUPS_CONSTANTS(SPK_CONSTANT_MEMBER)
} groups_constants;

enum { GROUPS_THREADS = 384 }; /* three warpgroups, of which two multiply */

typedef struct groups_shape {
    int chunk, chunks;                /* columns of a stage's slot; stages a block */
    int wg_m, tiles, tile_rows, rows; /* tiles of 64 rows of a warpgroup, of a group; block rows of a tile, of a group */
    int piece_bytes, a_tile, b_tile;  /* of one slot */
    int a_bytes, stage_bytes;
    int stages, buffers, shared_bytes;
} groups_shape;

/* Stages as many as fit; a second staging tile where at least four stages stay. */
SPK_BOTH groups_shape groups_fit(groups_shape s)
{
    for (s.buffers = 2; s.buffers >= 1; s.buffers--) {
        const int staging = 2 * s.buffers * SM90_STAGING_BYTES;
        s.stages = sm90_stages(SM90_SHARED_BYTES - SM90_SHARED_SLACK - staging, s.stage_bytes, SM90_MOST_STAGES);
        s.shared_bytes = SM90_ALIGNMENT_BYTES + s.stages * s.stage_bytes + staging;
        if (s.stages >= 4)
            return s;
    }
    s.buffers = 1;
    return s;
}

SPK_BOTH groups_shape groups_shape_of(groups_constants c)
{
    groups_shape s = {0};
    s.chunk = sm90_chunk(c.block_cols);
    s.chunks = c.block_cols / s.chunk;
    s.wg_m = c.height / 128;
    s.tiles = 2 * s.wg_m;
    s.tile_rows = 64 / c.block_rows;
    s.rows = s.tiles * s.tile_rows;
    s.piece_bytes = c.block_rows * s.chunk * 2;
    s.a_tile = 64 * s.chunk * 2;
    s.b_tile = c.bn * s.chunk * 2;
    s.a_bytes = s.tiles * c.slots * s.a_tile;
    s.stage_bytes = s.a_bytes + c.slots * s.b_tile;
    return groups_fit(s);
}

#endif
