/* The operands of attention's gradients as pairs of bfloat16 numbers: Q and grad_O as rows and as pairs of rows, K and V as columns of
 * pairs, K as pairs of rows, too; the weights and the gradients of scores as pairs of queries, these as rows as well. Where a product may
 * have bits below 2^-126 (least.h), multiply-adds of floats take the place of what would lose them. */
#ifndef GRADIENTS
#define GRADIENTS 1
#endif
#ifndef PAIRED
#define PAIRED 1
#endif
#include <string.h>

#include "backend/cpu/kernels/attention/attention_pair_operands.h"

/* Some rows as pairs of neighbours, `wide` pairs from one to the next, zeros behind the last to a multiple of `whole` rows. */
SPK_INLINE void S(pair_rows)(const STORED *from, int64_t ld, int64_t count, int64_t whole, int64_t columns, int64_t wide, REAL *to,
                             S(seen_values) *seen)
{
    S(seen_values) found = *seen;
    for (int64_t j = 0; j < (count + whole - 1) / whole * whole; j += 2, from += 2 * ld, to += wide)
        for (int64_t c = 0; c < wide; c += T(lanes)) {
            T(words) pairs = {0};
            if (j < count && c < columns)
                pairs = S(pair_up)(from + c, j + 1 < count ? from + ld + c : NULL, columns - c);
            S(see_values)(&found, pairs);
            T(store)(to + c, (T(vec))pairs);
        }
    *seen = found;
}

/* Rows of K or of V for the keys at hand as columns of pairs, which are turned as if each were one number. The least number. */
SPK_INLINE int S(turn_keys)(const S(attention) *t, const STORED *from, int64_t ld, int64_t depth, REAL *turned)
{
    const int64_t pairs = S(pairs)(depth), step = T(attention_step);
    S(pair_least) least = S(least_of_none)();
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes)) {
            const int64_t at = piece->at + j;
            REAL *to = turned + at / step * step * pairs + at % step;
            for (int64_t d = 0; d < pairs; d += T(lanes)) {
                T(vec) square[T(lanes)];
#pragma GCC unroll 16
                for (int c = 0; c < T(lanes); c++) {
                    const T(words) line =
                        j + c < piece->count ? S(pairs_of_line)(from + (piece->row + j + c) * ld + 2 * d, depth - 2 * d) : (T(words)){0};
                    S(least_of)(&least, line);
                    square[c] = (T(vec))line;
                }
                T(transpose)(square);
#pragma GCC unroll 16
                for (int r = 0; r < T(lanes); r++)
                    if (d + r < pairs)
                        T(store)(to + (d + r) * step, square[r]);
            }
        }
    return S(least_number)(least);
}

/* Rows of Q and of grad_O, without the scale; what is taken from a score before its exponential, and from its gradient. A query without
 * weights has LSE -infinity: infinity is taken from its scores. */
SPK_INLINE void S(take_queries)(S(attention) *t)
{
    enum { WHOLE = TILES ? 32 : 2 };
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    S(results) *r = &t->results;
    const int64_t ldq = p->operand[ATTENTION_Q].ld, ldo = p->operand[ATTENTION_O].ld, ldg = p->operand[BACKWARD_GRAD_O].ld;
    const STORED *q = t->q + t->first * ldq, *out = r->grad_o + t->first * ldg;
    S(seen_values) seen_q = {S(least_of_none)(), _mm512_setzero_si512()}, seen_out = seen_q;
    S(pair_least) least = S(least_of_none)();
    for (int64_t i = 0; i < t->queries; i++) {
        const int64_t row = t->first + i;
        S(pair_line)(q + i * ldq, p->k, t->own + room->q + i * S(pairs)(p->k), &least);
        if (p->depth_v > 0)
            S(pair_line)(out + i * ldg, p->depth_v, t->own + room->out + i * S(pairs)(p->depth_v), &least);
        r->above[i] = r->lse[row] == -(REAL)INFINITY ? (REAL)INFINITY : r->lse[row];
        r->delta[i] = (p->depth_v > 0 ? S(dot)(r->grad_o + row * ldg, r->o + row * ldo, p->depth_v) : 0) -
                      (r->grad_lse != NULL ? r->grad_lse[row] : 0);
    }
    S(pair_rows)(q, ldq, t->queries, WHOLE, p->k, room->wide_k, t->own + room->q_rows, &seen_q);
    S(pair_rows)(out, ldg, p->depth_v > 0 ? t->queries : 0, WHOLE, p->depth_v, room->wide_v, t->own + room->out_rows, &seen_out);
    r->least_q = S(least_number)(seen_q.least);
    r->least_out = S(least_number)(seen_out.least);
    r->finite = S(values_finite)(&seen_q) && S(values_finite)(&seen_out);
}

