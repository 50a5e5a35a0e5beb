/* Makes an item's spans (attention_spans.h), by a block of threads. */
#ifndef SPK_DEVICE_ATTENTION_SPANS_CUH
#define SPK_DEVICE_ATTENTION_SPANS_CUH

#include "backend/cuda/device/attention/attention.h"
#include "backend/cuda/device/attention/attention_spans.h"

/* The sequence that a query is in; the number of sequences: in none. */
__device__ __forceinline__ int sequence_at(const attention_task &t, int query)
{
    int low = 0, high = t.sequences;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t.query_ends[middle] <= query)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of a query of an item; behind the last one, none behind the last key. */
__device__ __forceinline__ int2 sight_of(const attention_task &t, int item, int query)
{
    const int number = t.sequences > 0 ? sequence_at(t, query) : 0;
    if (query >= t.queries || (t.sequences > 0 && number == t.sequences)) {
        const int end = attention_clamp(t.key_ends[t.sequences > 0 ? t.sequences - 1 : item], t.keys);
        return make_int2(end, end);
    }
    const attention_sequence s = attention_sequence_of(&t, item, number);
    const attention_seen seen = attention_seen_of(&t, query - s.query + s.shift, s.keys);
    return make_int2(attention_clamp(s.key + seen.begin, t.keys), attention_clamp(s.key + seen.end, t.keys));
}

/* The first of `count` for which `test` holds, as it does for all behind it; count: there is none. */
template <class T> __device__ __forceinline__ int first_where(int count, T test)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (test(middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Numbers that do not grow become the largest before them: whatever the ends of sequences are, nobody waits for a sum that never comes. By
 * a warp. */
__device__ __forceinline__ void make_growing(attention_span *spans, int count)
{
    int first = 0, end = 0;
    for (int base = 0; base < count; base += 32) {
        const int at = base + threadIdx.x;
        int mine = at < count ? spans[at].first : 0, its_end = at < count ? mine + spans[at].count : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int before = __shfl_up_sync(~0u, mine, step), end_before = __shfl_up_sync(~0u, its_end, step);
            mine = threadIdx.x >= step ? max(mine, before) : mine;
            its_end = threadIdx.x >= step ? max(its_end, end_before) : its_end;
        }
        mine = max(mine, first);
        its_end = max(its_end, end);
        if (at < count) {
            spans[at].first = mine;
            spans[at].count = its_end - mine;
        }
        first = __shfl_sync(~0u, mine, 31);
        end = __shfl_sync(~0u, its_end, 31);
    }
}

/* rows, keys: of a tile of queries, of keys; query_tiles, key_tiles: of a head. */
__device__ __forceinline__ void make_spans(const attention_task &t, const attention_spans &all, int item, int rows, int keys,
                                           int query_tiles, int key_tiles)
{
    const int queries = query_tiles * rows;
    int2 *sights = (int2 *)all.sights + (long long)item * queries;
    attention_span *spans = all.spans + (long long)item * key_tiles;
    int *tops = all.tops + (long long)item * query_tiles;
    for (int query = threadIdx.x; query < queries; query += blockDim.x)
        sights[query] = sight_of(t, item, query);
    if (item == 0 && threadIdx.x == 0)
        *all.taken = 0;
    __syncthreads();
    for (int tile = threadIdx.x; tile < key_tiles; tile += blockDim.x) {
        const int key = tile * keys, end = key + keys;
        const int first = min(first_where(queries, [=](int query) { return sights[query].y > key; }) / rows, query_tiles - 1),
                  stop = (first_where(queries, [=](int query) { return sights[query].x >= end; }) + rows - 1) / rows,
                  whole = (first_where(queries, [=](int query) { return sights[query].y >= end; }) + rows - 1) / rows,
                  whole_end = first_where(queries, [=](int query) { return sights[query].x > key; }) / rows;
        spans[tile] = attention_span{first, max(stop - first, 1), whole, whole_end};
    }
    __syncthreads();
    if (threadIdx.x < 32)
        make_growing(spans, key_tiles);
    __syncthreads();
    for (int tile = threadIdx.x; tile < query_tiles; tile += blockDim.x)
        tops[tile] = first_where(key_tiles, [=](int key_tile) { return spans[key_tile].first > tile; }) - 1;
}

#endif
