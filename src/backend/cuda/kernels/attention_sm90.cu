/* attention_sm90: O = softmax(scale Q K^T) V over the keys that each query sees, f16 or bf16, sums in f32. Hopper only.
 *
 * A producing warp walks the list of key blocks of a tile of queries and brings Q, K and V by TMA; each multiplying warpgroup keeps 64 rows
 * of sums. Exponentials stay in registers, where the product with V takes them. The next step's product with K is asked for before this
 * step's with V, so that tensor cores work while exponentials are computed (Shah et al. 2024, arXiv:2407.08608). With JOIN that goes on
 * from tile to tile. */
#include "backend/cuda/kernels/attention_sm90.h"

#include "backend/cuda/device/attention/attention_packed.cuh"
#include "backend/cuda/device/attention/attention_packed_blocks.cuh"
#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/ptx/elected.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/matrices.cuh"
#include "backend/cuda/device/mma/mma_registers.cuh"
#include "backend/cuda/device/schedule/pingpong.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/attention/softmax.cuh"
#include "backend/cuda/device/ptx/tma.cuh"
#include "backend/cuda/device/ptx/uniform.cuh"

using namespace sm90;

constexpr attention_shape SHAPE = attention_shape_of({ATTENTION_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int STAGES = SHAPE.stages, Q_SLOTS = SHAPE.q_slots, UNITS = SHAPE.units, RINGS = SHAPE.rings;
constexpr int NOTES = 2 * STAGES; /* a note is read until the product with V, which comes one stage later than that with K */
constexpr int SHARERS = CONSUMERS / RINGS;
constexpr bool STAGED = SHAPE.staged; /* rows of O go through the tile's slot of Q, and TMA */
constexpr bool LIMITED = LEFT || RIGHT;
constexpr bool RAGGED = PACKED || LENGTHS;          /* a run says how many keys there are */
constexpr bool MOVED = PACKED || PAGED;             /* a key's row of K and V has another number */
constexpr bool BESIDE = MASKED && PACKED && !PAGED; /* a block of the mask may begin before a sequence's first key */
/* 65,536 in all; a compiler that has fewer for sums makes products wait for each other */
constexpr int CONSUMER_REGISTERS = CONSUMERS == 2          ? (SHAPE.registers > 184 ? 232 : 224)
                                   : SHAPE.registers > 116 ? 160
                                                           : 152,
              PRODUCER_REGISTERS = CONSUMERS == 2          ? (SHAPE.registers > 184 ? 40 : 56)
                                   : SHAPE.registers > 116 ? 32
                                                           : 56;
constexpr int K_STEPS = SHAPE.depth16 / 16, V_STEPS = STEP_KEYS / 16;
enum { EVERY_CONSUMER = 7 }; /* a named barrier; one more for each ring */

/* What the producer tells of a step: where its keys are, counted from the sequence's first, whether some query of the tile does not see
 * some of them, and the key beside the tile's first query. */
struct step_note {
    int hidden, beside;
    int first[UNITS];
    int keys;                     /* RAGGED: of the sequence */
    int line;                     /* TILED: the tile's first query, in its block */
    int rows[MOVED ? UNITS : 1];  /* of K and V */
    int tiles[TILED ? UNITS : 1]; /* of bits */
    __device__ __forceinline__ int row(int unit) const { return MOVED ? rows[MOVED ? unit : 0] : first[unit]; }
    __device__ __forceinline__ int tile(int unit) const { return TILED ? tiles[TILED ? unit : 0] : -1; }
};

/* And of a tile. tile: -1 after the last one. */
struct tile_note {
    int tile, steps;
    int row, end; /* PACKED: its queries */
    int share;    /* SHARED: the share's number; -1: it is the whole tile */
};

struct ring_shared {
    ring_storage<STAGES> k, v;
    ring_storage<Q_SLOTS> q;
    step_note steps[NOTES];
    tile_note tiles[Q_SLOTS];
};

/* Queries [row, end) of the heads from `head` on: of a ring's tile. */
struct tile_place {
    int item, head, row, end;
};

inline tile_place find_tile(const attention_task &task, const attention_order &order, int tile)
{
    const int whole = SPLIT ? tile / order.splits : tile;
    const int row_tile = whole % order.row_tiles, rest = whole / order.row_tiles;
    const int block = row_tile / order.block_tiles, part = row_tile % order.block_tiles;
    tile_place place;
    place.item = rest / order.head_tiles;
    place.head = rest % order.head_tiles * SHAPE.heads;
    place.row = block * order.block_rows + part * SHAPE.rows;
    place.end = min((block + 1) * order.block_rows, task.queries);
    return place;
}

/* Its sequence; with PACKED, by the warp, the queries of tile number `row_tile` of a head too. */
inline attention_sequence find_sequence(const attention_task &task, const attention_order &order, tile_place &place, int row_tile)
{
    int number = 0;
    if (PACKED) {
        const packed_tile found = MASKED ? find_packed_block_tile(task, order.block_rows, order.block_tiles, SHAPE.rows, row_tile)
                                         : find_packed_tile(task, SHAPE.rows, row_tile);
        number = found.number;
        place.row = found.row;
        place.end = found.end;
    }
    return attention_sequence_of(&task, place.item, number);
}

/* ---- the producer: a warp for each ring */

/* The keys that some query of a tile sees, as units of UNIT keys: entries [first, first + sunk) and from `from` on of the mask's columns,
 * each in `parts`; without a mask, numbers of units. */
struct key_walk {
    int first, sunk, from, units;
    int end, begin, sinks; /* all queries see [begin, end) and [0, sinks) */
};

/* Entries of the list, counted by the warp, for which `test` of the block's first key holds. */
template <class T> inline int count_entries(const attention_task &task, int first, int end, T test)
{
    int count = 0;
    for (int base = first; base < end; base += 32) {
        const int at = base + threadIdx.x % 32;
        const bool holds = at < end && test(__ldg(task.columns + at) * task.block_cols);
        count += __popc(__ballot_sync(~0u, holds));
    }
    return count;
}

inline key_walk walk_of(const attention_task &task, const tile_place &place, const attention_sequence &sequence)
{
    key_walk walk = {};
    if (place.row >= place.end)
        return walk;
    attention_seen upper = {0, 0, sequence.keys}, lower = upper; /* of the first and the last query */
    if (LIMITED) {
        const int shift = sequence.shift - sequence.query;
        upper = attention_seen_of(&task, place.row + shift, sequence.keys);
        lower = attention_seen_of(&task, min(place.row + SHAPE.rows, place.end) - 1 + shift, sequence.keys);
    }
    walk.end = upper.end;
    walk.begin = lower.begin;
    walk.sinks = SINKS ? min(task.sinks, upper.end) : 0;
    const int begin = upper.begin, end = lower.end, sinks = SINKS ? lower.sinks : 0;
#if MASKED
    const int list = attention_list(&task, place.item, place.head, place.row);
    walk.first = __ldg(task.offsets + list);
    int stop = __ldg(task.offsets + list + 1);
    walk.from = walk.first;
    if (LIMITED || RAGGED) {
        const int first = walk.first, width = task.block_cols, base = BESIDE ? sequence.key : 0;
        const int before = count_entries(task, first, stop, [=](int key) { return key - base + width <= begin; });
        const int within = count_entries(task, first, stop, [=](int key) { return key - base < end; });
        walk.sunk = SINKS && sinks > 0 ? count_entries(task, first, stop, [=](int key) { return key - base < sinks; }) : 0;
        walk.from = first + max(before, walk.sunk);
        stop = max(first + within, walk.from);
    }
    const int entries = walk.sunk + stop - walk.from;
    walk.units = entries * (task.block_cols / UNIT);
#else
    walk.sunk = (sinks + UNIT - 1) / UNIT;
    walk.from = max(begin / UNIT, walk.sunk);
    walk.units = walk.sunk + max((end + UNIT - 1) / UNIT - walk.from, 0);
#endif
    return walk;
}

/* A unit: its first key, the row of K and V that it has, its tile of bits. */
struct key_unit {
    int key, row, tile;
};

/* Unit number `unit`, for each lane its own. Of those behind the last one TMA brings zeros, and no query sees them. */
inline key_unit unit_of(const attention_task &task, const key_walk &walk, const attention_sequence &sequence, int item, int unit)
{
    key_unit made = {task.keys, MOVED ? -UNIT : task.keys, -1};
#if MASKED
    const int parts = task.block_cols / UNIT, entry = unit / parts, part = unit % parts;
    if (unit >= walk.units)
        return made;
    const int at = entry < walk.sunk ? walk.first + entry : walk.from + entry - walk.sunk;
    made.key = __ldg(task.columns + at) * task.block_cols + part * UNIT - (BESIDE ? sequence.key : 0);
    if (TILED)
        made.tile = __ldg(task.tile_numbers + at);
#else
    if (UNITS > 1 && unit >= walk.units)
        return made;
    made.key = (unit < walk.sunk ? unit : walk.from + unit - walk.sunk) * UNIT;
#endif
    made.row = made.key;
    if (MOVED)
        made.row = made.key >= sequence.keys ? -UNIT : attention_row(&task, PACKED ? sequence.number : item, made.key) + sequence.key;
    if (TILED && MOVED && made.row < 0)
        made.tile = -1; /* no query sees its keys */
    return made;
}

/* Whether all queries of the tile see all keys of a unit. */
inline bool all_see(const key_walk &walk, const key_unit &unit)
{
    return unit.key + UNIT <= walk.end && (!BESIDE || unit.key >= 0) &&
           (!LEFT || unit.key >= walk.begin || (SINKS && unit.key + UNIT <= walk.sinks)) && (!TILED || unit.tile < 0);
}

/* Where a ring's Q, K and V are in shared memory. */
struct ring_tiles {
    unsigned q, k, v;
};

inline ring_tiles tiles_of(unsigned shared, int ring)
{
    constexpr int q_bytes = SHARERS * Q_SLOTS * SHAPE.q_bytes, k_bytes = STAGES * SHAPE.k_bytes, v_bytes = STAGES * SHAPE.v_bytes;
    ring_tiles at;
    at.q = shared + ring * q_bytes;
    at.k = shared + RINGS * q_bytes + ring * (k_bytes + v_bytes);
    at.v = at.k + k_bytes;
    return at;
}

/* The boxes of a step of K or V: `chunks` of each unit. */
template <int chunks>
inline void load_step(unsigned to, const spk_tensor_map *map, unsigned barrier, const step_note &note, int head, int item)
{
#pragma unroll
    for (int unit = 0; unit < UNITS; unit++)
#pragma unroll
        for (int chunk = 0; chunk < chunks; chunk++)
            tma_load_4d(to + chunk * (STEP_KEYS * 128) + unit * (UNIT * 128), map, barrier, chunk * 64, note.row(unit), head, item);
}

/* A step whose V has not been asked for yet: it comes behind the next step's K. */
struct pending_v {
    int head, item; /* head -1: there is none */
};

/* Notes go on as stages do, twice as many. */
inline step_note &note_of(ring_shared &shared, const ring<STAGES> &at)
{
    return shared.steps[at.stage + at.phase * STAGES];
}

/* By the producing warp, which goes on together: waits until a stage may be written; one lane then writes the note and asks for boxes. */
template <int stages> inline bool may_fill(const ring<stages> &at)
{
    wait_empty_warp(at);
    return is_elected();
}

inline void load_v(const spk_tensor_map *map_v, ring<STAGES> &v, ring_shared &shared, unsigned tiles, pending_v &pending)
{
    if (pending.head < 0)
        return;
    if (may_fill(v)) {
        barrier_arrive_expect(v.full_barrier(), SHAPE.v_bytes);
        load_step<SHAPE.chunks_v>(tiles + v.stage * SHAPE.v_bytes, map_v, v.full_barrier(), note_of(shared, v), pending.head, pending.item);
    }
    __syncwarp();
    v.advance();
    pending.head = -1;
}

inline void load_k(const spk_tensor_map *map_k, const ring<STAGES> &k, unsigned tiles, const step_note &note, int head, int item)
{
    barrier_arrive_expect(k.full_barrier(), SHAPE.k_bytes);
    load_step<SHAPE.chunks>(tiles + k.stage * SHAPE.k_bytes, map_k, k.full_barrier(), note, head, item);
}

inline void load_q(const spk_tensor_map *map_q, const ring<Q_SLOTS> &q, unsigned tiles, const tile_place &place)
{
    barrier_arrive_expect(q.full_barrier(), SHARERS * SHAPE.q_bytes);
#pragma unroll
    for (int w = 0; w < SHARERS; w++) {
        const int row = place.row + (FORM == ATTENTION_BY_ROWS ? w * TILE_ROWS : 0),
                  head = place.head + (FORM == ATTENTION_BY_HEADS ? w * TILE_HEADS : 0);
#pragma unroll
        for (int chunk = 0; chunk < SHAPE.chunks; chunk++)
            tma_load_4d(tiles + (w * Q_SLOTS + q.stage) * SHAPE.q_bytes + chunk * 8192, map_q, q.full_barrier(), chunk * 64, row, head,
                        place.item);
    }
}

struct tensor_maps {
    const spk_tensor_map *q, *k, *v;
};

inline int entry_of(const attention_order &order, int turn, int end)
{
    return order.list != nullptr && turn < end ? order.list[turn] : turn;
}

/* A tile's first step may lie in the midst of a round of 32 units, of which each lane has one. */
SPK_INLINE void begin_units([[maybe_unused]] key_unit &ahead, [[maybe_unused]] const attention_task &task,
                            [[maybe_unused]] const key_walk &walk, [[maybe_unused]] const attention_sequence &sequence,
                            [[maybe_unused]] int item, [[maybe_unused]] int step, [[maybe_unused]] int lane)
{
#if UNIT > 0 && 32 % (STEP_KEYS / UNIT) == 0
    if ((SPLIT || SHARED) && step * UNITS % 32 != 0)
        ahead = unit_of(task, walk, sequence, item, step * UNITS / 32 * 32 + lane);
#endif
}

/* A step's units, to all lanes; whether some query of the tile does not see some of their keys. */
SPK_INLINE bool take_units(key_unit (&units)[UNITS], const key_unit &ahead, const key_walk &walk, int step)
{
    bool hidden = false;
#pragma unroll
    for (int unit = 0; unit < UNITS; unit++) {
        const int from = (step * UNITS + unit) % 32;
        units[unit].key = __shfl_sync(~0u, ahead.key, from);
        units[unit].row = MOVED ? __shfl_sync(~0u, ahead.row, from) : 0;
        units[unit].tile = TILED ? __shfl_sync(~0u, ahead.tile, from) : -1;
        hidden |= !all_see(walk, units[unit]);
    }
    return hidden;
}

/* A step's note, all but whether keys are hidden. */
SPK_INLINE void write_note(step_note &told, const attention_task &task, const tile_place &place, const attention_sequence &sequence,
                           const key_unit (&units)[UNITS])
{
    told.beside = place.row - sequence.query + sequence.shift;
    if (RAGGED)
        told.keys = sequence.keys;
    if (TILED)
        told.line = place.row % task.block_rows;
#pragma unroll
    for (int unit = 0; unit < UNITS; unit++) {
        told.first[unit] = units[unit].key;
        if (MOVED)
            told.rows[MOVED ? unit : 0] = units[unit].row;
        if (TILED)
            told.tiles[TILED ? unit : 0] = units[unit].tile;
    }
}

/* The note of a tile that is none: there are no more. */
SPK_INLINE void tell_end(const ring<Q_SLOTS> &q, ring_shared &shared)
{
    if (may_fill(q)) {
        shared.tiles[q.stage] = tile_note{-1, 0, 0, 0, -1};
        barrier_arrive(q.full_barrier());
    }
}

/* The turn behind `turn`, and its entry; COUNTED: lane 0 alone knows the turn. */
SPK_INLINE void look_ahead(const attention_order &order, bool listed, int turn, int end, int lane, int &next_turn, int &next_entry)
{
    next_turn = listed ? turn + 1 : turn + order.workers;
    if (COUNTED && lane == 0)
        next_turn = atomicAdd(order.next, 1);
    next_entry = COUNTED ? 0 : entry_of(order, next_turn, end);
}

inline void produce(const tensor_maps &maps, const attention_task &task, const attention_order &order, ring_shared &shared, ring_tiles at,
                    int worker)
{
    const int lane = threadIdx.x % 32;
    ring<STAGES> k(shared.k), v(shared.v);
    ring<Q_SLOTS> q(shared.q);
    pending_v pending = {-1, 0};
    const bool listed = !COUNTED && order.offsets != nullptr;
    const int end = listed ? __ldg(order.offsets + worker + 1) : order.tiles;
    int turn = listed ? __ldg(order.offsets + worker) : worker;
    if (COUNTED)
        turn = __shfl_sync(~0u, lane == 0 ? atomicAdd(order.next, 1) : 0, 0);
    int entry = entry_of(order, turn, end);
    while (turn < end) {
        int next_turn, next_entry; /* on their way while this tile's keys are */
        look_ahead(order, listed, turn, end, lane, next_turn, next_entry);
        const bool shared_out = SHARED && entry >= order.tiles;
        const attention_share *const share = order.shares + (entry - order.tiles);
        const int tile = shared_out ? share->tile : entry;
        tile_place place = find_tile(task, order, tile);
        const attention_sequence sequence = find_sequence(task, order, place, (SPLIT ? tile / order.splits : tile) % order.row_tiles);
        const key_walk walk = walk_of(task, place, sequence);
        const int all_steps = (walk.units + UNITS - 1) / UNITS, part = SPLIT ? tile % order.splits : 0;
        int step = SPLIT ? (int)((long long)all_steps * part / order.splits) : 0;
        int end_step = SPLIT ? (int)((long long)all_steps * (part + 1) / order.splits) : all_steps;
        if (shared_out) {
            step = share->first;
            end_step = share->end;
        }
        const int item_q = task.q_strides.item != 0 ? place.item : 0, item_k = task.k_strides.item != 0 ? place.item : 0,
                  item_v = task.v_strides.item != 0 ? place.item : 0, head_kv = place.head / task.sharing;
        if (!JOIN || step >= end_step) /* V comes behind the next K; tiles without steps have none, and there may be many of them */
            load_v(maps.v, v, shared, at.v, pending);
        if (may_fill(q)) {
            shared.tiles[q.stage] = tile_note{tile, end_step - step, place.row, place.end, shared_out ? entry - order.tiles : -1};
            load_q(maps.q, q, at.q, tile_place{item_q, place.head, place.row, place.end});
        }
        __syncwarp();
        q.advance();
        key_unit ahead = {}; /* each lane: of 32 units */
        begin_units(ahead, task, walk, sequence, place.item, step, lane);
        [[maybe_unused]] int next_round = step;
        for (; step < end_step; step++) {
#if UNIT > 0 && 32 % (STEP_KEYS / UNIT) == 0
            if (step * UNITS % 32 == 0)
                ahead = unit_of(task, walk, sequence, place.item, step * UNITS + lane);
#else
            if (step == next_round) {
                ahead = unit_of(task, walk, sequence, place.item, step * UNITS + ((lane - step * UNITS) & 31));
                next_round += 32 / UNITS;
            }
#endif
            key_unit units[UNITS];
            const bool hidden = take_units(units, ahead, walk, step);
            if (may_fill(k)) {
                step_note &told = note_of(shared, k);
                told.hidden = hidden;
                write_note(told, task, place, sequence, units);
                load_k(maps.k, k, at.k, told, head_kv, item_k);
            }
            __syncwarp();
            k.advance();
            load_v(maps.v, v, shared, at.v, pending);
            pending = pending_v{head_kv, item_v};
        }
        turn = COUNTED ? __shfl_sync(~0u, next_turn, 0) : next_turn;
        entry = COUNTED ? entry_of(order, turn, end) : next_entry;
    }
    load_v(maps.v, v, shared, at.v, pending);
    tell_end(q, shared);
}

/* ---- the multiplying warpgroups */

inline int thread_row(int half)
{
    return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + half * 8;
}

/* The first query and head of the warpgroup's part of a tile. */
inline tile_place part_of(tile_place place)
{
    const int w = threadIdx.x / 128;
    place.row += FORM == ATTENTION_BY_ROWS ? w * TILE_ROWS : 0;
    place.head += FORM == ATTENTION_BY_HEADS ? w * TILE_HEADS : 0;
    return place;
}

/* The same among the queries of the ring's tile. */
inline int own_row(int half)
{
    return (FORM == ATTENTION_BY_ROWS ? threadIdx.x / 128 * TILE_ROWS : 0) + thread_row(half) % TILE_ROWS;
}

/* Which of a unit's keys a row sees, counted from the thread's first one. */
struct row_limits {
    int sinks, begin, end, zero; /* zero: BESIDE: the sequence's first key */
    __device__ __forceinline__ row_limits(const attention_task &task, const step_note &note, int row, int first)
    {
        const int beside = note.beside + row, keys = RAGGED ? note.keys : task.keys;
        end = (RIGHT ? attention_clamp(beside + task.right, keys) : keys) - first;
        begin = LEFT ? beside - task.left + 1 - first : 0; /* below 0: no limit */
        sinks = SINKS ? task.sinks - first : 0;
        zero = BESIDE ? -first : 0;
    }
    __device__ __forceinline__ bool sees(int key) const
    {
        return key < end && (!BESIDE || key >= zero) && (!LEFT || key >= begin || (SINKS && key < sinks));
    }
};

/* Bits of a row of a unit's tile, eight keys at a time; where it has none, all are set. */
struct row_bits {
    const unsigned char *bits;
    __device__ __forceinline__ row_bits(const attention_task &task, const step_note &note, int row, int unit) : bits(nullptr)
    {
        const int tile = note.tile(unit), line = min(note.line + row, task.block_rows - 1);
        if (tile >= 0)
            bits = (const unsigned char *)(task.tile_bits + ((long long)tile * task.block_rows + line) * task.tile_words) +
                   (BESIDE ? note.row(unit) : note.first[unit]) % task.block_cols / 8;
    }
    __device__ __forceinline__ unsigned of(int eight) const { return bits != nullptr ? __ldg(bits + eight) : 0xffu; }
};

/* What a tile of bits does not keep gets a score of minus infinity. */
inline void hide_bits(float (&s)[STEP_KEYS / 2], const attention_task &task, const step_note &note)
{
#pragma unroll
    for (int unit = 0; unit < UNITS; unit++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const row_bits bits(task, note, own_row(half), unit);
#pragma unroll
            for (int eight = 0; eight < UNIT / 8; eight++) {
                const unsigned kept = bits.of(eight) >> threadIdx.x % 4 * 2;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float &score = s[unit * (UNIT / 2) + eight * 4 + half * 2 + i];
                    score = (kept >> i & 1) != 0 ? score : -__int_as_float(0x7f800000);
                }
            }
        }
}

/* What a query does not see gets a score of minus infinity. */
inline void hide(float (&s)[STEP_KEYS / 2], const attention_task &task, const step_note &note)
{
#pragma unroll
    for (int unit = 0; unit < UNITS; unit++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const row_limits limits(task, note, own_row(half), note.first[unit] + threadIdx.x % 4 * 2);
#pragma unroll
            for (int i = 0; i < UNIT / 4; i++) {
                float &score = s[unit * (UNIT / 2) + i / 2 * 4 + half * 2 + i % 2];
                score = limits.sees(i / 2 * 8 + i % 2) ? score : -__int_as_float(0x7f800000);
            }
        }
}

/* What becomes of a dot product before its softmax. */
struct score_scale {
    float inner, outer2; /* a score is tanh(inner * dot), or the dot; times outer2 it is in powers of two */
    bool capped;
};

inline score_scale scale_of(const attention_task &task)
{
    score_scale scale;
    scale.capped = CAPPED && task.cap != 0;
    scale.inner = scale.capped ? (float)(task.scale / task.cap) : 1;
    scale.outer2 = (scale.capped ? (float)task.cap : fmaxf((float)task.scale, 1e-38f)) * LOG2_E; /* not 0: times minus infinity */
    return scale;
}

inline void cap_scores(float (&s)[STEP_KEYS / 2], const score_scale &scale)
{
#if CAPPED
#pragma unroll
    for (int i = 0; i < STEP_KEYS / 2; i++) {
        const float bent = hyperbolic_tangent(s[i] * scale.inner);
        s[i] = scale.capped ? bent : s[i];
    }
#endif
}

inline void pack(unsigned (&p)[STEP_KEYS / 4], const float (&s)[STEP_KEYS / 2])
{
#pragma unroll
    for (int i = 0; i < STEP_KEYS / 4; i++)
        p[i] = pack_a(s[2 * i], s[2 * i + 1]);
}

/* Q of the warpgroup: with Q_HELD fragments; without, it stays in shared memory. */
struct query_tile {
    unsigned held[Q_HELD ? K_STEPS * 4 : 1];

    __device__ __forceinline__ void take(unsigned from)
    {
#if Q_HELD
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16, column_byte = threadIdx.x % 32 / 16 * 16;
#pragma unroll
        for (int k = 0; k < K_STEPS; k++) {
            unsigned four[4];
            load_four_matrices<false>(four, from + k / 4 * 8192 + row * 128 + ((k % 4 * 32 + column_byte) ^ (row % 8 * 16)));
#pragma unroll
            for (int i = 0; i < 4; i++)
                held[k * 4 + i] = four[i];
        }
#endif
    }
};

/* s = Q K^T of a stage; o += P V. Each is one group of products, which is asked for here and waited for elsewhere. A descriptor of a tile
 * counts in 16 bytes: what lies further on is added to it. */
inline void multiply_k(float (&s)[STEP_KEYS / 2], const query_tile &q, uniform_descriptor a, uniform_descriptor b)
{
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        const int b_further = k / 4 * (STEP_KEYS * 128) + k % 4 * 32;
#if Q_HELD
        mma_registers<STEP_KEYS>::run<0>(s, q.held + k * 4, b.at(b_further), k > 0);
#else
        mma<STEP_KEYS>::run<0, 0>(s, a.at(k / 4 * 8192 + k % 4 * 32), b.at(b_further), k > 0);
#endif
    }
    mma_commit();
}

