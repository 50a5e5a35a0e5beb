/* attention_backward_sm90: the gradients of attention, f16 or bf16, sums in f32. Hopper only.
 *
 * A block of threads has a tile of keys, whose K and V stay in shared memory and whose grad_K and grad_V stay in registers, and walks the
 * tiles of queries that see it. Scores are computed transposed, keys by queries, so that weights and the scores' gradients are left
 * operands of the products for grad_V and grad_K as they come (Shah et al. 2024, arXiv:2407.08608). grad_Q is a sum over tiles of keys:
 * each step adds its part to memory when the parts before it, in an order that the host found, are in. So the sum has the same bits on
 * every run.
 *
 * PACKED: the host does not know which keys a query sees. Blocks take tiles of keys as they come, of a head the last one first, and grad_Q
 * is summed in that order: a tile waits for tiles alone that were taken before it. Where queries see keys up to their own, none waits long:
 * a tile's steps begin with its own queries, which the tile before it had in the step before.
 *
 * An infinity or NaN in a row of a pair that is seen makes that pair's gradients NaN, in steps where some pair is not seen. */
#include "backend/cuda/kernels/attention_backward_sm90.h"

#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/ptx/copy_async.cuh"
#include "backend/cuda/device/ptx/elected.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma_registers.cuh"
#include "backend/cuda/device/schedule/pingpong.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/attention/softmax.cuh"
#include "backend/cuda/device/ptx/tma.cuh"
#include "backend/cuda/device/ptx/uniform.cuh"

using namespace sm90;

