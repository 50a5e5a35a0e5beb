/* attention_delta: what both sides know. Before the gradients of attention: of each query the sum of its row of O times that of its
 * gradient, less the gradient of LSE, and its LSE as a power of two. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_DELTA_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_DELTA_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/device/attention/attention_spans.h"

/* The constants.
 *   ROWS     queries of a tile: what is made has room for whole tiles
 *   DEPTH_V  columns of O
 *   PACKED   1: the first blocks of threads, one an item, make spans (attention_spans.h) of KEYS keys meanwhile */
#define ATTENTION_DELTA_CONSTANTS(C) \
    C(ROWS, rows)                    \
    C(DEPTH_V, depth_v)              \
    C(PACKED, packed)                \
    C(KEYS, keys)
typedef struct attention_delta_constants {
    ATTENTION_DELTA_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_delta_constants;

enum { ATTENTION_DELTA_THREADS = 256 };

/* Queries of a block of threads, of which a tile has one or several. */
SPK_BOTH int attention_delta_queries(int rows)
{
    return rows % 64 == 0 ? 64 : rows;
}

/* lse2: infinity of a query that sees no key, and behind the last one; LSE_IS_LARGE (device/attention/large_scores.cuh) of a large LSE.
 * turns: of each tile a count, which begins with 0. */
typedef struct attention_delta_task {
    attention_backward_task all;
    int query_tiles; /* of a head */
    int pieces;      /* 1: rows may be read 16 bytes at a time */
    float *lse2, *delta;
    int *turns;
    attention_spans spans; /* PACKED */
    int key_tiles;         /* of a head */
} attention_delta_task;

#endif