inline void multiply_v(float (&o)[DEPTH_V / 2], const unsigned (&p)[STEP_KEYS / 4], uniform_descriptor b, int more)
{
#pragma unroll
    for (int k = 0; k < V_STEPS; k++)
        mma_registers<DEPTH_V>::run<1>(o, p + k * 4, b.at(k * 2048), k == 0 ? more : 1);
    mma_commit();
}

/* ---- infinities and NaN in rows of V that some queries do not see: zero times them would be NaN */

inline bool any_of(bool mine, int barrier, int threads)
{
    unsigned any;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 q, %1, 0;\n\tbar.red.or.pred p, %2, %3, q;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(any)
                 : "r"((unsigned)mine), "r"(barrier), "r"(threads)
                 : "memory");
    return any != 0;
}

inline bool is_finite(unsigned short bits)
{
    constexpr unsigned short exponent = DTYPE_A == BF16 ? 0x7f80 : 0x7c00;
    return (bits & exponent) != exponent;
}

inline unsigned short shared_16(unsigned address)
{
    unsigned short bits;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
    return bits;
}

inline void shared_store_32(unsigned address, unsigned bits)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}

inline unsigned shared_32(unsigned address)
{
    unsigned bits;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(bits) : "r"(address) : "memory");
    return bits;
}

