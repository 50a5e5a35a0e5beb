/* What the host sides of the rows of attention's gradients share. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/host/attention/attention.h"
#include "op/attention_backward/operands.h"

/* What of a task does not change from run to run; and that of a run. */
attention_backward_task spk_cuda_attention_backward_task(const spk_problem *problem, const spk_cuda_index *index);
void spk_cuda_attention_backward_fill(const spk_problem *problem, const spk_args *args, attention_backward_task *task);

/* What the first and the last of some neighbouring queries see: limits grow from query to query. */
typedef struct backward_span {
    spk_seen first, last;
} backward_span;
backward_span spk_cuda_backward_span(const spk_problem *problem, int64_t query, int64_t end);

/* Whether some of the queries see some of the keys [key, end), where there may be fewer; *all: there are as many, and each sees each. */
bool spk_cuda_backward_sees(const spk_problem *problem, const backward_span *span, int64_t key, int64_t end, bool *all);

#endif
