/* attention_backward_sm90_two_pass: the gradients of attention in two passes, f16 or bf16, sums in f32. Hopper only.
 *
 * One pass has tiles of keys and sums grad_K and grad_V in registers, the other has tiles of queries and sums grad_Q. Both compute scores,
 * so a pair costs seven products, where attention_backward_sm90 needs five. In return no sum goes through memory: nobody waits for an order
 * of sums, the bits are the same on every run, and shared memory, which three of those five products read twice, has less to do.
 *
 * In a round a warpgroup asks for the products that end the step before, then for the scores of this step and for their gradients. So
 * tensor cores work while weights are computed, and the stages of the step before are free again long before they are wanted.
 *
 * PAIRED: a thread has no registers for the sums of both gradients. One warpgroup has scores and grad_V, the other the products of V with
 * the gradient of O, and grad_K; weights go from one to the other through shared memory, in f32.
 *
 * An infinity or NaN in a row of a pair that is seen makes that pair's gradients NaN, in steps where some pair is not seen. */
#include "backend/cuda/kernels/attention_backward_sm90_two_pass.h"

#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/attention/softmax.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/mma/matrices.cuh"
#include "backend/cuda/device/mma/mma_registers.cuh"
#include "backend/cuda/device/ptx/elected.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/ptx/tma.cuh"
#include "backend/cuda/device/ptx/uniform.cuh"

using namespace sm90;