constexpr attention_backward_shape SHAPE = attention_backward_shape_of({ATTENTION_BACKWARD_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int Q_STAGES = SHAPE.q_stages, D_STAGES = SHAPE.d_stages, K_SLOTS = SHAPE.k_slots, V_SLOTS = SHAPE.v_slots, RINGS = SHAPE.rings,
              KEYS = SHAPE.keys;
constexpr int ROUNDS = SHAPE.rounds, GRAD_SUMS = SHAPE.part_floats / 128, ADDERS = SHAPE.adders;
constexpr bool TRANSPOSED = SHAPE.transposed;
constexpr int CONSUMER_REGISTERS = DEPTH + DEPTH_V > 192 ? 240 : 232,
              PRODUCER_REGISTERS = DEPTH + DEPTH_V > 192 ? 24 : 40; /* 65,536 in all */
constexpr int K_STEPS = (DEPTH + 15) / 16, V_STEPS = (DEPTH_V + 15) / 16;
constexpr bool TURNS = SHAPE.turns;
/* Whether a step's part of grad_Q is multiplied before grad_K, and goes to shared memory while that product leaves it half of its time. */
constexpr bool PART_FIRST = !LAG && ROUNDS == 1 && DEPTH > 64;
/* Whether the next step's scores are asked for before the product for grad_K is done: there are registers for both. */
constexpr bool SCORES_EARLY = !TRANSPOSED;
constexpr int THREADS = SHARERS * 128; /* that multiply for a ring */
/* Whether a thread has registers for LSE and delta early: shared memory is slow to give them while products read it. */
constexpr bool NUMBERS_AHEAD = ROWS == 64 && !SCRUB;
enum {
    WALK_SLOTS = ATTENTION_BACKWARD_WALK_SLOTS,
    FOLLOWERS = (RINGS == 2 ? 0 : 1) + ADDERS, /* warps that learn of a tile from a ring's first producer */
    LINE_WORDS = KEYS / 32                     /* of a query's bits of a step */
};
enum { RING_BARRIER = 1 }; /* a named barrier for each ring */

struct ring_shared {
    ring_storage<Q_STAGES> q;
    ring_storage<D_STAGES> d;
    ring_storage<K_SLOTS> k;
    ring_storage<V_SLOTS> v;
    unsigned long long staged[2], used[2];     /* LAG: a slot of scores' gradients is written by all sharers; is read by them */
    unsigned long long sum_empty, sum_full[2]; /* a round's part of grad_Q may be written; is written, of every other step */
    attention_backward_step steps[Q_STAGES];
    attention_backward_tile tiles[K_SLOTS];                              /* head_kv -1: there are no more */
    unsigned bad_queries[4], bad_outputs[4], bad_keys[4], bad_values[4]; /* a bit a row: it held what is not finite */
    alignas(16) float lse2[Q_STAGES][ROWS], delta[D_STAGES][ROWS];
#if TILED
    alignas(16) unsigned bits[Q_STAGES][ROWS][LINE_WORDS]; /* of the step's pairs, where its note names a tile */
#endif
#if PACKED
    alignas(16) int2 sights[Q_STAGES][ROWS];
    ring_storage<WALK_SLOTS> walk;
    attention_backward_tile walked[WALK_SLOTS]; /* head_kv -1: there are no more */
#endif
};

/* Where a ring's tiles are in shared memory, from its first byte on. */
constexpr unsigned AT_K = 0, AT_V = AT_K + K_SLOTS * SHAPE.k_bytes, AT_Q = AT_V + V_SLOTS * SHAPE.v_bytes,
                   AT_D = AT_Q + Q_STAGES * SHAPE.q_bytes, AT_S = AT_D + D_STAGES * SHAPE.d_bytes,
                   AT_SUM = AT_S + SHAPE.s_slots * SHAPE.s_bytes;

/* A side's place in a ring. */
template <int slots> struct ring_place {
    unsigned stage, phase;
    __device__ __forceinline__ ring_place() : stage(0), phase(0) {}
    __device__ __forceinline__ void advance()
    {
        if (++stage == slots) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ __forceinline__ ring<slots> in(const ring_storage<slots> &storage) const
    {
        ring<slots> made(storage);
        made.stage = stage;
        made.phase = phase;
        return made;
    }
};

inline attention_backward_tile read_tile(const attention_backward_order &order, int at)
{
    const int4 words = __ldg((const int4 *)order.tiles + at * 2);
    return {words.x, words.y, words.z, words.w, __ldg(order.tiles + at * 8 + 4), 0, 0, 0};
}

/* PACKED: the tile that is taken as number `at`: of a head the last tile of keys comes first. */
inline attention_backward_tile find_tile(const attention_task &task, const attention_backward_order &order, int at)
{
    const int head = at / order.key_tiles, tile = order.key_tiles - 1 - at % order.key_tiles, item = head / order.heads_kv;
    const int4 words = *((const int4 *)order.spans.spans + (long long)item * order.key_tiles + tile);
    return {tile * KEYS | ATTENTION_BACKWARD_HIDDEN, head % order.heads_kv, item, 0, words.y * task.sharing, words.x, words.z, words.w};
}

/* Step `at` of a tile. PACKED: grad_Q has, before this one, the sums of the tiles of keys behind this one that see the queries. */
inline attention_backward_step read_step(const attention_task &task, const attention_backward_order &order,
                                         const attention_backward_tile &tile, int at)
{
#if PACKED
    const int count = tile.end / task.sharing, head = tile.head_kv * task.sharing + at / count, query = tile.first + at % count;
    const int turn = order.spans.tops[tile.item * order.query_tiles + query] - (tile.key & ~ATTENTION_BACKWARD_HIDDEN) / KEYS;
    return {(tile.item * task.heads + head) * order.query_tiles + query,
            query >= tile.whole && query < tile.whole_end ? query : query | ATTENTION_BACKWARD_HIDDEN, head, turn};
#else
    const int4 words = __ldg((const int4 *)order.steps + at);
    return {words.x, words.y, words.z, words.w};
#endif
}

inline int query_tile_of(const attention_backward_step &step)
{
    return step.tile & ~ATTENTION_BACKWARD_HIDDEN;
}

/* ---- which tiles a ring has */

/* By a warp, or by one thread: the worker's list, or what the ring's first producer takes and tells the others. It takes a tile when it has
 * brought all of the one before, not earlier: others wait for the sums of a tile that is taken. */
template <bool leads, bool by_warp> struct tile_source {
    const attention_task &task;
    const attention_backward_order &order;
    ring_shared &shared;
#if PACKED
    ring_place<WALK_SLOTS> place;
    __device__ __forceinline__ tile_source(const attention_task &task, const attention_backward_order &order, ring_shared &shared, int)
        : task(task), order(order), shared(shared)
    {
    }
    /* By a warp. */
    __device__ __forceinline__ attention_backward_tile take() const
    {
        int taken = 0;
        if (threadIdx.x % 32 == 0)
            taken = atomicAdd(order.spans.taken, 1);
        taken = uniform(taken);
        if (taken < order.key_tiles * order.heads_kv * task.items)
            return find_tile(task, order, taken);
        return {0, -1};
    }
    /* False: there are no more. */
    __device__ __forceinline__ bool next(attention_backward_tile &tile)
    {
        const ring<WALK_SLOTS> at = place.in(shared.walk);
        place.advance();
        if (leads) {
            tile = take();
            wait_empty_warp(at);
            if (is_elected()) {
                shared.walked[at.stage] = tile;
                barrier_arrive(at.full_barrier());
            }
            __syncwarp();
            return tile.head_kv >= 0;
        }
        if (by_warp)
            wait_full_warp(at);
        else
            at.wait_full();
        tile = shared.walked[at.stage];
        if (by_warp)
            __syncwarp();
        if (!by_warp || threadIdx.x % 32 == 0)
            at.release(at.stage);
        return tile.head_kv >= 0;
    }
#else
    int turn, end;
    __device__ __forceinline__ tile_source(const attention_task &task, const attention_backward_order &order, ring_shared &shared,
                                           int worker)
        : task(task), order(order), shared(shared), turn(__ldg(order.offsets + worker)), end(__ldg(order.offsets + worker + 1))
    {
        if (by_warp) {
            turn = uniform(turn);
            end = uniform(end);
        }
    }
    __device__ __forceinline__ bool next(attention_backward_tile &tile)
    {
        if (turn == end)
            return false;
        tile = read_tile(order, turn++);
        return true;
    }
#endif
};

/* ---- the producer: a warp for each ring */

struct tensor_maps {
    const spk_tensor_map *q, *k, *v, *d;
};

template <int chunks, int rows> inline void load_tile(unsigned to, const spk_tensor_map *map, unsigned barrier, int row, int head, int item)
{
#pragma unroll
    for (int chunk = 0; chunk < chunks; chunk++)
        tma_load_4d(to + chunk * (rows * 128), map, barrier, chunk * 64, row, head, item);
}

/* `bytes` neighbouring bytes; from, to and bytes are multiples of 16. */
inline void bulk_load(unsigned to, const void *from, int bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                 "r"(barrier)
                 : "memory");
}

/* A step's Q and LSE, or the gradient of O and delta, to a stage that is empty; its barrier is to see `more` bytes. */
template <int chunks, int stages>
inline void load_rows(const ring<stages> &to, unsigned tiles, const spk_tensor_map *map, const float *line, const float *numbers, int row,
                      int head, int item, int more = 0)
{
    barrier_arrive_expect(to.full_barrier(), ROWS * 128 * chunks + ROWS * 4 + more);
    load_tile<chunks, ROWS>(tiles + to.stage * (ROWS * 128 * chunks), map, to.full_barrier(), row, head, item);
    bulk_load(smem_address(line), numbers, ROWS * 4, to.full_barrier());
}

#if TILED
/* The number of the tile of bits that a step's block has; -1: it keeps all. */
inline int bits_of(const attention_task &task, const attention_backward_order &order, int step)
{
    return __ldg(task.tile_numbers + __ldg(order.entries + step));
}

/* By a warp, of whose lanes the barrier sees each: the bits of a step's pairs, where it has some. */
inline void load_bits(const attention_task &task, unsigned (&to)[ROWS][LINE_WORDS], unsigned barrier, int number, int row, int key)
{
    if (number >= 0)
        for (int line = threadIdx.x % 32; line < ROWS; line += 32) {
            const int own = min(row % task.block_rows + line, task.block_rows - 1);
            copy_async<LINE_WORDS>(
                smem_address(to[line]),
                task.tile_bits + ((long long)number * task.block_rows + own) * task.tile_words + key % task.block_cols / 32, true);
        }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
#endif

/* A tile's note, and K where it has steps. */
SPK_INLINE void load_k(const tensor_maps &maps, const attention_task &task, ring_shared &shared, unsigned tiles,
                       const ring_place<K_SLOTS> &place, const attention_backward_tile &tile, int key, int head_kv, int item, int begin,
                       int stop)
{
    const ring<K_SLOTS> k = place.in(shared.k);
    wait_empty_warp(k);
    if (is_elected()) {
        shared.tiles[k.stage] = tile;
        barrier_arrive_expect(k.full_barrier(), stop > begin ? SHAPE.k_bytes : 0);
        if (stop > begin)
            load_tile<SHAPE.chunks, KEYS>(tiles + AT_K + k.stage * SHAPE.k_bytes, maps.k, k.full_barrier(), key, head_kv,
                                          task.k_strides.item != 0 ? item : 0);
    }
}

SPK_INLINE void load_v(const tensor_maps &maps, const attention_task &task, ring_shared &shared, unsigned tiles,
                       const ring_place<V_SLOTS> &place, int key, int head_kv, int item)
{
    const ring<V_SLOTS> v = place.in(shared.v);
    wait_empty_warp(v);
    if (is_elected()) {
        barrier_arrive_expect(v.full_barrier(), SHAPE.v_bytes);
        load_tile<SHAPE.chunks_v, KEYS>(tiles + AT_V + v.stage * SHAPE.v_bytes, maps.v, v.full_barrier(), key, head_kv,
                                        task.v_strides.item != 0 ? item : 0);
    }
}

/* A step's note, Q and LSE, and, PACKED, what its queries see, or, TILED, its bits. */
SPK_INLINE void load_q(const tensor_maps &maps, const attention_task &task, const attention_backward_order &order, ring_shared &shared,
                       unsigned tiles, const ring_place<Q_STAGES> &q, const attention_backward_step &step, int row,
                       [[maybe_unused]] int key, int head, int item, int number)
{
    wait_empty_warp(q.in(shared.q));
    if (is_elected()) {
        shared.steps[q.stage] = step;
        load_rows<SHAPE.chunks>(q.in(shared.q), tiles + AT_Q, maps.q, shared.lse2[q.stage], order.lse2 + number * (long long)ROWS, row,
                                head, task.q_strides.item != 0 ? item : 0, PACKED ? ROWS * 8 : 0);
#if PACKED
        bulk_load(smem_address(shared.sights[q.stage]), order.spans.sights + ((long long)item * order.query_tiles * ROWS + row) * 2,
                  ROWS * 8, q.in(shared.q).full_barrier());
#endif
    }
#if TILED
    load_bits(task, shared.bits[q.stage], q.in(shared.q).full_barrier(), step.turn, row, key);
#endif
}

/* A step's gradient of O, and delta. */
SPK_INLINE void load_d(const tensor_maps &maps, const attention_backward_task &all, const attention_backward_order &order,
                       ring_shared &shared, unsigned tiles, const ring_place<D_STAGES> &d, int row, int head, int item, int number)
{
    wait_empty_warp(d.in(shared.d));
    if (is_elected())
        load_rows<SHAPE.chunks_v>(d.in(shared.d), tiles + AT_D, maps.d, shared.delta[d.stage], order.delta + number * (long long)ROWS, row,
                                  head, all.grad_o_strides.item != 0 ? item : 0);
}

/* By one warp: K, Q and LSE, or V, the gradient of O and delta, or all of them: there are four warps for all rings. Its lanes stay
 * together, so that what TMA gets is in uniform registers: of others there are few. */
template <bool of_q, bool of_d>
inline void produce(const tensor_maps &maps, const attention_backward_task &all, const attention_backward_order &order, ring_shared &shared,
                    unsigned tiles, int worker)
{
    const attention_task &task = all.attention;
    ring_place<Q_STAGES> q;
    ring_place<D_STAGES> d;
    ring_place<K_SLOTS> k_slot;
    ring_place<V_SLOTS> v_slot;
    tile_source<of_q, true> source(task, order, shared, worker);
    attention_backward_tile tile;
    while (source.next(tile)) {
        const int key = uniform(tile.key & ~ATTENTION_BACKWARD_HIDDEN), head_kv = uniform(tile.head_kv), item = uniform(tile.item);
        const int begin = uniform(tile.begin), stop = uniform(tile.end);
        if (of_q) {
            load_k(maps, task, shared, tiles, k_slot, tile, key, head_kv, item, begin, stop);
            k_slot.advance();
        }
        if (of_d && stop > begin) {
            load_v(maps, task, shared, tiles, v_slot, key, head_kv, item);
            v_slot.advance();
        }
#if TILED
        int bits_ahead = of_q && stop > begin ? bits_of(task, order, begin) : -1;
#endif
        for (int at = begin; at < stop; at++) {
            attention_backward_step step = read_step(task, order, tile, at);
            const int row = uniform(query_tile_of(step) * ROWS), head = uniform(step.head), number = uniform(step.number);
            if (of_q) {
#if TILED
                step.turn = bits_ahead; /* who multiplies has no use for the turn */
                step.tile |= bits_ahead >= 0 ? ATTENTION_BACKWARD_HIDDEN : 0;
                bits_ahead = at + 1 < stop ? bits_of(task, order, at + 1) : -1;
#endif
                load_q(maps, task, order, shared, tiles, q, step, row, key, head, item, number);
                q.advance();
            }
            if (of_d) {
                load_d(maps, all, order, shared, tiles, d, row, head, item, number);
                d.advance();
            }
        }
    }
    if (of_q) {
        wait_empty_warp(k_slot.in(shared.k));
        if (is_elected()) {
            shared.tiles[k_slot.stage].head_kv = -1;
            barrier_arrive(k_slot.in(shared.k).full_barrier());
        }
    }
}

/* ---- the order of sums: a warp for each ring */

inline int load_acquire(const int *from)
{
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

inline void add_release(int *to, int value)
{
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/* A worker's steps one after the other, by one thread. */
struct step_walk {
    tile_source<false, false> source;
    attention_backward_tile tile; /* its first step is the next */
    __device__ __forceinline__ step_walk(const attention_task &task, const attention_backward_order &order, ring_shared &shared, int worker)
        : source(task, order, shared, worker)
    {
        tile.begin = tile.end = 0;
    }
    __device__ __forceinline__ bool next(int *&turn, int &wanted)
    {
        const attention_backward_order &order = source.order;
        while (tile.begin == tile.end)
            if (!source.next(tile))
                return false;
        const attention_backward_step next = read_step(source.task, order, tile, tile.begin++);
        turn = order.turns + next.number;
        wanted = next.turn;
        return true;
    }
};

/* `bytes` neighbouring bytes of sums to memory, or added to what is there. */
inline void bulk_add(float *to, unsigned from, int bytes, bool add)
{
    if (add)
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}

/* Adds parts of grad_Q, which are in shared memory, to it when those before them are in, and tells the others when they are. By one thread,
 * which has every ADDERS-th step: until the others see a sum takes about as long as a step. */
inline void add_parts(const attention_task &task, const attention_backward_order &order, ring_shared &shared, unsigned tiles, int worker,
                      int adder)
{
    const unsigned empty = smem_address(&shared.sum_empty), full = smem_address(&shared.sum_full[adder]), from = tiles + AT_SUM;
    constexpr int bytes = SHAPE.round_floats * 4;
    step_walk walk(task, order, shared, worker);
    int *turn, wanted;
    unsigned phase = 0;
    for (int step = 0; walk.next(turn, wanted); step++) {
        if (step % ADDERS != adder)
            continue;
        float *to = order.grad_q + (turn - order.turns) * (long long)SHAPE.grad_floats;
        while (wanted > 0 && load_acquire(turn) < wanted)
            ;
        asm volatile("fence.proxy.async.global;" ::: "memory");
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            barrier_wait(full, phase);
            phase ^= 1;
            bulk_add(to + round * SHAPE.round_floats, from, bytes, wanted > 0);
            tma_store_commit();
            tma_store_wait_read<0>();
            barrier_arrive(empty);
        }
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        add_release(turn, 1);
    }
}

/* ---- the multiplying warpgroups */

inline int thread_row(int half)
{
    return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + half * 8;
}

/* Products; each function asks for one group, which is waited for elsewhere. Sums are keys by queries. */
template <int k_steps> inline void multiply_scores(float (&s)[ROWS / 2], uniform_descriptor a, uniform_descriptor b)
{
#pragma unroll
    for (int k = 0; k < k_steps; k++)
        mma<ROWS>::run<0, 0>(s, a.at(k / 4 * (KEYS * 128) + k % 4 * 32), b.at(k / 4 * (ROWS * 128) + k % 4 * 32), k > 0);
    mma_commit();
}

template <int columns>
inline void multiply_rows(float (&sum)[columns / 2], const unsigned (&weights)[ROWS / 4], uniform_descriptor b, int more)
{
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++)
        mma_registers<columns>::template run<1>(sum, weights + k * 4, b.at(k * 2048), k == 0 ? more : 1);
    mma_commit();
}

/* scores: gradients of scores; keys: a line of K. */
inline void multiply_queries(float (&sum)[GRAD_SUMS], uniform_descriptor scores, uniform_descriptor keys)
{
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        if (TRANSPOSED)
            mma<GRAD_SUMS * 2>::run<1, 0>(sum, keys.at(k * 2048), scores.at(k / 4 * (ROWS * 128) + k % 4 * 32), k > 0);
        else
            mma<GRAD_SUMS * 2>::run<1, 1>(sum, scores.at(k * 2048), keys.at(k * 2048), k > 0);
    mma_commit();
}

inline void pack(unsigned (&p)[ROWS / 4], const float (&s)[ROWS / 2])
{
#pragma unroll
    for (int i = 0; i < ROWS / 4; i++)
        p[i] = pack_a(s[2 * i], s[2 * i + 1]);
}

/* The numbers of a thread's queries. */
inline void take_numbers(float2 (&numbers)[ROWS / 8], const float *from)
{
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++)
        numbers[j] = *(const float2 *)(from + j * 8 + threadIdx.x % 4 * 2);
}

/* Scores become weights. */
inline void weigh(float (&s)[ROWS / 2], const float2 (&lse2)[ROWS / 8], float scale2)
{
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++) {
        const float2 sum = lse2[j];
        s[j * 4] = power_of_two(fmaf(s[j * 4], scale2, -sum.x));
        s[j * 4 + 1] = power_of_two(fmaf(s[j * 4 + 1], scale2, -sum.y));
        s[j * 4 + 2] = power_of_two(fmaf(s[j * 4 + 2], scale2, -sum.x));
        s[j * 4 + 3] = power_of_two(fmaf(s[j * 4 + 3], scale2, -sum.y));
    }
}

/* Whether one of the lane's queries of a step has a large LSE; the lanes of a warp have them all. */
inline bool is_large_of_lane(const float *lse2)
{
    bool any = false;
#pragma unroll
    for (int row = 0; row < ROWS; row += 64) {
        const int own = row + threadIdx.x % 32 * 2;
        const float2 two = *(const float2 *)(lse2 + (ROWS % 64 == 0 ? own : min(own, ROWS - 2)));
        any |= two.x == LSE_IS_LARGE || two.y == LSE_IS_LARGE;
    }
    return any;
}

/* Ahead of weigh(), where LSE is large: scores become what it makes the right exponents of. (Between the products there are no registers
 * for this.) */
inline void weigh_ahead(float (&s)[ROWS / 2], float2 (&numbers)[ROWS / 8], const float *lse2, const attention_task &task,
                        const attention_backward_step &note, int item, float scale2)
{
    int own = threadIdx.x % 4 * 2;
    asm volatile("" : "+f"(scale2), "+r"(own)); /* what is made of them is found here, not ahead of all steps */
    const float scale = scale2 * LN_2, per_score = scale2 != 0 ? reciprocal(scale) : 0;
    const attention_strides &strides = task.lse_strides;
    const float *lse = (const float *)task.lse + item * strides.item + note.head * strides.head;
    const float *line = lse + (long long)(query_tile_of(note) * ROWS + own) * strides.row;
    asm volatile("" : "+l"(line));
#pragma unroll
    for (int j = 0; j < ROWS / 4; j++) { /* queries */
        const int at = j / 2 * 8 + j % 2 + own;
        if (lse2[at] != LSE_IS_LARGE)
            continue;
        const float its = *(const volatile float *)(line + (j / 2 * 8 + j % 2) * strides.row); /* one after the other */
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float &score = s[j / 2 * 4 + half * 2 + j % 2];
            score = log_weight(score, scale, its) * per_score;
        }
    }
    if (NUMBERS_AHEAD) { /* once more: their registers were wanted */
        asm volatile("" ::: "memory");
        take_numbers(numbers, lse2);
    }
}

