/* Which keys each query sees where only the device knows it, and the order of sums that follows from it. */
#ifndef SPK_CUDA_ATTENTION_SPANS_H
#define SPK_CUDA_ATTENTION_SPANS_H

#include "backend/cuda/device/common/both.h"

/* Tiles of queries [first, first + count) have pairs with a tile of keys; queries of tiles [whole, whole_end) see all of its keys. */
typedef struct attention_span {
    int first, count, whole, whole_end;
} attention_span;

/* sights: two numbers a query, keys [begin, end) that it sees, with room for whole tiles of queries. Both grow from query to query, so that
 * a tile of keys is seen by neighbouring tiles of queries, and a tile of queries sees neighbouring tiles of keys. spans: of each item's
 * tiles of keys. Neither `first` nor `first + count` is less than the one before, and no count is 0. tops: of each item's tiles of queries,
 * the last tile of keys whose span begins there or before. taken: how many tiles of keys are taken. */
typedef struct attention_spans {
    int *sights;
    attention_span *spans;
    int *tops, *taken;
} attention_spans;

#endif