constexpr two_pass_shape SHAPE = two_pass_shape_of({TWO_PASS_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int OWN_SLOTS = SHAPE.own_slots, FIRST_STAGES = SHAPE.first_stages, SECOND_STAGES = SHAPE.second_stages, RINGS = SHAPE.rings;
constexpr int ROWS = TWO_PASS_ROWS, SUMS = ROWS / 2; /* SUMS: a thread's of a step's scores */
constexpr bool HELD = SHAPE.held;
constexpr int RING_GROUPS = GROUPS / RINGS, THREADS = RING_GROUPS * 128; /* of a ring, that multiply */
constexpr int CONSUMER_REGISTERS = 240, PRODUCER_REGISTERS = 24;         /* of 168: 65,536 in all */
constexpr int K_STEPS = (DEPTH + 15) / 16, V_STEPS = (DEPTH_V + 15) / 16;
constexpr int OWN_ROWS = SHAPE.rows;
enum { RING_BARRIER = 1 }; /* a named barrier for each ring */

struct ring_shared {
    ring_storage<OWN_SLOTS> own;
    ring_storage<FIRST_STAGES> first;
    ring_storage<SECOND_STAGES> second;
    unsigned long long weights_full, weights_empty; /* PAIRED */
    two_pass_tile
        tiles[2 * OWN_SLOTS]; /* read until the tile's end, when its slot may have the next one's rows; head -1: there are no more */
    two_pass_step steps[FIRST_STAGES]; /* entry: the number of its tile of bits; -1: none */
    unsigned bad[2];                   /* a bit a walked row: it held what is not finite */
    alignas(16) float lse2[BY_QUERIES ? 1 : FIRST_STAGES][ROWS], delta[BY_QUERIES ? 1 : FIRST_STAGES][ROWS];
};

/* Where a ring's tiles are in shared memory, from its first byte on. */
constexpr unsigned OWN_FIRST_BYTES = OWN_ROWS * 128 * SHAPE.chunks; /* of an own tile: K or Q; V or the gradient of O follow */
constexpr unsigned AT_FIRST = OWN_SLOTS * SHAPE.own_bytes, AT_SECOND = AT_FIRST + FIRST_STAGES * SHAPE.first_bytes;
[[maybe_unused]] constexpr unsigned AT_WEIGHTS = AT_SECOND + SECOND_STAGES * SHAPE.second_bytes; /* PAIRED */

/* ---- the producer: a warp for each ring */

struct tensor_maps {
    const spk_tensor_map *q, *k, *v, *d;
};

template <int chunks, int rows> inline void load_tile(unsigned to, const spk_tensor_map *map, unsigned barrier, int row, int head, int item)
{
#pragma unroll
    for (int chunk = 0; chunk < chunks; chunk++)
#pragma unroll
        for (int part = 0; part < rows; part += 64)
            tma_load_4d(to + chunk * (rows * 128) + part * 128, map, barrier, chunk * 64, row + part, head, item);
}

/* `bytes` neighbouring bytes; from, to and bytes are multiples of 16. */
inline void bulk_load(unsigned to, const void *from, int bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                 "r"(barrier)
                 : "memory");
}

/* The number of the tile that the ring takes next. */
inline int take(const two_pass_order &order)
{
    int taken = 0;
    if (threadIdx.x % 32 == 0)
        taken = atomicAdd(order.taken, 1);
    return uniform(taken);
}

inline two_pass_tile read_tile(const two_pass_order &order, int at)
{
    if (at >= order.count)
        return {0, -1, 0, 0, 0, 0, {0, 0}};
    const int4 some = __ldg((const int4 *)order.tiles + at * 2), more = __ldg((const int4 *)order.tiles + at * 2 + 1);
    return {some.x, some.y, some.z, some.w, more.x, more.y, {0, 0}};
}

/* Steps, of which each lane has one of 32. */
struct step_lanes {
    int4 own;
    __device__ __forceinline__ void read(const attention_task &task, const two_pass_order &order, int first, int end)
    {
        const int at = first + threadIdx.x % 32;
        own = at < end ? __ldg((const int4 *)order.steps + at) : make_int4(0, 0, 0, 0);
        own.w = TILED && at < end ? __ldg(task.tile_numbers + own.w) : -1;
        if (own.w >= 0)
            own.x |= TWO_PASS_HIDDEN;
    }
    __device__ __forceinline__ two_pass_step at(int lane) const
    {
        return {__shfl_sync(~0u, own.x, lane), __shfl_sync(~0u, own.y, lane), __shfl_sync(~0u, own.z, lane), __shfl_sync(~0u, own.w, lane)};
    }
};

struct producer {
    const tensor_maps &maps;
    const attention_backward_task &all;
    const two_pass_order &order;
    ring_shared &shared;
    const unsigned tiles;
    ring<OWN_SLOTS> own;
    ring<FIRST_STAGES> first;
    ring<SECOND_STAGES> second;

    __device__ __forceinline__ producer(const tensor_maps &maps, const attention_backward_task &all, const two_pass_order &order,
                                        ring_shared &shared, unsigned tiles)
        : maps(maps), all(all), order(order), shared(shared), tiles(tiles), own(shared.own), first(shared.first), second(shared.second)
    {
    }
    /* Where one item's rows serve all. */
    __device__ __forceinline__ static int item_of(const attention_strides &strides, int item) { return strides.item != 0 ? item : 0; }

    /* Its note, and, where it has steps, its rows. */
    __device__ __forceinline__ void load_own(const two_pass_tile &tile)
    {
        const attention_task &task = all.attention;
        const int row = uniform(tile.row), head = uniform(tile.head), item = uniform(tile.item);
        const bool any = uniform(tile.end - tile.begin) > 0;
        wait_empty_warp(own);
        if (is_elected()) {
            shared.tiles[own.stage + own.phase * OWN_SLOTS] = tile;
            barrier_arrive_expect(own.full_barrier(), any ? SHAPE.own_bytes : 0);
            const unsigned to = tiles + own.stage * SHAPE.own_bytes;
            if (any && BY_QUERIES) {
                load_tile<SHAPE.chunks, OWN_ROWS>(to, maps.q, own.full_barrier(), row, head, item_of(task.q_strides, item));
                load_tile<SHAPE.chunks_v, OWN_ROWS>(to + OWN_FIRST_BYTES, maps.d, own.full_barrier(), row, head,
                                                    item_of(all.grad_o_strides, item));
            } else if (any) {
                load_tile<SHAPE.chunks, OWN_ROWS>(to, maps.k, own.full_barrier(), row, head, item_of(task.k_strides, item));
                load_tile<SHAPE.chunks_v, OWN_ROWS>(to + OWN_FIRST_BYTES, maps.v, own.full_barrier(), row, head,
                                                    item_of(task.v_strides, item));
            }
        }
        __syncwarp();
        own.advance();
    }
    /* head: of the tile; first_tile: its first query tile's number. */
    __device__ __forceinline__ void load_step(const two_pass_step &step, int tile_head, int first_tile, int item)
    {
        const attention_task &task = all.attention;
        const int tile = uniform(step.tile & ~TWO_PASS_HIDDEN), row = tile * ROWS, sharer = uniform(step.head);
        const int head = BY_QUERIES ? tile_head / task.sharing : tile_head * task.sharing + sharer;
        const int number = first_tile + sharer * ((task.queries + ROWS - 1) / ROWS) + tile;
        wait_empty_warp(first);
        if (is_elected()) {
            shared.steps[first.stage] = step;
            barrier_arrive_expect(first.full_barrier(), SHAPE.first_bytes + (BY_QUERIES ? 0 : ROWS * 8));
            load_tile<SHAPE.chunks, ROWS>(tiles + AT_FIRST + first.stage * SHAPE.first_bytes, BY_QUERIES ? maps.k : maps.q,
                                          first.full_barrier(), row, head, item_of(BY_QUERIES ? task.k_strides : task.q_strides, item));
            if (!BY_QUERIES) {
                bulk_load(smem_address(shared.lse2[first.stage]), order.lse2 + number * (long long)ROWS, ROWS * 4, first.full_barrier());
                bulk_load(smem_address(shared.delta[first.stage]), order.delta + number * (long long)ROWS, ROWS * 4, first.full_barrier());
            }
        }
        __syncwarp();
        wait_empty_warp(second);
        if (is_elected()) {
            barrier_arrive_expect(second.full_barrier(), SHAPE.second_bytes);
            load_tile<SHAPE.chunks_v, ROWS>(tiles + AT_SECOND + second.stage * SHAPE.second_bytes, BY_QUERIES ? maps.v : maps.d,
                                            second.full_barrier(), row, head,
                                            item_of(BY_QUERIES ? task.v_strides : all.grad_o_strides, item));
        }
        __syncwarp();
        first.advance();
        second.advance();
    }
    __device__ __forceinline__ void run()
    {
        two_pass_tile tile = read_tile(order, take(order));
        for (;;) {
            load_own(tile);
            if (__any_sync(~0u, tile.head < 0))
                return;
            const int begin = uniform(tile.begin), end = uniform(tile.end), item = uniform(tile.item), head = uniform(tile.head),
                      first_tile = uniform(tile.first);
            step_lanes lanes;
            lanes.read(all.attention, order, begin, end);
            tile = read_tile(order, take(order)); /* the next one, while this one's steps are brought */
            for (int at = begin; at < end; at++) {
                const two_pass_step step = lanes.at((at - begin) % 32);
                if ((at - begin) % 32 == 31)
                    lanes.read(all.attention, order, at + 1, end);
                load_step(step, head, first_tile, item);
            }
        }
    }
};

/* ---- the multiplying warpgroups */

inline int thread_row(int half)
{
    return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + half * 8;
}
/* Of a thread's sum number i of a step: its own row is thread_row(half_of(i)), its walked row column_of(i). */
inline int half_of(int i)
{
    return i / 2 % 2;
}
inline int column_of(int i)
{
    return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

/* The descriptor of a tile of `count` lines that begins at `from`. It serves the lines as they are and transposed: only the latter has a
 * use for the distance between chunks. */
template <int count> inline uniform_descriptor tile_at(unsigned from)
{
    return uniform_descriptor(from >> 4 | count * 128 / 16 << 16, 1024 / 16 | 1u << 30);
}

/* Own rows that stay in registers, as left operands. */
template <int k_steps> struct held_rows {
    unsigned x[k_steps * 4];
    __device__ __forceinline__ void read(unsigned tile)
    {
        const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
        for (int k = 0; k < k_steps; k++) {
            unsigned four[4];
            load_four_matrices<false>(four, tile + k / 4 * (OWN_ROWS * 128) + row * 128 + ((k % 4 * 32 + lane / 16 * 16) ^ (row % 8 * 16)));
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[k * 4 + i] = four[i];
        }
    }
};

/* Each asks for one group of products. Of own rows with walked ones; */
template <int k_steps> inline void multiply_rows(float (&s)[SUMS], uniform_descriptor own, uniform_descriptor walked)
{
#pragma unroll
    for (int k = 0; k < k_steps; k++)
        mma<ROWS>::run<0, 0>(s, own.at(k / 4 * (OWN_ROWS * 128) + k % 4 * 32), walked.at(k / 4 * (ROWS * 128) + k % 4 * 32), k > 0);
    mma_commit();
}
template <int k_steps> inline void multiply_held(float (&s)[SUMS], const held_rows<k_steps> &own, uniform_descriptor walked)
{
#pragma unroll
    for (int k = 0; k < k_steps; k++)
        mma_registers<ROWS>::template run<0>(s, own.x + k * 4, walked.at(k / 4 * (ROWS * 128) + k % 4 * 32), k > 0);
    mma_commit();
}
/* and of a step's weights, or scores' gradients, with its walked rows. */
template <int columns> inline void add_rows(float (&sum)[columns / 2], const unsigned (&x)[SUMS / 2], uniform_descriptor walked, int more)
{
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++)
        mma_registers<columns>::template run<1>(sum, x + k * 4, walked.at(k * 2048), k == 0 ? more : 1);
    mma_commit();
}

inline void pack(unsigned (&p)[SUMS / 2], const float (&s)[SUMS])
{
#pragma unroll
    for (int i = 0; i < SUMS / 2; i++)
        p[i] = pack_a(s[2 * i], s[2 * i + 1]);
}

template <int count> inline void clear(float (&sums)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        sums[i] = 0;
}

/* What scores are less than in exponents, or products of V with the gradient of O: of BY_QUERIES a thread's two own rows, else its walked
 * ones, which are read where they are wanted. */
struct row_numbers {
    float lse2[2], delta[2];
};

/* Which of a thread's pairs of a step are seen: a bit a sum. */
inline unsigned find_seen(const attention_task &task, const two_pass_tile &tile, const two_pass_step &step, int own_first)
{
    unsigned seen = 0;
    const int walked = (step.tile & ~TWO_PASS_HIDDEN) * ROWS;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int own = own_first + thread_row(half_of(i)), other = walked + column_of(i);
        const int key = BY_QUERIES ? other : own, query = BY_QUERIES ? own : other, beside = query + task.shift;
        const bool below = key < task.keys && query < task.queries && (!RIGHT || key < beside + task.right);
        const bool above = !LEFT || key > beside - task.left || (SINKS && key < task.sinks);
        seen |= (unsigned)(below && above) << i;
    }
#if TILED
    if (step.entry >= 0)
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const int own = own_first + thread_row(half_of(i)), other = walked + column_of(i);
            if (!attention_bit(&task, step.entry, BY_QUERIES ? own : other, BY_QUERIES ? other : own))
                seen &= ~(1u << i);
        }
