/* spmm_sm80_direct: what both sides derive of the constants that the program is compiled with. Its second argument, after
 * spk_cuda_arguments, is a list of block rows, longest first (null: as they come).
 *
 * A unit is TILES tiles of 16 rows of one block row by TILE_N columns of D. SPLIT warps share its depth (the columns of its blocks, one
 * behind the other), in steps of 16, which are two blocks of 8; their sums are added in the order of the warps, so the bits are the same on
 * every run. A thread block holds UNITS units. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_DIRECT_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_SM80_DIRECT_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/both.h"

/* The constants, beside those.
 *   BLOCK_ROWS BLOCK_COLS   of op(A): 8 or multiples of 16 */
#define DIRECT_CONSTANTS(C)   \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(TILES, tiles)           \
    C(TILE_N, tile_n)         \
    C(SPLIT, split)           \
    C(UNITS, units)
typedef struct direct_constants {
    DIRECT_CONSTANTS(SPK_CONSTANT_MEMBER)
} direct_constants;

typedef struct direct_shape {
    int rows, parts;  /* of a unit; units down a block row */
    int warps;        /* of a thread block */
    int lines;        /* 16 bytes of sums of a lane */
    int shared_bytes; /* for the sums of warps that share a unit */
} direct_shape;

SPK_BOTH direct_shape direct_shape_of(direct_constants c)
{
    direct_shape s = {0};
    s.rows = 16 * c.tiles;
    s.parts = (c.block_rows + s.rows - 1) / s.rows;
    s.warps = c.split * c.units;
    s.lines = s.rows * c.tile_n / 128;
    s.shared_bytes = c.split > 1 ? s.warps * s.lines * 512 : 0;
    return s;
}

#endif