/* Whether a row of the tile sees key number `key` of a step. */
inline bool sees(const attention_task &task, const step_note &note, int row, int key)
{
    const int unit = key / UNIT;
    return row_limits(task, note, row, 0).sees(note.first[unit] + key % UNIT) &&
           (!TILED || (row_bits(task, note, row, unit).of(key % UNIT / 8) >> key % 8 & 1) != 0);
}

/* Before a product with V: what is not finite goes to the sums of the rows that see it, and becomes zero in shared memory. more: 0 where
 * the sums are not begun; they are then. */
inline void scrub(float (&o)[DEPTH_V / 2], int &more, unsigned v_tile, const attention_task &task, const step_note &note)
{
    constexpr int threads = SHARERS * 128;
    const int barrier = EVERY_CONSUMER - (RINGS > 1 ? threadIdx.x / 128 : 0), thread = threadIdx.x % threads;
    bool found = false;
    for (int at = thread * 4; at < SHAPE.v_bytes; at += threads * 4) {
        const unsigned pair = shared_32(v_tile + at);
        found |= !is_finite((unsigned short)pair) || !is_finite((unsigned short)(pair >> 16));
    }
    if (!any_of(found, barrier, threads))
        return;
    if (more == 0)
#pragma unroll
        for (int i = 0; i < DEPTH_V / 2; i++)
            o[i] = 0;
    more = 1;
    for (int key = 0; key < STEP_KEYS; key++) {
        const bool seen[2] = {sees(task, note, own_row(0), key), sees(task, note, own_row(1), key)};
#pragma unroll
        for (int i = 0; i < DEPTH_V / 2; i++) {
            const int column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            const unsigned short bits =
                shared_16(v_tile + column / 64 * (STEP_KEYS * 128) + key * 128 + ((column % 64 * 2) ^ (key % 8 * 16)));
            if (!is_finite(bits) && seen[i / 2 % 2])
                o[i] += as_f32(element_a{bits});
        }
    }
    any_of(false, barrier, threads); /* all have read */
    for (int at = thread * 4; at < SHAPE.v_bytes; at += threads * 4) {
        const unsigned pair = shared_32(v_tile + at);
        const unsigned low = is_finite((unsigned short)pair) ? 0xffffu : 0,
                       high = is_finite((unsigned short)(pair >> 16)) ? 0xffff0000u : 0;
        if ((low | high) != ~0u)
            shared_store_32(v_tile + at, pair & (low | high));
    }
    fence_async_shared();
    any_of(false, barrier, threads);
}

