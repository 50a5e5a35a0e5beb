/* attention_backward_sm90: what both sides derive of the constants that the program is compiled with, and how the work is cut. */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM90_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM90_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/device/attention/attention_spans.h"
#include "backend/cuda/device/common/sm90.h"

/* The constants.
 *
 *   SHARERS             multiplying warpgroups that share a tile of keys, of whose keys each has 64: 2, or 1 and each has its own tile
 *   ROWS                queries of a step: 64 or 128; or 80, and parts of grad_Q are computed transposed
 *   LAG                 1: a step's part of grad_Q is multiplied a step later, so that no sharer waits for the other's scores
 *   DEPTH, DEPTH_V      columns of Q and K, of V and O
 *   LEFT, RIGHT, SINKS  1: there is a limit to the left of a query, to its right; the first keys are seen all the same
 *   TILED               1: blocks of the mask may have tiles of bits
 *   PACKED              1: which keys a query sees is known on the device alone, and tiles are taken as they come: packed sequences,
 *                       lengths of keys
 *   SCRUB               1: rows that only some pairs of a step see may hold infinities and NaN
 */
#define ATTENTION_BACKWARD_CONSTANTS(C) \
    C(SHARERS, sharers)                 \
    C(ROWS, rows)                       \
    C(LAG, lag)                         \
    C(DEPTH, depth)                     \
    C(DEPTH_V, depth_v)                 \
    C(LEFT, left)                       \
    C(RIGHT, right)                     \
    C(SINKS, sinks)                     \
    C(TILED, tiled)                     \
    C(PACKED, packed)                   \
    C(SCRUB, scrub)
