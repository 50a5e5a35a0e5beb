/* Which block of threads computes which part of D where clusters of two blocks even out rows of unequal length: each cluster gets about as
 * much, and one of its tiles, the longest, is cut such that both blocks end together. The second block works off the tile's end and hands
 * its sums over to the first, early where the first has nothing else to do (device/epilogue/cluster.cuh). */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_CLUSTER_CUT_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_CLUSTER_CUT_H

#include "backend/cuda/host/schedule/cluster_split.h"

enum { CUT_HANDOVER_COST = 5 }; /* in stages: sending a tile's sums; measured */

/* One piece of memory, as the device reads it: where each block's pieces after its first begin (clusters * 2 + 1, then up to a multiple of
 * 4), the first piece of each block (row tile -1: there is none), the others. A piece is as in split_lists, but from first to last stage,
 * counted from the first block of the matrix. */
typedef struct cut_lists {
    int64_t pieces, cut_tiles, cost; /* stages of the fullest block */
    int *memory;
    int64_t count; /* of ints */
} cut_lists;

/* O(tiles log clusters). lists->memory is the caller's to free. */
spk_status spk_cut_make(const spk_mem *mem, const split_task *task, cut_lists *lists);

#endif
