/* Attention in tiles, in device code: which tile a block has, which keys its steps have, which of them a query sees, and where results go.
 * What decides about keys is in walk_of, key_at, seen_by and sees alone. Keys are counted from the first of the tile's sequence.
 *
 * Keys that some query of a tile sees are numbered one after the other, whatever the blocks of the mask: a step has the next STEP_KEYS of
 * them. The constants: attention_tiles.h. */
#ifndef SPK_DEVICE_ATTENTION_TILES_CUH
#define SPK_DEVICE_ATTENTION_TILES_CUH

#include "backend/cuda/device/attention/attention_packed.cuh"
#include "backend/cuda/device/attention/attention_tiles.h"
#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/common/problem.cuh"

constexpr int THREADS = WARPS * 32, ROWS = TILE_ROWS * TILE_HEADS;
constexpr int KEY_GROUPS = STEP_KEYS / 32, WARP_GROUPS = (KEY_GROUPS + WARPS - 1) / WARPS;
constexpr int NO_KEY = 0x7fffffff; /* where a step has fewer keys; no query sees it */

static_assert(STEP_KEYS % 32 == 0, "a lane looks up a key");

/* ---- the block's tile */

/* Queries [row, end) of the heads from `head` on; part: of its keys. */
struct tile_place {
    int item, head, row, end, part;
    attention_sequence sequence;
};

inline tile_place find_tile(const attention_task &task, const attention_cut &cut, int tile)
{
    const int whole = SPLIT ? tile / cut.splits : tile, row_tile = whole % cut.row_tiles, rest = whole / cut.row_tiles;
    const int block = row_tile / cut.block_tiles;
    tile_place place;
    place.item = rest / cut.head_tiles;
    place.head = rest % cut.head_tiles * TILE_HEADS;
    place.row = block * cut.block_rows + row_tile % cut.block_tiles * TILE_ROWS;
    place.end = min((block + 1) * cut.block_rows, task.queries);
    place.part = SPLIT ? tile % cut.splits : 0;
    int number = 0;
    if (PACKED) {
        const packed_tile found = find_packed_tile(task, TILE_ROWS, row_tile);
        number = found.number;
        place.row = found.row;
        place.end = found.end;
    }
    place.sequence = attention_sequence_of(&task, place.item, number);
    return place;
}