/* C = A B of pairs: scores, or their gradients. */
SPK_INLINE void S(multiply)(const S(attention) *t, bool exact, int64_t pairs, const REAL *a, const REAL *b, REAL *c)
{
    if (!exact)
        T(attention_multiply_floats)(t->queries, t->used, pairs, a, pairs, b, c, t->keys);
    else
#if TILES
        S(attention_tiles)(t->queries, t->used, false, 2 * pairs, a, pairs * 4, (const uint32_t *)(const void *)b, T(attention_step),
                           T(attention_step) *pairs, c, t->keys);
#else
        T(attention_multiply)(t->queries, t->used, pairs, a, pairs, b, c, t->keys);
#endif
}

/* Whether a query sees all keys at hand, and no vector has numbers of none. */
SPK_INLINE bool S(sees_all)(const S(attention) *t, int64_t query)
{
    const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, query);
    bool all = true;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        const int64_t end = piece->first + piece->count;
        all =
            all && piece->tile < 0 && piece->count % T(lanes) == 0 && end <= seen.end && (piece->first >= seen.begin || end <= seen.sinks);
    }
    return all;
}

/* Of some scores, the weights; LSE is rounded: none is above 1. */
SPK_INLINE T(vec) S(weights_of)(const REAL *scores, REAL scale, REAL above)
{
    const T(vec) distance = T(load)(scores) * scale - above;
    return S(power)((T(vec))_mm512_min_ps(_mm512_setzero_ps(), (__m512)distance) * 1.44269504f);
}

/* Of one query: its scores become weights, and the products with grad_O the gradients of the scores. True: it does not see all keys. */
SPK_INLINE bool S(weigh)(const S(attention) *t, int64_t i, REAL *scores, REAL *gradients)
{
    const double cap = t->args->scalar[ATTENTION_SOFTCAP];
    const bool capped = t->problem->band.use_softcap && cap != 0;
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE], above = t->results.above[i], delta = t->results.delta[i];
    for (int64_t j = 0; capped && j < t->used; j++) {
        const double bent = tanh((double)(scores[j] * scale) / cap);
        scores[j] = (REAL)(cap * bent);
        gradients[j] = (gradients[j] - delta) * (REAL)(1 - bent * bent);
    }
    for (int64_t j = 0; j < t->used; j += T(lanes)) {
        const T(vec) weight = S(weights_of)(scores + j, capped ? 1 : scale, above);
        T(store)(scores + j, weight);
        T(store)(gradients + j, weight * (T(load)(gradients + j) - (capped ? 0 : delta)));
    }
    const bool hidden = S(hide)(t, t->first + i, scores, 0);
    return S(hide)(t, t->first + i, gradients, 0) || hidden;
}

/* Numbers of two queries as pairs: of each 32 of a query, and of each query and the next. */
SPK_INLINE void S(pair_up_queries)(T(vec) a0, T(vec) a1, T(vec) b0, T(vec) b1, T(words) *a, T(words) *b, T(words) *first, T(words) *second)
{
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3,
                                         34, 2, 33, 1, 32, 0),
                  high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const __m512i of_a = (__m512i)_mm512_cvtne2ps_pbh((__m512)a1, (__m512)a0), of_b = (__m512i)_mm512_cvtne2ps_pbh((__m512)b1, (__m512)b0);
    *a = (T(words))of_a;
    *b = (T(words))of_b;
    *first = (T(words))_mm512_permutex2var_epi16(of_a, low, of_b);
    *second = (T(words))_mm512_permutex2var_epi16(of_a, high, of_b);
}

