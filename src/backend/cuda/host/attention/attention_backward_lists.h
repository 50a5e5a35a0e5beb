/* The work of attention_backward_sm90_two_pass: which tiles of queries see a tile of keys, and which tiles of keys a tile of queries sees.
 */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_LISTS_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_LISTS_H

#include "backend/cuda/kernels/attention_backward_sm90_two_pass.h"
#include "kernel/kernel.h"

/* How a pass is cut: rows of a tile, which are queries or keys, and how many workers take tiles. */
typedef struct two_pass_cut {
    bool by_queries;
    int own_rows, workers;
} two_pass_cut;

/* A pass's tiles and steps: two_pass_tile and two_pass_step, in the device's memory. */
typedef struct two_pass_lists {
    void *memory; /* that both are in, and nothing else; NULL: they are in that of two_pass_remote */
    const int *tiles, *steps;
    int count; /* tiles */
} two_pass_lists;

/* Tiles are in the order in which they are best taken: sections of heads whose walked rows L2 holds, the longest tiles of each first.
 * SPK_ERR_UNSUPPORTED: there are too many steps. */
spk_status spk_cuda_attention_backward_lists(spk_device *device, const spk_problem *p, const two_pass_cut *cut, two_pass_lists *lists);

/* Tiles of a section, of which all have about as many. */
int64_t spk_cuda_attention_backward_section(const spk_problem *p, const two_pass_cut *cut);

#endif
