/* reference_cuda_attention: O and LSE from the definition, a warp a query: the largest score first, then the sums, some columns of O at a
 * time. Takes every problem; the yardstick on a device, and always valid. */
#include "backend/cuda/kernels/reference_cuda_attention.h"

#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/common/problem.cuh"

enum { EACH = COMPUTE == F64 ? 2 : 8 }; /* columns of O of a lane at a time */

inline float exponential(float x)
{
    return expf(x);
}
inline double exponential(double x)
{
    return exp(x);
}

template <class T> inline T warp_sum(T x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

/* A query, as its warp sees it. */
struct warp_query {
    const attention_task &task;
    int item, head, query;
    attention_sequence sequence;
    attention_seen seen; /* from the sequence's first key on */
    const element_a *q, *k, *v;

    __device__ warp_query(const attention_task &task, long long at) : task(task)
    {
        query = (int)(at % task.queries);
        head = (int)(at / task.queries % task.heads);
        item = (int)(at / task.queries / task.heads);
        sequence = attention_sequence_of(&task, item, find_sequence());
        seen = attention_seen_of(&task, query - sequence.query + sequence.shift, sequence.keys);
        q = (const element_a *)task.q + item * task.q_strides.item + head * task.q_strides.head + query * task.q_strides.row;
        k = (const element_a *)task.k + item * task.k_strides.item + head / task.sharing * task.k_strides.head;
        v = (const element_a *)task.v + item * task.v_strides.item + head / task.sharing * task.v_strides.head;
    }

    /* The sequence that the query is in; none: the last. */
    __device__ int find_sequence() const
    {
        int low = 0, high = task.sequences > 0 ? task.sequences - 1 : 0;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (task.query_ends[middle] <= query)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    __device__ bool is_there() const { return query < sequence.query_end; }
    __device__ int row_of(int key) const { return attention_row(&task, task.sequences > 0 ? sequence.number : item, key); }

    __device__ real score(int row_number) const
    {
        const element_a *row = k + row_number * task.k_strides.row;
        real sum = 0;
        for (int d = threadIdx.x % 32; d < task.depth; d += 32)
            sum += as<real>(q[d]) * as<real>(row[d]);
        sum = rounded(warp_sum(sum), (real)task.scale);
        return task.cap != 0 ? rounded((real)task.cap, (real)tanh(sum / (real)task.cap)) : sum;
    }

    /* each(row) for the row of every key of [first, end) that the query sees. */
    template <class F> __device__ void each_of(int first, int end, int tile, F each) const
    {
        const int at = sequence.key;
        for (int key = max(first, at); key < min(end, at + seen.sinks); key++)
            if (attention_bit(&task, tile, query, key))
                each(row_of(key));
        for (int key = max(first, at + seen.begin); key < min(end, at + seen.end); key++)
            if (attention_bit(&task, tile, query, key))
                each(row_of(key));
    }
    template <class F> __device__ void each_row(F each) const
    {
        if (task.columns == nullptr && task.offsets == nullptr) {
            each_of(0, sequence.key + sequence.keys, -1, each);
            return;
        }
        const int list = attention_list(&task, item, head, query);
        for (int at = task.offsets[list]; at < task.offsets[list + 1]; at++)
            each_of(task.columns[at] * task.block_cols, min((task.columns[at] + 1) * task.block_cols, task.keys),
                    task.tile_numbers != nullptr ? task.tile_numbers[at] : -1, each);
    }
};

inline void compute(const attention_task &task, long long at)
{
    const warp_query query(task, at);
    const int lane = threadIdx.x % 32;
    real most = 0, total = 0;
    bool any = false;
    if (!query.is_there())
        return;
    query.each_row([&](int row) {
        const real score = query.score(row);
        most = !any || score > most ? score : most;
        any = true;
    });
    element_a *o =
        (element_a *)task.o + query.item * task.o_strides.item + query.head * task.o_strides.head + query.query * task.o_strides.row;
    for (int first = 0; first < task.depth_v; first += EACH * 32) {
        real sum[EACH] = {};
        total = 0;
        query.each_row([&](int row) {
            const real e = exponential(query.score(row) - most);
            total += e;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int column = first + i * 32 + lane;
                if (column < task.depth_v)
                    sum[i] += e * as<real>(query.v[row * task.v_strides.row + column]);
            }
        });
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int column = first + i * 32 + lane;
            if (column < task.depth_v)
                o[column] = to<element_a>(any ? sum[i] / total : (real)0);
        }
    }
    if (task.depth_v == 0)
        query.each_row([&](int row) { total += exponential(query.score(row) - most); });
    if (task.lse != nullptr && lane == 0)
        ((real *)task.lse)[query.item * task.lse_strides.item + query.head * task.lse_strides.head + query.query * task.lse_strides.row] =
            any ? most + (real)log(total) : -(real)__int_as_float(0x7f800000);
}

extern "C" __global__ void __launch_bounds__(REFERENCE_ATTENTION_THREADS)
    reference_cuda_attention(const __grid_constant__ attention_task task)
{
    const long long queries = (long long)task.queries * task.heads * task.items, step = gridDim.x * (REFERENCE_ATTENTION_THREADS / 32ll);
    for (long long at = blockIdx.x * (REFERENCE_ATTENTION_THREADS / 32ll) + threadIdx.x / 32; at < queries; at += step)
        compute(task, at);
}