/* Of queries i and i + 1: scores and their products with grad_O become weights and gradients, unless they are, and these pairs: of both
 * queries where those of query i were, and gradients of each query in `rows`, zeros behind the last to an even number of vectors. */
SPK_INLINE void S(put_pairs)(S(attention) *t, int64_t i, REAL *weights, REAL *gradients, REAL *rows, const bool weighed)
{
    const int64_t keys = t->keys;
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE], *above = t->results.above + i, *delta = t->results.delta + i;
    S(pair_least) least_weight = t->results.least_weight, least_gradient = t->results.least_gradient;
    for (int64_t j = 0; j < t->used; j += 2 * T(lanes)) {
        T(vec) weight[2][2], gradient[2][2];
        T(words) unused, row[2], both[2];
#pragma GCC unroll 2
        for (int query = 0; query < 2; query++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const int64_t at = query * keys + j + half * T(lanes);
                if (half == 1 && j + T(lanes) >= t->used) {
                    weight[query][half] = gradient[query][half] = (T(vec)){0};
                    continue;
                }
                weight[query][half] = weighed ? T(load)(weights + at) : S(weights_of)(weights + at, scale, above[query]);
                gradient[query][half] = T(load)(gradients + at);
                if (!weighed)
                    gradient[query][half] = weight[query][half] * (gradient[query][half] - delta[query]);
            }
        S(pair_up_queries)(weight[0][0], weight[0][1], weight[1][0], weight[1][1], &unused, &unused, &both[0], &both[1]);
        S(least_of)(&least_weight, both[0]);
        S(least_of)(&least_weight, both[1]);
        T(store)(weights + j, (T(vec))both[0]);
        T(store)(weights + j + T(lanes), (T(vec))both[1]);
        S(pair_up_queries)(gradient[0][0], gradient[0][1], gradient[1][0], gradient[1][1], &row[0], &row[1], &both[0], &both[1]);
        S(least_of)(&least_gradient, row[0]);
        S(least_of)(&least_gradient, row[1]);
        T(store)(gradients + j, (T(vec))both[0]);
        T(store)(gradients + j + T(lanes), (T(vec))both[1]);
        T(store)(rows + j / 2, (T(vec))row[0]);
        T(store)(rows + keys / 2 + j / 2, (T(vec))row[1]);
    }
    t->results.least_weight = least_weight;
    t->results.least_gradient = least_gradient;
}

/* Weights and gradients of scores as pairs. True: some query does not see all keys. */
SPK_INLINE bool S(weigh_all)(S(attention) *t)
{
    const backward_room *room = &t->results.job->room;
    const bool capped = t->problem->band.use_softcap && t->args->scalar[ATTENTION_SOFTCAP] != 0;
    bool hidden = false;
    t->results.least_weight = t->results.least_gradient = S(least_of_none)();
    for (int64_t i = 0; i < t->queries; i += 2) {
        REAL *weights = t->own + room->weights + i * t->keys, *gradients = t->own + room->scores + i * t->keys,
             *rows = t->own + room->rows_of_scores + i * t->keys / 2;
        const bool both = i + 1 < t->queries;
        if (both && !capped && S(sees_all)(t, t->first + i) && S(sees_all)(t, t->first + i + 1)) {
            S(put_pairs)(t, i, weights, gradients, rows, false);
            continue;
        }
        hidden = S(weigh)(t, i, weights, gradients) || hidden;
        if (both) {
            hidden = S(weigh)(t, i + 1, weights + t->keys, gradients + t->keys) || hidden;
        } else {
            memset(weights + t->keys, 0, (size_t)t->used * sizeof *weights);
            memset(gradients + t->keys, 0, (size_t)t->used * sizeof *gradients);
        }
        S(put_pairs)(t, i, weights, gradients, rows, true);
    }
    return hidden;
}

