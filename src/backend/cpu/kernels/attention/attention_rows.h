/* Attention's operands as numbers of REAL. */
#include "backend/cpu/kernels/attention/attention_pieces.h"

/* What scores are to be multiplied by. */
SPK_INLINE REAL S(scale_left)(const S(attention) *t)
{
    (void)t;
    return 1;
}

/* Rows of Q, times the scale. */
SPK_INLINE void S(take_queries)(S(attention) *t)
{
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE];
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_Q].ld;
    for (int64_t i = 0; i < t->queries && depth > 0; i++) { /* without columns there may be no Q */
        REAL *to = t->own + i * depth;
        S(widen_all)(t->q + (t->first + i) * ld, depth, to);
        for (int64_t d = 0; d < depth; d++)
            to[d] *= scale;
    }
}

enum { S(FEW_QUERIES) = 5 }; /* for so many it does not pay to turn keys */

/* A load is less than a line: then rows come slowly unless they are fetched ahead. */
enum { S(parts_of_lines) = T(lanes) *sizeof(STORED) < 64 };

/* Products of a query with some keys, of which `count` are there, a sum for each: one key after the other, fetched ahead. */
SPK_INLINE void S(score_in_turn)(const REAL *q, const STORED *from, int64_t ld, int64_t count, int64_t depth, T(vec) sum[T(lanes)])
{
    const int64_t ahead = S(rows_ahead)(ld, depth), whole = depth / T(lanes) *T(lanes);
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++) {
        sum[c] = (T(vec)){0};
        if (c >= count)
            continue;
        for (int64_t d = 0; d < whole; d += T(lanes)) {
            S(fetch_ahead)(from + d, ahead);
            sum[c] += T(load)(q + d) * S(load)(from + d);
        }
        if (whole < depth)
            sum[c] += T(load_part)(q + whole, depth - whole) * S(load_part)(from + whole, depth - whole);
        from += ld;
    }
}

/* The same, all keys side by side. */
SPK_INLINE void S(score_together)(const REAL *q, const STORED *from, int64_t ld, int64_t count, int64_t depth, T(vec) sum[T(lanes)])
{
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++)
        sum[c] = (T(vec)){0};
    int64_t d = 0;
    for (; count >= T(lanes) &&d + T(lanes) <= depth; d += T(lanes)) {
        const T(vec) x = T(load)(q + d);
#pragma GCC unroll 16
        for (int c = 0; c < T(lanes); c++)
            sum[c] += x * S(load)(from + c * ld + d);
    }
    for (; d < depth; d += T(lanes)) {
        const int64_t left = depth - d < T(lanes) ? depth - d : T(lanes);
        const T(vec) x = T(load_part)(q + d, left);
#pragma GCC unroll 16
        for (int c = 0; c < T(lanes); c++)
            if (c < count)
                sum[c] += x * S(load_part)(from + c * ld + d, left);
    }
}

/* The scores of these keys. */
SPK_INLINE T(vec) S(score_keys)(const REAL *q, const STORED *from, int64_t ld, int64_t count, int64_t depth)
{
    T(vec) sum[T(lanes)], total = {0};
    if (S(parts_of_lines))
        S(score_in_turn)(q, from, ld, count, depth, sum);
    else
        S(score_together)(q, from, ld, count, depth, sum);
    T(transpose)(sum);
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++)
        total += sum[c];
    return total;
}

SPK_INLINE void S(fetch_rows)(const STORED *from, int64_t ld, int64_t count, int64_t columns)
{
    for (int64_t j = 0; j < count; j++)
        for (int64_t c = 0; c < columns; c += 64 / (int64_t)sizeof(STORED))
            S(fetch_ahead)(from + j * ld + c, 0);
}

/* Scores of few queries with the keys at hand. Fetches rows of V, which come next. */
SPK_INLINE void S(score_few)(const S(attention) *t, REAL *scores)
{
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_K].ld, ldv = t->problem->operand[ATTENTION_V].ld,
                  keys = t->keys;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes)) {
            const int64_t count = piece->count - j < T(lanes) ? piece->count - j : T(lanes);
            if (S(parts_of_lines))
                S(fetch_rows)(t->v + (piece->row + j) * ldv, ldv, count, t->problem->depth_v);
            for (int64_t i = 0; i < t->queries; i++)
                T(store)(scores + i * keys + piece->at + j,
                         S(score_keys)(t->own + i * depth, t->k + (piece->row + j) * ld, ld, piece->count - j, depth));
        }
}

SPK_INLINE void S(score)(const S(attention) *t, REAL *scores)
{
    const int64_t depth = t->problem->k;
    REAL *k = t->own + t->results.job->room.k;
    if (t->queries <= S(FEW_QUERIES) &&depth > 0) {
        S(score_few)(t, scores);
    } else {
        S(turn_keys)(t, t->k, t->problem->operand[ATTENTION_K].ld, depth, k);
        T(attention_multiply)(t->queries, t->used, depth, t->own, depth, k, scores, t->keys);
    }
}

/* Scores become weights: exponentials above `above`. Their sums. */
SPK_INLINE T(vec) S(put_weights)(const S(attention) *t, REAL *scores, REAL above)
{
    T(vec) total = {0};
    for (int64_t j = 0; j < t->used; j += T(lanes)) {
        const T(vec) e = T(attention_exp)(T(load)(scores + j) - above);
        T(store)(scores + j, e);
        total += e;
    }
    return total;
}

/* O += P V of one query, over the keys that it sees: what others see of V may be no number. */
SPK_INLINE void S(add_seen)(const S(attention) *t, int64_t i, const S(piece) *piece, S(rows) v)
{
    const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, t->first + i);
    const int64_t columns = (t->problem->depth_v + T(lanes) - 1) / T(lanes) *T(lanes);
    const REAL *scores = t->own + t->results.job->room.scores + i * t->keys + piece->at;
    REAL *out = t->own + t->results.job->room.out + i * t->results.job->room.wide_v;
    for (int64_t j = 0; j < piece->count; j++) {
        if (S(sees)(t, &seen, piece, t->first + i, piece->first + j))
            for (int64_t c = 0; c < columns; c += T(lanes))
                T(store)(out + c, T(load)(out + c) + scores[j] * T(load)(v.rows + j * v.ld + c));
    }
}

/* O += P V over the keys at hand; hidden: some query does not see all of them. */
SPK_INLINE void S(add_values)(const S(attention) *t, bool hidden)
{
    const attention_room *room = &t->results.job->room;
    const int64_t columns = (t->problem->depth_v + T(lanes) - 1) / T(lanes) *T(lanes);
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        const S(rows) v = S(rows_of)(piece, t->v, t->problem->operand[ATTENTION_V].ld, t->problem->depth_v, room->wide_v, t->own + room->v);
        if (!hidden || t->problem->assume_finite || S(all_finite)(v.rows, v.ld, piece->count, columns))
            T(attention_add)(t->queries, columns, piece->count, t->own + room->scores + piece->at, t->keys, v.rows, v.ld,
                             t->own + room->out, room->wide_v);
        else
            for (int64_t i = 0; i < t->queries; i++)
                S(add_seen)(t, i, piece, v);
    }
}
