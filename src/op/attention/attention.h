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

/* Heads of Q that share one of K and V. */
static inline int64_t spk_attention_sharing(const spk_problem *p)
{
    return spk_operand_heads(&p->operand[ATTENTION_Q]) / spk_operand_heads(&p->operand[ATTENTION_K]);
}

/* Block rows of a list of the pattern. */
static inline int64_t spk_attention_list_rows(const spk_problem *p)
{
    return (p->m + p->pattern->block_rows - 1) / p->pattern->block_rows;
}

/* The keys that some neighbouring queries of a head see, as runs. */
typedef struct spk_key_runs {
    spk_seen seen;
    bool masked;
    const int32_t *columns; /* of the blocks: there are `count` of them, of `width` keys */
    int64_t count, width, at;
    int64_t key; /* the first that is not looked at */
} spk_key_runs;

/* Those of one query, or of queries of one block row: what `seen` says, and the list of block row `list_row` of the pattern. */
static inline spk_key_runs spk_attention_runs(const spk_problem *p, spk_seen seen, int64_t list_row)
{
    spk_key_runs runs = {.seen = seen};
    if (p->pattern != NULL) {
        const spk_index *index = &p->pattern->index;
        runs.masked = true;
        runs.columns = index->columns + index->offsets[list_row];
        runs.count = index->offsets[list_row + 1] - index->offsets[list_row];
        runs.width = p->pattern->block_cols;
    }
    return runs;
}

/* The block row of the pattern that a query of a head of an item has; 0: there is none. */
static inline int64_t spk_attention_list_row(const spk_problem *p, int64_t item, int64_t head, int64_t query)
{
    if (p->pattern == NULL)
        return 0;
    const int64_t list = item * p->lists.item_step + head / (spk_operand_heads(&p->operand[ATTENTION_Q]) / p->lists.heads);
    return list * spk_attention_list_rows(p) + query / p->pattern->block_rows;
}

/* The next run [*first, *end), which is not empty; runs ascend, and neighbours do not touch but where sinks end. */
static inline bool spk_key_runs_next(spk_key_runs *r, int64_t *first, int64_t *end)
{
    for (;;) {
        const bool in_sinks = r->key < r->seen.sinks && r->seen.sinks < r->seen.begin;
        const int64_t limit = in_sinks ? r->seen.sinks : r->seen.end;
        if (!in_sinks && r->key >= r->seen.sinks && r->key < r->seen.begin)
            r->key = r->seen.begin;
        if (r->key >= limit)
            return false;
        int64_t stop = limit;
        if (r->masked) {
            while (r->at < r->count && (r->columns[r->at] + INT64_C(1)) * r->width <= r->key)
                r->at++;
            if (r->at == r->count)
                return false;
            const int64_t begin = r->columns[r->at] * r->width;
            if (begin > r->key)
                r->key = begin;
            if (r->key >= limit) {
                if (in_sinks)
                    continue;
                return false;
            }
            for (stop = (r->columns[r->at] + INT64_C(1)) * r->width;
                 stop < limit && r->at + 1 < r->count && r->columns[r->at + 1] == r->columns[r->at] + 1; stop += r->width)
                r->at++;
            stop = stop < limit ? stop : limit;
        }
        *first = r->key;
        *end = r->key = stop;
        return true;
    }
}

/* Keys that a query of a head of an item sees, ascending; they are written where `keys` is not NULL, which has room for all. */
int64_t spk_attention_keys(const spk_problem *p, int64_t item, int64_t head, int64_t query, int64_t *keys);

spk_status spk_attention_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
