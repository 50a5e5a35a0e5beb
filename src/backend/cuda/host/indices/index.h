/* A pattern's view in device memory, and the arguments that device programs take. */
#ifndef SPK_BACKEND_CUDA_HOST_INDICES_INDEX_H
#define SPK_BACKEND_CUDA_HOST_INDICES_INDEX_H

#include "backend/cuda/runtime/program.h"
#include "backend/cuda/device/common/arguments.h"

typedef struct spk_cuda_index {
    spk_cuda_arguments arguments;         /* shape, strides, indices of the problem; operands still NULL */
    struct spk_cuda_shared_index *shared; /* NULL: the pattern's own, in device memory from the beginning, or none */
} spk_cuda_index;

spk_status spk_cuda_shared_indices_make(const spk_mem *mem, struct spk_cuda_shared_indices **all);
void spk_cuda_shared_indices_release(const spk_device *device, struct spk_cuda_shared_indices **all); /* no plan is left */

/* Copies view (offsets as 32-bit where nnzb allows, which must be: < 2^31 blocks) to the device, once for all plans of a pattern that are
 * there at the same time, and fills what of the arguments does not change from run to run. A problem without a pattern has no indices. */
spk_status spk_cuda_index_make(const spk_bound *bound, spk_cuda_index *index);
void spk_cuda_index_release(const spk_device *device, spk_cuda_index *index);

/* What of a problem's arguments does not change from run to run, but for the indices themselves. view: of a pattern; of zeros: there is
 * none. */
spk_cuda_arguments spk_cuda_arguments_of(const spk_problem *problem, const spk_bsr_view *view);

/* The arguments of a run: the index's with the operands, alpha and beta filled in. */
void spk_cuda_arguments_fill(const spk_cuda_index *index, const spk_args *args, spk_cuda_arguments *out);

#endif