/* d, of weights p: the scores' gradients. */
inline void differentiate(float (&d)[ROWS / 2], const float (&p)[ROWS / 2], const float2 (&delta)[ROWS / 8])
{
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++) {
        const float2 sum = delta[j];
        d[j * 4] = p[j * 4] * (d[j * 4] - sum.x);
        d[j * 4 + 1] = p[j * 4 + 1] * (d[j * 4 + 1] - sum.y);
        d[j * 4 + 2] = p[j * 4 + 2] * (d[j * 4 + 2] - sum.x);
        d[j * 4 + 3] = p[j * 4 + 3] * (d[j * 4 + 3] - sum.y);
    }
}

/* Which of a thread's pairs of a step are seen: a bit a sum. */
struct seen_pairs {
    unsigned bits[(ROWS + 63) / 64];
    __device__ __forceinline__ bool at(int i) const { return (bits[i / 32] >> i % 32 & 1) != 0; }
};

/* Behind the last query there is none that sees: its row of Q is zeros, but what they meet in K may be no number. */
inline seen_pairs find_seen(const attention_task &task, const ring_shared &shared, int stage, int first_key, int first_query)
{
    seen_pairs seen = {};
#if PACKED
    const int2 *sights = shared.sights[stage] + threadIdx.x % 4 * 2;
    const int own = first_key + thread_row(0);
#pragma unroll
    for (int j = 0; j < ROWS / 4; j++) { /* queries */
        const int2 sight = sights[j / 2 * 8 + j % 2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int i = j / 2 * 4 + half * 2 + j % 2, mine = own + half * 8;
            seen.bits[i / 32] |= (unsigned)(mine >= sight.x && mine < sight.y) << i % 32;
        }
    }
    return seen;
#endif
    const int key = first_key + thread_row(0), query = first_query + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++) {
        const int mine = key + i / 2 % 2 * 8, its = query + i / 4 * 8 + i % 2, beside = its + task.shift;
        const bool below = mine < task.keys && its < task.queries && (!RIGHT || mine < beside + task.right);
        const bool above = !LEFT || mine > beside - task.left || (SINKS && mine < task.sinks);
        seen.bits[i / 32] |= (unsigned)(below && above) << i % 32;
    }
