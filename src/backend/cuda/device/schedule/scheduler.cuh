/* Which output tile a block of a persistent grid takes when. */
#ifndef SPK_DEVICE_SCHEDULER_CUH
#define SPK_DEVICE_SCHEDULER_CUH

#include "backend/cuda/device/ptx/ptx.cuh"
#include "backend/cuda/device/schedule/tile_order.h"

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
