/* What the programs of attention get, as the host fills it and device code reads it. */
#ifndef SPK_CUDA_ATTENTION_H
#define SPK_CUDA_ATTENTION_H

#include "backend/cuda/device/common/both.h"

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
    /* what a run's arguments say (spk_attention.sequences); 0, NULL: nothing */
    int sequences, bottom;   /* bottom: 1: the last query of a sequence stands beside its last key */
    int page_keys, pages_of; /* rows of a page; pages of an item or sequence */
    int tile_words;          /* of a line of a tile of bits */
    const int *query_ends, *key_ends, *page_table, *tile_numbers;
    const unsigned *tile_bits;
    double scale, cap; /* a score is scale * dot; with CAPPED and a cap other than 0: cap * tanh(scale * dot / cap) */
} attention_task;

/* Queries [query, query_end) of an item and their keys [key, key + keys): of one sequence, or all. shift: which of its keys stands beside
 * its first query, counted from `key`. */
typedef struct attention_sequence {
    int number, query, query_end, key, keys, shift;
} attention_sequence;

/* Sequence `number` of an item: the only one, 0, where they are not packed. */
SPK_BOTH attention_sequence attention_sequence_of(const attention_task *t, int item, int number)
{
    attention_sequence s = {number, 0, t->queries, 0, t->keys, t->shift};
    if (t->sequences > 0) {
        s.query = number > 0 ? t->query_ends[number - 1] : 0;
        s.query_end = t->query_ends[number];
        s.key = number > 0 && t->page_keys == 0 ? t->key_ends[number - 1] : 0;
        s.keys = t->key_ends[number] - s.key;
    } else if (t->key_ends != 0)
        s.keys = t->key_ends[item];
    if (t->key_ends != 0)
        s.shift = t->bottom ? s.keys - (s.query_end - s.query) : 0;
    return s;
}

/* The row of K and V that a key of an item, or of a sequence, has. */
SPK_BOTH int attention_row(const attention_task *t, int owner, int key)
{
    if (t->page_keys == 0)
        return key;
    return t->page_table[(spk_i64)owner * t->pages_of + key / t->page_keys] * t->page_keys + key % t->page_keys;
}

/* Whether tile `tile` of bits (-1: none) lets a query see a key of its block. */
SPK_BOTH int attention_bit(const attention_task *t, int tile, int query, int key)
{
    if (tile < 0)
        return 1;
    const int bit = key % t->block_cols;
    return (int)(t->tile_bits[((spk_i64)tile * t->block_rows + query % t->block_rows) * t->tile_words + bit / 32] >> bit % 32 & 1);
}

/* The keys that a query sees, counted from its sequence's first: [0, sinks) and [begin, end), where sinks <= begin <= end. */
typedef struct attention_seen {
    int sinks, begin, end;
} attention_seen;

SPK_BOTH int attention_clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* beside: the key beside the query. All are below 2^29. */
SPK_BOTH attention_seen attention_seen_of(const attention_task *t, int beside, int keys)
{
    attention_seen seen = {0, 0, 0};
    seen.end = t->right > 0 ? attention_clamp(beside + t->right, keys) : keys;
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