#if TILED
    if (shared.steps[stage].turn >= 0) {
        const int word = first_key % KEYS / 32 + threadIdx.x / 64 % 2, bit = threadIdx.x / 32 % 2 * 16 + threadIdx.x % 32 / 4;
        const unsigned(*lines)[LINE_WORDS] = shared.bits[stage] + threadIdx.x % 4 * 2;
#pragma unroll
        for (int j = 0; j < ROWS / 4; j++) {
            const unsigned two = ~(lines[j / 2 * 8 + j % 2][word] >> bit); /* bits 0 and 8: of the thread's keys */
            const int i = j / 2 * 4 + j % 2;
            seen.bits[i / 32] &= ~((two & 1) << i % 32 | (two >> 8 & 1) << (i + 2) % 32);
        }
    }
#endif
    return seen;
}

inline void keep_seen(float (&s)[ROWS / 2], const seen_pairs &seen)
{
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        s[i] = seen.at(i) ? s[i] : 0;
}

/* ---- infinities and NaN in rows of pairs that are not seen: zero times them would be NaN */

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

/* Rows that hold what is not finite become zeros; whether there are any, and in `bad` which. By all threads of a ring. */
inline bool scrub(unsigned tile, int rows, int chunks, unsigned *bad, int barrier)
{
    const int thread = threadIdx.x % THREADS;
    bool found = false;
    for (int at = thread * 16; at < rows * chunks * 128; at += THREADS * 16)
        found |= !is_finite(shared_16_bytes(tile + at));
    if (!any_of(found, barrier))
        return false;
    if (thread < 4)
        bad[thread] = 0;
    any_of(false, barrier);
    for (int row = thread; row < rows; row += THREADS) {
        bool finite = true;
        for (int at = 0; at < chunks * 8; at++)
            finite &= is_finite(shared_16_bytes(tile + at / 8 * (rows * 128) + row * 128 + at % 8 * 16));
        if (finite)
            continue;
        atomicOr(&bad[row / 32], 1u << row % 32);
        for (int at = 0; at < chunks * 8; at++)
            shared_clear_16_bytes(tile + at / 8 * (rows * 128) + row * 128 + at % 8 * 16);
    }
    fence_async_shared();
    any_of(false, barrier);
    return true;
}