#endif
    return seen;
}

inline void keep_seen(float (&s)[SUMS], unsigned seen)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        s[i] = seen >> i & 1 ? s[i] : 0;
}

/* ---- infinities and NaN in rows of pairs that are not seen: zero times them would be NaN. Own rows meet only themselves. */

inline bool any_of(bool mine, int barrier)
{
    unsigned any;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 q, %1, 0;\n\tbar.red.or.pred p, %2, %3, q;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(any)
                 : "r"((unsigned)mine), "r"(barrier), "n"(THREADS)
                 : "memory");
    return any != 0;
}

inline uint4 shared_16_bytes(unsigned address)
{
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(address) : "memory");
    return x;
}

inline bool is_finite(unsigned pair)
{
    constexpr unsigned exponent = DTYPE_A == BF16 ? 0x7f80 : 0x7c00;
    return (pair & exponent) != exponent && (pair >> 16 & exponent) != exponent;
}
inline bool is_finite(const uint4 &x)
{
    return is_finite(x.x) && is_finite(x.y) && is_finite(x.z) && is_finite(x.w);
}

/* Whether some row of a step's tile is not finite. */
template <int chunks> inline bool is_bad_tile(unsigned tile)
{
    bool found = false;
    for (int at = threadIdx.x % THREADS * 16; at < ROWS * chunks * 128; at += THREADS * 16)
        found |= !is_finite(shared_16_bytes(tile + at));
    return found;
}
/* Such rows become zeros, and get their bit in `bad`. */
template <int chunks> inline void clean_tile(unsigned tile, unsigned *bad)
{
    for (int row = threadIdx.x % THREADS; row < ROWS; row += THREADS) {
        bool finite = true;
        for (int at = 0; at < chunks * 8; at++)
            finite &= is_finite(shared_16_bytes(tile + at / 8 * (ROWS * 128) + row * 128 + at % 8 * 16));
        if (finite)
            continue;
        atomicOr(&bad[row / 32], 1u << row % 32);
        for (int at = 0; at < chunks * 8; at++)
            shared_clear_16_bytes(tile + at / 8 * (ROWS * 128) + row * 128 + at % 8 * 16);
    }
}

