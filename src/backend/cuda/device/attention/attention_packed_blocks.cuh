/* The queries of a tile of packed sequences under a mask of blocks: a tile lies in one sequence and in one block row of the mask, which is
 * counted from the first query of all. */
#ifndef SPK_DEVICE_ATTENTION_PACKED_BLOCKS_CUH
#define SPK_DEVICE_ATTENTION_PACKED_BLOCKS_CUH

#include "backend/cuda/device/attention/attention_packed.cuh"

/* Tile number `tile` of a head; a block row has block_tiles tiles of `rows` queries each, whichever sequences it is of. Behind the last
 * one, and where a sequence has no query in it, row >= end. By a warp, all of whose lanes get it. */
inline packed_tile find_packed_block_tile(const attention_task &task, int block_rows, int block_tiles, int rows, int tile)
{
    const int lane = threadIdx.x % 32;
    for (int base = 0; base < task.sequences; base += 32) {
        const int number = base + lane, end = number < task.sequences ? __ldg(task.query_ends + number) : 0;
        const int begin = number > 0 && number < task.sequences ? __ldg(task.query_ends + number - 1) : 0;
        const int blocks = begin < end ? (end - 1) / block_rows - begin / block_rows + 1 : 0, tiles = blocks * block_tiles;
        int before = tiles; /* those of this sequence and of the lanes before */
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, before, step);
            before += lane >= step ? other : 0;
        }
        const unsigned behind = __ballot_sync(~0u, before > tile);
        if (behind != 0) {
            const int found = __ffs(behind) - 1, part = tile - __shfl_sync(~0u, before - tiles, found);
            const int first = __shfl_sync(~0u, begin, found), last = __shfl_sync(~0u, end, found);
            const int block = (first / block_rows + part / block_tiles) * block_rows, row = block + part % block_tiles * rows;
            return packed_tile{base + found, max(first, row), min(min(last, block + block_rows), row + rows)};
        }
        tile -= __shfl_sync(~0u, before, 31);
    }
    return packed_tile{0, 0, 0};
}

#endif
