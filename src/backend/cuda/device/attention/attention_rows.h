/* Which keys neighbouring queries see, where sequences are not packed: who lists the steps of tiles asks for it. */
#ifndef SPK_CUDA_ATTENTION_ROWS_H
#define SPK_CUDA_ATTENTION_ROWS_H

#include "backend/cuda/device/attention/attention.h"

/* What the first and the last of them see: limits grow from query to query. */
typedef struct attention_rows_seen {
    attention_seen first, last;
} attention_rows_seen;

/* Queries [query, end), where there may be fewer. */
SPK_BOTH attention_rows_seen attention_rows_seen_of(const attention_task *t, int query, int end)
{
    const int last = (end < t->queries ? end : t->queries) - 1;
    attention_rows_seen seen = {attention_seen_of(t, query + t->shift, t->keys), attention_seen_of(t, last + t->shift, t->keys)};
    return seen;
}

/* Whether some of the queries see some of the keys [key, end), where there may be fewer. */
SPK_BOTH int attention_rows_see(const attention_task *t, const attention_rows_seen *seen, int key, int end)
{
    const int key_end = end < t->keys ? end : t->keys;
    return (t->sinks > key && seen->last.end > key) || (seen->first.begin < key_end && seen->last.end > key);
}

/* Whether each of them sees each of the keys, and there are as many. */
SPK_BOTH int attention_rows_see_all(const attention_task *t, const attention_rows_seen *seen, int key, int end)
{
    return end <= t->keys && seen->first.end >= end && (seen->last.begin <= key || t->sinks >= end);
}

#endif