struct consumer {
    const attention_backward_task &all;
    const attention_task &task;
    const two_pass_order &order;
    ring_shared &shared;
    const unsigned tiles;
    const int sharer, barrier; /* the warpgroup among those of the ring */
    ring<OWN_SLOTS> own;
    ring<FIRST_STAGES> first;
    ring<SECOND_STAGES> second;
    const float scale2;

    __device__ __forceinline__ consumer(const attention_backward_task &all, const two_pass_order &order, ring_shared &shared,
                                        unsigned tiles, int ring_number, int sharer)
        : all(all), task(all.attention), order(order), shared(shared), tiles(tiles), sharer(sharer), barrier(RING_BARRIER + ring_number),
          own(shared.own), first(shared.first), second(shared.second), scale2((float)all.attention.scale * LOG2_E)
    {
    }
    __device__ __forceinline__ unsigned own_tile() const { return tiles + own.stage * SHAPE.own_bytes + (PAIRED ? 0 : sharer * 8192); }
    __device__ __forceinline__ unsigned first_tile() const { return tiles + AT_FIRST + first.stage * SHAPE.first_bytes; }
    __device__ __forceinline__ unsigned second_tile() const { return tiles + AT_SECOND + second.stage * SHAPE.second_bytes; }
    __device__ __forceinline__ uniform_descriptor own_first() const { return tile_at<OWN_ROWS>(own_tile()); }
    __device__ __forceinline__ uniform_descriptor own_second() const { return tile_at<OWN_ROWS>(own_tile() + OWN_FIRST_BYTES); }