inline bool has_bit(const unsigned *bits, int row)
{
    return (bits[row / 32] >> row % 32 & 1) != 0;
}

/* ---- a warpgroup's work */

/* The descriptor of a tile of `count` lines that begins at `from`. It serves the lines as they are and transposed: only the latter has a
 * use for the distance between chunks. */
template <int count> inline uniform_descriptor tile_at(unsigned from)
{
    return uniform_descriptor(from >> 4 | count * 128 / 16 << 16, 1024 / 16 | 1u << 30);
}

inline void shared_store_four(unsigned to, const float *x)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}

template <int count> inline void clear(float (&sums)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        sums[i] = 0;
}

struct consumer {
    const attention_backward_task &all;
    const attention_task &task;
    const attention_backward_order &order;
    ring_shared &shared;
    const unsigned tiles;
    const int sharer, barrier; /* the warpgroup among those of the ring */
    ring_place<Q_STAGES> q;
    ring_place<K_SLOTS> k_slot;
    ring_place<V_SLOTS> v_slot;
    unsigned count; /* steps */
    bool bad_tile;  /* K or V of the tile had rows that were not finite */

    __device__ __forceinline__ consumer(const attention_backward_task &all, const attention_backward_order &order, ring_shared &shared,
                                        unsigned tiles, int ring_number, int sharer)
        : all(all), task(all.attention), order(order), shared(shared), tiles(tiles), sharer(sharer), barrier(RING_BARRIER + ring_number),
          count(0), bad_tile(false)
    {
    }
    __device__ __forceinline__ unsigned k_tile() const { return tiles + AT_K + k_slot.stage * SHAPE.k_bytes; }
    __device__ __forceinline__ unsigned v_tile() const { return tiles + AT_V + v_slot.stage * SHAPE.v_bytes; }
    __device__ __forceinline__ unsigned q_tile() const { return tiles + AT_Q + q.stage * SHAPE.q_bytes; }
    /* The step's gradient of O: no place of its own is kept, as registers are few. */
    __device__ __forceinline__ ring_place<D_STAGES> d_place() const
    {
        ring_place<D_STAGES> d;
        d.stage = D_STAGES == Q_STAGES ? q.stage : 0;
        d.phase = D_STAGES == Q_STAGES ? q.phase : count & 1;
        return d;
    }
    __device__ __forceinline__ unsigned d_tile() const { return tiles + AT_D + d_place().stage * SHAPE.d_bytes; }
    __device__ __forceinline__ unsigned s_tile(unsigned step) const { return tiles + AT_S + step % SHAPE.s_slots * SHAPE.s_bytes; }
    __device__ __forceinline__ uniform_descriptor own_k() const { return tile_at<KEYS>(k_tile() + sharer * 8192); }
    __device__ __forceinline__ uniform_descriptor own_v() const { return tile_at<KEYS>(v_tile() + sharer * 8192); }