/* ---- the end of a tile */

template <class T> inline T *row_at(void *array, const attention_strides &strides, int item, int head, int query)
{
    return (T *)array + item * strides.item + head * strides.head + query * strides.row;
}

/* Where parts of results lie until they are merged: O of a query, and what store_part_lse has of it. */
inline long long part_row(const attention_task &task, const tile_place &place, int split, int head, int query)
{
    return ((split * (long long)task.items + place.item) * task.heads + head) * task.queries + query;
}

inline void tma_store_4d(const spk_tensor_map *map, unsigned from, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map), "r"(from), "r"(x),
                 "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* The warp's rows through its part of the tile's slot of Q. */
inline void store_staged(const spk_tensor_map *map, unsigned q_tile, const tile_place &part, int query, const float (&o)[DEPTH_V / 2],
                         const float (&factor)[2])
{
    const unsigned mine = q_tile + threadIdx.x / 32 % 4 * 2048;
    stage_rows(mine, o, factor);
    fence_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int chunk = 0; chunk < SHAPE.chunks_v; chunk++)
            tma_store_4d(map, mine + chunk * 8192, chunk * 64, query, part.head, part.item);
        tma_store_commit();
    }
}

/* o: the sums, which are none where the rows saw nothing. */
inline void finish(const spk_tensor_map *map_o, unsigned q_tile, const attention_task &task, const attention_order &order,
                   const score_scale &scale, const tile_place &part, const tile_note &tile, const float (&o)[DEPTH_V / 2],
                   const softmax_rows &rows)
{
    const float sum[2] = {quad_sum(rows.sum[0]), quad_sum(rows.sum[1])},
                factor[2] = {sum[0] == 0 ? 0 : reciprocal(sum[0]), sum[1] == 0 ? 0 : reciprocal(sum[1])};
    const int first = part.row + thread_row(0) - threadIdx.x % 32 / 4; /* the warp's first query, with one head */
    const bool shared = SHARED && tile.share >= 0;
    const bool staged = STAGED && order.pieces && !shared && __all_sync(~0u, first + 16 <= part.end);
    if (staged)
        store_staged(map_o, q_tile, part, first, o, factor);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = thread_row(half), query = part.row + row % TILE_ROWS, head = part.head + row / TILE_ROWS;
        const bool valid = query < part.end;
        const float most = rows.most[half] * (scale.outer2 * LN_2),
                    total = sum[half] * power_of_two(excess(rows.most[half], scale.outer2)); /* relative to it */
        if (SPLIT || shared) {
            const long long at = shared ? (long long)tile.share * (SHARERS * 64) + (RINGS > 1 ? 0 : threadIdx.x / 128 * 64) + row
                                        : part_row(task, part, tile.tile % order.splits, head, query);
            if (valid)
                store_part(order.parts + at * DEPTH_V, o, half, factor[half]);
            if (valid && threadIdx.x % 4 == 0)
                store_part_lse(order.part_lse, at, most, total);
            continue;
        }
        if (!staged)
            store_row(row_at<element_a>(task.o, task.o_strides, part.item, head, query), order.pieces, valid, o, half, factor[half]);
        if (WANT_LSE && valid && threadIdx.x % 4 == 0)
            *row_at<float>(task.lse, task.lse_strides, part.item, head, query) = lse_of(most, total);
    }
}

