/* What the programs of attention's gradients get, as the host fills it and device code reads it. */
#ifndef SPK_CUDA_ATTENTION_BACKWARD_H
#define SPK_CUDA_ATTENTION_BACKWARD_H

#include "backend/cuda/device/attention/attention.h"

typedef struct attention_backward_task {
    attention_task attention;      /* O and LSE are inputs */
    const void *grad_o, *grad_lse; /* grad_lse NULL: the loss does not depend on LSE */
    void *grad_q, *grad_k, *grad_v;
    attention_strides grad_o_strides, grad_lse_strides, grad_q_strides, grad_k_strides, grad_v_strides;
} attention_backward_task;

/* The keys of an item whose gradients are written: none behind the last end of sequences. */
SPK_BOTH int attention_keys_written(const attention_task *t)
{
    return t->sequences > 0 ? t->key_ends[t->sequences - 1] : t->keys;
}

/* The queries of an item whose gradients are written, likewise. */
SPK_BOTH int attention_queries_written(const attention_task *t)
{
    return t->sequences > 0 ? t->query_ends[t->sequences - 1] : t->queries;
}

#endif