    /* By each warp: it reads the slot no more. */
    template <int slots> __device__ __forceinline__ void release(const ring<slots> &of, unsigned stage) const
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            of.release(stage);
    }
    __device__ __forceinline__ int own_first_row(const two_pass_tile &tile) const { return tile.row + (PAIRED ? 0 : sharer * 64); }

    /* ---- a step's numbers */

    /* Scores become what weigh makes the right exponents of, where LSE is large. */
    __device__ __forceinline__ void weigh_ahead(float (&s)[SUMS], const two_pass_tile &tile, const two_pass_step &step,
                                                const row_numbers &numbers) const
    {
        float scale = scale2 * LN_2;
        asm volatile("" : "+f"(scale)); /* what is made of it is found here, not ahead of all steps */
        const float per_score = scale != 0 ? reciprocal(scale) : 0;
        const attention_strides &strides = task.lse_strides;
        const float *lse = (const float *)task.lse + tile.item * strides.item +
                           (BY_QUERIES ? tile.head : tile.head * task.sharing + step.head) * (long long)strides.head;
        const int first_query = BY_QUERIES ? own_first_row(tile) : (step.tile & ~TWO_PASS_HIDDEN) * ROWS;
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const int query = BY_QUERIES ? thread_row(half_of(i)) : column_of(i);
            const float its = BY_QUERIES ? numbers.lse2[half_of(i)] : shared.lse2[BY_QUERIES ? 0 : first.stage][query];
            if (its == LSE_IS_LARGE)
                s[i] = log_weight(s[i], scale, *(const volatile float *)(lse + (long long)(first_query + query) * strides.row)) * per_score;
        }
    }
    /* Scores become weights. */
    __device__ __forceinline__ void weigh(float (&s)[SUMS], const row_numbers &numbers) const
    {
        if (BY_QUERIES) {
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                s[i] = power_of_two(fmaf(s[i], scale2, -numbers.lse2[half_of(i)]));
            return;
        }
        const float *lse2 = shared.lse2[BY_QUERIES ? 0 : first.stage] + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < SUMS; i += 4) {
            const float2 its = *(const float2 *)(lse2 + i * 2);
            s[i] = power_of_two(fmaf(s[i], scale2, -its.x));
            s[i + 1] = power_of_two(fmaf(s[i + 1], scale2, -its.y));
            s[i + 2] = power_of_two(fmaf(s[i + 2], scale2, -its.x));
            s[i + 3] = power_of_two(fmaf(s[i + 3], scale2, -its.y));
        }
    }
    /* d, of weights p: the scores' gradients. */
    __device__ __forceinline__ void differentiate(float (&d)[SUMS], const float (&p)[SUMS], const row_numbers &numbers) const
    {
        if (BY_QUERIES) {
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                d[i] = p[i] * (d[i] - numbers.delta[half_of(i)]);
            return;
        }
        const float *delta = shared.delta[BY_QUERIES ? 0 : first.stage] + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < SUMS; i += 4) {
            const float2 its = *(const float2 *)(delta + i * 2);
            d[i] = p[i] * (d[i] - its.x);
            d[i + 1] = p[i + 1] * (d[i + 1] - its.y);
            d[i + 2] = p[i + 2] * (d[i + 2] - its.x);
            d[i + 3] = p[i + 3] * (d[i + 3] - its.y);
        }
    }
    /* Whether one of a warp's queries of the step has a large LSE. */
    __device__ __forceinline__ bool has_large(const row_numbers &numbers) const
    {
        if (BY_QUERIES)
            return __any_sync(~0u, numbers.lse2[0] == LSE_IS_LARGE || numbers.lse2[1] == LSE_IS_LARGE);
        const float2 two = *(const float2 *)(shared.lse2[BY_QUERIES ? 0 : first.stage] + threadIdx.x % 32 * 2);
        return __any_sync(~0u, two.x == LSE_IS_LARGE || two.y == LSE_IS_LARGE);
    }

    /* ---- steps where some pair is not seen */

    /* Walked rows that the next products sum are made finite. Whether some were not. By all threads of the ring. */
    __device__ __forceinline__ bool scrub_step() const
    {
        const bool found = is_bad_tile<SHAPE.chunks>(first_tile()) || is_bad_tile<SHAPE.chunks_v>(second_tile());
        if (!any_of(found, barrier))
            return false;
        if (threadIdx.x % THREADS < 2)
            shared.bad[threadIdx.x % THREADS] = 0;
        any_of(false, barrier);
        clean_tile<SHAPE.chunks>(first_tile(), shared.bad);
        clean_tile<SHAPE.chunks_v>(second_tile(), shared.bad);
        fence_async_shared();
        any_of(false, barrier);
        return true;
    }
    /* Weights, or gradients of scores, of pairs that are not seen become zero, and NaN those of pairs that are seen whose walked row was
     * not finite. */
    __device__ __forceinline__ void mend(float (&s)[SUMS], unsigned seen, bool bad) const
    {
        keep_seen(s, seen);
        if (!SCRUB || !bad)
            return;
        const float nan = __int_as_float(0x7fc00000);
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const int row = column_of(i);
            if ((shared.bad[row / 32] >> row % 32 & 1) != 0 && (seen >> i & 1) != 0)
                s[i] = nan;
        }
    }

    /* ---- the end of a tile */

    template <int columns>
    __device__ __forceinline__ void store(void *to, const attention_strides &strides, const two_pass_tile &tile, int pieces,
                                          const float (&sums)[columns], float factor) const
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const long long row = own_first_row(tile) + thread_row(half);
            element_a *line = (element_a *)to + tile.item * strides.item + tile.head * strides.head + row * strides.row;
            store_row(line, pieces, row < (BY_QUERIES ? task.queries : task.keys), sums, half, factor);
        }
    }

    /* A tile's LSE and delta, BY_QUERIES. */
    __device__ __forceinline__ void take_numbers(row_numbers &numbers, const two_pass_tile &tile) const
    {
        if (!BY_QUERIES)
            return;
        const long long row = (long long)(tile.first + own_first_row(tile) / ROWS) * ROWS;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            numbers.lse2[half] = order.lse2[row + thread_row(half)];
            numbers.delta[half] = order.delta[row + thread_row(half)];
        }
    }

    __device__ __forceinline__ const two_pass_tile &tile_note() const
    {
        return shared.tiles[own.stage + own.phase * OWN_SLOTS];
    }
    __device__ __forceinline__ bool is_hidden() const
    {
        return __any_sync(~0u, (shared.steps[first.stage].tile & TWO_PASS_HIDDEN) != 0);
    }
    __device__ __forceinline__ unsigned first_before() const
    {
        return (first.stage + FIRST_STAGES - 1) % FIRST_STAGES;
    }
    __device__ __forceinline__ unsigned second_before() const
    {
        return (second.stage + SECOND_STAGES - 1) % SECOND_STAGES;
    }
    __device__ __forceinline__ uniform_descriptor first_rows(unsigned stage) const
    {
        return tile_at<ROWS>(tiles + AT_FIRST + stage * SHAPE.first_bytes);
    }
    __device__ __forceinline__ uniform_descriptor second_rows(unsigned stage) const
    {
        return tile_at<ROWS>(tiles + AT_SECOND + stage * SHAPE.second_bytes);
    }
};

