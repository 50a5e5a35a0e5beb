/* The gradients of attention: places of their operands. Those that attention has, too, are at its places, so that what it knows of masks,
 * sequences and tiles (op/attention/attention.h) holds for a problem of gradients. */
#ifndef SPK_OP_ATTENTION_BACKWARD_H
#define SPK_OP_ATTENTION_BACKWARD_H

#include "op/attention/attention.h"

enum { BACKWARD_GRAD_O = ATTENTION_SHARED, BACKWARD_GRAD_LSE, BACKWARD_GRAD_Q, BACKWARD_GRAD_K, BACKWARD_GRAD_V };

/* The rows of grad_K and grad_V of a head of an item that a run writes: none behind the last end of sequences. */
static inline int64_t spk_attention_keys_written(const spk_problem *p, const spk_args *args)
{
    return p->packing.sequences > 0 ? spk_attention_index(args, ATTENTION_KEY_ENDS)[p->packing.sequences - 1] : p->n;
}

spk_status spk_attention_backward_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
