/* reference_cuda_attention_backward: the gradients of attention from their definition, a warp a row: one of grad_Q over the keys that its
 * query sees, or one of grad_K and of grad_V over the queries that see its key; some columns at a time, and the scores again for each.
 * Takes every problem; the yardstick on a device. */
#include "backend/cuda/kernels/reference_cuda_attention_backward.h"

#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/common/problem.cuh"

enum { EACH = COMPUTE == F64 ? 2 : 8 }; /* columns of a lane at a time */

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
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

inline long long row_at(const attention_strides &strides, int item, int head, int row)
{
    return item * strides.item + head * strides.head + row * strides.row;
}

inline real dot(const element_a *a, const element_a *b, int count)
{
    real sum = 0;
#pragma unroll 2
    for (int d = threadIdx.x % 32; d < count; d += 32)
        sum += as<real>(a[d]) * as<real>(b[d]);
    return warp_sum(sum);
}

/* What a pair adds: its weight, and the gradient of its score. */
struct pair {
    real weight, gradient;
};

/* A query of a head, as a warp sees it. */
struct warp_query {
    const attention_backward_task &task;
    int item, head, query;
    attention_sequence sequence;
    attention_seen seen; /* from the sequence's first key on */
    const element_a *q, *k, *v, *grad_o;
    real lse, delta;

    __device__ warp_query(const attention_backward_task &all, int item, int head, int query)
        : task(all), item(item), head(head), query(query)
    {
        const attention_task &t = task.attention;
        sequence = attention_sequence_of(&t, item, find_sequence());
        seen = attention_seen_of(&t, query - sequence.query + sequence.shift, sequence.keys);
        q = (const element_a *)t.q + row_at(t.q_strides, item, head, query);
        k = (const element_a *)t.k + row_at(t.k_strides, item, head / t.sharing, 0);
        v = (const element_a *)t.v + row_at(t.v_strides, item, head / t.sharing, 0);
        grad_o = (const element_a *)task.grad_o + row_at(task.grad_o_strides, item, head, query);
    }

    /* The sequence that the query is in; none: the last. */
    __device__ int find_sequence() const
    {
        const attention_task &t = task.attention;
        int low = 0, high = t.sequences > 0 ? t.sequences - 1 : 0;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (t.query_ends[middle] <= query)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    __device__ bool is_there() const { return query < sequence.query_end; }

    __device__ bool in_band(int key) const
    {
        const int local = key - sequence.key;
        return local >= 0 && local < seen.end && (local >= seen.begin || local < seen.sinks);
    }

    /* Block columns ascend: the place of the key's, if it is listed. */
    __device__ bool in_mask(int key) const
    {
        const attention_task &t = task.attention;
        if (t.offsets == nullptr)
            return true;
        const int list = attention_list(&t, item, head, query), column = key / t.block_cols;
        int low = t.offsets[list], high = t.offsets[list + 1];
        while (low < high) {
            const int middle = (low + high) / 2;
            if (t.columns[middle] < column)
                low = middle + 1;
            else
                high = middle;
        }
        return low < t.offsets[list + 1] && t.columns[low] == column &&
               attention_bit(&t, t.tile_numbers != nullptr ? t.tile_numbers[low] : -1, query, key);
    }
    __device__ bool sees(int key) const { return is_there() && in_band(key) && in_mask(key); }

    /* Once it is known that the query sees a key: of others something may be no number. */
    __device__ void take_sums()
    {
        const attention_task &t = task.attention;
        lse = ((const real *)t.lse)[row_at(t.lse_strides, item, head, query)];
        delta = dot(grad_o, (const element_a *)t.o + row_at(t.o_strides, item, head, query), t.depth_v);
        if (task.grad_lse != nullptr)
            delta -= ((const real *)task.grad_lse)[row_at(task.grad_lse_strides, item, head, query)];
    }

    __device__ pair with(int key) const
    {
        const attention_task &t = task.attention;
        real score = rounded(dot(q, k + key * t.k_strides.row, t.depth), (real)t.scale), slope = 1;
        if (t.cap != 0) {
            const real bent = (real)tanh(score / (real)t.cap);
            score = rounded((real)t.cap, bent);
            slope = 1 - bent * bent;
        }
        const real below = score > lse ? (real)0 : score - lse; /* LSE is rounded: of large scores it may be far below the largest */
        const real weight = lse == -(real)__int_as_float(0x7f800000) ? (real)0 : exponential(below);
        return {weight, weight * slope * (dot(grad_o, v + key * t.v_strides.row, t.depth_v) - delta)};
    }

    /* each(key) for every key that the query sees. */
    template <class F> __device__ void each_key(F each) const
    {
        const attention_task &t = task.attention;
        if (!is_there())
            return;
        const bool masked = t.offsets != nullptr; /* without a mask there is one block */
        const int list = masked ? attention_list(&t, item, head, query) : 0;
        const int begin = masked ? t.offsets[list] : 0, end = masked ? t.offsets[list + 1] : 1;
#pragma unroll 1
        for (int at = begin; at < end; at++)
            each_of(masked ? t.columns[at] * t.block_cols : 0, masked ? min((t.columns[at] + 1) * t.block_cols, t.keys) : t.keys,
                    t.tile_numbers != nullptr ? t.tile_numbers[at] : -1, each);
    }
    template <class F> __device__ void each_of(int first, int end, int tile, F each) const
    {
        const int at = sequence.key;
#pragma unroll 1
        for (int key = max(first, at); key < min(end, at + seen.end); key++) {
            if (key - at >= seen.sinks && key - at < seen.begin)
                key = max(key, at + seen.begin);
            if (key < min(end, at + seen.end) && attention_bit(&task.attention, tile, query, key))
                each(key);
        }
    }
};

/* Sums of some columns of a row: each lane has EACH of them. */
struct columns {
    real sum[EACH];
    int first, count; /* of the row's */

