/* attention_backward_sm80: the gradients of attention, f16 or bf16, sums in f32, with mma.sync and cp.async: every device from compute
 * capability 8.0 on.
 *
 * Four programs, one after the other. `prepare` makes two numbers of each query. `turn`, where there is a mask, lists the block rows of
 * each block column. In `queries` a block has a tile of queries and goes through the keys that these see: grad_Q. In `keys` a block has a
 * tile of keys and goes through the queries that see these, of all heads that share it: grad_K and grad_V. So scores and their gradients
 * are made twice, seven products in place of five, and every sum has one owner and one order: no atomics, no sums in memory. Weights and
 * gradients stay in registers, where the next product takes them: both programs have their own rows on the left. Two stages: one is brought
 * while the other is multiplied. Bound: shared memory with 16 rows of a warp, the tensor instruction with 32. */
#include "backend/cuda/kernels/attention_backward_sm80.h"

#include "backend/cuda/device/attention/attention_backward_products.cuh"
#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/attention/attention_tiles.cuh"
#include "backend/cuda/device/ptx/launch.cuh"

typedef attention_backward_task backward_task;
typedef attention_backward_sm80_work backward_work;

constexpr attention_backward_sm80_shape SHAPE = attention_backward_sm80_shape_of({ATTENTION_TILES_CONSTANTS(SPK_CONSTANT_VALUE)},
                                                                                 {ATTENTION_BACKWARD_SM80_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int WIDE = SHAPE.wide, WIDE_V = SHAPE.wide_v, PITCH = SHAPE.pitch, PITCH_V = SHAPE.pitch_v;
constexpr int KEY_ROWS = SHAPE.keys.rows, QUERY_GROUPS = STEP_QUERIES / 32;

static_assert(ROWS == SHAPE.queries.rows && DEPTH % 8 == 0 && DEPTH_V % 8 == 0 && 8 % VECTOR == 0, "warps do not fill the tile");
static_assert(STEP_QUERIES % 32 == 0, "a lane looks up a query");

/* ---- prepare */

inline long long query_number(const attention_task &t, int item, int head, int query)
{
    return ((long long)item * t.heads + head) * t.queries + query;
}

/* A warp a query. */
extern "C" __global__ void __launch_bounds__(BACKWARD_THREADS)
    attention_backward_prepare(const __grid_constant__ backward_task task, const __grid_constant__ backward_work work)
{
    const attention_task &t = task.attention;
    const long long all = (long long)t.items * t.heads * t.queries, step = (long long)gridDim.x * (BACKWARD_THREADS / 32);
    previous_launch_done();
    if (MASKED && blockIdx.x == 0 && threadIdx.x == 0)
        *work.taken = 0;
    for (long long at = (long long)blockIdx.x * (BACKWARD_THREADS / 32) + threadIdx.x / 32; at < all; at += step) {
        const int query = (int)(at % t.queries), head = (int)(at / t.queries % t.heads), item = (int)(at / t.queries / t.heads);
        const element_a *o = row_at<const element_a>(t.o, t.o_strides, item, head, query),
                        *grad_o = row_at<const element_a>(task.grad_o, task.grad_o_strides, item, head, query);
        float sum = 0;
        for (int column = threadIdx.x % 32 * VECTOR; column < DEPTH_V; column += 32 * VECTOR) {
            const pieces<element_a, VECTOR> a = load_constant<element_a, VECTOR>(o + column),
                                            b = load_constant<element_a, VECTOR>(grad_o + column);
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                sum += as_f32(a.at[i]) * as_f32(b.at[i]);
        }
#pragma unroll
        for (int lane = 16; lane > 0; lane /= 2)
            sum += __shfl_xor_sync(~0u, sum, lane);
        if (threadIdx.x % 32 == 0) {
            if (task.grad_lse != nullptr)
                sum -= *row_at<const float>(task.grad_lse, task.grad_lse_strides, item, head, query);
            work.lse2[at] = kept_lse(*row_at<const float>(t.lse, t.lse_strides, item, head, query));
            work.delta[at] = delta_of(sum);
        }
    }
}

/* ---- turn */

/* Where a block row's list has the column; -1: nowhere. */
inline int find_column(const attention_task &t, int row, int column)
{
    int low = __ldg(t.offsets + row), high = __ldg(t.offsets + row + 1);
    const int end = high;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (__ldg(t.columns + middle) < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && __ldg(t.columns + low) == column ? low : -1;
}

/* A warp a block column of a list. Which warp takes its room first is chance; what it writes there is not. */
extern "C" __global__ void __launch_bounds__(BACKWARD_THREADS)
    attention_backward_turn(const __grid_constant__ backward_task task, const __grid_constant__ backward_work work)
{
    const attention_task &t = task.attention;
    const int lane = threadIdx.x % 32, warps = gridDim.x * (BACKWARD_THREADS / 32);
    previous_launch_done();
    for (int at = blockIdx.x * (BACKWARD_THREADS / 32) + threadIdx.x / 32; at < work.lists * work.columns; at += warps) {
        const int first = at / work.columns * t.list_rows, column = at % work.columns;
        int count = 0, begin = 0;
        for (int row = lane; row < t.list_rows; row += 32)
            count += find_column(t, first + row, column) >= 0;
        count = __reduce_add_sync(~0u, count);
        if (lane == 0) {
            begin = atomicAdd(work.taken, count);
            work.turned[at * 2] = begin;
            work.turned[at * 2 + 1] = count;
        }
        begin = __shfl_sync(~0u, begin, 0);
        for (int base = 0; base < t.list_rows; base += 32) {
            const int entry = base + lane < t.list_rows ? find_column(t, first + base + lane, column) : -1;
            const unsigned there = __ballot_sync(~0u, entry >= 0);
            const int to = begin + __popc(there & ((1u << lane) - 1));
            if (entry >= 0) {
                work.turned_rows[to] = base + lane;
                work.turned_entries[to] = entry;
            }
            begin += __popc(there);
        }
    }
}

/* ---- what both have in shared memory: the block's rows of two arrays, two stages of two others */

template <int LINES, int OWN_LINES> struct tile_places {
    unsigned own, own_v, first; /* addresses */
    element_a *memory;          /* at `first` */

    __device__ __forceinline__ explicit tile_places(unsigned char *shared)
        : own((unsigned)__cvta_generic_to_shared(shared)), own_v(own + OWN_LINES * PITCH * 2), first(own_v + OWN_LINES * PITCH_V * 2),
          memory((element_a *)shared + OWN_LINES * (PITCH + PITCH_V))
    {
    }
    __device__ __forceinline__ unsigned at(int step) const { return first + step % 2 * (LINES * (PITCH + PITCH_V) * 2); }
    __device__ __forceinline__ unsigned at_v(int step) const { return at(step) + LINES * PITCH * 2; }
    __device__ __forceinline__ element_a *memory_at(int step) const { return memory + step % 2 * (LINES * (PITCH + PITCH_V)); }
    __device__ __forceinline__ element_a *memory_at_v(int step) const { return memory_at(step) + LINES * PITCH; }
};

/* The row of the block's that a thread's sums are of. */
template <int SIXTEENS> inline int thread_row(int sixteen, int half)
{
    return (threadIdx.x / 32 * SIXTEENS + sixteen) * 16 + threadIdx.x % 32 / 4 + half * 8;
}

/* Which tile a block has, of `tiles` of each of `heads` heads (of all items): those of some heads, whose K and V, or Q and grad_O, L2 holds
 * together, one after the other; of these the first tiles of all heads come first. So the longest begin first where tiles grow shorter, and
 * no long one is left for the end. */
struct block_tile {
    int head, tile;
};

inline block_tile own_block_tile(int tiles, int heads, int together)
{
    const int section = blockIdx.x / (tiles * together), at = blockIdx.x % (tiles * together),
              count = min(together, heads - section * together);
    return block_tile{section * together + at % count, at / count};
}

/* What of a step a warp's rows see: no pair, some, or all. */
enum sight_of_warp { NONE, SOME, ALL };

/* Of keys from `key` to `key_end`, which ascend, and queries that ascend from one who sees `upper` to one who sees `lower`: their limits
 * do, too. whole: of no key and no query another reason hides something. */
inline sight_of_warp sight_between(int key, int key_end, const attention_seen &upper, const attention_seen &lower, bool whole)
{
    if (key >= lower.end || (LIMITED && whole && key_end < upper.begin && key >= lower.sinks))
        return NONE;
    return whole && key_end < upper.end && (!LIMITED || key >= lower.begin || key_end < upper.sinks) ? ALL : SOME;
}

/* ---- queries */

constexpr int SUMS = DEPTH / 2, SUMS_V = DEPTH_V / 2; /* of a thread, of each 16 rows */

typedef tile_places<STEP_KEYS, ROWS> query_places;
typedef warp_rows<QUERY_SIXTEENS, WIDE, SHAPE.queries.held != 0> own_q;
typedef warp_rows<QUERY_SIXTEENS, WIDE_V, SHAPE.queries.held != 0> own_grad_o;

inline void bring_queries(const query_places &at, const backward_task &task, const tile_place &place)
{
    const attention_task &t = task.attention;
    bring_lines<ROWS, WIDE, DEPTH>(at.own, t.q, [&](int l) -> const element_a * {
        const tile_row row = row_of(place, l);
        return row.valid ? row_at<const element_a>(t.q, t.q_strides, place.item, row.head, row.query) : nullptr;
    });
    bring_lines<ROWS, WIDE_V, DEPTH_V>(at.own_v, t.q, [&](int l) -> const element_a * {
        const tile_row row = row_of(place, l);
        return row.valid ? row_at<const element_a>(task.grad_o, task.grad_o_strides, place.item, row.head, row.query) : nullptr;
    });
}

inline void bring_step_keys(const query_places &at, int step, const attention_task &t, const tile_place &place, const step_keys &keys)
{
    const int head = place.head / t.sharing;
    const element_a *k = row_at<const element_a>(t.k, t.k_strides, place.item, head, 0),
                    *v = row_at<const element_a>(t.v, t.v_strides, place.item, head, 0);
    bring_lines<STEP_KEYS, WIDE, DEPTH>(at.at(step), t.k, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? k + row_of_key(t, place, keys[l]) * t.k_strides.row : nullptr;
    });
    bring_lines<STEP_KEYS, WIDE_V, DEPTH_V>(at.at_v(step), t.k, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? v + row_of_key(t, place, keys[l]) * t.v_strides.row : nullptr;
    });
}

/* The block's tile and its keys: in shared memory, as registers are few. */
struct query_state {
    tile_place place;
    key_walk walk;

    /* By a warp. */
    __device__ __forceinline__ void begin(const attention_task &t, const backward_work &work, const attention_cut &cut)
    {
        const block_tile block = own_block_tile(cut.row_tiles, cut.head_tiles * t.items, work.together_q);
        const int tile = LIMITED ? cut.row_tiles - 1 - block.tile : block.tile; /* under a limit to their right the last queries see most */
        const tile_place own = find_tile(t, cut, block.head * cut.row_tiles + tile);
        const key_walk keys = walk_of(t, cut, own);
        if (threadIdx.x == 0) {
            place = own;
            walk = keys;
        }
    }
};
static_assert(sizeof(query_state) <= BACKWARD_STATE_BYTES, "the host counts less");

/* Two numbers of each of the thread's rows; one that is none has no weights. lse2: as kept_lse has it. */
struct query_numbers {
    float lse2[QUERY_SIXTEENS][2], delta[QUERY_SIXTEENS][2];

    __device__ __forceinline__ query_numbers(const attention_task &t, const backward_work &work, const tile_place &place)
    {
#pragma unroll
        for (int i = 0; i < QUERY_SIXTEENS; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const tile_row row = row_of(place, thread_row<QUERY_SIXTEENS>(i, half));
                const long long at = row.valid ? query_number(t, place.item, row.head, row.query) : 0;
                lse2[i][half] = row.valid ? work.lse2[at] : __int_as_float(0x7f800000);
                delta[i][half] = row.valid ? work.delta[at] : 0;
            }
    }
    /* Whether some LSE of the warp's rows is. */
    __device__ __forceinline__ bool are_large() const
    {
        bool any = false;
#pragma unroll
        for (int i = 0; i < QUERY_SIXTEENS; i++)
            any |= is_large_lse(lse2[i][0]) || is_large_lse(lse2[i][1]);
        return __any_sync(~0u, any);
    }
};

inline bool query_sees(const attention_task &t, const tile_place &place, const step_keys &keys, int sixteen, int half, int at)
{
    return sees(t, seen_by(t, place, row_of(place, thread_row<QUERY_SIXTEENS>(sixteen, half)).query), keys[at], keys.tile(at));
}

/* Where a tile is of several heads, or blocks have bits, it is not asked so closely. */
inline sight_of_warp sight_of_queries(const attention_task &t, const tile_place &place, const step_keys &keys)
{
    const int row = place.row + threadIdx.x / 32 * QUERY_SIXTEENS * 16, last = keys[STEP_KEYS - 1];
    if (TILE_HEADS > 1 || TILED)
        return SOME;
    return sight_between(keys[0], last, seen_by(t, place, row).seen, seen_by(t, place, row + QUERY_SIXTEENS * 16 - 1).seen, last != NO_KEY);
}

/* Bits first, few at a time: all at once they would want the registers that sums have. */
inline void hide_keys(float (&gradients)[QUERY_SIXTEENS][STEP_KEYS / 2], const attention_task &t, const tile_place &place,
                      const step_keys &keys)
{
#pragma unroll
    for (int i = 0; i < QUERY_SIXTEENS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const query_sight sight = seen_by(t, place, row_of(place, thread_row<QUERY_SIXTEENS>(i, half)).query);
            unsigned seen = 0;
#pragma unroll 4
            for (int j = 0; j < STEP_KEYS / 4; j++) {
                const int at = j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
                seen |= (unsigned)sees(t, sight, keys[at], keys.tile(at)) << j;
            }
#pragma unroll
            for (int j = 0; j < STEP_KEYS / 4; j++) {
                float &gradient = gradients[i][j / 2 * 4 + half * 2 + j % 2];
                gradient = seen >> j & 1 ? gradient : 0;
            }
        }
}

template <bool large>
inline void weigh_keys(float (&s)[QUERY_SIXTEENS][STEP_KEYS / 2], float (&gradients)[QUERY_SIXTEENS][STEP_KEYS / 2],
                       const score_slope &slope, const query_numbers &numbers)
{
#pragma unroll
    for (int i = 0; i < QUERY_SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < STEP_KEYS / 2; j++)
            weigh<large>(s[i][j], gradients[i][j], slope, numbers.lse2[i][j / 2 % 2], numbers.delta[i][j / 2 % 2]);
}

inline void add_steps_of_keys(float (&sums)[QUERY_SIXTEENS][SUMS], const backward_task &task, const backward_work &work,
                              const tile_place &place, const key_walk &walk, step_notes &notes, const query_places &at)
{
    const attention_task &t = task.attention;
    const score_slope slope = slope_of(t);
    const query_numbers numbers(t, work, place);
    const bool large = numbers.are_large();
    own_q q;
    own_grad_o grad_o;
    note_keys(notes, walk, 0, look_up(t, walk, 0));
    note_keys(notes, walk, 1, look_up(t, walk, 1));
    __syncthreads();
    bring_queries(at, task, place);
    bring_step_keys(at, 0, t, place, step_keys(notes, 0));
    copies_commit();
    copies_wait<0>();
    __syncthreads();
    q.take(at.own);
    grad_o.take(at.own_v);
#pragma unroll 1
    for (int step = 0; step < walk.steps; step++) {
        float s[QUERY_SIXTEENS][STEP_KEYS / 2], gradients[QUERY_SIXTEENS][STEP_KEYS / 2];
        const step_keys keys(notes, step);
        copies_wait<0>();
        __syncthreads(); /* all see this step's tiles, and none reads the other stage */
        if (step + 1 < walk.steps)
            bring_step_keys(at, step + 1, t, place, step_keys(notes, step + 1));
        copies_commit();
        const looked_up ahead = look_up(t, walk, step + 2);
        const bool hidden = hides(notes, step);
        const sight_of_warp sight = hidden ? sight_of_queries(t, place, keys) : ALL;
        if (sight != NONE) {
            multiply_rows(s, q, at.at(step));
            multiply_rows(gradients, grad_o, at.at_v(step));
            if (large)
                weigh_keys<true>(s, gradients, slope, numbers);
            else
                weigh_keys<false>(s, gradients, slope, numbers);
            if (sight == SOME)
                hide_keys(gradients, t, place, keys);
        }
        if (SCRUB && hidden)
            scrub_tile<STEP_KEYS, WIDE>(sums, at.memory_at(step), 0,
                                        [&](int i, int half, int line) { return query_sees(t, place, keys, i, half, line); });
        if (sight != NONE)
            add_product<WIDE>(sums, gradients, at.at(step));
        note_keys(notes, walk, step + 2, ahead);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_backward_queries(const __grid_constant__ backward_task task, const __grid_constant__ backward_work work,
                               const __grid_constant__ attention_cut cut)
{
    extern __shared__ __align__(128) unsigned char memory[];
    const attention_task &t = task.attention;
    step_notes &notes = *(step_notes *)(memory + SHAPE.queries.tiles_bytes);
    query_state &state = *(query_state *)(memory + SHAPE.queries.tiles_bytes + sizeof notes);
    previous_launch_done();
    if (threadIdx.x < 32)
        state.begin(t, work, cut);
    __syncthreads();
    const tile_place &place = state.place;
    const key_walk &walk = state.walk;
    float sums[QUERY_SIXTEENS][SUMS];
    clear(sums);
    if (walk.steps > 0)
        add_steps_of_keys(sums, task, work, place, walk, notes, query_places(memory));
#pragma unroll
    for (int i = 0; i < QUERY_SIXTEENS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const tile_row row = row_of(place, thread_row<QUERY_SIXTEENS>(i, half));
            sm90::store_row(row_at<element_a>(task.grad_q, task.grad_q_strides, place.item, row.head, row.query), work.pieces_q, row.valid,
                            sums[i], half, (float)t.scale);
        }
}

/* ---- keys: the block's tile, and the queries that see some of it */

/* Keys [key, end) of a head of K and V, counted from the first of their sequence, which is the tile's (of_sequence.sequence). */
struct key_place {
    int head, key, end, column; /* column: of blocks of the mask */
    tile_place of_sequence;     /* as seen_by wants it, and the item */
};

inline key_place find_keys(const attention_task &t, const backward_work &work)
{
    const int heads = t.heads / t.sharing;
    const block_tile block = own_block_tile(work.key_tiles, heads * t.items, work.together_k);
    const int tile = block.tile;
    key_place place = {};
    place.head = block.head % heads;
    place.of_sequence.item = block.head / heads;
    place.column = tile / work.block_tiles;
    place.key = place.column * work.block_keys + tile % work.block_tiles * KEY_ROWS;
    place.end = min(min((place.column + 1) * work.block_keys, t.keys), place.key + KEY_ROWS);
    int number = 0;
    if (PACKED) {
        attention_task turned = t; /* its sequences are cut by keys */
        turned.query_ends = t.key_ends;
        const packed_tile found = find_packed_tile(turned, KEY_ROWS, tile);
        number = found.number;
        place.key = found.row;
        place.end = min(found.end, found.row + KEY_ROWS);
    }
    place.of_sequence.sequence = attention_sequence_of(&t, place.of_sequence.item, number);
    if (PACKED) {
        place.key -= place.of_sequence.sequence.key;
        place.end -= place.of_sequence.sequence.key;
    }
    return place;
}

/* Queries [first, end) of the item see what limits let them see of the tile; of a head those in its block rows [row, row_end) of the turned
 * list, whole ones. They are numbered one after the other, whatever the blocks: a step has the next STEP_QUERIES of them. */
struct query_walk {
    int first, end, head, head_end, row, count, number;

    __device__ __forceinline__ query_walk(const attention_task &t, const backward_work &work, const key_place &place)
    {
        const attention_sequence &s = place.of_sequence.sequence;
        const int queries = s.query_end - s.query, last = min(place.end, s.keys) - 1; /* of the tile's keys */
        first = 0;
        end = place.key <= last ? queries : 0;
        if (LIMITED && t.right > 0)
            first = attention_clamp(place.key - t.right - s.shift + 1, queries);
        if (LIMITED && t.left > 0 && place.key >= t.sinks)
            end = min(end, attention_clamp(last + t.left - s.shift, queries));
        first += s.query;
        end += s.query;
        head = place.head * t.sharing;
        head_end = head + t.sharing;
        row = number = count = 0;
        begin_head(t, work, place);
    }

    /* Block rows of the list, counted by the warp, for whose first query `test` holds. */
    template <class T> __device__ __forceinline__ int count_rows(const attention_task &t, const int *rows, int count, T test) const
    {
        int holding = 0;
        for (int base = 0; base < count; base += 32) {
            const int at = base + threadIdx.x % 32;
            holding += __popc(__ballot_sync(~0u, at < count && test(rows[at] * t.block_rows)));
        }
        return holding;
    }

    __device__ __forceinline__ void begin_head(const attention_task &t, const backward_work &work, const key_place &place)
    {
        number = 0;
        count = max(end - first, 0);
        if (MASKED && count > 0) {
            const int list = place.of_sequence.item * t.item_lists + head / t.list_sharing, at = list * work.columns + place.column;
            int rows = work.turned[at * 2 + 1];
            row = work.turned[at * 2];
            if (LIMITED) {
                const int height = t.block_rows, from = first, to = end, *all = work.turned_rows + row;
                const int before = count_rows(t, all, rows, [=](int query) { return query + height <= from; });
                rows = count_rows(t, all, rows, [=](int query) { return query < to; }) - before;
                row += before;
            }
            count = max(rows, 0) * t.block_rows;
        }
    }

    /* Goes on to the next step; its head, -1: there is none. */
    __device__ __forceinline__ int next(const attention_task &t, const backward_work &work, const key_place &place)
    {
        while (number >= count) {
            if (head + 1 >= head_end)
                return -1;
            head++;
            begin_head(t, work, place);
        }
        number += STEP_QUERIES;
        return head;
    }

    /* Query `at` of the step that next() has gone to; NO_KEY: there is none. tile: of bits, that its block has. */
    __device__ __forceinline__ int query_at(const attention_task &t, const backward_work &work, int at, int &tile) const
    {
        const int own = number - STEP_QUERIES + at;
        tile = -1;
        if (own >= count)
            return NO_KEY;
        if (!MASKED)
            return first + own;
        const int block = row + own / t.block_rows, query = work.turned_rows[block] * t.block_rows + own % t.block_rows;
        if (TILED)
            tile = __ldg(t.tile_numbers + work.turned_entries[block]);
        return query < t.queries ? query : NO_KEY; /* what overhangs is not there */
    }
};

/* ---- keys: what is known of steps, in shared memory */

struct query_notes {
    int queries[ATTENTION_NOTES][STEP_QUERIES];
#if TILED
    int tiles[ATTENTION_NOTES][STEP_QUERIES]; /* of bits */
#endif
    unsigned hidden[ATTENTION_NOTES][QUERY_GROUPS]; /* other than 0: some query of the group does not see some key of the tile */
    int head[ATTENTION_NOTES];                      /* -1: there is no such step */
};
static_assert(sizeof(query_notes) == attention_backward_sm80_notes_bytes(STEP_QUERIES, TILED), "the host counts other notes");

struct step_queries {
    const int *queries, *tiles;
    __device__ __forceinline__ step_queries(const query_notes &notes, int step)
        : queries(notes.queries[step % ATTENTION_NOTES]), tiles(nullptr)
    {
#if TILED
        tiles = notes.tiles[step % ATTENTION_NOTES];
#endif
    }
    __device__ __forceinline__ int operator[](int i) const
    {
        return queries[i];
    }
    __device__ __forceinline__ int tile(int i) const
    {
        return TILED ? tiles[i] : -1;
    }
};

/* The block's tile and its queries: in shared memory, as registers are few. The walk is the first warp's. */
struct key_state {
    key_place place;
    query_walk walk;

    /* By that warp. */
    __device__ __forceinline__ void begin(const attention_task &t, const backward_work &work)
    {
        const key_place own = find_keys(t, work);
        const query_walk queries(t, work, own);
        if (threadIdx.x == 0) {
            place = own;
            walk = queries;
        }
        __syncwarp();
    }
};
static_assert(sizeof(key_state) <= BACKWARD_STATE_BYTES, "the host counts less");

/* The queries of a step that a thread looks up: their loads are on their way until they are noted. */
struct looked_up_queries {
    int head, query[QUERY_GROUPS], tile[QUERY_GROUPS];
};

/* By the first warp, of the step after the one that it has looked up last. */
inline looked_up_queries look_up_queries(key_state &state, const attention_task &t, const backward_work &work)
{
    query_walk walk = state.walk;
    looked_up_queries found;
    found.head = walk.next(t, work, state.place);
    __syncwarp(); /* all have read */
    if (threadIdx.x == 0)
        state.walk = walk;
    __syncwarp();
#pragma unroll
    for (int group = 0; group < QUERY_GROUPS; group++) {
        found.query[group] = NO_KEY;
        found.tile[group] = -1;
        if (found.head >= 0)
            found.query[group] = walk.query_at(t, work, group * 32 + threadIdx.x, found.tile[group]);
    }
    return found;
}

/* Whether a query sees all keys of the tile. */
inline bool sees_all(const attention_task &t, const key_place &place, int query, int tile)
{
    if (query == NO_KEY || (TILED && tile >= 0))
        return false;
    const attention_seen seen = seen_by(t, place.of_sequence, query).seen;
    return place.end <= seen.end && (!LIMITED || place.key >= seen.begin || place.end <= seen.sinks);
}

inline void note_queries(query_notes &notes, int step, const looked_up_queries &found, const attention_task &t, const key_place &place)
{
    const int slot = step % ATTENTION_NOTES;
#pragma unroll
    for (int group = 0; group < QUERY_GROUPS; group++) {
        notes.queries[slot][group * 32 + threadIdx.x] = found.query[group];
#if TILED
        notes.tiles[slot][group * 32 + threadIdx.x] = found.tile[group];
#endif
        const unsigned hidden = __ballot_sync(~0u, !sees_all(t, place, found.query[group], found.tile[group]));
        if (threadIdx.x == 0)
            notes.hidden[slot][group] = hidden;
    }
    if (threadIdx.x == 0)
        notes.head[slot] = found.head;
}

inline bool hides_queries(const query_notes &notes, int step)
{
    unsigned any = 0;
#pragma unroll
    for (int group = 0; group < QUERY_GROUPS; group++)
        any |= notes.hidden[step % ATTENTION_NOTES][group];
    return any != 0;
}

/* ---- keys: the work */

typedef tile_places<STEP_QUERIES, KEY_ROWS> key_places;
typedef warp_rows<KEY_SIXTEENS, WIDE, SHAPE.keys.held != 0> own_k;
typedef warp_rows<KEY_SIXTEENS, WIDE_V, SHAPE.keys.held != 0> own_v;

/* Two numbers of each query of a step, in shared memory: of two stages. lse2: as kept_lse has it. */
struct step_numbers {
    float lse2[2][STEP_QUERIES], delta[2][STEP_QUERIES];

    /* By a warp: whether some LSE of a step is large. */
    __device__ __forceinline__ bool are_large(int step) const
    {
        bool any = false;
#pragma unroll
        for (int group = 0; group < QUERY_GROUPS; group++)
            any |= is_large_lse(lse2[step % 2][group * 32 + threadIdx.x % 32]);
        return __any_sync(~0u, any);
    }
};

inline void bring_own_keys(const key_places &at, const attention_task &t, const key_place &place)
{
    const attention_sequence &s = place.of_sequence.sequence;
    const int item = place.of_sequence.item, there = min(place.end, s.keys) - place.key;
    bring_lines<KEY_ROWS, WIDE, DEPTH>(at.own, t.k, [&](int l) -> const element_a * {
        return l < there ? row_at<const element_a>(t.k, t.k_strides, item, place.head, s.key + place.key + l) : nullptr;
    });
    bring_lines<KEY_ROWS, WIDE_V, DEPTH_V>(at.own_v, t.k, [&](int l) -> const element_a * {
        return l < there ? row_at<const element_a>(t.v, t.v_strides, item, place.head, s.key + place.key + l) : nullptr;
    });
}

inline void bring_step_queries(const key_places &at, step_numbers &numbers, int step, const backward_task &task, const backward_work &work,
                               const key_place &place, const query_notes &notes)
{
    const attention_task &t = task.attention;
    const step_queries queries(notes, step);
    const int item = place.of_sequence.item, head = notes.head[step % ATTENTION_NOTES];
    const element_a *q = row_at<const element_a>(t.q, t.q_strides, item, head, 0),
                    *grad_o = row_at<const element_a>(task.grad_o, task.grad_o_strides, item, head, 0);
    bring_lines<STEP_QUERIES, WIDE, DEPTH>(
        at.at(step), t.q, [&](int l) -> const element_a * { return queries[l] != NO_KEY ? q + queries[l] * t.q_strides.row : nullptr; });
    bring_lines<STEP_QUERIES, WIDE_V, DEPTH_V>(at.at_v(step), t.q, [&](int l) -> const element_a * {
        return queries[l] != NO_KEY ? grad_o + queries[l] * task.grad_o_strides.row : nullptr;
    });
    for (int i = threadIdx.x; i < STEP_QUERIES; i += THREADS) {
        const bool exist = queries[i] != NO_KEY;
        const long long from = exist ? query_number(t, item, head, queries[i]) : 0;
        copy_async<1>((unsigned)__cvta_generic_to_shared(&numbers.lse2[step % 2][i]), work.lse2 + from, exist);
        copy_async<1>((unsigned)__cvta_generic_to_shared(&numbers.delta[step % 2][i]), work.delta + from, exist);
    }
}

/* The thread's key of a row, as `sees` counts it; behind the tile's end the results are nobody's. */
inline int thread_key(const key_place &place, int sixteen, int half)
{
    return place.key + thread_row<KEY_SIXTEENS>(sixteen, half);
}

template <bool large>
inline void weigh_queries(float (&s)[KEY_SIXTEENS][STEP_QUERIES / 2], float (&gradients)[KEY_SIXTEENS][STEP_QUERIES / 2],
                          const score_slope &slope, const step_numbers &numbers, int step)
{
#pragma unroll
    for (int j = 0; j < STEP_QUERIES / 8; j++) {
        const int at = j * 8 + threadIdx.x % 4 * 2;
        const float2 lse2 = *(const float2 *)&numbers.lse2[step % 2][at], delta = *(const float2 *)&numbers.delta[step % 2][at];
#pragma unroll
        for (int i = 0; i < KEY_SIXTEENS; i++)
#pragma unroll
            for (int u = 0; u < 4; u++)
                weigh<large>(s[i][j * 4 + u], gradients[i][j * 4 + u], slope, u % 2 == 0 ? lse2.x : lse2.y, u % 2 == 0 ? delta.x : delta.y);
    }
}

inline sight_of_warp sight_of_keys(const attention_task &t, const key_place &place, const step_queries &queries)
{
    const int key = thread_key(place, 0, 0) - threadIdx.x % 32 / 4, last = queries[STEP_QUERIES - 1];
    if (TILED || last == NO_KEY)
        return SOME;
    return sight_between(key, key + KEY_SIXTEENS * 16 - 1, seen_by(t, place.of_sequence, queries[0]).seen,
                         seen_by(t, place.of_sequence, last).seen, true);
}

/* As hide_keys. */
inline void hide_queries(float (&s)[KEY_SIXTEENS][STEP_QUERIES / 2], float (&gradients)[KEY_SIXTEENS][STEP_QUERIES / 2],
                         const attention_task &t, const key_place &place, const step_queries &queries)
{
    unsigned seen[KEY_SIXTEENS][2] = {};
#pragma unroll 4
    for (int j = 0; j < STEP_QUERIES / 4; j++) { /* of the thread's queries */
        const int at = j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2, query = queries[at], tile = queries.tile(at);
        const query_sight sight = seen_by(t, place.of_sequence, query != NO_KEY ? query : 0);
#pragma unroll
        for (int i = 0; i < KEY_SIXTEENS; i++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                seen[i][half] |= (unsigned)(query != NO_KEY && sees(t, sight, thread_key(place, i, half), tile)) << j;
    }
#pragma unroll
    for (int i = 0; i < KEY_SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < STEP_QUERIES / 2; j++) {
            const bool keep = seen[i][j / 2 % 2] >> (j / 4 * 2 + j % 2) & 1;
            s[i][j] = keep ? s[i][j] : 0;
            gradients[i][j] = keep ? gradients[i][j] : 0;
        }
}

inline void add_steps_of_queries(float (&of_k)[KEY_SIXTEENS][SUMS], float (&of_v)[KEY_SIXTEENS][SUMS_V], const backward_task &task,
                                 const backward_work &work, key_state &state, query_notes &notes, step_numbers &numbers,
                                 const key_places &at)
{
    const attention_task &t = task.attention;
    const key_place &place = state.place;
    const score_slope slope = slope_of(t);
    const bool looks = threadIdx.x < 32;
    own_k k;
    own_v v;
    for (int step = 0; step < 2 && looks; step++)
        note_queries(notes, step, look_up_queries(state, t, work), t, place);
    __syncthreads();
    if (notes.head[0] < 0)
        return;
    bring_own_keys(at, t, place);
    bring_step_queries(at, numbers, 0, task, work, place, notes);
    copies_commit();
    copies_wait<0>();
    __syncthreads();
    k.take(at.own);
    v.take(at.own_v);
#pragma unroll 1
    for (int step = 0; notes.head[step % ATTENTION_NOTES] >= 0; step++) {
        float s[KEY_SIXTEENS][STEP_QUERIES / 2], gradients[KEY_SIXTEENS][STEP_QUERIES / 2];
        const step_queries queries(notes, step);
        copies_wait<0>();
        __syncthreads(); /* all see this step's tiles, and none reads the other stage */
        if (notes.head[(step + 1) % ATTENTION_NOTES] >= 0)
            bring_step_queries(at, numbers, step + 1, task, work, place, notes);
        copies_commit();
        looked_up_queries ahead;
        if (looks)
            ahead = look_up_queries(state, t, work);
        const bool hidden = hides_queries(notes, step);
        const sight_of_warp sight = hidden ? sight_of_keys(t, place, queries) : ALL;
        if (sight != NONE) {
            multiply_rows(s, k, at.at(step));
            multiply_rows(gradients, v, at.at_v(step));
            if (numbers.are_large(step))
                weigh_queries<true>(s, gradients, slope, numbers, step);
            else
                weigh_queries<false>(s, gradients, slope, numbers, step);
            if (sight == SOME)
                hide_queries(s, gradients, t, place, queries);
        }
        if (SCRUB && hidden) {
            const auto seen = [&](int i, int half, int line) {
                return queries[line] != NO_KEY &&
                       sees(t, seen_by(t, place.of_sequence, queries[line]), thread_key(place, i, half), queries.tile(line));
            };
            scrub_tile<STEP_QUERIES, WIDE_V>(of_v, at.memory_at_v(step), 1, seen);
            scrub_tile<STEP_QUERIES, WIDE>(of_k, at.memory_at(step), 0, seen);
        }
        if (sight != NONE) {
            add_product<WIDE_V>(of_v, s, at.at_v(step));
            add_product<WIDE>(of_k, gradients, at.at(step));
        }
        if (looks)
            note_queries(notes, step + 2, ahead, t, place);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_backward_keys(const __grid_constant__ backward_task task, const __grid_constant__ backward_work work)
{
    extern __shared__ __align__(128) unsigned char memory[];
    const attention_task &t = task.attention;
    step_numbers &numbers = *(step_numbers *)(memory + SHAPE.keys.tiles_bytes);
    query_notes &notes = *(query_notes *)(memory + SHAPE.keys.tiles_bytes + sizeof numbers);
    key_state &state = *(key_state *)(memory + SHAPE.keys.tiles_bytes + sizeof numbers + sizeof notes);
    const key_place &place = state.place;
    previous_launch_done();
    if (threadIdx.x < 32)
        state.begin(t, work);
    __syncthreads();
    if (place.key >= place.end)
        return;
    float of_k[KEY_SIXTEENS][SUMS], of_v[KEY_SIXTEENS][SUMS_V];
    clear(of_k);
    clear(of_v);
    add_steps_of_queries(of_k, of_v, task, work, state, notes, numbers, key_places(memory));
#pragma unroll
    for (int i = 0; i < KEY_SIXTEENS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int key = thread_key(place, i, half), row = place.of_sequence.sequence.key + key, item = place.of_sequence.item;
            sm90::store_row(row_at<element_a>(task.grad_k, task.grad_k_strides, item, place.head, row), work.pieces_k, key < place.end,
                            of_k[i], half, (float)t.scale);
            sm90::store_row(row_at<element_a>(task.grad_v, task.grad_v_strides, item, place.head, row), work.pieces_v, key < place.end,
                            of_v[i], half, 1 / WEIGHT_TIMES);
        }
}