/* ---- a warpgroup's work */

/* What was seen of the next step while exponentials were computed: which stages are full; k: whether keys are hidden, too. */
struct ready_stages {
    bool k, v, hidden;
};

struct consumer {
    const spk_tensor_map *map_o;
    const attention_task &task;
    const attention_order &order;
    ring_shared &shared;
    const ring_tiles at;
    const int group; /* the warpgroup's number */
    const score_scale scale;
    const uniform_descriptor k_first, v_first; /* of stage 0 */
    ring<STAGES> k, v;
    ring<Q_SLOTS> q;
    int lent; /* STAGED: the slot of Q that rows of O are stored from; -1: none */

    __device__ __forceinline__ consumer(const spk_tensor_map *map_o, const attention_task &task, const attention_order &order,
                                        ring_shared &shared, ring_tiles at, int group)
        : map_o(map_o), task(task), order(order), shared(shared), at(at), group(group), scale(scale_of(task)), k_first(k_major<128>(at.k)),
          v_first(mn_major<STEP_KEYS>(at.v)), k(shared.k), v(shared.v), q(shared.q), lent(-1)
    {
    }
    __device__ __forceinline__ int own() const { return RINGS > 1 ? 0 : group; }
    /* Of the tile that is multiplied: its slot is given back after its last product with K. */
    __device__ __forceinline__ unsigned q_tile() const { return at.q + (own() * Q_SLOTS + q.stage) * SHAPE.q_bytes; }
    __device__ __forceinline__ uniform_descriptor q_descriptor() const
    {
        return Q_HELD ? uniform_descriptor(0, 0) : uniform_descriptor(k_major<128>(q_tile()));
    }
    __device__ __forceinline__ uniform_descriptor k_descriptor() const { return k_first.further(k.stage * SHAPE.k_bytes); }
    __device__ __forceinline__ uniform_descriptor v_descriptor() const { return v_first.further(v.stage * SHAPE.v_bytes); }
    __device__ __forceinline__ unsigned v_tile() const { return at.v + v.stage * SHAPE.v_bytes; }
    /* most: a row's largest score, which is finite. Instructions that wait for a product with V stay behind the release, and
     * this one behind the search for the largest score, which would otherwise wait for that product, too. */
    __device__ __forceinline__ void release_k(float most = 0)
    {
        if (threadIdx.x % 128 == 0 && most > -__int_as_float(0x7f800000))
            k.release(k.stage);
        k.advance();
    }
    __device__ __forceinline__ void release_v()
    {
        if (threadIdx.x % 128 == 0)
            v.release(v.stage);
        v.advance();
    }
    /* By each warp. */
    __device__ __forceinline__ void release_q()
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            q.release(q.stage);
        q.advance();
    }
    /* STAGED: a tile's slot of Q is kept for its rows of O, and given back when they have been read from it. */
    __device__ __forceinline__ void lend_q()
    {
        lent = q.stage;
        q.advance();
    }
    __device__ __forceinline__ void take_back_q()
    {
        if (lent >= 0 && threadIdx.x % 32 == 0) {
            tma_store_wait_read<0>();
            q.release(lent);
        }
        lent = -1;
    }
    __device__ __forceinline__ bool is_hidden() const { return __any_sync(~0u, note_of(shared, k).hidden); }
    __device__ __forceinline__ void wait_turn() const { turn_wait<TURNS>(group); }
    __device__ __forceinline__ void pass_turn() const { turn_pass<TURNS>((group + 1) % CONSUMERS); }

    /* The next tile and its Q. */
    __device__ __forceinline__ tile_note next_tile(query_tile &query)
    {
        wait_full_warp(q);
        tile_note next = shared.tiles[q.stage];
        next.tile = uniform(next.tile);
        next.steps = uniform(next.steps);
        if (SHARED)
            next.share = uniform(next.share);
        query.take(q_tile());
        if (!STAGED && (Q_HELD || next.steps == 0))
            release_q();
        return next;
    }
    /* Found again where it is wanted: there are no registers to keep it in. */
    __device__ __forceinline__ tile_place place_of(const tile_note &note) const
    {
        int tile = note.tile;
        asm volatile("" : "+r"(tile));
        tile_place place = find_tile(task, order, tile);
        if (PACKED) {
            place.row = note.row;
            place.end = note.end;
        }
        return part_of(place);
    }

    /* Scores of a step, whose largest are found. note: the step's. */
    __device__ __forceinline__ void take_scores(float (&s)[STEP_KEYS / 2], const step_note &note, bool hidden, softmax_rows &rows,
                                                float (&factor)[2], float (&times)[2])
    {
        mma_settle(s);
        cap_scores(s, scale);
        if (__builtin_expect(hidden, 0)) {
            hide(s, task, note);
            if (TILED)
                hide_bits(s, task, note);
        }
        raise(s, rows, factor, times, scale.outer2);
    }
    __device__ __forceinline__ void clean_v(float (&o)[DEPTH_V / 2], int &more)
    {
#if SCRUB
        if (note_of(shared, v).hidden)
            scrub(o, more, v_tile(), task, note_of(shared, v));
#endif
    }
    __device__ __forceinline__ void finish_tile(const tile_note &tile, const float (&o)[DEPTH_V / 2], const softmax_rows &rows)
    {
        finish(map_o, STAGED ? q_tile() : 0, task, order, scale, place_of(tile), tile, o, rows);
        if (STAGED) {
            take_back_q(); /* of the tile before, where this one has no products */
            lend_q();
        }
    }
    /* A tile without steps: no row sees anything. */
    __device__ __forceinline__ void finish_empty(const tile_note &tile, float (&o)[DEPTH_V / 2], softmax_rows &rows)
    {
        rows.begin(scale.outer2);
#pragma unroll
        for (int i = 0; i < DEPTH_V / 2; i++)
            o[i] = 0;
        finish_tile(tile, o, rows);
        take_back_q();
    }
    /* The exponentials of a tile's first step, where the tile before was not joined to it. */
    __device__ __forceinline__ void begin_tile(float (&s)[STEP_KEYS / 2], unsigned (&p)[STEP_KEYS / 4], softmax_rows &rows,
                                               float (&factor)[2], float (&times)[2], const query_tile &query, int steps)
    {
        rows.begin(scale.outer2);
        wait_full_warp(k);
        const step_note &note = note_of(shared, k);
        wait_turn();
        mma_fence();
        multiply_k(s, query, q_descriptor(), k_descriptor());
        pass_turn();
        take_back_q();
        mma_wait<0>();
        release_k();
        if (!STAGED && !Q_HELD && steps == 1)
            release_q();
        take_scores(s, note, note.hidden, rows, factor, times);
        exponentiate(s, rows, factor, times);
        pack(p, s);
    }
    /* JOIN: the exponentials of the next tile's first step, while this tile's last product with V goes on. */
    __device__ __forceinline__ void multiply_joined(float (&s)[STEP_KEYS / 2], float (&o)[DEPTH_V / 2], const unsigned (&p)[STEP_KEYS / 4],
                                                    softmax_rows &next_rows, float (&factor)[2], float (&times)[2], const query_tile &query,
                                                    int more, int next_steps)
    {
        wait_full_warp(k);
        const step_note &note = note_of(shared, k);
        wait_turn();
        mma_fence();
        multiply_k(s, query, q_descriptor(), k_descriptor());
        multiply_v(o, p, v_descriptor(), more);
        pass_turn();
        mma_wait<1>();
        release_k();
        if (!Q_HELD && next_steps == 1)
            release_q();
        take_scores(s, note, note.hidden, next_rows, factor, times);
        exponentiate(s, next_rows, factor, times);
    }
    /* A tile's last product with V. */
    __device__ __forceinline__ void multiply_last(float (&o)[DEPTH_V / 2], const unsigned (&p)[STEP_KEYS / 4], int more) const
    {
        wait_turn();
        mma_fence();
        multiply_v(o, p, v_descriptor(), more);
        pass_turn();
    }
    template <bool hidden>
    __device__ __forceinline__ void multiply_step(float (&s)[STEP_KEYS / 2], float (&o)[DEPTH_V / 2], unsigned (&p)[STEP_KEYS / 4],
                                                  softmax_rows &rows, const query_tile &query, uniform_descriptor q_at, int &more,
                                                  ready_stages &ready, bool last);
    /* A step but the first: its exponentials, and the step before's product with V. */
    __device__ __forceinline__ void multiply_next(float (&s)[STEP_KEYS / 2], float (&o)[DEPTH_V / 2], unsigned (&p)[STEP_KEYS / 4],
                                                  softmax_rows &rows, const query_tile &query, uniform_descriptor q_at, int &more,
                                                  ready_stages &ready, bool last)
    {
        if (!ready.k) {
            wait_full_warp(k);
            ready.hidden = is_hidden();
        }
        if (ready.hidden)
            multiply_step<true>(s, o, p, rows, query, q_at, more, ready, last);
        else
            multiply_step<false>(s, o, p, rows, query, q_at, more, ready, last);
    }
    __device__ __forceinline__ void run();
};

