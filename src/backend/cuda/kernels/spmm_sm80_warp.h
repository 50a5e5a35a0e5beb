/* spmm_sm80_warp: what both sides derive of the constants that the program is compiled with. Its second argument, after
 * spk_cuda_arguments, is a list of block rows, longest first (null: as they come).
 *
 * A unit is TILES tiles of 16 rows of one block row by TILE_N columns of D; where a block has fewer rows, the rest multiply zeros. SPLIT
 * warps share its depth (the columns of its blocks, one behind the other), cut into steps of TILE_K, which may hold several blocks; their
 * sums are added in the order of the warps, so the bits are the same on every run. Each warp has a ring of STAGES steps in shared memory
 * that no other warp reads. A thread block holds UNITS units. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_WARP_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_WARP_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/both.h"

/* The constants, beside those.
 *   BLOCK_ROWS BLOCK_COLS   of op(A)
 *   RAGGED_K CUT_PIECES     as device/mma/warp_step.cuh has them
 *   BYTES_EACH              of an element of op(A), of B */
#define WARP_CONSTANTS(C)     \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(RAGGED_K, ragged_k)     \
    C(CUT_PIECES, cut_pieces) \
    C(BYTES_EACH, bytes_each) \
    C(TILES, tiles)           \
    C(TILE_N, tile_n)         \
    C(TILE_K, tile_k)         \
    C(STAGES, stages)         \
    C(SPLIT, split)           \
    C(UNITS, units)
typedef struct warp_constants {
    WARP_CONSTANTS(SPK_CONSTANT_MEMBER)
} warp_constants;

typedef struct warp_shape {
    int rows, parts;               /* of a unit; units down a block row */
    int warps;                     /* of a thread block */
    int a_bytes, stage_bytes;      /* of a step */
    int sum_bytes, warp_bytes;     /* a warp's sums, which take its ring's place; its shared memory */
    int finish_columns, finishers; /* of a unit: how many columns a warp finishes, and how many warps do */
} warp_shape;

SPK_BOTH warp_shape warp_shape_of(warp_constants c)
{
    warp_shape s = {0};
    s.rows = 16 * c.tiles;
    s.parts = (c.block_rows + s.rows - 1) / s.rows;
    s.warps = c.split * c.units;
    s.a_bytes = s.rows * c.tile_k * c.bytes_each;
    s.stage_bytes = s.a_bytes + c.tile_n * c.tile_k * c.bytes_each;
    s.sum_bytes = c.split > 1 ? s.rows * c.tile_n * (c.bytes_each == 8 ? 8 : 4) : 0;
    s.warp_bytes = c.stages * s.stage_bytes > s.sum_bytes ? c.stages * s.stage_bytes : s.sum_bytes;
    s.finish_columns = c.tile_n / c.split > 8 ? c.tile_n / c.split : 8;
    s.finishers = c.tile_n / s.finish_columns;
    return s;
}

#endif
