/* attention_sm90: what both sides derive of the constants that the program is compiled with, and how the work is cut. */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_SM90_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_SM90_H

#include "backend/cuda/device/attention/attention.h"
#include "backend/cuda/device/attention/attention_share.h"
#include "backend/cuda/device/common/sm90.h"

/* The constants.
 *
 *   CONSUMERS               multiplying warpgroups; each has 64 rows, of TILE_ROWS queries of TILE_HEADS heads
 *   FORM                    what the warpgroups of a block share: see attention_form
 *   STEP_KEYS               keys of a step: one stage of K and one of V
 *   UNIT                    neighbouring keys that one box brings: a step is made of several where the mask's blocks are narrower
 *   DEPTH, DEPTH_V          columns of Q and K, of V and O
 *   Q_HELD                  1: Q stays in registers; 0: in shared memory
 *   TURNS                   1: the warpgroups ask for their products one after the other
 *   JOIN                    1: the first product of a tile is asked for together with the last one of the tile before
 *   MASKED                  1: there are lists of blocks
 *   LEFT, RIGHT, SINKS      1: there is a limit to the left of a query, to its right; the first keys are seen all the same
 *   CAPPED, WANT_LSE        1: scores are capped; LSE is wanted
 *   SPLIT                   1: the keys of a tile are shared out over several workers, whose results are merged afterwards
 *   SHARED                  1: the keys of the last tiles may be shared out over all workers, which would else have nothing to do
 *   COUNTED                 1: a list says in which order tiles begin, and each worker takes the next one of it
 *   SCRUB                   1: V may hold infinities and NaN in rows that only some queries of a tile see
 *   PACKED, LENGTHS         1: a run says where sequences end; how many keys items have
 *   PAGED                   1: a table says where a page of keys lies
 *   TILED                   1: some blocks of the mask have tiles of bits
 */
#define ATTENTION_CONSTANTS(C) \
    C(CONSUMERS, consumers)    \
    C(FORM, form)              \
    C(STEP_KEYS, step_keys)    \
    C(UNIT, unit)              \
    C(DEPTH, depth)            \
    C(DEPTH_V, depth_v)        \
    C(TILE_ROWS, tile_rows)    \
    C(TILE_HEADS, tile_heads)  \
    C(Q_HELD, q_held)          \
    C(TURNS, turns)            \
    C(JOIN, join)              \
    C(MASKED, masked)          \
    C(LEFT, left)              \
    C(RIGHT, right)            \
    C(SINKS, sinks)            \
    C(CAPPED, capped)          \
    C(WANT_LSE, want_lse)      \
    C(SPLIT, split)            \
    C(SHARED, shared)          \
    C(COUNTED, counted)        \
    C(SCRUB, scrub)            \
    C(PACKED, packed)          \
    C(LENGTHS, lengths)        \
    C(PAGED, paged)            \
    C(TILED, tiled)
typedef struct attention_constants {
    ATTENTION_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_constants;

enum attention_form {
    ATTENTION_BY_ROWS,  /* one list and its stages of K and V; the warpgroups have neighbouring rows */
    ATTENTION_ALONE,    /* nothing: each has tiles and stages of its own */
    ATTENTION_BY_HEADS, /* one list and its stages; the warpgroups have the same rows of neighbouring heads */
};

enum {
    ATTENTION_STATIC_BYTES = 2048, /* barriers and notes, at most, */
    ATTENTION_LONG_BYTES = 5120,   /* and where notes say more */
    ATTENTION_MOST_STAGES = 6,
    ATTENTION_MOST_UNITS = 8
};

typedef struct attention_shape {
    int depth16, chunks, chunks_v; /* depth in whole 16s; 128-byte lines of a row */
    int rings;                     /* of stages, each with a producing warp */
    int q_bytes, k_bytes, v_bytes; /* of a warpgroup's Q; of a stage */
    int q_slots, stages, shared_bytes;
    int units;       /* of a step */
    int rows, heads; /* of a tile of work: what a ring's list is walked for */
    int threads, registers, static_bytes;
    int staged; /* 1: whole rows of O go through the tile's slot of Q, and TMA. Three warpgroups hide the stores of each other */
} attention_shape;

SPK_BOTH attention_shape attention_shape_of(attention_constants c)
{
    attention_shape s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    s.depth16 = (c.depth + 15) / 16 * 16;
    s.chunks = (c.depth + 63) / 64;
    s.chunks_v = (c.depth_v + 63) / 64;
    s.rings = c.form == ATTENTION_ALONE ? c.consumers : 1;
    s.q_bytes = 64 * 128 * s.chunks;
    s.k_bytes = c.step_keys * 128 * s.chunks;
    s.v_bytes = c.step_keys * 128 * s.chunks_v;
    s.units = c.step_keys / c.unit;
    s.rows = c.form == ATTENTION_BY_ROWS ? c.tile_rows * c.consumers : c.tile_rows;
    s.heads = c.form == ATTENTION_BY_HEADS ? c.tile_heads * c.consumers : c.tile_heads;
    s.static_bytes = c.packed || c.lengths || c.paged || c.tiled ? ATTENTION_LONG_BYTES : ATTENTION_STATIC_BYTES;
    const int room = SM90_SHARED_BYTES - SM90_ALIGNMENT_BYTES - s.static_bytes, stage = s.rings * (s.k_bytes + s.v_bytes);
    for (s.q_slots = 2; s.q_slots >= 1; s.q_slots--) {
        const int q = c.consumers * s.q_slots * s.q_bytes, least = c.q_held && s.q_slots == 2 ? 3 : 2; /* Q in registers needs one slot */
        s.stages = sm90_stages(room - q, stage, ATTENTION_MOST_STAGES);
        s.shared_bytes = SM90_ALIGNMENT_BYTES + q + s.stages * stage;
        if (s.stages >= least)
            break;
    }
    s.q_slots = s.q_slots < 1 ? 1 : s.q_slots;
    s.staged = s.q_slots == 2 && c.consumers < 3 && !c.join && !c.split && c.tile_heads == 1 && s.chunks_v <= s.chunks;
    s.threads = (c.consumers + 1) * 128;
    s.registers = c.depth_v / 2 + c.step_keys / 2 + c.step_keys / 4 + (c.q_held ? s.depth16 / 4 : 0);
    return s;
}

/* How the work is cut: tiles of `rows` queries of `heads` heads of an item, which workers (rings) take. */
typedef struct attention_order {
    int head_tiles, block_rows, block_tiles; /* tiles of an item's heads; queries of a block row of the mask (or all), tiles of one */
    int row_tiles, tiles;                    /* of a head, and of all */
    int workers;
    int splits; /* parts of a tile's keys: `tiles` counts each */
    /* The tiles of each worker; NULL: worker w takes w, w + workers, ... In the list tiles + i is share i. With COUNTED it is of all
     * workers, and *next the place of the tile that nobody has taken yet. */
    const int *offsets, *list;
    int *next;
    const attention_share *shares;
    float *parts, *part_lse; /* of each split, item, head and query (helpers/attention_merge.h), or of each share and row
                              * (helpers/attention_join.h) DEPTH_V sums and two numbers */
    int pieces;              /* 1: rows of O may be written 16 bytes at a time */
    int early;               /* 1: blocks of the next launch may start as soon as there is room */
} attention_order;

#endif