/* Both scores and their gradients by one warpgroup. */
struct lone_consumer : consumer {
    using consumer::consumer;
    static constexpr int COLUMNS_V = BY_QUERIES ? 16 : DEPTH_V;
    float grad[DEPTH / 2], grad_v[COLUMNS_V / 2];    /* of own rows: of Q, or of K and V */
    unsigned weights[SUMS / 2], gradients[SUMS / 2]; /* of the step before */
    held_rows<HELD ? K_STEPS : 1> held_first;
    held_rows<HELD ? V_STEPS : 1> held_second;
    row_numbers numbers;

    /* Asks for the products that end the step before. more: 0: it was the tile's first. */
    __device__ __forceinline__ void ask_for_sums(int more)
    {
        if constexpr (!BY_QUERIES)
            add_rows<COLUMNS_V>(grad_v, weights, second_rows(second_before()), more);
        add_rows<DEPTH>(grad, gradients, first_rows(first_before()), more);
    }
    __device__ __forceinline__ void settle_sums()
    {
        mma_settle(grad);
        if constexpr (!BY_QUERIES)
            mma_settle(grad_v);
    }
    __device__ __forceinline__ void release_before() const
    {
        release(first, first_before());
        if (!BY_QUERIES)
            release(second, second_before());
    }
    /* begun: there is a step before; more: and one before that. */
    template <bool begun> __device__ __forceinline__ void round(bool large_tile, int more)
    {
        float s[SUMS], d_s[SUMS];
        wait_full_warp(first);
        const bool hidden = is_hidden(), large = BY_QUERIES ? large_tile : has_large(numbers);
        bool bad = false;
        if (SCRUB && hidden) {
            wait_full_warp(second);
            bad = scrub_step();
        }
        mma_fence();
        if constexpr (begun)
            ask_for_sums(more);
        if constexpr (HELD)
            multiply_held(s, held_first, first_rows(first.stage));
        else
            multiply_rows<K_STEPS>(s, own_first(), first_rows(first.stage));
        if constexpr (begun) {
            mma_wait<1>();
            settle_sums();
            release_before();
        }
        wait_full_warp(second);
        mma_fence();
        if constexpr (HELD)
            multiply_held(d_s, held_second, second_rows(second.stage));
        else
            multiply_rows<V_STEPS>(d_s, own_second(), second_rows(second.stage));
        mma_wait<1>();
        mma_settle(s);
        unsigned seen = ~0u;
        if (large)
            weigh_ahead(s, tile_note(), shared.steps[first.stage], numbers);
        if (hidden)
            seen = find_seen(task, tile_note(), shared.steps[first.stage], own_first_row(tile_note()));
        weigh(s, numbers);
        if (hidden)
            mend(s, seen, bad);
        mma_wait<0>();
        mma_settle(d_s);
        if constexpr (!BY_QUERIES)
            pack(weights, s);
        else
            release(second, second.stage);
        differentiate(d_s, s, numbers);
        if (hidden)
            mend(d_s, seen, bad);
        pack(gradients, d_s);
        first.advance();
        second.advance();
    }
    __device__ __forceinline__ void run()
    {
        for (;; own.advance()) {
            wait_full_warp(own);
            const two_pass_tile &tile = tile_note();
            const int steps = uniform(tile.end - tile.begin);
            if (__any_sync(~0u, tile.head < 0))
                return;
            if constexpr (HELD) {
                held_first.read(own_tile());
                held_second.read(own_tile() + OWN_FIRST_BYTES);
                release(own, own.stage);
            }
            take_numbers(numbers, tile);
            const bool large = BY_QUERIES && has_large(numbers);
            if (steps > 0) {
                round<false>(large, 0);
                for (int step = 1; step < steps; step++)
                    round<true>(large, step > 1);
                mma_fence();
                ask_for_sums(steps > 1);
                mma_wait<0>();
                settle_sums();
                release_before();
            } else {
                clear(grad);
                clear(grad_v);
            }
            if constexpr (BY_QUERIES)
                store(all.grad_q, all.grad_q_strides, tile, order.q_pieces, grad, (float)task.scale);
            else {
                store(all.grad_k, all.grad_k_strides, tile, order.k_pieces, grad, (float)task.scale);
                store(all.grad_v, all.grad_v_strides, tile, order.v_pieces, grad_v, 1.0f);
            }
            if constexpr (!HELD)
                release(own, own.stage);
        }
    }
};

