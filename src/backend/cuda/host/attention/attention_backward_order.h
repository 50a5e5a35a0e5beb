/* In which order tiles of keys add to rows of grad_Q. Workers have lists of tiles, the longest first, and walk each tile's steps. The host
 * goes through all steps as the workers would if all steps took as long; who comes first to a tile of queries adds first. Each sum comes
 * after sums that are earlier in that walk, so no two workers wait for each other, as long as all run at once (launch_together.h). */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_ORDER_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_ORDER_H

#include "backend/cuda/kernels/attention_backward_sm90.h"
#include "kernel/kernel.h"

typedef struct backward_order {
    void *memory; /* the device's */
    attention_backward_order made;
} backward_order;

/* rows, keys: of a tile of queries, of keys. Everything but what a run gives is filled in. SPK_ERR_UNSUPPORTED: there are too many steps.
 */
spk_status spk_cuda_attention_backward_order(spk_device *device, const spk_problem *p, int rows, int keys, int workers,
                                             backward_order *order);

#endif
