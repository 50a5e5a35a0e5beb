/* What attention and its gradients share: a tile of queries, and the keys at hand, in pieces of neighbouring rows. Who includes this
 * defines S(take_keys) and S(attend). */
#include "backend/cpu/kernels/attention/attention_products.h"
#if GRADIENTS
#include "backend/cpu/kernels/attention/attention_backward_results.h"
#else
#include "backend/cpu/kernels/attention/attention_results.h"
#endif
#include "backend/cpu/kernels/vectors/stored.h"
#include "backend/cpu/kernels/vectors/transpose.h"

/* Keys first .. first + count, from row `row` of K and V on, whose scores lie from column `at` on: a multiple of a vector. tile: of bits,
 * that say which of them a query sees; -1: none. */
typedef struct S(piece) {
    int64_t first, count, at, row, tile;
} S(piece);

enum { S(MOST_PIECES) = 32 };

/* A worker on its tile. */
typedef struct S(attention) {
    const spk_problem *problem;
    const spk_args *args;
    const STORED *q, *k, *v; /* of the heads */
    spk_sequence sequence;
    int64_t first, queries;
    int64_t list_row;           /* of the pattern */
    int64_t keys, pieces, used; /* most keys at hand; how many pieces there are, and columns of scores, whole vectors */
    S(piece) piece[S(MOST_PIECES)];
    REAL *own; /* the worker's room */
    S(results) results;
} S(attention);

/* The keys at hand, which become none. And a tile of one sequence. */
static void S(take_keys)(S(attention) *t);
static void S(attend)(S(attention) *t);

/* Rows that are read once, for few queries, where they lie: the processor alone fetches too little of them ahead. What lies `ahead`
 * elements from there may be none of them. */
SPK_INLINE void S(fetch_ahead)(const STORED *from, int64_t ahead)
{
    __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)ahead * sizeof(STORED)));
}

/* How far the rows that are fetched ahead lie behind those at hand. */
SPK_INLINE int64_t S(rows_ahead)(int64_t ld, int64_t columns)
{
    enum { AHEAD_BYTES = 8192 };
    return (AHEAD_BYTES / (int64_t)sizeof(STORED) / columns + 1) * ld;
}

/* A square of K, turned: keys of which `count` are there, and columns of which `depth` are there. */
SPK_INLINE void S(turn_square)(const STORED *from, int64_t ld, int64_t count, int64_t depth, REAL *to)
{
    T(vec) square[T(lanes)];
    if (count >= T(lanes) &&depth >= T(lanes)) {
#pragma GCC unroll 16
        for (int c = 0; c < T(lanes); c++)
            square[c] = S(load)(from + c * ld);
        T(transpose)(square);
#pragma GCC unroll 16
        for (int r = 0; r < T(lanes); r++)
            T(store)(to + r * T(attention_step), square[r]);
        return;
    }
    for (int c = 0; c < T(lanes); c++)
        square[c] = c >= count ? (T(vec)){0} : depth >= T(lanes) ? S(load)(from + c * ld) : S(load_part)(from + c * ld, depth);
    T(transpose)(square);
    for (int r = 0; r < T(lanes) &&r < depth; r++)
        T(store)(to + r * T(attention_step), square[r]);
}

#if !PAIRED
/* Rows of K or of V for the keys at hand as columns, in panels for the product; zeros behind those of a piece. */
SPK_INLINE void S(turn_keys)(const S(attention) *t, const STORED *from, int64_t ld, int64_t depth, REAL *turned)
{
    const int64_t step = T(attention_step);
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes)) {
            const int64_t at = piece->at + j;
            REAL *to = turned + at / step * step * depth + at % step;
            for (int64_t d = 0; d < depth; d += T(lanes))
                S(turn_square)(from + (piece->row + j) * ld + d, ld, piece->count - j, depth - d, to + d * step);
        }
}

/* Rows as REAL, with numbers to the end of a vector. */
typedef struct S(rows) {
    const REAL *rows;
    int64_t ld;
} S(rows);

/* Whether rows of so many columns can be read where they lie. */
SPK_INLINE bool S(in_place)(int64_t columns)
{
    return sizeof(STORED) == sizeof(REAL) && columns % T(lanes) == 0;
}

/* Rows as REAL, zeros behind their ends; `wide` numbers from one to the next. */
SPK_INLINE void S(take_rows)(const STORED *from, int64_t ld, int64_t count, int64_t columns, int64_t wide, REAL *to)
{
    for (int64_t j = 0; j < count; j++, from += ld, to += wide) {
        int64_t c = 0;
        for (; c + T(lanes) <= columns; c += T(lanes))
            T(store)(to + c, S(load)(from + c));
        if (c < columns) {
            T(store)(to + c, S(load_part)(from + c, columns - c));
            c += T(lanes);
        }
        for (; c < wide; c += T(lanes))
            T(store)(to + c, (T(vec)){0});
    }
}

/* Those of a piece, of K or of V, where they lie or in the room for those at hand. */
SPK_INLINE S(rows) S(rows_of)(const S(piece) *piece, const STORED *from, int64_t ld, int64_t columns, int64_t wide, REAL *room)
{
    if (S(in_place)(columns))
        return (S(rows)){(const REAL *)(const void *)(from + piece->row * ld), ld};
    S(take_rows)(from + piece->row * ld, ld, piece->count, columns, wide, room + piece->at * wide);
    return (S(rows)){room + piece->at * wide, wide};
}
#endif

