/* Which worker computes which tiles of attention_sm90, and when. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_ORDER_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_ORDER_H

#include "backend/cuda/device/attention/attention_share.h"
#include "backend/cuda/host/attention/attention.h"

/* All in device memory, which is the caller's to release; NULL: worker w computes tiles w, w + workers, ... */
typedef struct attention_lists {
    void *memory;
    const int *offsets, *tiles; /* offsets: workers + 1 */
    const attention_share *shares;
    const attention_joined *joined;
    int share_count, joined_count;
} attention_lists;

/* Whether tiles that are all of one length end so unevenly that the last ones' keys should be shared out; and whether the device has to
 * find out how long tiles are, and that pays. It follows from the problem's sizes: a program can do it or not. rings: workers of a
 * processor. */
bool spk_cuda_attention_shares(const spk_problem *problem, const attention_tiling *tiling, int processors, int rings);
bool spk_cuda_attention_sorts(const spk_problem *problem, const attention_tiling *tiling, int workers);

/* Tiles of neighbouring heads whose K and V L2 holds together: they follow each other. */
int64_t spk_cuda_attention_section(const spk_problem *problem, const attention_tiling *tiling);

/* The longest tiles first; those of neighbouring heads together, which L2 holds, as far as that leaves no worker more to do. shares: what
 * spk_cuda_attention_shares says. Lengths have to be on the host: else *lists stays empty. */
spk_status spk_cuda_attention_order(spk_device *device, const spk_problem *problem, const attention_tiling *tiling, int workers,
                                    bool shares, attention_lists *lists);

#endif