inline void shrink(float (&o)[DEPTH_V / 2], const float (&factor)[2])
{
#pragma unroll
    for (int i = 0; i < DEPTH_V / 2; i++)
        o[i] *= factor[i / 2 % 2];
}

/* Where K's stage is full: the product of a step with K and of the step before with V. hidden: some query does not see some key. The
 * softmax is one block without branches: what waits for nothing is computed while exponentials are, which take the longest. */
template <bool hidden>
inline void consumer::multiply_step(float (&s)[STEP_KEYS / 2], float (&o)[DEPTH_V / 2], unsigned (&p)[STEP_KEYS / 4], softmax_rows &rows,
                                    const query_tile &query, uniform_descriptor q_at, int &more, ready_stages &ready, bool last)
{
    float factor[2], times[2];
    const step_note &note = note_of(shared, k);
    const uniform_descriptor k_at = k_descriptor();
#if SCRUB
    if (!ready.v)
        wait_full_warp(v);
    clean_v(o, more);
#endif
    wait_turn();
    mma_fence();
    multiply_k(s, query, q_at, k_at);
#if !SCRUB
    if (!ready.v)
        wait_full_warp(v);
    mma_fence();
#endif
    multiply_v(o, p, v_descriptor(), more);
    pass_turn();
    mma_wait<1>();
    if (!Q_HELD && Q_SLOTS == 1 && last)
        release_q(); /* for the next tile's, at once; with two slots after the last step */
    take_scores(s, note, hidden, rows, factor, times);
    release_k(rows.most[0]);
    exponentiate(s, rows, factor, times);
    mma_wait<0>();
    mma_settle(o);
    release_v();
    ready.k = is_full_warp(k);
    ready.hidden = is_hidden();
    ready.v = is_full_warp(v);
    shrink(o, factor);
    pack(p, s);
    more = 1;
}