    __device__ void add(real factor, const element_a *row)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int column = first + i * 32 + threadIdx.x % 32;
            if (column < count)
                sum[i] += factor * as<real>(row[column]);
        }
    }
    __device__ void put(real factor, element_a *row) const
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int column = first + i * 32 + threadIdx.x % 32;
            if (column < count)
                row[column] = to<element_a>(sum[i] * factor);
        }
    }
};

inline void compute_query(const attention_backward_task &task, int item, int head, int number)
{
    const attention_task &t = task.attention;
    warp_query query(task, item, head, number);
    element_a *to_row = (element_a *)task.grad_q + row_at(task.grad_q_strides, item, head, number);
    bool any = false;
    if (!query.is_there())
        return;
    for (int first = 0; first < t.depth; first += EACH * 32) {
        columns made = {{}, first, t.depth};
        query.each_key([&](int key) {
            if (!any)
                query.take_sums();
            any = true;
            made.add(query.with(key).gradient, query.k + key * t.k_strides.row);
        });
        made.put((real)t.scale, to_row);
    }
}

/* of_v: grad_V, else grad_K. */
inline void compute_key(const attention_backward_task &task, int item, int head_kv, int key, bool of_v)
{
    const attention_task &t = task.attention;
    const attention_strides &strides = of_v ? task.grad_v_strides : task.grad_k_strides;
    element_a *to_row = (element_a *)(of_v ? task.grad_v : task.grad_k) + row_at(strides, item, head_kv, key);
    const int count = of_v ? t.depth_v : t.depth;
    if (key >= attention_keys_written(&t))
        return;
    for (int first = 0; first < count; first += EACH * 32) {
        columns made = {{}, first, count};
        for (int head = head_kv * t.sharing; head < (head_kv + 1) * t.sharing; head++)
#pragma unroll 1
            for (int number = 0; number < t.queries; number++) {
                warp_query query(task, item, head, number);
                if (!query.sees(key))
                    continue;
                query.take_sums();
                const pair both = query.with(key);
                made.add(of_v ? both.weight : both.gradient, of_v ? query.grad_o : query.q);
            }
        made.put(of_v ? (real)1 : (real)t.scale, to_row);
    }
}

extern "C" __global__ void __launch_bounds__(REFERENCE_BACKWARD_THREADS, 1)
    reference_cuda_attention_backward(const __grid_constant__ attention_backward_task task)
{
    const attention_task &t = task.attention;
    const int heads_kv = t.heads / t.sharing;
    const long long queries = (long long)t.queries * t.heads * t.items, keys = (long long)t.keys * heads_kv * t.items,
                    step = gridDim.x * (REFERENCE_BACKWARD_THREADS / 32ll);
    for (long long at = blockIdx.x * (REFERENCE_BACKWARD_THREADS / 32ll) + threadIdx.x / 32; at < queries + keys; at += step) {
        if (at < queries) {
            compute_query(task, (int)(at / t.queries / t.heads), (int)(at / t.queries % t.heads), (int)(at % t.queries));
            continue;
        }
        const long long row = at - queries;
        const int item = (int)(row / t.keys / heads_kv), head = (int)(row / t.keys % heads_kv), key = (int)(row % t.keys);
#pragma unroll 1
        for (int of_v = 0; of_v < 2; of_v++) /* once in the program */
            compute_key(task, item, head, key, of_v);
    }
}
