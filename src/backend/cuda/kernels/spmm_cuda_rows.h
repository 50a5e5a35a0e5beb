/* spmm_cuda_rows: what both sides derive of the constants that the program is compiled with. Its second argument, after
 * spk_cuda_arguments, is a list of block rows, longest first (null: as they come).
 *
 * A unit is ROWS rows of one block row by TILE_N columns of D. Lanes lie side by side along the columns, VECTOR neighbours each; DEPTH
 * groups of them share the depth (the columns of the row's blocks, one behind the other) in chunks of CHUNK, and so do SPLIT warps. The
 * groups' sums are added by a tree, the warps' in their order, so the bits are the same on every run. A thread block holds UNITS units. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_CUDA_ROWS_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_CUDA_ROWS_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/both.h"

/* The constants, beside those.
 *   BLOCK_ROWS BLOCK_COLS   of op(A)
 *   RAGGED_K                1: K is no multiple of BLOCK_COLS
 *   VALUES                  elements of one load of values: of a whole block where a chunk is one (FLAT), else of a line of it
 *   ACROSS                  lanes side by side
 *   AHEAD                   chunks of a lane in flight */
#define ROWS_CONSTANTS(C)     \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(RAGGED_K, ragged_k)     \
    C(ROWS, rows)             \
    C(CHUNK, chunk)           \
    C(VECTOR, vector)         \
    C(VALUES, values)         \
    C(ACROSS, across)         \
    C(AHEAD, ahead)           \
    C(SPLIT, split)           \
    C(UNITS, units)
typedef struct rows_constants {
    ROWS_CONSTANTS(SPK_CONSTANT_MEMBER)
} rows_constants;

typedef struct rows_shape {
    int tile_n, parts; /* of a unit; units down a block row */
    int depth;         /* groups of lanes */
    int warps;         /* of a thread block */
    int flat;          /* a chunk is a whole block, and a unit all its rows */
    int sums;          /* of a unit */
} rows_shape;

SPK_BOTH rows_shape rows_shape_of(rows_constants c)
{
    rows_shape s = {0};
    s.tile_n = c.across * c.vector;
    s.parts = (c.block_rows + c.rows - 1) / c.rows;
    s.depth = 32 / c.across;
    s.warps = c.split * c.units;
    s.flat = c.chunk == c.block_cols && c.rows == c.block_rows;
    s.sums = c.rows * s.tile_n;
    return s;
}

#endif