    /* By each warp: it reads the slot no more. Its lanes read notes, LSE and delta there themselves; what another warp reads is not known
     * here. */
    template <int slots> __device__ __forceinline__ void release(const ring<slots> &of) const
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            of.release(of.stage);
    }

    /* The scores' gradients to shared memory, a line of 64 queries a key, or a line of the warpgroup's keys a query. A fence is to follow.
     */
    __device__ __forceinline__ void stage_scores(const unsigned (&x)[ROWS / 4], int step) const
    {
        const int lane = threadIdx.x % 32, row = lane % 16;
        if (TRANSPOSED) {
            const unsigned to = s_tile(step) + sharer * (ROWS * 128) + (lane / 16 * 8 + lane % 8) * 128 +
                                ((threadIdx.x / 32 % 4 * 32 + lane / 8 % 2 * 16) ^ (lane % 8 * 16));
#pragma unroll
            for (int j = 0; j < ROWS / 16; j++) {
                const unsigned four[4] = {x[j * 4], x[j * 4 + 1], x[j * 4 + 2], x[j * 4 + 3]};
                stmatrix4_transposed(to + j * 2048, four);
            }
            return;
        }
        const unsigned to = s_tile(step) + sharer * 8192 + threadIdx.x / 32 % 4 * 2048 + row * 128;
#pragma unroll
        for (int j = 0; j < ROWS / 16; j++) {
            const unsigned four[4] = {x[j * 4], x[j * 4 + 1], x[j * 4 + 2], x[j * 4 + 3]};
            stmatrix4(to + j / 4 * (KEYS * 128) + ((j % 4 * 32 + lane / 16 * 16) ^ (row % 8 * 16)), four);
        }
    }

    /* The round's part of grad_Q that is the warpgroup's: 64 queries and a line of K. */
    __device__ __forceinline__ void multiply_part(float (&sum)[GRAD_SUMS], int step, int round) const
    {
        const int part = round * SHARERS + sharer;
        multiply_queries(sum, tile_at < TRANSPOSED ? ROWS : KEYS > (s_tile(step) + part / SHAPE.chunks * (KEYS * 128)),
                         tile_at<KEYS>(k_tile() + part % SHAPE.chunks * (KEYS * 128)));
    }

    /* To shared memory, from where another thread adds it to grad_Q once it is published. */
    __device__ __forceinline__ void stage_part(const float (&sum)[GRAD_SUMS], unsigned part)
    {
        barrier_wait(smem_address(&shared.sum_empty), (part & 1) ^ 1); /* at first it is empty */
#pragma unroll
        for (int i = 0; i < GRAD_SUMS / 4; i++)
            shared_store_four(tiles + AT_SUM + (sharer * SHAPE.part_floats + threadIdx.x % 128 * 4 + i * 512) * 4, &sum[i * 4]);
    }
    __device__ __forceinline__ void publish_part(unsigned part) const
    {
        fence_async_shared();
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(smem_address(&shared.sum_full[part / ROUNDS % ADDERS]));
    }

    __device__ __forceinline__ void arrive_warp(unsigned long long &of) const
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(smem_address(&of));
    }
    /* Where some pair is not seen: rows of Q and of the gradient of O are made finite. Whether pairs are to be spoilt. */
    __device__ __forceinline__ bool scrub_step()
    {
        const bool queries = scrub(q_tile(), ROWS, SHAPE.chunks, shared.bad_queries, barrier),
                   outputs = scrub(d_tile(), ROWS, SHAPE.chunks_v, shared.bad_outputs, barrier);
        const int thread = threadIdx.x % THREADS;
        if ((queries || outputs) && thread < 4) {
            if (!queries)
                shared.bad_queries[thread] = 0;
            if (!outputs)
                shared.bad_outputs[thread] = 0;
        }
        if (queries || outputs || bad_tile)
            any_of(false, barrier);
        return queries || outputs;
    }
    __device__ __forceinline__ void scrub_tile()
    {
        const bool keys = scrub(k_tile(), KEYS, SHAPE.chunks, shared.bad_keys, barrier),
                   values = scrub(v_tile(), KEYS, SHAPE.chunks_v, shared.bad_values, barrier);
        const int thread = threadIdx.x % THREADS;
        bad_tile = keys || values;
        if (!bad_tile)
            return;
        if (thread < 4) {
            if (!keys)
                shared.bad_keys[thread] = 0;
            if (!values)
                shared.bad_values[thread] = 0;
        }
        any_of(false, barrier);
    }
    /* s: weights (or their gradients, where `gradients`) of pairs that are seen and one of whose rows was not finite become NaN. */
    __device__ __forceinline__ void spoil(float (&s)[ROWS / 2], const seen_pairs &seen, bool step_bad, bool gradients) const
    {
        const float nan = __int_as_float(0x7fc00000);
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) {
            const int key = sharer * 64 + thread_row(i / 2 % 2), query = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            bool bad = bad_tile && (has_bit(shared.bad_keys, key) || (gradients && has_bit(shared.bad_values, key)));
            bad |= step_bad && (has_bit(shared.bad_queries, query) || has_bit(shared.bad_outputs, query));
            s[i] = bad && seen.at(i) ? nan : s[i];
        }
    }

    __device__ __forceinline__ void store_keys(const attention_backward_tile &place, const float (&dk)[DEPTH / 2],
                                               const float (&dv)[DEPTH_V / 2]) const
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const long long key = (place.key & ~ATTENTION_BACKWARD_HIDDEN) + sharer * 64 + thread_row(half);
            const attention_strides &ks = all.grad_k_strides, &vs = all.grad_v_strides;
            element_a *k_row = (element_a *)all.grad_k + place.item * ks.item + place.head_kv * ks.head + key * ks.row,
                      *v_row = (element_a *)all.grad_v + place.item * vs.item + place.head_kv * vs.head + key * vs.row;
            const bool there = key < (PACKED ? attention_keys_written(&task) : task.keys);
            store_row(k_row, order.k_pieces, there, dk, half, (float)task.scale);
            store_row(v_row, order.v_pieces, there, dv, half, 1.0f);
        }
    }

    /* Weights (or their gradients, where `gradients`) of pairs that are not seen become zero. SCRUB: of those that are seen, what was not
     * finite makes NaN. */
    __device__ __forceinline__ void mend(float (&s)[ROWS / 2], const seen_pairs &seen, bool step_bad, bool gradients) const
    {
        keep_seen(s, seen);
        if (SCRUB && (step_bad || bad_tile))
            spoil(s, seen, step_bad, gradients);
    }

    /* ---- the parts of a tile and of a step, in the order in which run() has them. They take what they change by reference, one by one:
     * gathered in a struct, the same statements become other machine code. */

    /* LAG: waits until no sharer reads the slot that the step's gradients of scores go to. */
    __device__ __forceinline__ void wait_used() const
    {
        if (LAG && count >= 2)
            barrier_wait_warp(smem_address(&shared.used[count % 2]), count / 2 - 1 & 1);
    }
    /* Waits until all sharers have staged their gradients of scores: those of the step, or, LAG, of the step before. */
    __device__ __forceinline__ void meet_sharers(int step) const
    {
        fence_async_shared();
        if (LAG) {
            arrive_warp(shared.staged[count % 2]);
            if (step > 0)
                barrier_wait_warp(smem_address(&shared.staged[(count - 1) % 2]), (count - 1) / 2 & 1);
        } else
            named_barrier(barrier, THREADS);
    }

    /* The first step's scores. SCRUB: K and V are made finite before, where some step of the tile has pairs that are not seen. */
    __device__ __forceinline__ void begin_tile(const attention_backward_tile &tile, float (&s)[ROWS / 2], float2 (&lse2)[ROWS / 8])
    {
#if SCRUB
        bad_tile = false;
        if (tile.key & ATTENTION_BACKWARD_HIDDEN) {
            wait_full_warp(v_slot.in(shared.v));
            scrub_tile();
        }
#endif
        wait_full_warp(q.in(shared.q));
        mma_fence();
        multiply_scores<K_STEPS>(s, own_k(), tile_at<ROWS>(q_tile()));
        if (NUMBERS_AHEAD)
            take_numbers(lse2, shared.lse2[q.stage]);
        wait_full_warp(v_slot.in(shared.v));
        mma_wait<0>();
        mma_settle(s);
    }
    /* A special step: some pair is not seen, or some LSE is large, or, SCRUB, the tile was scrubbed. This comes before the products, while
     * there are registers for it. */
    __device__ __forceinline__ void find_special(const attention_backward_tile &tile, const attention_backward_step &note, bool large,
                                                 float (&s)[ROWS / 2], float2 (&lse2)[ROWS / 8], seen_pairs &seen, bool &bad, float scale2)
    {
        if (__any_sync(~0u, large))
            weigh_ahead(s, lse2, shared.lse2[q.stage], task, note, tile.item, scale2);
        seen = find_seen(task, shared, q.stage, (tile.key & ~ATTENTION_BACKWARD_HIDDEN) + sharer * 64, query_tile_of(note) * ROWS);
        if (SCRUB)
            bad = scrub_step();
    }
    /* Asks for the products of V with the gradient of O. Only then the step before's part of grad_Q is published: tensor cores would have
     * waited for that. */
    __device__ __forceinline__ void ask_for_gradients(float (&d_s)[ROWS / 2], int step) const
    {
        mma_fence();
        multiply_scores<V_STEPS>(d_s, own_v(), tile_at<ROWS>(d_tile()));
        if (!PART_FIRST && step > LAG)
            publish_part((count - LAG) * ROUNDS - 1);
    }
    /* The step's scores become weights. */
    __device__ __forceinline__ void find_weights(float (&s)[ROWS / 2], float2 (&lse2)[ROWS / 8], float2 (&delta)[ROWS / 8],
                                                 float scale2) const
    {
        if (!NUMBERS_AHEAD)
            take_numbers(lse2, shared.lse2[q.stage]);
        weigh(s, lse2, scale2);
        if (NUMBERS_AHEAD)
            take_numbers(delta, shared.delta[d_place().stage]);
    }
    /* The products of V with the gradient of O, d_s, become gradients of scores. */
    __device__ __forceinline__ void find_gradients(float (&d_s)[ROWS / 2], const float (&s)[ROWS / 2], float2 (&delta)[ROWS / 8]) const
    {
        if (!NUMBERS_AHEAD)
            take_numbers(delta, shared.delta[d_place().stage]);
        differentiate(d_s, s, delta);
    }
    /* Asks for the step's products for grad_V, grad_K and grad_Q (`part`). PART_FIRST: that for grad_Q before that for grad_K. */
    __device__ __forceinline__ void ask_for_sums(float (&dk)[DEPTH / 2], float (&dv)[DEPTH_V / 2], float (&part)[GRAD_SUMS],
                                                 const unsigned (&weights)[ROWS / 4], const unsigned (&gradients)[ROWS / 4], int step)
    {
        turn_wait<TURNS>(sharer);
        mma_fence();
        multiply_rows<DEPTH_V>(dv, weights, tile_at<ROWS>(d_tile()), step);
        if (!PART_FIRST)
            multiply_rows<DEPTH>(dk, gradients, tile_at<ROWS>(q_tile()), step);
        meet_sharers(step);
        mma_fence();
        multiply_part(part, count - LAG, 0); /* in a tile's first step, of LAG, of what nobody will read */
        if (PART_FIRST) {
            mma_fence();
            multiply_rows<DEPTH>(dk, gradients, tile_at<ROWS>(q_tile()), step);
        }
    }
    /* Goes on to the next step's stages, and gives this one's back as the products with them end. PART_FIRST: the part of grad_Q is done
     * then, and goes to shared memory. q_now: the step's Q. */
    __device__ __forceinline__ void leave_stages(float (&part)[GRAD_SUMS], const ring_place<Q_STAGES> &q_now, bool last)
    {
        const ring_place<D_STAGES> d_now = d_place();
        count++;
        q.advance();
        if (!PART_FIRST && !last)
            wait_full_warp(q.in(shared.q));
        mma_wait<2>(); /* the product for grad_V */
        release(d_now.in(shared.d));
        mma_wait<1>(); /* that for grad_K, or for grad_Q where it comes first */
        if (PART_FIRST) {
            mma_settle(part);
            stage_part(part, count - 1);
            if (!last)
                wait_full_warp(q.in(shared.q));
            if (!SCORES_EARLY) {
                publish_part(count - 1);
                mma_wait<0>();
                release(q_now.in(shared.q));
            }
        } else
            release(q_now.in(shared.q));
    }
    /* ROUNDS > 1: each round's part of grad_Q but the last goes to shared memory while the next one is multiplied. */
    __device__ __forceinline__ void multiply_rounds(float (&sum)[ROUNDS][GRAD_SUMS])
    {
#pragma unroll
        for (int round = 1; round < ROUNDS; round++) {
            mma_fence();
            multiply_part(sum[round], count - 1, round);
            mma_wait<1>();
            mma_settle(sum[round - 1]);
            stage_part(sum[round - 1], (count - 1) * ROUNDS + round - 1);
            publish_part((count - 1) * ROUNDS + round - 1);
        }
    }
    /* Asks for the next step's scores; after the last step for K with itself: a branch would make products wait for each other. */
    __device__ __forceinline__ void ask_for_next_scores(float (&s)[ROWS / 2], bool last) const
    {
        mma_fence();
        multiply_scores<K_STEPS>(s, own_k(), tile_at<ROWS>(last ? k_tile() : q_tile()));
        turn_pass<TURNS>(1 - sharer);
    }
    /* Not PART_FIRST: the step's last part of grad_Q goes to shared memory while the next step's scores are multiplied. */
    __device__ __forceinline__ void keep_last_part(float (&part)[GRAD_SUMS], int step)
    {
        if (PART_FIRST)
            return;
        mma_wait<1>();
        mma_settle(part);
        if (LAG && step > 0)
            arrive_warp(shared.used[count % 2]);
        if (!LAG || step > 0)
            stage_part(part, (count - LAG) * ROUNDS - 1);
    }
    /* PART_FIRST and SCORES_EARLY: the step's Q goes back while they are. */
    __device__ __forceinline__ void leave_q(const ring_place<Q_STAGES> &q_now)
    {
        if (PART_FIRST && SCORES_EARLY) {
            publish_part(count - 1);
            mma_wait<1>();
            release(q_now.in(shared.q));
        }
    }
    /* LAG: the part of grad_Q of the tile's last step, which has no step behind it. */
    __device__ __forceinline__ void multiply_lagging_part(float (&part)[GRAD_SUMS], int steps)
    {
        barrier_wait_warp(smem_address(&shared.staged[(count - 1) % 2]), (count - 1) / 2 & 1);
        mma_fence();
        multiply_part(part, count - 1, 0);
        if (steps > 1)
            publish_part(count - 2);
        mma_wait<0>();
        mma_settle(part);
        arrive_warp(shared.used[(count - 1) % 2]);
        stage_part(part, count - 1);
    }
    __device__ __forceinline__ void end_tile(const attention_backward_tile &tile, const float (&dk)[DEPTH / 2],
                                             const float (&dv)[DEPTH_V / 2])
    {
        store_keys(tile, dk, dv);
        named_barrier(barrier, THREADS); /* all have read the note */
        release(k_slot.in(shared.k));
    }

    __device__ __forceinline__ void run();
};

