/* How long attention_sm90 takes. It stands apart from what a row runs: evidence about the row holds while the model learns. */
#ifndef SPK_BACKEND_CUDA_MODEL_ATTENTION_SM90_H
#define SPK_BACKEND_CUDA_MODEL_ATTENTION_SM90_H

#include "backend/cuda/kernels/attention_sm90.h"
#include "op/problem.h"

/* Microseconds that a program takes. block_queries: those that share a list of keys; splits: parts of a tile's keys. */
double spk_cuda_attention_sm90_us(const spk_problem *problem, const attention_constants *constants, int64_t block_queries, int splits,
                                  int processors);

#endif
