/* Attention in tiles of queries, a thread block each, whose keys come step by step: what both sides know. The programs' side is
 * attention_tiles.cuh, the host's host/attention/attention_tiles.h. */
#ifndef SPK_CUDA_ATTENTION_TILES_H
#define SPK_CUDA_ATTENTION_TILES_H

#include "backend/cuda/device/attention/attention.h"

/* The constants that every such program is compiled with.
 *
 *   WARPS                   of a block
 *   TILE_ROWS, TILE_HEADS   a tile has TILE_ROWS queries of TILE_HEADS heads, which share K, V and their list
 *   STEP_KEYS               keys of a step, a multiple of 32
 *   DEPTH, DEPTH_V          columns of Q and K, of V and O
 *   VECTOR                  elements of Q, K and V that are read at once
 *   MASKED                  1: there are lists of blocks
 *   LIMITED                 1: some queries do not see all keys (of their lists)
 *   CAPPED, WANT_LSE        1: scores are capped; LSE is wanted
 *   SPLIT                   1: the keys of a tile are shared out over several blocks, whose results are merged afterwards
 *   SCRUB                   1: V may hold infinities and NaN in rows that only some queries of a tile see
 *   PACKED, RAGGED          1: a run says where sequences end; how many keys an item or a sequence has
 *   PAGED, TILED            1: a table says where a page of keys lies; some blocks of the mask have tiles of bits
 */
#define ATTENTION_TILES_CONSTANTS(C) \
    C(WARPS, warps)                  \
    C(TILE_ROWS, tile_rows)          \
    C(TILE_HEADS, tile_heads)        \
    C(STEP_KEYS, step_keys)          \
    C(DEPTH, depth)                  \
    C(DEPTH_V, depth_v)              \
    C(VECTOR, vector)                \
    C(MASKED, masked)                \
    C(LIMITED, limited)              \
    C(CAPPED, capped)                \
    C(WANT_LSE, want_lse)            \
    C(SPLIT, split)                  \
    C(SCRUB, scrub)                  \
    C(PACKED, packed)                \
    C(RAGGED, ragged)                \
    C(PAGED, paged)                  \
    C(TILED, tiled)
typedef struct attention_tiles_constants {
    ATTENTION_TILES_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_tiles_constants;

enum { ATTENTION_NOTES = 4 }; /* steps whose keys are known at a time, at most */

/* What is noted of steps, behind the tiles in shared memory. (Static shared memory would count against the 48 KiB that a launch may have
 * without asking for them.) */
SPK_BOTH int attention_notes_bytes(int step_keys, int tiled)
{
    return ATTENTION_NOTES * (step_keys * (tiled ? 2 : 1) + step_keys / 32) * 4;
}

/* How the work is cut: tiles of an item's heads, of the queries of a block row of the mask (or of all), of a head. */
typedef struct attention_cut {
    int head_tiles, block_rows, block_tiles, row_tiles;
    int splits;              /* parts of a tile's keys */
    float *parts, *part_lse; /* with SPLIT: of each split, item, head and query DEPTH_V sums and two numbers (helpers/attention_merge.h) */
    int whole;               /* 1: Q, K and V may be read VECTOR elements at a time */
    int pieces;              /* 1: rows of O may be written 16 bytes at a time */
} attention_cut;

#endif