inline void consumer::run()
{
    const float scale2 = (float)task.scale * LOG2_E;
    float dk[DEPTH / 2], dv[DEPTH_V / 2], s[ROWS / 2], sum[ROUNDS][GRAD_SUMS];
    if (sharer == 1)
        turn_pass<TURNS>(0);
    for (;; k_slot.advance()) {
        wait_full_warp(k_slot.in(shared.k));
        const attention_backward_tile &tile = shared.tiles[k_slot.stage]; /* read where it is wanted: registers are few */
        const int steps = uniform(tile.end - tile.begin);
        if (__any_sync(~0u, tile.head_kv < 0))
            return;
        if (steps == 0) {
            clear(dk);
            clear(dv);
            end_tile(tile, dk, dv);
            continue;
        }
        float2 lse2[ROWS / 8];
        begin_tile(tile, s, lse2);
        for (int step = 0; step < steps; step++) {
            float d_s[ROWS / 2];
            unsigned weights[ROWS / 4], gradients[ROWS / 4];
            const attention_backward_step &note = shared.steps[q.stage];
            const bool large = is_large_of_lane(shared.lse2[q.stage]);
            const bool special = __any_sync(~0u, (note.tile & ATTENTION_BACKWARD_HIDDEN) != 0 || large) || (SCRUB && bad_tile);
            seen_pairs seen;
            bool bad = false;
            wait_full_warp(d_place().in(shared.d));
            if (special)
                find_special(tile, note, large, s, lse2, seen, bad, scale2);
            ask_for_gradients(d_s, step);
            float2 delta[ROWS / 8];
            find_weights(s, lse2, delta, scale2);
            if (special)
                mend(s, seen, bad, false);
            mma_wait<0>();
            mma_settle(d_s);
            if (step + 1 == steps)
                release(v_slot.in(shared.v));
            pack(weights, s);
            find_gradients(d_s, s, delta);
            if (special)
                mend(d_s, seen, bad, true);
            pack(gradients, d_s);
            wait_used();
            stage_scores(gradients, count);
            ask_for_sums(dk, dv, sum[0], weights, gradients, step);
            const bool last = step + 1 == steps;
            const ring_place<Q_STAGES> q_now = q;
            leave_stages(sum[0], q_now, last);
            multiply_rounds(sum);
            ask_for_next_scores(s, last);
            keep_last_part(sum[ROUNDS - 1], step);
            if (NUMBERS_AHEAD && !last)
                take_numbers(lse2, shared.lse2[q.stage]);
            leave_q(q_now);
            mma_wait<0>();
            mma_settle(s);
        }
        if (LAG)
            multiply_lagging_part(sum[0], steps);
        if (!PART_FIRST)
            publish_part(count * ROUNDS - 1);
        mma_settle(dk);
        mma_settle(dv);
        end_tile(tile, dk, dv);
        v_slot.advance();
    }
}

