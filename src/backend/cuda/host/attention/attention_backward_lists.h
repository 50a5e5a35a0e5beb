/* The work of attention_backward_sm90_two_pass: which tiles of queries see a tile of keys, and which tiles of keys a tile of queries sees.
 */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_LISTS_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_LISTS_H

#include "backend/cuda/kernels/attention_backward_sm90_two_pass.h"
#include "kernel/kernel.h"

/* A pass's tiles and steps: two_pass_tile and two_pass_step, in one piece of the device's memory. */
typedef struct two_pass_lists {
    void *memory;
    const int *tiles, *steps;
    int count; /* tiles */
} two_pass_lists;

/* own_rows: of a tile; by_queries: these are queries. Tiles are in the order in which they are best taken: sections of heads whose walked
 * rows L2 holds, the longest tiles of each first. workers: how many take them. SPK_ERR_UNSUPPORTED: there are too many steps. */
spk_status spk_cuda_attention_backward_lists(spk_device *device, const spk_problem *p, bool by_queries, int own_rows, int workers,
                                             two_pass_lists *lists);

#endif
