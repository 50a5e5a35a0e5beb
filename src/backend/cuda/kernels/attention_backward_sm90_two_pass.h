/* attention_backward_sm90_two_pass: what both sides derive of the constants that the programs are compiled with, and how the work is cut.
 */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM90_TWO_PASS_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM90_TWO_PASS_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/device/common/sm90.h"

/* Two programs, one for each pass: the gradients of K and V, by tiles of keys that walk the queries which see them, and that of Q, by tiles
 * of queries that walk the keys which they see. "Own" rows are a tile's, "walked" ones a step's.
 *
 * The constants.
 *
 *   BY_QUERIES          1: own rows are queries, and grad_Q is summed; 0: keys, and grad_K and grad_V are
 *   SHARERS             multiplying warpgroups that share a tile and its steps, of whose rows each has 64; 1: each has its own tile
 *   PAIRED              1: a tile of 64 keys has two warpgroups: one makes weights and grad_V, the other the scores' gradients and grad_K
 *   GROUPS              multiplying warpgroups of a block of threads
 *   DEPTH, DEPTH_V      columns of Q and K, of V and O
 *   LEFT, RIGHT, SINKS  1: there is a limit to the left of a query, to its right; the first keys are seen all the same
 *   TILED               1: blocks of the mask may have tiles of bits
 *   SCRUB               1: rows that only some pairs of a step see may hold infinities and NaN
 */
#define TWO_PASS_CONSTANTS(C) \
    C(BY_QUERIES, by_queries) \
    C(SHARERS, sharers)       \
    C(PAIRED, paired)         \
    C(GROUPS, groups)         \
    C(DEPTH, depth)           \
    C(DEPTH_V, depth_v)       \
    C(LEFT, left)             \
    C(RIGHT, right)           \
    C(SINKS, sinks)           \
    C(TILED, tiled)           \
    C(SCRUB, scrub)
typedef struct two_pass_constants {
    TWO_PASS_CONSTANTS(SPK_CONSTANT_MEMBER)
} two_pass_constants;

enum {
    TWO_PASS_ROWS = 64, /* of a step; of a warpgroup's part of a tile */
    TWO_PASS_MOST_STAGES = 4,
    TWO_PASS_NOTES_BYTES = 1024,                               /* barriers and notes of a ring, at most, */
    TWO_PASS_NUMBERS_BYTES = TWO_PASS_MOST_STAGES * 64 * 4 * 2 /* LSE and delta of its steps */
};

typedef struct two_pass_shape {
    int rings;                       /* tiles that a block of threads works on at once */
    int rows;                        /* of a tile */
    int chunks, chunks_v;            /* 128-byte lines of a row */
    int own_bytes;                   /* of a tile: K and V, or Q and the gradient of O */
    int first_bytes;                 /* of a step: Q, or K; */
    int second_bytes;                /* the gradient of O, or V */
    int own_slots;                   /* tiles, */
    int first_stages, second_stages; /* and steps that are in shared memory at once */
    int numbers_bytes;               /* LSE and delta of steps */
    int weights_bytes;               /* PAIRED: of a step, from one warpgroup to the other */
    int held;                        /* 1: own rows stay in registers: there is room for them */
    int ring_bytes, shared_bytes, threads;
    int registers; /* of a thread's sums, at least */
} two_pass_shape;

/* Whether the ring has room for so many stages. */
SPK_BOTH int two_pass_fits(two_pass_shape *s, int own_slots, int first_stages, int second_stages)
{
    s->own_slots = own_slots;
    s->first_stages = first_stages;
    s->second_stages = second_stages;
    s->ring_bytes = own_slots * s->own_bytes + first_stages * s->first_bytes + second_stages * s->second_bytes + s->weights_bytes;
    s->shared_bytes = SM90_ALIGNMENT_BYTES + s->rings * s->ring_bytes;
    return s->shared_bytes + s->rings * (TWO_PASS_NOTES_BYTES + s->numbers_bytes) <= SM90_SHARED_BYTES;
}

/* first_stages is 0 where nothing fits. */
SPK_BOTH two_pass_shape two_pass_shape_of(two_pass_constants c)
{
    two_pass_shape s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    s.rings = c.paired ? 1 : c.groups / c.sharers;
    s.rows = c.paired ? 64 : 64 * c.sharers;
    s.chunks = (c.depth + 63) / 64;
    s.chunks_v = (c.depth_v + 63) / 64;
    s.own_bytes = s.rows * 128 * (s.chunks + s.chunks_v);
    s.first_bytes = TWO_PASS_ROWS * 128 * s.chunks;
    s.second_bytes = TWO_PASS_ROWS * 128 * s.chunks_v;
    s.weights_bytes = c.paired ? 64 * TWO_PASS_ROWS * 4 : 0;
    s.numbers_bytes = c.by_queries ? 0 : TWO_PASS_NUMBERS_BYTES;
    s.held = c.by_queries && c.depth + c.depth_v <= 256;
    s.threads = (c.groups + 1) * 128;
    s.registers = (c.by_queries ? c.depth
                   : c.paired   ? (c.depth > c.depth_v ? c.depth : c.depth_v)
                                : c.depth + c.depth_v) /
                      2 +
                  TWO_PASS_ROWS / 2 * (c.paired ? 1 : 2) + TWO_PASS_ROWS / 4 * (c.by_queries || c.paired ? 1 : 2) +
                  (s.held ? (c.depth + c.depth_v) / 4 : 0);
    for (int stages = TWO_PASS_MOST_STAGES; stages > 1; stages--)
        for (int slots = s.held ? 1 : 2; slots > 0; slots--) { /* the next tile is brought ahead */
            if (two_pass_fits(&s, slots, stages, stages) || ((c.by_queries || stages > 2) && two_pass_fits(&s, slots, stages, stages - 1)))
                return s;
        }
    s.first_stages = 0;
    return s;
}

enum { TWO_PASS_HIDDEN = 1 << 30 }; /* of a step: some query does not see some key */

/* A tile: its first own row, the head of those rows, the item, its first step, and the end of them; and the number, among the tiles of
 * queries of all heads and items, of the first one of its head, or of the first head that shares its keys. Eight ints on the device. */
typedef struct two_pass_tile {
    int row, head, item, begin, end, first, none[2];
} two_pass_tile;

/* A step: the number of the tile of walked rows, with the bit TWO_PASS_HIDDEN; where they are queries, their head among those that share
 * the keys; TILED: its block's number in the mask. Four ints. Heads that see the same have the same steps. */
typedef struct two_pass_step {
    int tile, head, none, entry;
} two_pass_step;

/* A pass's work: tiles in the order in which rings take them. */
typedef struct two_pass_order {
    const int *tiles, *steps;         /* two_pass_tile, two_pass_step */
    int count;                        /* tiles */
    int *taken, *other_taken;         /* how many are; the other pass's, which this one sets to 0; NULL: none */
    float *lse2, *delta;              /* of each item, head and query, with room for whole tiles of 64 (helpers/attention_delta.h) */
    int q_pieces, k_pieces, v_pieces; /* 1: rows of the gradient may be written 16 bytes at a time */
} two_pass_order;

#endif
