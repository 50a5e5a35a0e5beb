/* gemm_sm90_wgmma: what both sides derive of the constants that the program is compiled with, and which tile a block computes when. */
#ifndef SPK_BACKEND_CUDA_KERNELS_GEMM_SM90_WGMMA_H
#define SPK_BACKEND_CUDA_KERNELS_GEMM_SM90_WGMMA_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/sm90.h"

/* The constants.
 *
 *   HEIGHT, WIDTH         rows and columns of a tile of D
 *   PINGPONG              0: multiplying warpgroups share a tile, one below the other; 1: each has tiles of its own, and two take turns:
 *                         one stores while the other multiplies
 *   CLUSTER_M, CLUSTER_N  2: two blocks one below the other share their columns of B, side by side their rows of A: each brings half for
 *                         both
 *   SPLIT                 blocks of a cluster that add their sums of one tile, each of a part of K
 *   A_WHOLE, B_WHOLE      1: its lines run along M (N), and one three-dimensional box brings its tile (M, N % 64 == 0)
 *   CUT                   1: groups cut the rows or columns of D (GROUP_AXIS says which)
 */
#define GEMM_CONSTANTS(C)   \
    C(HEIGHT, height)       \
    C(WIDTH, width)         \
    C(PINGPONG, pingpong)   \
    C(CLUSTER_M, cluster_m) \
    C(CLUSTER_N, cluster_n) \
    C(SPLIT, split)         \
    C(A_WHOLE, a_whole)     \
    C(B_WHOLE, b_whole)     \
    C(CUT, cut)
typedef struct gemm_constants {
    GEMM_CONSTANTS(SPK_CONSTANT_MEMBER)
} gemm_constants;

enum {
    GEMM_CHUNK = 64,         /* of K, that a stage holds: rows of 128 bytes */
    GEMM_MOST_GROUPS = 1024, /* that cut D */
    GEMM_GROUP_BYTES = GEMM_MOST_GROUPS * 4 + 16,
    /* Of a ring: more in flight than memory needs is slower. Those of large stages have few in any case. */
    GEMM_SMALL_STAGE_BYTES = 20 << 10,
    GEMM_SMALL_RING_BYTES = 128 << 10,
    GEMM_MOST_STAGES = 12
};

typedef struct gemm_shape {
    int consumers, wg_m;               /* multiplying warpgroups; 64s of rows of one */
    int sums;                          /* of a thread */
    int sharing, cluster;              /* blocks that share operands; blocks of a cluster */
    int a_bytes, b_bytes, stage_bytes; /* of a stage */
    int staging_columns;               /* of D, that go to memory at a time */
    int staging_bytes;                 /* of them, of 64 rows */
    int exchange_bytes;                /* of shared memory where the blocks of a cluster add their sums; D is not staged then */
    int stages, buffers, shared_bytes; /* of the ring; staging tiles of a warpgroup; of a block */
    int producer_threads, threads;     /* producer: a warpgroup, where registers move from it to the others */
} gemm_shape;

/* Stages as many as fit; a second staging tile where at least four stages stay. */
SPK_BOTH gemm_shape gemm_fit(gemm_constants c, gemm_shape s)
{
    const int most = s.stage_bytes < GEMM_SMALL_STAGE_BYTES ? GEMM_SMALL_RING_BYTES / s.stage_bytes : GEMM_MOST_STAGES;
    const int room = SM90_SHARED_BYTES - SM90_SHARED_SLACK - (c.cut ? GEMM_GROUP_BYTES : 0);
    for (s.buffers = 2; s.buffers >= 1; s.buffers--) {
        const int staging = c.split > 1 ? s.exchange_bytes : s.consumers * s.buffers * s.staging_bytes;
        s.stages = sm90_stages(room - staging, s.stage_bytes, most < GEMM_MOST_STAGES ? most : GEMM_MOST_STAGES);
        s.shared_bytes = SM90_ALIGNMENT_BYTES + s.stages * s.stage_bytes + staging;
        if (s.stages >= 4)
            return s;
    }
    s.buffers = 1;
    return s;
}

SPK_BOTH gemm_shape gemm_shape_of(gemm_constants c)
{
    gemm_shape s = {0};
    s.wg_m = c.pingpong ? c.height / 64 : c.height == 256 ? 2 : 1;
    s.consumers = c.pingpong ? 2 : c.height / 64 / s.wg_m;
    s.sums = s.wg_m * c.width / 2;
    s.sharing = c.cluster_m * c.cluster_n;
    s.cluster = s.sharing * c.split;
    s.a_bytes = c.height * GEMM_CHUNK * 2;
    s.b_bytes = c.width * GEMM_CHUNK * 2;
    s.stage_bytes = s.a_bytes + s.b_bytes;
    s.staging_columns = c.width < 64 ? c.width : 64;
    s.staging_bytes = s.staging_columns * (SM90_STAGING_BYTES / 64);
    s.producer_threads = s.consumers > 1 ? 128 : 32;
    s.threads = s.consumers * 128 + s.producer_threads;
    if (c.split > 1)
        s.exchange_bytes = c.split * cluster_owned(cluster_fours(s.wg_m, c.width), c.split) * cluster_line_bytes(s.consumers);
    return gemm_fit(c, s);
}

/* Which tiles of D there are, and which cluster computes which when. */
typedef struct gemm_order {
    int row_tiles, col_tiles; /* of an item; each of all blocks of a cluster. On an axis that groups cut the device counts them */
    int item_tiles, tiles;    /* row_tiles * col_tiles; of all items, or at most so many */
    /* Tiles go by groups of `group` lines, line by line: down = 0: of columns of tiles; 1: of rows. What runs at once shares a few rows of
     * A and a few columns of B. */
    int group, down;
    int steps;  /* chunks of K */
    int direct; /* 1: D is stored element by element, without TMA */
    int early;  /* 1: blocks of the next launch may start as soon as there is room. It pays for a short product, and costs a long one that
                 * waits for memory */
    int once;   /* 1: L2 need not keep what it brings of A */
} gemm_order;

#endif
