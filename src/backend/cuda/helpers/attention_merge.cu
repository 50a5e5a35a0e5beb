/* attention_merge: a block a query. Parts are added in their order, so that a result has the same bits on every run; all their loads are on
 * their way at once. */
#include "backend/cuda/helpers/attention_merge.h"

#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/common/problem.cuh"

constexpr int EACH = ATTENTION_MERGE_MOST / 32; /* parts of a lane */

/* What the parts of a query weigh: part p is with lane p % 32, at[p / 32]. */
struct part_weights {
    float at[EACH], lse; /* lse: of all, minus infinity: no part saw a key */
};

inline part_weights weigh(const attention_merge_task &task, long long rows, long long row)
{
    const float infinity = __int_as_float(0x7f800000);
    part_weights w;
    float sum[EACH], most = -infinity, total = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int part = i * 32 + threadIdx.x % 32;
        w.at[i] = part < task.splits ? task.part_lse[(part * rows + row) * 2] : -infinity;
        sum[i] = part < task.splits ? task.part_lse[(part * rows + row) * 2 + 1] : 0;
        most = fmaxf(most, w.at[i]);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        w.at[i] = w.at[i] == -infinity ? 0 : exp2f((w.at[i] - most) * LOG2_E) * sum[i];
        total += w.at[i];
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        total += __shfl_xor_sync(~0u, total, step);
    w.lse = most == -infinity ? most : lse_of(most, total);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        w.at[i] = most == -infinity ? 0 : w.at[i] / total;
    return w;
}

inline float weight_of(const part_weights &w, int part)
{
    float weight = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const float mine = __shfl_sync(~0u, w.at[i], part % 32);
        weight = part / 32 == i ? mine : weight;
    }
    return weight;
}

extern "C" __global__ void __launch_bounds__(ATTENTION_MERGE_THREADS) attention_merge(const __grid_constant__ attention_merge_task task)
{
    const attention_task &to = task.to;
    const long long rows = (long long)to.items * to.heads * to.queries, row = blockIdx.x;
    const int query = (int)(row % to.queries), head = (int)(row / to.queries % to.heads), item = (int)(row / to.queries / to.heads);
    previous_launch_done();
    if (to.sequences > 0 && query >= to.query_ends[to.sequences - 1]) /* behind the last sequence nothing is written */
        return;
    const part_weights w = weigh(task, rows, row);
    element_a *o = (element_a *)to.o + item * to.o_strides.item + head * to.o_strides.head + query * to.o_strides.row;
    for (int first = 0; first < to.depth_v; first += ATTENTION_MERGE_THREADS) { /* the same for all: weights come from other lanes */
        const int column = first + threadIdx.x;
        const float *part = task.parts + row * to.depth_v + min(column, to.depth_v - 1);
        float sum = 0;
#pragma unroll 8
        for (int split = 0; split < task.splits; split++) {
            const float weight = weight_of(w, split), value = part[split * rows * to.depth_v];
            sum += weight == 0 ? 0 : weight * value;
        }
        if (column < to.depth_v)
            o[column] = ::to<element_a>(sum);
    }
    if (to.lse != nullptr && threadIdx.x == 0)
        ((float *)to.lse)[item * to.lse_strides.item + head * to.lse_strides.head + query * to.lse_strides.row] = w.lse;
}