/* PAIRED. scores: the warpgroup has scores, weights and grad_V; else the weights' gradients, those of scores, and grad_K. */
template <bool scores> struct paired_consumer : consumer {
    using consumer::consumer;
    static constexpr int COLUMNS = scores ? DEPTH_V : DEPTH;
    float grad[COLUMNS / 2];
    unsigned packed[SUMS / 2]; /* of the step before: weights, or gradients of scores */
    unsigned phase = 0;        /* of the weights */

    __device__ __forceinline__ void ask_for_sums(int more)
    {
        add_rows<COLUMNS>(grad, packed, scores ? second_rows(second_before()) : first_rows(first_before()), more);
    }
    __device__ __forceinline__ void release_before() const
    {
        release(first, first_before());
        release(second, second_before());
    }
    __device__ __forceinline__ unsigned weights_at(int i) const { return tiles + AT_WEIGHTS + threadIdx.x % 128 * 16 + i * 512; }
    __device__ __forceinline__ void give_weights(const float (&s)[SUMS])
    {
        barrier_wait(smem_address(&shared.weights_empty), phase ^ 1); /* at first it is empty */
#pragma unroll
        for (int i = 0; i < SUMS; i += 4)
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(weights_at(i)), "f"(s[i]), "f"(s[i + 1]), "f"(s[i + 2]),
                         "f"(s[i + 3])
                         : "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(smem_address(&shared.weights_full));
    }
    __device__ __forceinline__ void take_weights(float (&p)[SUMS]) const
    {
        barrier_wait(smem_address(&shared.weights_full), phase);
#pragma unroll
        for (int i = 0; i < SUMS; i += 4)
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(p[i]), "=f"(p[i + 1]), "=f"(p[i + 2]), "=f"(p[i + 3])
                         : "r"(weights_at(i))
                         : "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(smem_address(&shared.weights_empty));
    }
    template <bool begun> __device__ __forceinline__ void round(int more)
    {
        float s[SUMS];
        const row_numbers numbers = {};
        wait_full_warp(first);
        wait_full_warp(second);
        const bool hidden = is_hidden(), large = scores && has_large(numbers);
        bool bad = false;
        if (SCRUB && hidden)
            bad = scrub_step();
        mma_fence();
        if constexpr (begun)
            ask_for_sums(more);
        if constexpr (scores)
            multiply_rows<K_STEPS>(s, own_first(), first_rows(first.stage));
        else
            multiply_rows<V_STEPS>(s, own_second(), second_rows(second.stage));
        if constexpr (begun) {
            mma_wait<1>();
            release_before();
        }
        mma_wait<0>();
        mma_settle(s);
        if constexpr (begun)
            mma_settle(grad);
        unsigned seen = ~0u;
        if (large)
            weigh_ahead(s, tile_note(), shared.steps[first.stage], numbers);
        if (hidden)
            seen = find_seen(task, tile_note(), shared.steps[first.stage], own_first_row(tile_note()));
        if constexpr (scores) {
            weigh(s, numbers);
            if (hidden)
                mend(s, seen, bad);
            give_weights(s);
        } else {
            float p[SUMS];
            take_weights(p);
            differentiate(s, p, numbers);
            if (hidden)
                mend(s, seen, bad);
        }
        phase ^= 1;
        pack(packed, s);
        first.advance();
        second.advance();
    }
    __device__ __forceinline__ void run()
    {
        for (;; own.advance()) {
            wait_full_warp(own);
            const two_pass_tile &tile = tile_note();
            const int steps = uniform(tile.end - tile.begin);
            if (__any_sync(~0u, tile.head < 0))
                return;
            if (steps > 0) {
                round<false>(0);
                for (int step = 1; step < steps; step++)
                    round<true>(step > 1);
                mma_fence();
                ask_for_sums(steps > 1);
                mma_wait<0>();
                mma_settle(grad);
                release_before();
            } else
                clear(grad);
            if constexpr (scores)
                store(all.grad_v, all.grad_v_strides, tile, order.v_pieces, grad, 1.0f);
            else
                store(all.grad_k, all.grad_k_strides, tile, order.k_pieces, grad, (float)task.scale);
            release(own, own.stage);
        }
    }
};

