/* attention_backward_sm80: what both sides derive of the constants that its programs are compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM80_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_BACKWARD_SM80_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/device/attention/attention_tiles.h"

/* Beside those of attention in tiles, which are of the program `queries`:
 *   QUERY_SIXTEENS, KEY_SIXTEENS   of a warp's rows in the programs `queries` and `keys`
 *   STEP_QUERIES                   queries of a step of `keys`, a multiple of 32 */
#define ATTENTION_BACKWARD_SM80_CONSTANTS(C) \
    C(QUERY_SIXTEENS, query_sixteens)        \
    C(KEY_SIXTEENS, key_sixteens)            \
    C(STEP_QUERIES, step_queries)
typedef struct attention_backward_sm80_constants {
    ATTENTION_BACKWARD_SM80_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_backward_sm80_constants;

enum {
    BACKWARD_THREADS = 256,       /* of a block of `prepare` and `turn` */
    BACKWARD_STATE_BYTES = 128,   /* of what a block of the others knows of its tile, at most */
    BACKWARD_MOST_REGISTERS = 192 /* of sums and scores: the rest is for all else */
};

/* The columns of a line of 16-bit elements in whole 16s, and the line's elements in shared memory: an odd number of 16-byte pieces, so that
 * eight lines which a matrix is read from lie in different banks. */
SPK_BOTH int attention_backward_sm80_wide(int columns)
{
    return (columns + 15) / 16 * 16;
}
SPK_BOTH int attention_backward_sm80_pitch(int columns)
{
    return attention_backward_sm80_wide(columns) + 8;
}

/* One of the two programs: a block has `rows` rows of two arrays, and brings `step` rows of two others at a time. */
typedef struct attention_backward_sm80_side {
    int rows, step;
    int own_bytes, stage_bytes; /* the block's rows; those of a step */
    int tiles_bytes;            /* these, and two stages */
    int shared_bytes;           /* with what is known of steps' queries, and what is noted */
    int registers, held;        /* of a thread's sums and scores; 1: the block's rows stay in registers, too */
} attention_backward_sm80_side;

typedef struct attention_backward_sm80_shape {
    int wide, wide_v, pitch, pitch_v; /* of lines of Q and K, and of V and grad_O: elements */
    attention_backward_sm80_side queries, keys;
} attention_backward_sm80_shape;

/* What is noted of a step of `keys`: its queries, their tiles of bits, who is hidden, the head. */
SPK_BOTH int attention_backward_sm80_notes_bytes(int step, int tiled)
{
    return ATTENTION_NOTES * (step * (tiled ? 2 : 1) + step / 32 + 1) * 4;
}

/* sums: of a thread, for each 16 rows. */
SPK_BOTH attention_backward_sm80_side attention_backward_sm80_side_of(int rows, int step, int sixteens, int sums, int wide, int wide_v)
{
    attention_backward_sm80_side s = {0, 0, 0, 0, 0, 0, 0, 0};
    const int line = (wide + 8 + wide_v + 8) * 2, held = sixteens * (wide + wide_v) / 4;
    s.rows = rows;
    s.step = step;
    s.own_bytes = rows * line;
    s.stage_bytes = step * line;
    s.tiles_bytes = s.own_bytes + 2 * s.stage_bytes;
    s.registers = sixteens * (sums + step);
    s.held = s.registers + held <= BACKWARD_MOST_REGISTERS - 32 ? 1 : 0;
    return s;
}

SPK_BOTH attention_backward_sm80_shape attention_backward_sm80_shape_of(attention_tiles_constants t, attention_backward_sm80_constants c)
{
    attention_backward_sm80_shape s = {0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}};
    s.wide = attention_backward_sm80_wide(t.depth);
    s.wide_v = attention_backward_sm80_wide(t.depth_v);
    s.pitch = attention_backward_sm80_pitch(t.depth);
    s.pitch_v = attention_backward_sm80_pitch(t.depth_v);
    s.queries =
        attention_backward_sm80_side_of(t.warps * c.query_sixteens * 16, t.step_keys, c.query_sixteens, t.depth / 2, s.wide, s.wide_v);
    s.keys = attention_backward_sm80_side_of(t.warps * c.key_sixteens * 16, c.step_queries, c.key_sixteens, (t.depth + t.depth_v) / 2,
                                             s.wide, s.wide_v);
    s.queries.shared_bytes = s.queries.tiles_bytes + attention_notes_bytes(t.step_keys, t.tiled) + BACKWARD_STATE_BYTES;
    s.keys.shared_bytes =
        s.keys.tiles_bytes + 4 * c.step_queries * 4 + attention_backward_sm80_notes_bytes(c.step_queries, t.tiled) + BACKWARD_STATE_BYTES;
    return s;
}

/* What the programs leave for each other, and how the work of `keys` is cut. */
typedef struct attention_backward_sm80_work {
    float *lse2,
        *delta; /* of each item, head and query: LSE of two, and what is taken from the gradient of a weight; as weigh() wants them */
    /* the mask's lists, turned: of each list and block column where its block rows begin among turned_rows, and how many there are; which
     * entry of the mask each is */
    int *taken, *turned, *turned_rows, *turned_entries;
    int lists, columns;
    int together_q, together_k;             /* heads whose tiles are computed together, of either program */
    int key_tiles, block_keys, block_tiles; /* tiles of a head; keys of a block column of the mask, or all, and its tiles */
    int pieces_q, pieces_k, pieces_v;       /* 1: rows of the gradient may be written 16 bytes at a time */
} attention_backward_sm80_work;

#endif
