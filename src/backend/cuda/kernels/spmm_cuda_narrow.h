/* spmm_cuda_narrow: what both sides derive of the constants that the program is compiled with. Its second argument, after
 * spk_cuda_arguments, is a list of block rows, longest first (null: as they come).
 *
 * A unit is UNIT_ROWS rows of one block row. SPLIT warps share its depth (gather.cuh: the columns of its blocks, one behind the other), cut
 * into chunks of CHUNK columns; their sums are added in the order of the warps, so the bits are the same on every run. A thread block holds
 * UNITS units.
 *   TENSOR = 0, up to 8 columns, any type: lanes side by side along the contiguous dimension of A, DEPTH_LANES of them along K; each keeps
 *     LANE_ROWS rows, which are neighbours where A's columns are contiguous.
 *   TENSOR = 1, up to 64 columns, 16 bits, both operands contiguous along K: lane l loads 8 columns of row l / 4 from chunk l % 4 of a
 *     group of four, of A and of B alike. The tensor instruction takes them as depth 2t, 2t + 1, 2t + 8, 2t + 9: which column of A stands
 *     where does not matter as long as B's stands there too. LANE_ROWS tiles of 16 rows. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SPMM_CUDA_NARROW_H
#define SPK_BACKEND_CUDA_KERNELS_SPMM_CUDA_NARROW_H

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/both.h"

/* The constants, beside those.
 *   BLOCK_ROWS BLOCK_COLS   of op(A)
 *   COLUMNS      N
 *   RAGGED_K     1: K is no multiple of BLOCK_COLS
 *   CUT_CHUNKS   1: nor of CHUNK
 *   B_ALONG_K    1: neighbours along K of B lie together
 *   VECTOR_B     elements of a load where B is aligned: 1 or CHUNK
 *   AHEAD        loads of values in flight */
#define NARROW_CONSTANTS(C)     \
    C(BLOCK_ROWS, block_rows)   \
    C(BLOCK_COLS, block_cols)   \
    C(COLUMNS, columns)         \
    C(RAGGED_K, ragged_k)       \
    C(B_ALONG_K, b_along_k)     \
    C(CUT_CHUNKS, cut_chunks)   \
    C(VECTOR_B, vector_b)       \
    C(TENSOR, tensor)           \
    C(CHUNK, chunk)             \
    C(LANE_ROWS, lane_rows)     \
    C(DEPTH_LANES, depth_lanes) \
    C(UNITS, units)             \
    C(SPLIT, split)             \
    C(AHEAD, ahead)
typedef struct narrow_constants {
    NARROW_CONSTANTS(SPK_CONSTANT_MEMBER)
} narrow_constants;

/* Lanes of a warp in rows of their own. */
SPK_BOTH int narrow_row_lanes(narrow_constants c)
{
    return 32 / c.depth_lanes;
}

SPK_BOTH int narrow_unit_rows(narrow_constants c)
{
    return (c.tensor ? 16 : narrow_row_lanes(c)) * c.lane_rows;
}

/* Warps of a thread block. */
SPK_BOTH int narrow_warps(narrow_constants c)
{
    return c.split * c.units;
}

/* Sums of a warp in shared memory. */
SPK_BOTH int narrow_sums(narrow_constants c)
{
    return narrow_unit_rows(c) * c.columns;
}

#endif
