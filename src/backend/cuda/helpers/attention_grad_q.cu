/* attention_grad_q: a block a part of a tile. Bound: the bytes of the sums. */
#include "backend/cuda/helpers/attention_grad_q.h"

#include "backend/cuda/device/attention_store.cuh"
#include "backend/cuda/device/launch.cuh"

using namespace sm90;

constexpr int LAST = DEPTH - (ACROSS - 1) * COLUMNS; /* columns of the last part beside others */
constexpr int PARTS = ROWS / 64 * ACROSS;

extern "C" __global__ void __launch_bounds__(ATTENTION_GRAD_Q_THREADS) attention_grad_q(const __grid_constant__ attention_grad_q_task task)
{
    const attention_task &t = task.all.attention;
    const attention_strides &to = task.all.grad_q_strides;
    const long long tile = blockIdx.x / PARTS;
    const int part = blockIdx.x % PARTS, row_tile = (int)(tile % task.query_tiles), head = (int)(tile / task.query_tiles % t.heads),
              item = (int)(tile / task.query_tiles / t.heads);
    float sum[COLUMNS / 2] = {}, last[LAST / 2];
    previous_launch_done();
    if (task.turns[tile] > 0) {
        const float *from = task.sums + (tile * PARTS + part) * (64 * COLUMNS) + threadIdx.x * 4;
#pragma unroll
        for (int i = 0; i < COLUMNS / 8; i++) {
            const float4 four = *(const float4 *)(from + i * 512);
            sum[i * 4] = four.x;
            sum[i * 4 + 1] = four.y;
            sum[i * 4 + 2] = four.z;
            sum[i * 4 + 3] = four.w;
        }
    }
#pragma unroll
    for (int i = 0; i < LAST / 2; i++)
        last[i] = sum[i];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + half * 8, query = row_tile * ROWS + part / ACROSS * 64 + row;
        element_a *at = (element_a *)task.all.grad_q + item * to.item + head * to.head + query * to.row + part % ACROSS * COLUMNS;
        if (LAST != COLUMNS && part % ACROSS == ACROSS - 1)
            store_row(at, task.pieces, query < t.queries, last, half, (float)t.scale);
        else
            store_row(at, task.pieces, query < t.queries, sum, half, (float)t.scale);
    }
}
