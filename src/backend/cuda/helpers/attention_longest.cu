/* attention_longest: one block sorts by counting, tiles of one length by their numbers as far as the order in which threads meet allows:
 * results do not depend on it. Bound: latency. */
#include "backend/cuda/helpers/attention_longest.h"

#include "backend/cuda/device/launch.cuh"

constexpr int THREADS = ATTENTION_LONGEST_THREADS, LENGTHS = ATTENTION_LONGEST_LENGTHS;

/* Blocks of a tile's list. */
inline int length_of(const attention_longest_task &all, int tile)
{
    const int row_tile = tile % all.row_tiles, rest = tile / all.row_tiles;
    const int row = row_tile / all.block_tiles * all.block_rows + row_tile % all.block_tiles * all.rows;
    if (row >= all.task.queries)
        return 0;
    const int list = attention_list(&all.task, rest / all.head_tiles, rest % all.head_tiles * all.heads, row);
    return all.task.offsets[list + 1] - all.task.offsets[list];
}

extern "C" __global__ void __launch_bounds__(ATTENTION_LONGEST_THREADS, 1)
    attention_longest(const __grid_constant__ attention_longest_task all)
{
    __shared__ int counts[LENGTHS], sums[32];
    const int t = threadIdx.x;
    int *const buckets = all.list + all.tiles;
    previous_launch_done();
    counts[t] = 0;
    __syncthreads();
    for (int tile = t; tile < all.tiles; tile += THREADS) {
        const int bucket = LENGTHS - 1 - min(length_of(all, tile), LENGTHS - 1);
        buckets[tile] = bucket;
        atomicAdd(counts + bucket, 1);
    }
    __syncthreads();
    /* where each bucket begins */
    const int own = counts[t];
    int before = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, before, step);
        before += t % 32 >= step ? other : 0;
    }
    if (t % 32 == 31)
        sums[t / 32] = before;
    __syncthreads();
    if (t < 32) {
        int sum = sums[t];
        const int mine = sum;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            sum += t >= step ? other : 0;
        }
        sums[t] = sum - mine;
    }
    __syncthreads();
    counts[t] = before - own + sums[t / 32];
    __syncthreads();
    for (int tile = t; tile < all.tiles; tile += THREADS) {
        const int rank = atomicAdd(counts + buckets[tile], 1), wave = rank / all.workers * all.workers, within = rank - wave;
        const int last = min(all.workers, all.tiles - wave) - 1;
        all.list[wave + (rank / all.workers % 2 == 0 ? within : last - within)] = tile;
    }
}
