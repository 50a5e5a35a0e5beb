/* What the host sides of the rows of attention's gradients share. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_H

#include "backend/cuda/device/attention/attention_backward.h"
#include "backend/cuda/device/attention/attention_rows.h"
#include "backend/cuda/host/attention/attention.h"
#include "op/attention_backward/operands.h"

/* What of a task does not change from run to run; and that of a run. */
attention_backward_task spk_cuda_attention_backward_task(const spk_problem *problem, const spk_cuda_index *index);
void spk_cuda_attention_backward_fill(const spk_problem *problem, const spk_args *args, attention_backward_task *task);

#endif
