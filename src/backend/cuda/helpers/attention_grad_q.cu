/* attention_grad_q: a block a part of a tile. Bound: the bytes of the sums. */
#include "backend/cuda/helpers/attention_grad_q.h"

#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/ptx/launch.cuh"

using namespace sm90;

constexpr int LAST = DEPTH - (ACROSS - 1) * COLUMNS; /* columns of the last part beside others */
constexpr int PARTS = TRANSPOSED ? ACROSS : ROWS / 64 * ACROSS;
constexpr int SUMS = TRANSPOSED ? ROWS / 2 : COLUMNS / 2; /* of a thread */

/* A part as it lies; zeros where there are no sums. */
inline void take_sums(const attention_grad_q_task &task, long long tile, int part, float (&sum)[SUMS])
{
    if (task.turns[tile] == 0)
        return;
    const float *from = task.sums + (tile * PARTS + part) * (128 * SUMS) + threadIdx.x * 4;
#pragma unroll
    for (int i = 0; i < SUMS / 4; i++) {
        const float4 four = *(const float4 *)(from + i * 512);
        sum[i * 4] = four.x;
        sum[i * 4 + 1] = four.y;
        sum[i * 4 + 2] = four.z;
        sum[i * 4 + 3] = four.w;
    }
}

inline void store_columns(const attention_grad_q_task &task, const float (&sum)[SUMS], element_a *to, int first_query, int part)
{
    float last[LAST / 2];
#pragma unroll
    for (int i = 0; i < LAST / 2; i++)
        last[i] = sum[i];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = part / ACROSS * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
        element_a *at = to + row * task.all.grad_q_strides.row + part % ACROSS * COLUMNS;
        const bool there = first_query + row < attention_queries_written(&task.all.attention);
        if (LAST != COLUMNS && part % ACROSS == ACROSS - 1)
            store_row(at, task.pieces, there, last, half, (float)task.all.attention.scale);
        else
            store_row(at, task.pieces, there, sum, half, (float)task.all.attention.scale);
    }
}

/* A thread has two columns of the part: through shared memory they become eight columns of a query. */
inline void store_transposed(const attention_grad_q_task &task, const float (&sum)[SUMS], element_a *to, int first_query, int part)
{
    constexpr int line = 64 + 4; /* so that a warp writes to all banks */
    __shared__ alignas(16) float queries[ROWS * line];
    const float scale = (float)task.all.attention.scale;
    const int lane = threadIdx.x % 32, column = threadIdx.x % 8 * 8;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        queries[(i / 4 * 8 + lane % 4 * 2 + i % 2) * line + threadIdx.x / 32 * 16 + lane / 4 + i / 2 % 2 * 8] = sum[i] * scale;
    __syncthreads();
    for (int row = threadIdx.x / 8; row < ROWS && first_query + row < attention_queries_written(&task.all.attention);
         row += ATTENTION_GRAD_Q_THREADS / 8) {
        element_a *at = to + row * task.all.grad_q_strides.row + part * 64 + column;
        const float *from = queries + row * line + column;
        unsigned pairs[4];
        if (part * 64 + column >= DEPTH)
            break;
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] = pack_a(from[i * 2], from[i * 2 + 1]);
        if (task.pieces)
            store_16_bytes_where(true, at, pairs);
        else
#pragma unroll
            for (int i = 0; i < 4; i++) {
                at[i * 2] = low_half(pairs[i], element_a());
                at[i * 2 + 1] = high_half(pairs[i], element_a());
            }
    }
}

extern "C" __global__ void __launch_bounds__(ATTENTION_GRAD_Q_THREADS) attention_grad_q(const __grid_constant__ attention_grad_q_task task)
{
    const attention_task &t = task.all.attention;
    const attention_strides &strides = task.all.grad_q_strides;
    const long long tile = blockIdx.x / PARTS;
    const int part = blockIdx.x % PARTS, first_query = (int)(tile % task.query_tiles) * ROWS,
              head = (int)(tile / task.query_tiles % t.heads), item = (int)(tile / task.query_tiles / t.heads);
    element_a *to = (element_a *)task.all.grad_q + item * strides.item + head * strides.head + first_query * strides.row;
    float sum[SUMS] = {};
    previous_launch_done();
    take_sums(task, tile, part, sum);
#if TRANSPOSED
    store_transposed(task, sum, to, first_query, part);
#else
    store_columns(task, sum, to, first_query, part);
#endif
}