inline void consumer::run()
{
    float s[STEP_KEYS / 2], o[DEPTH_V / 2], factor[2], times[2];
    unsigned p[STEP_KEYS / 4];
    softmax_rows rows;
    query_tile query;
    tile_note tile = next_tile(query);
    bool begun = false; /* the tile's first exponentials are in p */
    if (TURNS && group == CONSUMERS - 1)
        pass_turn();
    while (tile.tile >= 0) {
        if (tile.steps == 0) {
            finish_empty(tile, o, rows);
            tile = next_tile(query);
            begun = false;
            continue;
        }
        if (!begun)
            begin_tile(s, p, rows, factor, times, query, tile.steps);
        int more = 0;
        const uniform_descriptor q_at = q_descriptor();
        ready_stages ready = {false, false, false};
        for (int step = 1; step < tile.steps; step++)
            multiply_next(s, o, p, rows, query, q_at, more, ready, step == tile.steps - 1);
        if (!STAGED && !Q_HELD && Q_SLOTS > 1 && tile.steps > 1)
            release_q();
        tile_note next = {-1, 0, 0, 0, -1};
        softmax_rows next_rows;
        next_rows.begin(scale.outer2);
        if (JOIN)
            next = next_tile(query);
        wait_full_warp(v);
        clean_v(o, more);
        if (JOIN && next.steps > 0)
            multiply_joined(s, o, p, next_rows, factor, times, query, more, next.steps);
        else
            multiply_last(o, p, more);
        mma_wait<0>();
        mma_settle(o);
        release_v();
        finish_tile(tile, o, rows);
        if (JOIN && next.steps > 0)
            pack(p, s);
        begun = JOIN && next.steps > 0;
        rows = next_rows;
        tile = JOIN ? next : next_tile(query);
    }
    if (STAGED)
        take_back_q();
    if (TURNS && group == 0)
        wait_turn();
}

