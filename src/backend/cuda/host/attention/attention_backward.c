#include "backend/cuda/host/attention/attention_backward.h"

static attention_strides strides_of(const spk_operand *o)
{
    return (attention_strides){.row = spk_operand_row_step(o), .head = o->head_stride, .item = o->stride};
}

attention_backward_task spk_cuda_attention_backward_task(const spk_problem *p, const spk_cuda_index *index)
{
    return (attention_backward_task){.attention = spk_cuda_attention_task(p, index),
                                     .grad_o_strides = strides_of(&p->operand[BACKWARD_GRAD_O]),
                                     .grad_lse_strides = strides_of(&p->operand[BACKWARD_GRAD_LSE]),
                                     .grad_q_strides = strides_of(&p->operand[BACKWARD_GRAD_Q]),
                                     .grad_k_strides = strides_of(&p->operand[BACKWARD_GRAD_K]),
                                     .grad_v_strides = strides_of(&p->operand[BACKWARD_GRAD_V])};
}

/* NULL where the problem has no such operand, whatever the arguments hold. */
static void *array_of(const spk_problem *p, const spk_args *args, int operand)
{
    return p->operand[operand].dtype != SPK_DTYPE_DEFAULT ? args->at[operand] : NULL;
}

void spk_cuda_attention_backward_fill(const spk_problem *p, const spk_args *args, attention_backward_task *task)
{
    attention_task *t = &task->attention;
    t->q = array_of(p, args, ATTENTION_Q);
    t->k = array_of(p, args, ATTENTION_K);
    t->v = array_of(p, args, ATTENTION_V);
    t->o = array_of(p, args, ATTENTION_O);
    t->lse = array_of(p, args, ATTENTION_LSE);
    t->query_ends = array_of(p, args, ATTENTION_QUERY_ENDS);
    t->key_ends = array_of(p, args, ATTENTION_KEY_ENDS);
    t->tile_numbers = array_of(p, args, ATTENTION_TILE_NUMBERS);
    t->tile_bits = array_of(p, args, ATTENTION_TILE_BITS);
    t->scale = args->scalar[ATTENTION_SCALE];
    t->cap = p->band.use_softcap ? args->scalar[ATTENTION_SOFTCAP] : 0;
    task->grad_o = array_of(p, args, BACKWARD_GRAD_O);
    task->grad_lse = array_of(p, args, BACKWARD_GRAD_LSE);
    task->grad_q = array_of(p, args, BACKWARD_GRAD_Q);
    task->grad_k = array_of(p, args, BACKWARD_GRAD_K);
    task->grad_v = array_of(p, args, BACKWARD_GRAD_V);
}

backward_span spk_cuda_backward_span(const spk_problem *p, int64_t query, int64_t end)
{
    const spk_sequence whole = spk_attention_whole(p);
    return (backward_span){spk_attention_seen(p, &whole, query), spk_attention_seen(p, &whole, (end < p->m ? end : p->m) - 1)};
}

bool spk_cuda_backward_sees(const spk_problem *p, const backward_span *span, int64_t key, int64_t end, bool *all)
{
    const int64_t key_end = end < p->n ? end : p->n;
    const bool sunk = p->band.sinks > key && span->last.end > key, within = span->first.begin < key_end && span->last.end > key;
    *all = end <= p->n && span->first.end >= key_end && (span->last.begin <= key || p->band.sinks >= key_end);
    return sunk || within;
}
