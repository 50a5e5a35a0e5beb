/* attention_join: what both sides know. Tiles whose keys were shared out over workers (attention_share) become rows of O and LSE. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_JOIN_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_JOIN_H

#include "backend/cuda/device/attention/attention.h"
#include "backend/cuda/device/attention/attention_share.h"

enum { ATTENTION_JOIN_THREADS = 128 }; /* of a block: a warp a row */

/* parts: of each share `rows` rows of depth_v sums; part_lse: of each row two numbers (device/attention/large_scores.cuh). */
typedef struct attention_join_task {
    attention_task to;
    const attention_joined *tiles;
    const float *parts, *part_lse;
    int rows;    /* of a tile, */
    int of_head; /* those of one head */
} attention_join_task;

#endif
