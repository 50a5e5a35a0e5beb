/* attention_sm80: what both sides derive of the constants that the program is compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_SM80_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_SM80_H

#include "backend/cuda/device/attention/attention_tiles.h"

/*   SIXTEENS   of a warp's rows: what it brings from shared memory is multiplied by so many tiles of Q
 *   Q_HELD     1: Q stays in registers; 0: in shared memory */
#define ATTENTION_SM80_CONSTANTS(C) C(SIXTEENS, sixteens) C(Q_HELD, q_held)
typedef struct attention_sm80_constants {
    ATTENTION_SM80_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_sm80_constants;

/* Elements of a line of 16-bit elements in shared memory that begins `columns`: an odd number of 16-byte pieces, so that eight lines which
 * a matrix is read from lie in different banks. */
SPK_BOTH int attention_sm80_pitch(int columns)
{
    return (columns + 15) / 16 * 16 + 8;
}

typedef struct attention_sm80_shape {
    int depth16;                   /* depth in whole 16s */
    int pitch, pitch_v;            /* of lines of Q and K, and of V: elements */
    int q_bytes, k_bytes, v_bytes; /* of a tile */
    int tiles_bytes, shared_bytes; /* Q, and two stages of K and V; with what is noted */
    int registers;                 /* of a thread's sums, scores and Q */
} attention_sm80_shape;

SPK_BOTH attention_sm80_shape attention_sm80_shape_of(attention_tiles_constants t, attention_sm80_constants c)
{
    attention_sm80_shape s = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    s.depth16 = (t.depth + 15) / 16 * 16;
    s.pitch = attention_sm80_pitch(t.depth);
    s.pitch_v = attention_sm80_pitch(t.depth_v);
    s.q_bytes = t.tile_rows * t.tile_heads * s.pitch * 2;
    s.k_bytes = t.step_keys * s.pitch * 2;
    s.v_bytes = t.step_keys * s.pitch_v * 2;
    s.tiles_bytes = s.q_bytes + 2 * (s.k_bytes + s.v_bytes);
    s.shared_bytes = s.tiles_bytes + attention_notes_bytes(t.step_keys, t.tiled);
    s.registers = c.sixteens * (t.depth_v / 2 + t.step_keys / 2 + (c.q_held ? s.depth16 / 4 : 0));
    return s;
}

#endif