/* clang-format off: it would take the attributes apart */
extern "C" __global__ void __launch_bounds__(SHAPE.threads, 1)
    /* clang-format on */
    attention_backward_sm90_two_pass(const __grid_constant__ spk_tensor_map map_q, const __grid_constant__ spk_tensor_map map_k,
                                     const __grid_constant__ spk_tensor_map map_v, const __grid_constant__ spk_tensor_map map_d,
                                     const __grid_constant__ attention_backward_task task, const __grid_constant__ two_pass_order order)
{
    extern __shared__ unsigned char memory[];
    __shared__ ring_shared shared[RINGS];
    const unsigned tiles = (smem_address(memory) + 1023) & ~1023u;
    static_assert(sizeof(ring_shared) <= TWO_PASS_NOTES_BYTES + TWO_PASS_NUMBERS_BYTES, "");
    if (threadIdx.x == 0) {
        for (int ring = 0; ring < RINGS; ring++) {
            ring_init(shared[ring].own, 1, RING_GROUPS * 4); /* a warp each */
            ring_init(shared[ring].first, 1, RING_GROUPS * 4);
            ring_init(shared[ring].second, 1, RING_GROUPS * 4);
            barrier_init(smem_address(&shared[ring].weights_full), 4);
            barrier_init(smem_address(&shared[ring].weights_empty), 4);
        }
        barrier_init_fence();
    }
    if (threadIdx.x == GROUPS * 128) {
        tma_prefetch_map(&map_q);
        tma_prefetch_map(&map_k);
        tma_prefetch_map(&map_v);
        tma_prefetch_map(&map_d);
    }
    __syncthreads();
    previous_launch_done();
    if (blockIdx.x == 0 && threadIdx.x == 0 && order.other_taken != nullptr)
        *order.other_taken = 0;
    const int group = uniform(threadIdx.x / 128);
    if (group < GROUPS) {
        registers_more<CONSUMER_REGISTERS>();
        const int ring = group / RING_GROUPS, sharer = group % RING_GROUPS;
        const unsigned at = uniform(tiles + ring * SHAPE.ring_bytes);
#if PAIRED
        if (sharer == 0)
            paired_consumer<true>(task, order, shared[ring], at, ring, sharer).run();
        else
            paired_consumer<false>(task, order, shared[ring], at, ring, sharer).run();
#else
        lone_consumer(task, order, shared[ring], at, ring, sharer).run();
#endif
    } else {
        registers_fewer<PRODUCER_REGISTERS>();
        const int ring = uniform(threadIdx.x / 32) - GROUPS * 4;
        const tensor_maps maps = {&map_q, &map_k, &map_v, &map_d};
        if (ring < RINGS)
            producer(maps, task, order, shared[ring], tiles + ring * SHAPE.ring_bytes).run();
    }
}