/* Whether every number of these rows is finite. */
SPK_INLINE bool S(all_finite)(const REAL *rows, int64_t ld, int64_t count, int64_t columns)
{
    T(vec) off = {0}; /* NaN where one is not */
    for (int64_t j = 0; j < count; j++)
        for (int64_t c = 0; c < columns; c += T(lanes))
            off += T(load)(rows + j * ld + c) * 0;
    bool finite = true;
    for (int lane = 0; lane < T(lanes); lane++)
        finite = finite && off[lane] == 0;
    return finite;
}

/* Whether a query sees a key of a piece. */
SPK_INLINE bool S(sees)(const S(attention) *t, const spk_seen *seen, const S(piece) *piece, int64_t query, int64_t key)
{
    return key < seen->end && (key >= seen->begin || key < seen->sinks) && spk_attention_bit(t->problem, t->args, piece->tile, query, key);
}

/* Numbers [first, end) of so many become `instead`. Whether there are any. */
SPK_INLINE bool S(fill)(REAL *numbers, int64_t first, int64_t end, int64_t count, REAL instead)
{
    first = first > 0 ? first : 0;
    end = end < count ? end : count;
    for (int64_t j = first; j < end; j++)
        numbers[j] = instead;
    return first < end;
}

/* Of a query's numbers for the keys at hand, those of keys that it does not see become `instead`. False: it sees them all. */
SPK_INLINE bool S(hide)(const S(attention) *t, int64_t query, REAL *scores, REAL instead)
{
    const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, query);
    int64_t at = 0;
    bool hidden = false;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        REAL *numbers = scores + piece->at;
        for (; at < piece->at; at++)
            scores[at] = instead;
        at += piece->count;
        if (piece->tile < 0) {
            hidden = S(fill)(numbers, seen.sinks - piece->first, seen.begin - piece->first, piece->count, instead) || hidden;
            hidden = S(fill)(numbers, seen.end - piece->first, piece->count, piece->count, instead) || hidden;
            continue;
        }
        for (int64_t j = 0; j < piece->count; j++) {
            if (!S(sees)(t, &seen, piece, query, piece->first + j)) {
                numbers[j] = instead;
                hidden = true;
            }
        }
    }
    for (; at < t->used; at++)
        scores[at] = instead;
    return hidden;
}

/* Keys from `first` on that are rows side by side. */
SPK_INLINE int64_t S(keys_of_page)(const S(attention) *t, int64_t first)
{
    const int64_t page_keys = t->problem->packing.page_keys;
    return page_keys > 0 ? page_keys - first % page_keys : INT64_MAX;
}

/* More keys, which are taken as soon as there is no room for others. */
SPK_INLINE void S(add_keys)(S(attention) *t, int64_t first, int64_t end, int64_t tile)
{
    while (first < end) {
        const int64_t room = t->keys - t->used, page = S(keys_of_page)(t, first), most = room < page ? room : page,
                      count = end - first < most ? end - first : most, row = spk_attention_row(t->problem, t->args, &t->sequence, first);
        t->piece[t->pieces++] = (S(piece)){first, count, t->used, row, tile};
        t->used += (count + T(lanes) - 1) / T(lanes) *T(lanes);
        first += count;
        if (t->used == t->keys || t->pieces == S(MOST_PIECES))
            S(take_keys)(t);
    }
}

/* All keys that some query of the tile sees, as many at a time as there is room for. */
SPK_INLINE void S(take_all_keys)(S(attention) *t)
{
    const spk_problem *p = t->problem;
    const spk_seen top = spk_attention_seen(p, &t->sequence, t->first),
                   bottom = spk_attention_seen(p, &t->sequence, t->first + t->queries - 1),
                   any = {top.first, bottom.sinks, top.begin > bottom.sinks ? top.begin : bottom.sinks, bottom.end};
    spk_key_runs runs = spk_attention_runs(p, any, t->list_row);
    for (int64_t first, end; spk_key_runs_next(&runs, &first, &end);)
        S(add_keys)(t, first, end, runs.apart ? spk_attention_tile(p, t->args, runs.entry + runs.at) : -1);
    if (t->pieces > 0)
        S(take_keys)(t);
}

/* The queries of a tile: those of each sequence in turn. */
SPK_INLINE void S(attend_tile)(S(attention) *t, int64_t first, int64_t end)
{
    const spk_problem *p = t->problem;
    const int64_t sequences = p->packing.sequences > 0 ? p->packing.sequences : 1;
    for (int64_t number = spk_attention_find_sequence(p, t->args, first); number < sequences; number++) {
        const spk_sequence s = spk_attention_sequence(p, t->args, number);
        if (s.query >= end)
            break;
        t->sequence = s;
        t->first = s.query > first ? s.query : first;
        t->queries = (s.query_end < end ? s.query_end : end) - t->first;
        if (t->queries > 0)
            S(attend)(t);
    }
}

/* Queries [first, *end) of tile `at` of a head. */
SPK_INLINE int64_t S(tile_queries)(const attention_cut *cut, const spk_problem *p, int64_t at, int64_t *end)
{
    const int64_t block_end = (at / cut->parts + 1) * cut->block, first = block_end - cut->block + at % cut->parts * cut->height,
                  last = block_end < p->m ? block_end : p->m;
    *end = last - first < cut->height ? last : first + cut->height;
    return first;
}
