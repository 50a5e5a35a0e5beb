/* A team of threads and its tiles (team.cuh): what both sides derive. A team works on a tile of TILE_M x TILE_N sums, step by step along K;
 * a thread block holds TEAMS teams. */
#ifndef SPK_CUDA_TEAM_H
#define SPK_CUDA_TEAM_H

#include "backend/cuda/device/common/both.h"

/* The constants.
 *   BLOCK_ROWS BLOCK_COLS      of op(A); of SDDMM, of D
 *   TILE_M TILE_N TILE_K STAGES  of a team; STAGES tiles of both operands in shared memory
 *   TEAM_THREADS TEAMS TEAM_BYTES  TEAM_BYTES of shared memory for each team
 *   PITCH_A PITCH_B PITCH_D    elements from one line of a tile to the next, multiples of 16 bytes
 *   VECTOR_A VECTOR_B          elements of a copy where the operand is aligned to 16 bytes */
#define TEAM_CONSTANTS(C)     \
    C(BLOCK_ROWS, block_rows) \
    C(BLOCK_COLS, block_cols) \
    C(TILE_M, tile_m)         \
    C(TILE_N, tile_n)         \
    C(TILE_K, tile_k)         \
    C(STAGES, stages)         \
    C(TEAM_THREADS, threads)  \
    C(TEAMS, teams)           \
    C(TEAM_BYTES, team_bytes) \
    C(PITCH_A, pitch_a)       \
    C(PITCH_B, pitch_b)       \
    C(PITCH_D, pitch_d)       \
    C(VECTOR_A, vector_a)     \
    C(VECTOR_B, vector_b)
typedef struct team_constants {
    TEAM_CONSTANTS(SPK_CONSTANT_MEMBER)
} team_constants;

/* Of a stage: a tile's lines run along the dimension that is contiguous in memory, along_k: K. element_bytes: of the operand. */
SPK_BOTH int team_a_bytes(team_constants c, int along_k, int element_bytes)
{
    return (along_k ? c.tile_m : c.tile_k) * c.pitch_a * element_bytes;
}
SPK_BOTH int team_b_bytes(team_constants c, int along_k, int element_bytes)
{
    return (along_k ? c.tile_n : c.tile_k) * c.pitch_b * element_bytes;
}

/* Elements of a tile of sums on its way to D, with D's lines. */
SPK_BOTH int team_sums(team_constants c, int row_major)
{
    return (row_major ? c.tile_m : c.tile_n) * c.pitch_d;
}

/* Tiles down a block row. */
SPK_BOTH int team_splits(int block_rows, int tile_m)
{
    return (block_rows + tile_m - 1) / tile_m;
}

#endif
