/* What the host sides of the Hopper rows of attention's gradients share: what they take, how TMA reads the operands, LSE and delta. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_SM90_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_BACKWARD_SM90_H

#include "backend/cuda/helpers/attention_delta.h"
#include "backend/cuda/host/attention/attention_backward.h"
#include "backend/cuda/host/frame/launch.h"

/* Why a row that has depths up to `most` does not take a problem; NULL: it does. */
const char *spk_cuda_backward_sm90_refusal(const spk_problem *problem, int most);

/* Operand i, an array of the forward pass or the gradient of O, in boxes of 64 columns and `rows` rows. */
spk_status spk_cuda_backward_sm90_map(const spk_bound *bound, int i, const void *address, int rows, CUtensorMap *map);

/* Whether rows of an operand may be read or written 16 bytes at a time. */
int spk_cuda_backward_in_pieces(const spk_problem *problem, int operand, const void *address);

/* The program that finds LSE and delta (helpers/attention_delta.h), and its launch: `blocks` of threads, after what is on the stream. Of
 * the task, `all`, `query_tiles`, where results go and, PACKED, spans are given. */
void spk_cuda_backward_build_delta(const spk_problem *problem, attention_delta_constants constants, spk_build *build);
spk_status spk_cuda_backward_launch_delta(const spk_bound *bound, CUfunction function, attention_delta_task task, int64_t blocks,
                                          CUstream stream);

#endif
