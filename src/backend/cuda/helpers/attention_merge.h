/* attention_merge: what both sides know. Parts of attention's results, each of some of the keys, become O and LSE: O is the mean of the
 * parts' O, weighed by the sums of their exponentials. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_MERGE_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_MERGE_H

#include "backend/cuda/device/attention/attention.h"

enum {
    ATTENTION_MERGE_THREADS = 128, /* of a block, which has a query */
    ATTENTION_MERGE_MOST = 64      /* parts */
};

/* parts: splits x items x heads x queries x depth_v; part_lse: of each two numbers (device/attention/large_scores.cuh). */
typedef struct attention_merge_task {
    attention_task to;
    const float *parts, *part_lse;
    int splits;
} attention_merge_task;

#endif
