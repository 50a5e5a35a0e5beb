/* Attention: places of its operands and scalars, and which keys a query sees. */
#ifndef SPK_OP_ATTENTION_H
#define SPK_OP_ATTENTION_H

#include "op/operation.h"

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O, ATTENTION_LSE };
enum { ATTENTION_SCALE, ATTENTION_SOFTCAP };

/* The keys that a query sees: [0, sinks) and [begin, end), where sinks <= begin <= end. */
typedef struct spk_seen {
    int64_t sinks, begin, end;
} spk_seen;

static inline int64_t spk_attention_clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static inline spk_seen spk_attention_seen(const spk_problem *p, int64_t query)
{
    const int64_t keys = p->n, beside = query + (p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? keys - p->m : 0);
    const int64_t end = p->band.right > 0 ? spk_attention_clamp(beside + p->band.right, keys) : keys,
                  begin = p->band.left > 0 ? spk_attention_clamp(beside - p->band.left + 1, end) : 0;
    return (spk_seen){p->band.sinks < begin ? p->band.sinks : begin, begin, end};
}

static inline int64_t spk_attention_seen_count(const spk_problem *p, int64_t query)
{
    const spk_seen seen = spk_attention_seen(p, query);
    return seen.sinks + seen.end - seen.begin;
}

/* Pairs of a query and a key that it sees, of one head. */
double spk_attention_pairs(const spk_problem *p);

/* Heads of Q that share one of K and V. */
static inline int64_t spk_attention_sharing(const spk_problem *p)
{
    return spk_operand_heads(&p->operand[ATTENTION_Q]) / spk_operand_heads(&p->operand[ATTENTION_K]);
}

spk_status spk_attention_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