typedef struct attention_backward_constants {
    ATTENTION_BACKWARD_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_backward_constants;

enum {
    ATTENTION_BACKWARD_WARPGROUPS = 2, /* that multiply */
    ATTENTION_BACKWARD_MOST_STAGES = 4,
    ATTENTION_BACKWARD_NOTES_BYTES = 768, /* barriers and notes of a ring, at most */
    ATTENTION_BACKWARD_WALK_SLOTS = 2,    /* PACKED: tiles that the warps of a ring tell each other */
    ATTENTION_BACKWARD_WALK_BYTES = ATTENTION_BACKWARD_WALK_SLOTS * (32 + 16)
};

typedef struct attention_backward_shape {
    int keys, rings;                       /* of a tile; tiles that a block of threads works on at once */
    int chunks, chunks_v;                  /* 128-byte lines of a row */
    int q_bytes, d_bytes;                  /* of a stage: Q, and the gradient of O */
    int k_bytes, v_bytes;                  /* of a tile */
    int s_bytes, s_slots;                  /* gradients of a step's scores */
    int q_stages, d_stages;                /* steps whose Q, and gradient of O, are in shared memory at once */
    int k_slots, v_slots;                  /* tiles whose K, and V, are */
    int transposed;                        /* 1: a step's part of grad_Q is made of parts of 64 columns and all queries; */
    int grad_parts, grad_columns;          /* 0: of parts of 64 queries and so many columns */
    int part_floats;                       /* sums of such a part, */
    int rounds, round_floats, grad_floats; /* of which each sharer makes one a round */
    int adders;                            /* threads of a ring that add them to memory: one step's each, in turn */
    int ring_bytes, static_bytes, shared_bytes;
    int turns;     /* 1: sharers ask for their products one after the other */
    int registers; /* of a thread's sums, at least */
} attention_backward_shape;

/* Bytes of shared memory with so many stages and slots; whether there are as many. */
SPK_BOTH int attention_backward_fits(attention_backward_constants c, attention_backward_shape *s)
{
    s->ring_bytes = s->k_slots * s->k_bytes + s->v_slots * s->v_bytes + s->q_stages * s->q_bytes + s->d_stages * s->d_bytes +
                    s->s_slots * s->s_bytes + 4 * s->round_floats;
    s->static_bytes = s->rings * (ATTENTION_BACKWARD_NOTES_BYTES + (s->q_stages + s->d_stages) * c.rows * 4 +
                                  (c.tiled ? s->q_stages * c.rows * s->keys / 8 : 0) +
                                  (c.packed ? s->q_stages * c.rows * 8 + ATTENTION_BACKWARD_WALK_BYTES : 0));
    s->shared_bytes = SM90_ALIGNMENT_BYTES + s->rings * s->ring_bytes;
    return s->shared_bytes + s->static_bytes <= SM90_SHARED_BYTES;
}

SPK_BOTH attention_backward_shape attention_backward_shape_of(attention_backward_constants c)
{
    attention_backward_shape s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    s.keys = 64 * c.sharers;
    s.rings = ATTENTION_BACKWARD_WARPGROUPS / c.sharers;
    s.chunks = (c.depth + 63) / 64;
    s.chunks_v = (c.depth_v + 63) / 64;
    s.q_bytes = c.rows * 128 * s.chunks;
    s.d_bytes = c.rows * 128 * s.chunks_v;
    s.k_bytes = s.keys * 128 * s.chunks;
    s.v_bytes = s.keys * 128 * s.chunks_v;
    s.s_bytes = s.keys * 2 * c.rows;
    s.s_slots = c.sharers; /* a sharer may still read one while the other writes the next */
    s.transposed = c.rows % 64 != 0;
    s.grad_parts = s.transposed ? s.chunks : c.rows / 64 * s.chunks;
    s.grad_columns = s.chunks > 1 ? 64 : (c.depth + 15) / 16 * 16;
    s.turns = c.lag && c.depth <= 64; /* of deeper ones no sharer has time for it */
    s.rounds = s.grad_parts / c.sharers;
    s.part_floats = 64 * (s.transposed ? c.rows : s.grad_columns);
    s.round_floats = c.sharers * s.part_floats;
    s.grad_floats = s.grad_parts * s.part_floats;
    s.adders = s.rings == 1 && !c.lag ? 2 : 1;
    s.registers = (c.depth + c.depth_v) / 2 + c.rows / 2 + (c.rows > s.grad_columns ? c.rows : s.grad_columns) / 2 +
                  (s.transposed ? 0 : c.rows / 4); /* a part of grad_Q may have those of scores */
    for (int stages = ATTENTION_BACKWARD_MOST_STAGES; stages > 1; stages--)
        for (int slots = 4; slots > 1; slots--) { /* of K and V together: the next tile's are brought ahead */
            s.q_stages = s.d_stages = stages;
            s.k_slots = slots > 2 ? 2 : 1;
            s.v_slots = slots > 3 ? 2 : 1;
            if (attention_backward_fits(c, &s))
                return s;
        }
    s.d_stages = 1; /* it is brought while the product with Q goes on */
    if (!attention_backward_fits(c, &s))
        s.d_stages = 0;
    return s;
}

enum { ATTENTION_BACKWARD_HIDDEN = 1 << 30 }; /* some query of a step, or of some step of a tile, does not see some key */

/* A tile of keys: its first key, with the bit ATTENTION_BACKWARD_HIDDEN; its head and item; its first step, and the end of them. PACKED:
 * steps are counted from 0; those of a head are of tiles of queries from `first` on, of which [whole, whole_end) see all of the keys. */
typedef struct attention_backward_tile {
    int key, head_kv, item, begin, end, first, whole, whole_end;
} attention_backward_tile;

/* A step: a tile of queries, its number among those of all heads and items, and how many sums come before this one's in grad_Q. */
typedef struct attention_backward_step {
    int number, tile, head, turn; /* tile: with the bit ATTENTION_BACKWARD_HIDDEN */
} attention_backward_step;

/* How the work is cut: tiles of keys of the heads of K and V of an item, which workers (rings) take in a given order. A tile's steps are
 * tiles of queries of the heads that share it. */
typedef struct attention_backward_order {
    int key_tiles, heads_kv, query_tiles; /* tiles of a head's keys and queries */
    const int *offsets, *tiles, *steps;   /* the tiles of each worker (attention_backward_tile); their steps (attention_backward_step) */
    const int *entries;                   /* TILED: of each step, its block's number in the mask */
    attention_spans spans;                /* PACKED: in place of these */
    float *lse2, *delta;                  /* of each item, head and query, with room for whole tiles (helpers/attention_delta.h) */
    float *grad_q;                        /* sums, grad_floats of each item, head and tile of queries, in the order of registers */
    int *turns;                           /* of each, how many sums are in */
    int k_pieces, v_pieces, q_pieces;     /* 1: rows of the gradient may be written 16 bytes at a time */
} attention_backward_order;

#endif
