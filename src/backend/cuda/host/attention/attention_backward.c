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
