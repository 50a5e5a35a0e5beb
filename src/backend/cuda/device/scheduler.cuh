/* Which output tile a block of a persistent grid takes when. */
#ifndef SPK_DEVICE_SCHEDULER_CUH
#define SPK_DEVICE_SCHEDULER_CUH

#include "device/ptx.cuh"

/* Filled by the host (kernels/sm90.h). */
struct spk_tile_order {
    const int *order; /* row tiles, longest first; null: in their own order */
    int row_tiles, col_tiles;
    int tiles;  /* row_tiles * col_tiles */
    int uneven; /* 1: row tiles come by falling length; 0: all alike */
    int direct; /* 1: D is stored element by element, without TMA */
    int across; /* 1: column tiles fastest; 0: row tiles */
};

namespace sm90 {

/* The block's tiles: `at(wave)` for wave 0, 1, ... while wave * gridDim.x < tiles; -1: none in this wave.
 * Row tiles fastest: blocks running together share columns of B. Column tiles fastest: neighbours read the same of A at the same time, which memory
 * answers once. By length (column tiles fastest): all column tiles of the longest row first, the blocks' order turned round each wave, so that who had
 * the longest tile of one wave has the shortest of the next. */
SPK_INLINE int tile_of_wave(const spk_tile_order &order, int wave)
{
    const int place = order.uneven && (wave & 1) ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    const int tile = wave * (int)gridDim.x + place;
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
    if (order.order != nullptr)
        row = __ldg(order.order + row);
}

} // namespace sm90

#endif
