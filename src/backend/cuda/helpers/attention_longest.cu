/* attention_longest: a block of threads sorts a section by counting, tiles of one length in the order in which threads meet: results do not
 * depend on it. Bound: latency. */
#include "backend/cuda/helpers/attention_longest.h"

#include "backend/cuda/device/ptx/launch.cuh"

constexpr int THREADS = ATTENTION_LONGEST_THREADS, LENGTHS = ATTENTION_LONGEST_LENGTHS;
static_assert(THREADS == LENGTHS && THREADS == ATTENTION_LONGEST_SEQUENCES, "a thread has one of each");

/* The sum of what the threads before this one have; by all. */
inline int sum_before(int own, int (&sums)[32])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int upto = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, upto, step);
        upto += lane >= step ? other : 0;
    }
    if (lane == 31)
        sums[warp] = upto;
    __syncthreads();
    int before = 0;
    for (int w = 0; w < warp; w++)
        before += sums[w];
    __syncthreads();
    return before + upto - own;
}

/* Tiles of a sequence's queries; with a mask, each block row has block_tiles. */
inline int tiles_of(const attention_longest_task &all, int number)
{
    const attention_task &task = all.task;
    const int begin = number > 0 ? task.query_ends[number - 1] : 0, end = task.query_ends[number];
    if (task.offsets == nullptr)
        return (end - begin + all.rows - 1) / all.rows;
    return begin < end ? ((end - 1) / all.block_rows - begin / all.block_rows + 1) * all.block_tiles : 0;
}

/* Steps of a tile, or blocks of its list. firsts: the first tile of each sequence. */
inline int length_of(const attention_longest_task &all, int tile, const int (&firsts)[THREADS])
{
    const attention_task &task = all.task;
    const int row_tile = tile % all.row_tiles, rest = tile / all.row_tiles, item = rest / all.head_tiles;
    int number = 0, row = row_tile / all.block_tiles * all.block_rows + row_tile % all.block_tiles * all.rows;
    if (task.sequences > 0) {
        int high = task.sequences - 1;
        while (number < high) {
            const int middle = (number + high + 1) / 2;
            if (firsts[middle] <= row_tile)
                number = middle;
            else
                high = middle - 1;
        }
        const int begin = number > 0 ? task.query_ends[number - 1] : 0, part = row_tile - firsts[number];
        row = begin + part * all.rows;
        if (task.offsets != nullptr)
            row = max(begin, (begin / all.block_rows + part / all.block_tiles) * all.block_rows + part % all.block_tiles * all.rows);
    }
    const attention_sequence sequence = attention_sequence_of(&task, item, number);
    if (row >= sequence.query_end)
        return 0;
    if (task.offsets != nullptr) {
        const int list = attention_list(&task, item, rest % all.head_tiles * all.heads, row);
        return task.offsets[list + 1] - task.offsets[list];
    }
    const int shift = sequence.shift - sequence.query, last = min(row + all.rows, sequence.query_end) - 1;
    const attention_seen upper = attention_seen_of(&task, row + shift, sequence.keys),
                         lower = attention_seen_of(&task, last + shift, sequence.keys);
    return (lower.end - upper.begin + lower.sinks + all.step_keys - 1) / all.step_keys;
}

extern "C" __global__ void __launch_bounds__(ATTENTION_LONGEST_THREADS, 1)
    attention_longest(const __grid_constant__ attention_longest_task all)
{
    __shared__ int counts[LENGTHS], firsts[THREADS], sums[32];
    const int t = threadIdx.x, first = blockIdx.x * all.section, count = min(all.section, all.tiles - first);
    previous_launch_done();
    if (blockIdx.x == 0 && t == 0)
        *all.next = 0;
    counts[t] = 0;
    firsts[t] = sum_before(t < all.task.sequences ? tiles_of(all, t) : 0, sums);
    __syncthreads();
    for (int tile = first + t; tile < first + count; tile += THREADS) {
        const int shorter = LENGTHS - 1 - min(length_of(all, tile, firsts), LENGTHS - 1);
        all.lengths[tile] = shorter;
        atomicAdd(counts + shorter, 1);
    }
    __syncthreads();
    const int begin = sum_before(counts[t], sums);
    counts[t] = begin;
    __syncthreads();
    const int top = all.section / ATTENTION_LONGEST_TOP, own_top = count / ATTENTION_LONGEST_TOP;
    const int last = all.tiles - (gridDim.x - 1) * all.section, tops = (gridDim.x - 1) * top + last / ATTENTION_LONGEST_TOP;
    for (int tile = first + t; tile < first + count; tile += THREADS) {
        const int rank = atomicAdd(counts + all.lengths[tile], 1);
        const int place = rank < own_top ? blockIdx.x * top + rank : tops + blockIdx.x * (all.section - top) + rank - own_top;
        all.list[place] = tile;
    }
}
