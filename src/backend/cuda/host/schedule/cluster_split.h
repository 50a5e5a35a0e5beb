/* Which block of threads computes which part of D where long rows are split: the blocks of a cluster share a split tile, a segment of the
 * row's stored blocks each, and add their sums in the order of the segments (device/epilogue/cluster.cuh); other tiles go whole to one
 * block. */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_CLUSTER_SPLIT_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_CLUSTER_SPLIT_H

#include "backend/cuda/host/schedule/schedule.h"

/* In stages: adding the sums of a cluster. */
enum { SPLIT_EXCHANGE_COST = 3, SPLIT_PIECE_WORDS = 4, SPLIT_THRESHOLDS = 5 };

/* What is cut: rows of `parts` tiles each, `col_tiles` columns of tiles, `chunks` stages a block; for `clusters` of `size` blocks of
 * threads. */
typedef struct split_task {
    const spk_bsr_view *view;
    int parts, chunks;
    int64_t col_tiles;
    int clusters, size;
    bool edge; /* the last block column lies partly beyond K */
} split_task;

/* One piece of memory, as the device reads it: offsets (clusters * size + 1, then up to a multiple of 4), then pieces of 4 words: row tile;
 * column tile, of a split tile ~ of it; first block, last block. Split tiles come first, in the same order in all blocks of a cluster. */
typedef struct split_lists {
    int64_t pieces, split_rows; /* block rows that are split */
    int64_t cost, whole_cost;   /* stages of the fullest block; what they would be without */
    int *memory;
    int64_t count; /* of ints */
} split_lists;

int64_t spk_split_at_pieces(const split_task *t);
int64_t spk_split_length(const split_task *t, int row);

/* O(tiles log blocks). lists->memory is the caller's to free. */
spk_status spk_split_make(const spk_mem *mem, const split_task *task, split_lists *lists);

#endif
