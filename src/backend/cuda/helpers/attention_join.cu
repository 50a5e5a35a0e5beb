/* attention_join: a warp a row. Shares are added in the order of their keys, so that a result has the same bits on every run. */
#include "backend/cuda/helpers/attention_join.h"

#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/common/problem.cuh"

constexpr int WARPS = ATTENTION_JOIN_THREADS / 32, EACH = 8; /* columns of a lane, at most */

extern "C" __global__ void __launch_bounds__(ATTENTION_JOIN_THREADS) attention_join(const __grid_constant__ attention_join_task task)
{
    const float infinity = __int_as_float(0x7f800000);
    const int of = task.rows / WARPS, lane = threadIdx.x % 32, r = blockIdx.x % of * WARPS + threadIdx.x / 32;
    const attention_joined tile = task.tiles[blockIdx.x / of];
    const attention_task &to = task.to;
    const int query = tile.row + r % task.of_head, head = tile.head + r / task.of_head;
    previous_launch_done();
    if (query >= tile.end)
        return;
    const float *lse = task.part_lse + ((long long)tile.share * task.rows + r) * 2;
    float most = -infinity, total = 0, sum[EACH] = {};
    for (int i = 0; i < tile.count; i++)
        most = fmaxf(most, lse[(long long)i * task.rows * 2]);
    for (int i = 0; i < tile.count && most > -infinity; i++) {
        const float *of = lse + (long long)i * task.rows * 2, weight = exp2f((of[0] - most) * LOG2_E) * of[1];
        const float *part = task.parts + ((long long)(tile.share + i) * task.rows + r) * to.depth_v;
        total += weight;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (weight != 0 && j * 32 + lane < to.depth_v)
                sum[j] += weight * part[j * 32 + lane];
    }
    element_a *o = (element_a *)to.o + tile.item * to.o_strides.item + head * to.o_strides.head + query * to.o_strides.row;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j * 32 + lane < to.depth_v)
            o[j * 32 + lane] = ::to<element_a>(total == 0 ? 0.0f : sum[j] / total);
    if (to.lse != nullptr && lane == 0)
        ((float *)to.lse)[tile.item * to.lse_strides.item + head * to.lse_strides.head + query * to.lse_strides.row] =
            most == -infinity ? most : lse_of(most, total);
}