/* The three products over the pairs that are kept alone: of the others something may be no number. */
SPK_INLINE void S(add_seen)(const S(attention) *t, const S(piece) *piece)
{
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    for (int64_t i = 0; i < t->queries; i++) {
        const spk_seen seen = spk_attention_seen(p, &t->sequence, t->first + i);
        const int64_t pair = (i - i % 2) * t->keys + piece->at, row = t->first + i;
        const STORED *weights = (const STORED *)(const void *)(t->own + room->weights + pair) + i % 2,
                     *gradients = (const STORED *)(const void *)(t->own + room->scores + pair) + i % 2,
                     *q = t->q + row * p->operand[ATTENTION_Q].ld, *out = t->results.grad_o + row * p->operand[BACKWARD_GRAD_O].ld;
        REAL *of_q = t->own + room->of_q + i * room->wide_k;
        for (int64_t j = 0; j < piece->count; j++) {
            if (!S(sees)(t, &seen, piece, row, piece->first + j))
                continue;
            const STORED *k = t->k + (piece->row + j) * p->operand[ATTENTION_K].ld;
            const REAL weight = S(get)(weights + 2 * j), gradient = S(get)(gradients + 2 * j);
            REAL *of_k = t->results.of_k + (piece->row + j) * room->wide_k, *of_v = t->results.of_v + (piece->row + j) * room->wide_v;
            for (int64_t c = 0; c < p->k; c += T(lanes)) {
                const int64_t count = p->k - c < T(lanes) ? p->k - c : T(lanes);
                T(store)(of_q + c, T(load)(of_q + c) + gradient * S(load_part)(k + c, count));
                T(store)(of_k + c, T(load)(of_k + c) + gradient * S(load_part)(q + c, count));
            }
            for (int64_t c = 0; c < p->depth_v; c += T(lanes))
                T(store)(of_v + c,
                         T(load)(of_v + c) + weight * S(load_part)(out + c, p->depth_v - c < T(lanes) ? p->depth_v - c : T(lanes)));
        }
    }
}

#if TILES
/* Pairs of queries of the keys at hand, as rows of keys for the tiles, zeros behind the last query to a whole tile. */
SPK_INLINE void S(turn_queries)(const S(attention) *t, const REAL *pairs, REAL *turned)
{
    const int64_t wide = t->results.job->tuned.tile.queries / 2, count = (t->queries + 1) / 2;
    for (int64_t j = 0; j < t->used; j += T(lanes))
        for (int64_t i = 0; i < (count + T(lanes) - 1) / T(lanes) *T(lanes); i += T(lanes)) {
            T(vec) square[T(lanes)];
#pragma GCC unroll 16
            for (int c = 0; c < T(lanes); c++)
                square[c] = i + c < count ? T(load)(pairs + (i + c) * 2 * t->keys + j) : (T(vec)){0};
            T(transpose)(square);
#pragma GCC unroll 16
            for (int r = 0; r < T(lanes); r++)
                T(store)(turned + (j + r) * wide + i, square[r]);
        }
}

/* Sums of a piece += A B by tiles: in place where the keys are whole squares of tiles, else by way of a buffer. */
SPK_INLINE void S(add_tiles)(const S(attention) *t, const S(piece) *piece, const REAL *turned, const REAL *b, int64_t wide, int64_t columns,
                             REAL *to)
{
    const int64_t queries = t->results.job->tuned.tile.queries,
                  depth = (t->queries + ATTENTION_TILES - 1) / ATTENTION_TILES * ATTENTION_TILES;
    const REAL *a = turned + piece->at * (queries / 2);
    REAL *buffer = t->own + t->results.job->room.buffer;
    const bool whole = piece->count % ATTENTION_TILES == 0;
    S(attention_tiles)(piece->count, columns, whole, depth, a, queries * 2, (const uint32_t *)(const void *)b, wide, T(attention_step),
                       whole ? to : buffer, wide);
    for (int64_t j = 0; !whole && j < piece->count; j++)
        for (int64_t c = 0; c < columns; c += T(lanes))
            T(store)(to + j * wide + c, T(load)(to + j * wide + c) + T(load)(buffer + j * wide + c));
}
#endif

