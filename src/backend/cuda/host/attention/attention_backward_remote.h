/* The work of attention_backward_sm90_two_pass for a mask whose lists only the device knows: the device lists it, and nobody waits. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_REMOTE_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_REMOTE_H

#include "backend/cuda/host/attention/attention_backward_lists.h"
#include "backend/cuda/host/indices/index.h"

/* What both passes' tiles and steps are in, ordered by the stream of the mask's indices. */
typedef struct two_pass_remote {
    void *memory;
    size_t bytes;
} two_pass_remote;

/* NULL: the device can list it. */
const char *spk_cuda_attention_backward_remote_refusal(const spk_problem *p, const two_pass_cut cuts[2]);

/* Puts the programs on the stream of the mask's indices. lists->count is known at once. */
spk_status spk_cuda_attention_backward_remote(const spk_bound *bound, const spk_cuda_index *index, const two_pass_cut cuts[2],
                                              two_pass_lists lists[2], two_pass_remote *remote);
void spk_cuda_attention_backward_remote_release(const spk_bound *bound, two_pass_remote *remote);

/* Its programs (helpers/attention_steps.cu); entry: mark_seen_blocks, list_seen_steps, sort_seen_tiles. */
void spk_cuda_attention_backward_remote_build(const char *entry, spk_build *build);

#endif
