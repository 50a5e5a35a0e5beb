/* The queries of a tile of packed sequences: those of each sequence are tiles of their own, and behind the last one there are none. */
#ifndef SPK_DEVICE_ATTENTION_PACKED_CUH
#define SPK_DEVICE_ATTENTION_PACKED_CUH

#include "backend/cuda/device/attention/attention.h"

/* Queries [row, end) of sequence `number`; row == end: there are none. */
struct packed_tile {
    int number, row, end;
};

/* Tile number `tile` of a head, of `rows` queries each; by a warp, all of whose lanes get it. */
inline packed_tile find_packed_tile(const attention_task &task, int rows, int tile)
{
    const int lane = threadIdx.x % 32;
    for (int base = 0; base < task.sequences; base += 32) {
        const int number = base + lane, end = number < task.sequences ? __ldg(task.query_ends + number) : 0;
        const int begin = number > 0 && number < task.sequences ? __ldg(task.query_ends + number - 1) : 0;
        const int tiles = (end - begin + rows - 1) / rows;
        int before = tiles; /* those of this sequence and of the lanes before */
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, before, step);
            before += lane >= step ? other : 0;
        }
        const unsigned behind = __ballot_sync(~0u, before > tile);
        if (behind != 0) {
            const int found = __ffs(behind) - 1, part = tile - __shfl_sync(~0u, before - tiles, found);
            return packed_tile{base + found, __shfl_sync(~0u, begin, found) + part * rows, __shfl_sync(~0u, end, found)};
        }
        tile -= __shfl_sync(~0u, before, 31);
    }
    return packed_tile{0, 0, 0};
}

#endif