/* Sums of the pieces' rows of grad_K or of grad_V: pairs of queries, turned, times pairs of rows. */
SPK_INLINE void S(add_keys_sums)(const S(attention) *t, bool exact, const REAL *pairs, const REAL *b, int64_t wide, int64_t columns,
                                 REAL *sums)
{
    const int64_t keys = t->keys, depth = S(pairs)(t->queries);
#if TILES
    REAL *turned = t->own + t->results.job->room.turned;
    if (exact)
        S(turn_queries)(t, pairs, turned);
#endif
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        REAL *to = sums + piece->row * wide;
        if (!exact)
            T(attention_add_turned_floats)(piece->count, columns, depth, pairs + piece->at, 2 * keys, b, wide, to, wide);
        else
#if TILES
            S(add_tiles)(t, piece, turned, b, wide, columns, to);
#else
            T(attention_add_turned)(piece->count, columns, depth, pairs + piece->at, 2 * keys, b, wide, to, wide);
#endif
    }
}

/* grad_Q += gradients of scores times K. */
SPK_INLINE void S(add_queries_sums)(const S(attention) *t, bool exact, int64_t columns)
{
    const backward_room *room = &t->results.job->room;
    const int64_t keys = t->keys, wide = room->wide_k;
    const REAL *rows = t->own + room->rows_of_scores, *k = t->own + room->rows;
    REAL *of_q = t->own + room->of_q;
    if (!exact)
        T(attention_add_floats)(t->queries, columns, t->used / 2, rows, keys / 2, k, wide, of_q, wide);
    else
#if TILES
        S(attention_tiles)(t->queries, columns, true, t->used, rows, keys * 2, (const uint32_t *)(const void *)k, wide, T(attention_step),
                           of_q, wide);
#else
        T(attention_add)(t->queries, columns, t->used / 2, rows, keys / 2, k, wide, of_q, wide);
#endif
}

/* The keys at hand: weights and gradients of scores, and what these add to the sums. */
static void S(take_keys)(S(attention) *t)
{
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    const S(results) *r = &t->results;
    const int64_t ldk = p->operand[ATTENTION_K].ld, columns_k = (p->k + T(lanes) - 1) / T(lanes) *T(lanes),
                  columns_v = (p->depth_v + T(lanes) - 1) / T(lanes) *T(lanes);
    REAL *own = t->own, *k_rows = own + room->rows;
    const int least_k = S(turn_keys)(t, t->k, ldk, p->k, own + room->k),
              least_v = S(turn_keys)(t, t->v, p->operand[ATTENTION_V].ld, p->depth_v, own + room->v);
    S(multiply)(t, S(pairs_are_exact)(r->least_q, least_k), S(pairs)(p->k), own + room->q, own + room->k, own + room->weights);
    S(multiply)(t, S(pairs_are_exact)(r->least_out, least_v), S(pairs)(p->depth_v), own + room->out, own + room->v, own + room->scores);
    const bool hidden = S(weigh_all)(t);
    S(seen_values) seen = {S(least_of_none)(), _mm512_setzero_si512()};
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        S(pair_rows)(t->k + piece->row * ldk, ldk, piece->count, T(lanes), p->k, room->wide_k, k_rows + piece->at / 2 * room->wide_k,
                     &seen);
#if TILES
    if (t->used % ATTENTION_TILES != 0)
        memset(k_rows + t->used / 2 * room->wide_k, 0, (size_t)(T(lanes) / 2 * room->wide_k) * sizeof *k_rows);
#endif
    if (hidden && !p->assume_finite && !(r->finite && S(values_finite)(&seen))) {
        for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
            S(add_seen)(t, piece);
    } else {
        const int least_gradient = S(least_number)(r->least_gradient);
        S(add_queries_sums)(t, S(pairs_are_exact)(least_gradient, least_k), columns_k);
        S(add_keys_sums)(t, S(pairs_are_exact)(least_gradient, r->least_q), own + room->scores, own + room->q_rows, room->wide_k, columns_k,
                         r->of_k);
        S(add_keys_sums)(t, S(pairs_are_exact)(S(least_number)(r->least_weight), r->least_out), own + room->weights, own + room->out_rows,
                         room->wide_v, columns_v, r->of_v);
    }
    t->pieces = t->used = 0;
}
