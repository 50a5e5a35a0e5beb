/* attention_simt: what both sides derive of the constants that the program is compiled with. */
#ifndef SPK_BACKEND_CUDA_KERNELS_ATTENTION_SIMT_H
#define SPK_BACKEND_CUDA_KERNELS_ATTENTION_SIMT_H

#include "backend/cuda/device/attention/attention_tiles.h"

/* Tiles in shared memory are of f32. Lines of K are an odd number of 16-byte pieces long, so that lanes, which have a key each, read from
 * different banks; those of V are whole turns of a warp. */
typedef struct attention_simt_shape {
    int rows;                     /* of a warp */
    int depth4, pitch, columns_v; /* floats of a line of Q, K, V */
    int q, k, v, p, tiles;        /* of a tile, with that of exponentials; of all */
    int shared_bytes;
    int registers; /* of a thread's sums and scores */
} attention_simt_shape;

SPK_BOTH attention_simt_shape attention_simt_shape_of(attention_tiles_constants t)
{
    attention_simt_shape s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const int rows = t.tile_rows * t.tile_heads;
    s.rows = rows / t.warps;
    s.depth4 = (t.depth + 3) / 4 * 4;
    s.pitch = s.depth4 / 4 % 2 == 0 ? s.depth4 + 4 : s.depth4;
    s.columns_v = (t.depth_v + 31) / 32 * 32;
    s.q = rows * s.depth4;
    s.k = t.step_keys * s.pitch;
    s.v = t.step_keys * s.columns_v;
    s.p = rows * t.step_keys;
    s.tiles = s.q + s.k + s.v + s.p;
    s.shared_bytes = s.tiles * 4 + attention_notes_bytes(t.step_keys, t.tiled);
    s.registers = s.rows * (s.columns_v / 32 + t.step_keys / 32);
    return s;
}

#endif
