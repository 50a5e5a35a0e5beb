/* attention_delta: a few lanes a query, in the order of tiles. Bound: the bytes of O and of its gradient. */
#include "backend/cuda/helpers/attention_delta.h"

#if PACKED
#include "backend/cuda/device/attention/attention_spans.cuh"
#endif
#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/common/problem.cuh"

constexpr int LANES = DEPTH_V <= 64 ? 8 : DEPTH_V <= 128 ? 16 : 32; /* of a query: each has a piece of eight columns */
constexpr int AT_ONCE = ATTENTION_DELTA_THREADS / LANES;            /* queries */
constexpr int QUERIES = attention_delta_queries(ROWS);              /* of the block */
constexpr int EACH = (QUERIES + AT_ONCE - 1) / AT_ONCE;             /* of a lane */

inline const element_a *row_of(const void *array, const attention_strides &strides, int item, int head, int query)
{
    return (const element_a *)array + item * strides.item + head * strides.head + query * strides.row;
}

inline float dot(const element_a *a, const element_a *b, bool whole)
{
    float sum = 0;
    pieces<element_a, 8> x, y;
    if (whole) {
        x = load_constant<element_a, 8>(a);
        y = load_constant<element_a, 8>(b);
    } else
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x.at[i] = a[i];
            y.at[i] = b[i];
        }
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum += as_f32(x.at[i]) * as_f32(y.at[i]);
    return sum;
}

#if PACKED
#define ATTENTION_DELTA_BOUNDS ATTENTION_DELTA_THREADS, 4 /* else the compiler keeps to fewer registers than spans want */
#else
#define ATTENTION_DELTA_BOUNDS ATTENTION_DELTA_THREADS
#endif

extern "C" __global__ void __launch_bounds__(ATTENTION_DELTA_BOUNDS) attention_delta(const __grid_constant__ attention_delta_task task)
{
    const attention_task &t = task.all.attention;
    const int blocks = ROWS / QUERIES, block = blockIdx.x - (PACKED ? t.items : 0); /* blocks: of threads, for a tile */
    const long long tile = block / blocks;
    const int row_tile = (int)(tile % task.query_tiles), head = (int)(tile / task.query_tiles % t.heads),
              item = (int)(tile / task.query_tiles / t.heads), first = block % blocks * QUERIES, column = threadIdx.x % LANES * 8;
    const float infinity = __int_as_float(0x7f800000);
    float sum[EACH], lse[EACH];
    previous_launch_done();
#if PACKED
    if (block < 0) {
        make_spans(t, task.spans, blockIdx.x, ROWS, KEYS, task.query_tiles, task.key_tiles);
        return;
    }
#endif
    if (threadIdx.x == 0 && first == 0)
        task.turns[tile] = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int mine = i * AT_ONCE + threadIdx.x / LANES, query = row_tile * ROWS + first + mine;
        sum[i] = 0;
        lse[i] = -infinity;
        if (mine >= QUERIES || query >= t.queries)
            continue;
        lse[i] = ((const float *)t.lse)[item * t.lse_strides.item + head * t.lse_strides.head + query * t.lse_strides.row];
        if (column < DEPTH_V)
            sum[i] = dot(row_of(t.o, t.o_strides, item, head, query) + column,
                         row_of(task.all.grad_o, task.all.grad_o_strides, item, head, query) + column, task.pieces);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = first + i * AT_ONCE + threadIdx.x / LANES, query = row_tile * ROWS + row;
        const bool sees = lse[i] != -infinity;
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);
        if (threadIdx.x % LANES != 0 || row - first >= QUERIES)
            continue;
        if (sees && task.all.grad_lse != nullptr)
            sum[i] -= ((const float *)task.all.grad_lse)[item * task.all.grad_lse_strides.item + head * task.all.grad_lse_strides.head +
                                                         query * task.all.grad_lse_strides.row];
        const float lse2 = lse[i] * LOG2_E;
        task.lse2[tile * ROWS + row] = !sees ? infinity : is_large(lse2) ? LSE_IS_LARGE : lse2;
        task.delta[tile * ROWS + row] = sees ? sum[i] : 0;
    }
}