/* Under a limit to their right the last queries see most: their tiles begin first. */
inline tile_place own_tile(const attention_task &task, const attention_cut &cut)
{
    return find_tile(task, cut, LIMITED ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* A row of the tile; those from `end` on are none. */
struct tile_row {
    int head, query;
    bool valid;
};

inline tile_row row_of(const tile_place &place, int row)
{
    tile_row r;
    r.head = place.head + row / TILE_ROWS;
    r.query = place.row + row % TILE_ROWS;
    r.valid = r.query < place.end;
    return r;
}

template <class T> inline T *row_at(const void *array, const attention_strides &strides, int item, int head, int row)
{
    return (T *)array + item * strides.item + head * strides.head + row * strides.row;
}

/* ---- its keys */

/* With a mask: blocks [first, first + sunk) and from `from` on of its columns; without, keys [0, sunk) and from `from` on. */
struct key_walk {
    int first, sunk, from, count; /* count: of keys, those of blocks whole */
    int begin, end, sinks;        /* all queries of the tile see [begin, end) and [0, sinks) */
    int keys;                     /* that there are */
    int first_step, steps;        /* of the block's part */
};

/* What a query sees, but for tiles of bits. */
struct query_sight {
    attention_seen seen;
    int query;
};

inline query_sight seen_by(const attention_task &task, const tile_place &place, int query)
{
    const attention_sequence &s = place.sequence;
    query_sight sight = {{0, 0, RAGGED ? s.keys : task.keys}, query};
    if (LIMITED)
        sight.seen = attention_seen_of(&task, query - s.query + s.shift, s.keys);
    return sight;
}

/* tile: of bits, that the key's block has; -1: none. */
inline bool sees(const attention_task &task, const query_sight &sight, int key, int tile)
{
    const attention_seen &seen = sight.seen;
    return key < seen.end && (!LIMITED || key >= seen.begin || key < seen.sinks) &&
           (!TILED || attention_bit(&task, tile, sight.query, key));
}

/* Blocks of the list, counted by the warp, for whose first key `test` holds. */
template <class T> inline int count_blocks(const attention_task &task, int first, int end, T test)
{
    int count = 0;
    for (int base = first; base < end; base += 32) {
        const int at = base + threadIdx.x % 32;
        const bool holds = at < end && test(__ldg(task.columns + at) * task.block_cols);
        count += __popc(__ballot_sync(~0u, holds));
    }
    return count;
}

/* upper, lower: what the tile's first and last query see. */
inline void walk_blocks(key_walk &walk, const attention_task &task, const tile_place &place, attention_seen upper, attention_seen lower)
{
    const int list = attention_list(&task, place.item, place.head, place.row);
    int stop = __ldg(task.offsets + list + 1);
    walk.first = __ldg(task.offsets + list);
    walk.from = walk.first;
    if (LIMITED || RAGGED) {
        const int first = walk.first, width = task.block_cols, begin = upper.begin, end = lower.end, sinks = lower.sinks;
        const int before = count_blocks(task, first, stop, [=](int key) { return key + width <= begin; });
        const int within = count_blocks(task, first, stop, [=](int key) { return key < end; });
        walk.sunk = sinks > 0 ? count_blocks(task, first, stop, [=](int key) { return key < sinks; }) : 0;
        walk.from = first + max(before, walk.sunk);
        stop = max(first + within, walk.from);
    }
    walk.count = (walk.sunk + stop - walk.from) * task.block_cols;
}

inline key_walk walk_of(const attention_task &task, const attention_cut &cut, const tile_place &place)
{
    key_walk walk = {};
    if (place.row >= place.end)
        return walk;
    const attention_seen upper = seen_by(task, place, place.row).seen,
                         lower = seen_by(task, place, min(place.row + TILE_ROWS, place.end) - 1).seen;
    walk.keys = RAGGED ? place.sequence.keys : task.keys;
    walk.end = upper.end;
    walk.begin = lower.begin;
    walk.sinks = LIMITED ? min(task.sinks, upper.end) : 0;
    if (MASKED) {
        walk_blocks(walk, task, place, upper, lower);
    } else {
        walk.sunk = lower.sinks;
        walk.from = max(upper.begin, walk.sunk);
        walk.count = walk.sunk + max(lower.end - walk.from, 0);
    }
    const int all = (int)(((long long)walk.count + STEP_KEYS - 1) / STEP_KEYS);
    walk.first_step = SPLIT ? (int)((long long)all * place.part / cut.splits) : 0;
    walk.steps = (SPLIT ? (int)((long long)all * (place.part + 1) / cut.splits) : all) - walk.first_step;
    return walk;
}

/* Key number `number` of the walk; NO_KEY: there is none. tile: of bits, that its block has. */
inline int key_at(const attention_task &task, const key_walk &walk, int number, int &tile)
{
    tile = -1;
    if (number >= walk.count)
        return NO_KEY;
    if (!MASKED)
        return number < walk.sunk ? number : walk.from + number - walk.sunk;
    const int block = number / task.block_cols, at = block < walk.sunk ? walk.first + block : walk.from + block - walk.sunk;
    const int key = __ldg(task.columns + at) * task.block_cols + number - block * task.block_cols;
    if (TILED)
        tile = __ldg(task.tile_numbers + at);
    return key < walk.keys ? key : NO_KEY; /* what overhangs is not there */
}

inline bool all_see(const key_walk &walk, int key, int tile)
{
    return key < walk.end && (!LIMITED || key >= walk.begin || key < walk.sinks) && (!TILED || tile < 0);
}

/* The row of K and V that a key has. */
inline int row_of_key(const attention_task &task, const tile_place &place, int key)
{
    const int row = PAGED ? attention_row(&task, PACKED ? place.sequence.number : place.item, key) : key;
    return PACKED ? row + place.sequence.key : row;
}

/* ---- what is known of steps, in shared memory */

struct step_notes {
    int keys[ATTENTION_NOTES][STEP_KEYS];
#if TILED
    int tiles[ATTENTION_NOTES][STEP_KEYS]; /* of bits */
#endif
    unsigned hidden[ATTENTION_NOTES][KEY_GROUPS]; /* other than 0: some query does not see some key of the group */
};
static_assert(sizeof(step_notes) == attention_notes_bytes(STEP_KEYS, TILED), "the host counts other notes");

/* The keys of one step, as a kernel's parts get them. */
struct step_keys {
    const int *keys, *tiles;
    __device__ __forceinline__ step_keys(const step_notes &notes, int step) : keys(notes.keys[step % ATTENTION_NOTES]), tiles(nullptr)
    {
#if TILED
        tiles = notes.tiles[step % ATTENTION_NOTES];
#endif
    }
    __device__ __forceinline__ int operator[](int i) const
    {
        return keys[i];
    }
    __device__ __forceinline__ int tile(int i) const
    {
        return TILED ? tiles[i] : -1;
    }
};

/* The keys of a step that the thread looks up: their loads are on their way until they are noted. */
struct looked_up {
    int key[WARP_GROUPS], tile[WARP_GROUPS];
};

inline looked_up look_up(const attention_task &task, const key_walk &walk, int step)
{
    looked_up keys;
#pragma unroll
    for (int i = 0; i < WARP_GROUPS; i++) {
        const int group = threadIdx.x / 32 + i * WARPS;
        keys.key[i] = NO_KEY;
        keys.tile[i] = -1;
        if (group < KEY_GROUPS && step < walk.steps)
            keys.key[i] = key_at(task, walk, (walk.first_step + step) * STEP_KEYS + group * 32 + threadIdx.x % 32, keys.tile[i]);
    }
    return keys;
}

inline void note_keys(step_notes &notes, const key_walk &walk, int step, const looked_up &keys)
{
#pragma unroll
    for (int i = 0; i < WARP_GROUPS; i++) {
        const int group = threadIdx.x / 32 + i * WARPS;
        if (group < KEY_GROUPS) { /* the same for all of a warp */
            notes.keys[step % ATTENTION_NOTES][group * 32 + threadIdx.x % 32] = keys.key[i];
#if TILED
            notes.tiles[step % ATTENTION_NOTES][group * 32 + threadIdx.x % 32] = keys.tile[i];
#endif
            const unsigned hidden = __ballot_sync(~0u, !all_see(walk, keys.key[i], keys.tile[i]));
            if (threadIdx.x % 32 == 0)
                notes.hidden[step % ATTENTION_NOTES][group] = hidden;
        }
    }
}

/* Whether some query of the tile does not see some key of the step. */
inline bool hides(const step_notes &notes, int step)
{
    unsigned any = 0;
#pragma unroll
    for (int group = 0; group < KEY_GROUPS; group++)
        any |= notes.hidden[step % ATTENTION_NOTES][group];
    return any != 0;
}

/* ---- results */

/* Where parts of results lie until they are merged: O of a query, and what store_part_lse has of it. */
inline long long part_row(const attention_task &task, const tile_place &place, const tile_row &row)
{
    return ((place.part * (long long)task.items + place.item) * task.heads + row.head) * task.queries + row.query;
}

/* By one thread of a row. sum: of exponentials relative to the score `most`. */
inline void store_lse(const attention_task &task, const attention_cut &cut, const tile_place &place, const tile_row &row, float most,
                      float sum)
{
    if (SPLIT)
        store_part_lse(cut.part_lse, part_row(task, place, row), most, sum);
    else if (WANT_LSE)
        *row_at<float>(task.lse, task.lse_strides, place.item, row.head, row.query) = lse_of(most, sum);
}

#endif
