/* attention_merge: a warp a query; the parts in their order, so that a result has the same bits on every run. */
#include "backend/cuda/helpers/attention_merge.h"

#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/problem.cuh"

extern "C" __global__ void __launch_bounds__(ATTENTION_MERGE_THREADS) attention_merge(const __grid_constant__ attention_merge_task task)
{
    const attention_task &to = task.to;
    const long long rows = (long long)to.items * to.heads * to.queries,
                    at = blockIdx.x * (ATTENTION_MERGE_THREADS / 32ll) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    previous_launch_done();
    if (at >= rows)
        return;
    const float infinity = __int_as_float(0x7f800000);
    float most = -infinity, total = 0;
    for (int split = 0; split < task.splits; split++)
        most = fmaxf(most, task.part_lse[split * rows + at]);
    for (int split = 0; split < task.splits; split++)
        total += most == -infinity ? 0 : exp2f(task.part_lse[split * rows + at] - most);
    const int query = (int)(at % to.queries), head = (int)(at / to.queries % to.heads), item = (int)(at / to.queries / to.heads);
    element_a *o = (element_a *)to.o + item * to.o_strides.item + head * to.o_strides.head + query * to.o_strides.row;
    for (int column = lane; column < to.depth_v; column += 32) {
        float sum = 0;
        for (int split = 0; split < task.splits; split++) {
            const float lse = task.part_lse[split * rows + at];
            if (lse != -infinity)
                sum += exp2f(lse - most) * task.parts[(split * rows + at) * to.depth_v + column];
        }
        o[column] = ::to<element_a>(most == -infinity ? 0.0f : sum / total);
    }
    if (to.lse != nullptr && lane == 0)
        ((float *)to.lse)[item * to.lse_strides.item + head * to.lse_strides.head + query * to.lse_strides.row] =
            most == -infinity ? -infinity : 0.6931471805599453f * (most + log2f(total));
}
