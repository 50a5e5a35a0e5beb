/* spmm_sm90_wgmma: what both sides derive of the constants that the program is compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_SM90_WGMMA_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_SM90_WGMMA_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/sm90.h"
#include "backend/cuda/device/schedule/tile_order.h"

/* The constants.
 *   BLOCK_ROWS BLOCK_COLS  of op(A)
 *   BN CONSUMERS CTAS      columns of a tile, multiplying warpgroups, blocks on a multiprocessor
 *   EDGE_K                 columns of the last block column that exist, 0: all
 *   B_WHOLE                1: one three-dimensional box brings a tile of B (row-major, N % 64 == 0)
 *   SPLIT                  blocks of a cluster, which share the tiles of long rows (host/schedule/cluster_split.h lists who computes what);
 * 1: no clusters CUT                    1: of two blocks, between which one tile is cut (host/schedule/cluster_cut.h) PINGPONG 1: two
 * warpgroups with tiles of their own, of which one stores while the other multiplies; 0: they share one */
#define WGMMA_CONSTANTS(C)    \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(BN, bn)                 \
    C(CONSUMERS, consumers)   \
    C(CTAS, ctas)             \
    C(EDGE_K, edge_k)         \
    C(B_WHOLE, b_whole)       \
    C(SPLIT, split)           \
    C(CUT, cut)               \
    C(PINGPONG, pingpong)
typedef struct wgmma_constants {
    WGMMA_CONSTANTS(SPK_CONSTANT_MEMBER)
} wgmma_constants;

enum { WGMMA_MOST_NARROW_STAGES = 16 };

typedef struct wgmma_shape {
    int tile_m, parts;                 /* rows of a tile; row tiles a block row */
    int chunk, chunks;                 /* columns of a stage; stages a block */
    int down;                          /* warpgroups one below the other; else side by side */
    int wg_m, wg_n;                    /* tiles of 64 rows of a warpgroup; their columns */
    int a_bytes, b_bytes, stage_bytes; /* of a stage */
    int staging_columns;               /* of D, that go to memory at a time */
    int exchange_bytes;                /* of shared memory where the blocks of a cluster add their sums; cut: that D is staged in, too */
    int stages, buffers, shared_bytes;
    int producer_threads, threads; /* producer: a warpgroup, where registers move from it to the others: 168 at entry */
} wgmma_shape;

/* Bytes of shared memory where D is staged, and of the sums of a cluster. */
SPK_BOTH int wgmma_staging_bytes(wgmma_constants c, wgmma_shape s)
{
    const int staged = c.consumers * s.buffers * s.staging_columns * (SM90_STAGING_BYTES / 64), sums = s.exchange_bytes;
    return !c.cut ? staged + sums : staged > sums ? staged : sums;
}

/* Stages as many as fit; a second staging tile where at least four stages stay. */
SPK_BOTH wgmma_shape wgmma_fit(wgmma_constants c, wgmma_shape s)
{
    const int most = c.bn < 64 ? WGMMA_MOST_NARROW_STAGES : SM90_MOST_STAGES;
    const int all = c.ctas == 1 ? SM90_SHARED_BYTES : SM90_PROCESSOR_BYTES / c.ctas - SM90_BLOCK_BYTES, room = all - SM90_SHARED_SLACK;
    for (s.buffers = 2; s.buffers >= 1; s.buffers--) {
        const int staging = wgmma_staging_bytes(c, s);
        s.stages = sm90_stages(room - staging, s.stage_bytes, most);
        s.shared_bytes = SM90_ALIGNMENT_BYTES + s.stages * s.stage_bytes + staging;
        if (s.stages >= 4)
            return s;
    }
    s.buffers = 1;
    return s;
}

SPK_BOTH wgmma_shape wgmma_shape_of(wgmma_constants c)
{
    wgmma_shape s = {0};
    s.tile_m = c.block_rows % 128 == 0 ? 128 : 64;
    s.parts = c.block_rows / s.tile_m;
    s.chunk = sm90_chunk(c.block_cols);
    s.chunks = c.block_cols / s.chunk;
    s.down = s.tile_m == 128 && c.consumers == 2 && !c.pingpong ? 2 : 1;
    s.wg_m = s.tile_m / s.down / 64;
    s.wg_n = c.pingpong ? c.bn : c.bn / (c.consumers / s.down);
    s.a_bytes = s.tile_m * s.chunk * 2;
    s.b_bytes = c.bn * s.chunk * 2;
    s.stage_bytes = (s.a_bytes + s.b_bytes + 1023) / 1024 * 1024;
    s.staging_columns = c.bn < 64 ? c.bn : 64;
    s.producer_threads = c.consumers == 2 && c.ctas == 1 ? 128 : 32;
    s.threads = c.consumers * 128 + s.producer_threads;
    if (c.split > 1)
        s.exchange_bytes = c.split * cluster_owned(cluster_fours(s.wg_m, s.wg_n), c.split) * cluster_line_bytes(c.consumers);
    return wgmma_fit(c, s);
}

#endif