/* clang-format off: it would take the attributes apart */
extern "C" __global__ void __launch_bounds__(ATTENTION_BACKWARD_WARPGROUPS * 128 + 128, 1)
    /* clang-format on */
    attention_backward_sm90(const __grid_constant__ spk_tensor_map map_q, const __grid_constant__ spk_tensor_map map_k,
                            const __grid_constant__ spk_tensor_map map_v, const __grid_constant__ spk_tensor_map map_d,
                            const __grid_constant__ attention_backward_task task, const __grid_constant__ attention_backward_order order)
{
    extern __shared__ unsigned char memory[];
    __shared__ ring_shared shared[RINGS];
    const unsigned tiles = (smem_address(memory) + 1023) & ~1023u;
    static_assert(sizeof shared <= SHAPE.static_bytes, "");
    static_assert(D_STAGES == Q_STAGES || D_STAGES == 1, "");
    if (threadIdx.x == 0) {
        for (int ring = 0; ring < RINGS; ring++) {
            ring_init(shared[ring].q, TILED ? 33 : 1, SHARERS * 4); /* a warp each; of bits, a lane each */
            ring_init(shared[ring].d, 1, SHARERS * 4);
            ring_init(shared[ring].k, 1, SHARERS * 4);
            ring_init(shared[ring].v, 1, SHARERS * 4);
#if PACKED
            ring_init(shared[ring].walk, 1, FOLLOWERS);
#endif
            for (int slot = 0; slot < 2; slot++) {
                barrier_init(smem_address(&shared[ring].staged[slot]), SHARERS * 4);
                barrier_init(smem_address(&shared[ring].used[slot]), SHARERS * 4);
            }
            barrier_init(smem_address(&shared[ring].sum_empty), 1);
            for (int adder = 0; adder < 2; adder++)
                barrier_init(smem_address(&shared[ring].sum_full[adder]), SHARERS * 4);
        }
        barrier_init_fence();
    }
    if (threadIdx.x == ATTENTION_BACKWARD_WARPGROUPS * 128) {
        tma_prefetch_map(&map_q);
        tma_prefetch_map(&map_k);
        tma_prefetch_map(&map_v);
        tma_prefetch_map(&map_d);
    }
    __syncthreads();
    previous_launch_done();
    const int group = uniform(threadIdx.x / 128);
    if (group < ATTENTION_BACKWARD_WARPGROUPS) {
        registers_more<CONSUMER_REGISTERS>();
        const int ring = group / SHARERS;
        consumer(task, order, shared[ring], uniform(tiles + ring * SHAPE.ring_bytes), ring, group % SHARERS).run();
    } else {
        registers_fewer<PRODUCER_REGISTERS>();
        const int warp = uniform(threadIdx.x / 32) - ATTENTION_BACKWARD_WARPGROUPS * 4, ring = RINGS > 1 ? uniform(warp % RINGS) : 0,
                  worker = blockIdx.x * RINGS + ring;
        const tensor_maps maps = {&map_q, &map_k, &map_v, &map_d};
        if (RINGS == 2 && warp < 2)
            produce<true, true>(maps, task, order, shared[ring], tiles + ring * SHAPE.ring_bytes, worker);
        else if (warp == 0)
            produce<true, false>(maps, task, order, shared[ring], tiles, worker);
        else if (warp == 1)
            produce<false, true>(maps, task, order, shared[ring], tiles, worker);
        else if ((RINGS == 2 || warp < 2 + ADDERS) && threadIdx.x % 32 == 0)
            add_parts(task.attention, order, shared[ring], tiles + ring * SHAPE.ring_bytes, worker, RINGS == 2 ? 0 : warp - 2);
    }
}
