/* Which output tile a block of a persistent grid takes when. */
#ifndef SPK_DEVICE_SCHEDULER_CUH
#define SPK_DEVICE_SCHEDULER_CUH

#include "backend/cuda/device/ptx.cuh"

/* Filled by the host (plan/sm90.h). */
struct spk_tile_order {
    const int
        *order; /* of tiles of unequal length: where each block's tiles begin in the list (gridDim.x + 1), the list; null: all alike */
    int row_tiles, col_tiles;
    int tiles;        /* row_tiles * col_tiles */
    int direct;       /* 1: D is stored element by element, without TMA */
    int across;       /* 1: column tiles fastest; 0: row tiles */
    int item_columns; /* column tiles of an item of the batch: those of the items follow one another */
    int period;       /* of columns, by which rows are turned (plan/turns.h); 0: none is */
};

namespace sm90 {

/* The block's tile number `turn`; -1: it has no more. Row tiles fastest: blocks running together share columns of B. Column tiles fastest:
 * neighbours read the same of A at the same time, which memory answers once. Tiles of unequal length: as the host shared them out, which
 * numbers them column tiles fastest. block, blocks: other than a block of threads and the grid where a cluster shares its tiles. */
SPK_INLINE int tile_of_turn(const spk_tile_order &order, int turn, unsigned block = blockIdx.x, unsigned blocks = gridDim.x)
{
    if (order.order != nullptr) {
        const int at = __ldg(order.order + block) + turn;
        return at < __ldg(order.order + block + 1) ? __ldg(order.order + blocks + 1 + at) : -1;
    }
    const int tile = turn * (int)blocks + (int)block;
    return tile < order.tiles ? tile : -1;
}

SPK_INLINE void tile_place(const spk_tile_order &order, int tile, int &row, int &col)
{
    if (!order.across) {
        row = tile % order.row_tiles;
        col = tile / order.row_tiles;
    } else {
        row = tile / order.col_tiles;
        col = tile % order.col_tiles;
    }
}

} // namespace sm90

#endif