/* clang-format off: it would take the attributes apart */
extern "C" __global__ void __launch_bounds__(SHAPE.threads, 1)
    /* clang-format on */
    attention_sm90(const __grid_constant__ spk_tensor_map map_q, const __grid_constant__ spk_tensor_map map_k,
                   const __grid_constant__ spk_tensor_map map_v, const __grid_constant__ spk_tensor_map map_o,
                   const __grid_constant__ attention_task task, const __grid_constant__ attention_order order)
{
    extern __shared__ unsigned char memory[];
    __shared__ ring_shared shared[RINGS];
    const unsigned tiles = (smem_address(memory) + 1023) & ~1023u;
    static_assert(sizeof shared <= SHAPE.static_bytes, "");
    if (threadIdx.x == 0) {
        for (int ring = 0; ring < RINGS; ring++) {
            ring_init(shared[ring].k, 1, SHARERS);
            ring_init(shared[ring].v, 1, SHARERS);
            ring_init(shared[ring].q, 1, SHARERS * 4);
        }
    }
    if (threadIdx.x == CONSUMERS * 128) {
        tma_prefetch_map(&map_q);
        tma_prefetch_map(&map_k);
        tma_prefetch_map(&map_v);
        if (STAGED)
            tma_prefetch_map(&map_o);
    }
    __syncthreads();
    if (order.early)
        next_launch_may_start();
    previous_launch_done();
    const int group = uniform(threadIdx.x / 128);
    if (group < CONSUMERS) {
        if (CONSUMERS > 1)
            registers_more<CONSUMER_REGISTERS>();
        const int ring = RINGS > 1 ? group : 0;
        consumer(&map_o, task, order, shared[ring], tiles_of(tiles, ring), group).run();
    } else {
        if (CONSUMERS > 1)
            registers_fewer<PRODUCER_REGISTERS>();
        const int ring = threadIdx.x / 32 - CONSUMERS * 4;
        if (ring < RINGS)
            produce({&map_q, &map_k, &map_v}, task, order, shared[ring], tiles_of(tiles, ring), blockIdx.x * RINGS + ring);
    }
}
