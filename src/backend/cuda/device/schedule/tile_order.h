/* Which output tile a block of a persistent grid takes when: what the host fills in (host/schedule/schedule.h, cluster_split.h,
 * cluster_cut.h, row_period.h) and scheduler.cuh reads. */
#ifndef SPK_CUDA_TILE_ORDER_H
#define SPK_CUDA_TILE_ORDER_H

#include "backend/cuda/device/common/both.h"

typedef struct spk_tile_order {
    const int
        *order; /* of tiles of unequal length: where each block's tiles begin in the list (gridDim.x + 1), the list; null: all alike */
    int row_tiles, col_tiles;
    int tiles;        /* row_tiles * col_tiles */
    int direct;       /* 1: D is stored element by element, without TMA */
    int across;       /* 1: column tiles fastest; 0: row tiles */
    int item_columns; /* column tiles of an item of the batch: those of the items follow one another */
    int period;       /* of columns, by which rows are turned (host/schedule/row_period.h); 0: none is */
} spk_tile_order;

/* The entry that a list of columns from `column` on begins with, if they follow one another: that of the first multiple of `period`. */
SPK_BOTH int turn_start(int column, int period)
{
    return period - 1 - (column + period - 1) % period;
}

/* Where pieces of 4 words begin (host/schedule/cluster_split.h), behind the `blocks` + 1 places where each block's begin: words, a multiple
 * of 4. */
SPK_BOTH unsigned pieces_begin(unsigned blocks)
{
    return (blocks + 4) & ~3u;
}

#endif
