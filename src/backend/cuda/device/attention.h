/* What the programs of attention get, as the host fills it and device code reads it. */
#ifndef SPK_CUDA_ATTENTION_H
#define SPK_CUDA_ATTENTION_H

#include "backend/cuda/device/both.h"

/* Elements from one row, head and item of an array to the next. */
typedef struct attention_strides {
    spk_i64 row, head, item;
} attention_strides;

typedef struct attention_task {
    const void *q, *k, *v;
    void *o, *lse;
    attention_strides q_strides, k_strides, v_strides, o_strides, lse_strides; /* the item's is 0 where one serves all */
    int queries, keys, depth, depth_v;
    int heads, sharing, items; /* sharing: heads of Q that share one of K and V */
    /* which keys a query sees, as spk_band: 0 means no limit */
    int left, right, sinks, shift; /* shift: the key beside query 0 */
    /* the mask: lists of block columns; NULL: none */
    const int *offsets, *columns;
    int block_rows, block_cols;
    int list_rows;                /* block rows of a list */
    int list_sharing, item_lists; /* heads that share a list; lists from one item to the next */
    double scale, cap;            /* a score is scale * dot; with CAPPED and a cap other than 0: cap * tanh(scale * dot / cap) */
} attention_task;

/* The keys that a query sees: [0, sinks) and [begin, end), where sinks <= begin <= end. */
typedef struct attention_seen {
    int sinks, begin, end;
} attention_seen;

SPK_BOTH int attention_clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

SPK_BOTH attention_seen attention_seen_of(const attention_task *t, int query)
{
    attention_seen seen = {0, 0, 0};
    const int beside = query + t->shift; /* all are below 2^29 */
    seen.end = t->right > 0 ? attention_clamp(beside + t->right, t->keys) : t->keys;
    seen.begin = t->left > 0 ? attention_clamp(beside - t->left + 1, seen.end) : 0;
    seen.sinks = t->sinks < seen.begin ? t->sinks : seen.begin;
    return seen;
}

/* The list of a query's block row. */
SPK_BOTH int attention_list(const attention_task *t, int item, int head, int query)
{
    return (item * t->item_lists + head / t->list_sharing) * t->list_rows + query / t->block_rows;
}

#endif
