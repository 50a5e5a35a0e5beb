/* Attention's operands as pairs of bfloat16 numbers: Q and the weights by rows, K and V as columns of pairs. What multiplies them takes
 * denormal numbers for 0 and makes 0 of denormal sums: where a product may have bits below 2^-126 (least.h), multiply-adds of floats take
 * their place. */
#include "backend/cpu/kernels/attention/attention_pair_operands.h"

enum { S(FEW_QUERIES) = TILES ? 0 : 5, S(LINE) = 4 }; /* for so many queries K and V are read where they lie, LINE vectors at a time */

/* What scores are to be multiplied by, for their order to stay; else S(cap) has done it. */
SPK_INLINE REAL S(scale_left)(const S(attention) *t)
{
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE];
    return t->problem->band.use_softcap || !(scale > 0) ? 1 : scale;
}

/* Rows of Q; the scale is the scores'. */
SPK_INLINE void S(take_queries)(S(attention) *t)
{
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_Q].ld;
    S(pair_least) least = S(least_of_none)();
    for (int64_t i = 0; i < t->queries; i++)
        S(pair_line)(t->q + (t->first + i) * ld, depth, t->own + i * S(pairs)(depth), &least);
    t->results.least_q = S(least_number)(least);
}

/* A score's distance from `above`, times the scale: in one step where the rounding of above * scale is of no account (`scaled` is small),
 * else from the difference, which is exact where scores are close. */
SPK_INLINE T(vec) S(distance)(T(vec) x, REAL scale, T(vec) above, T(vec) scaled, const bool small)
{
    return small ? x * scale - scaled : (x - above) * scale;
}

/* Scores become weights: exponentials above `above`, as bfloat16 numbers that lie side by side, zeros behind the last to an even number of
 * vectors. Their sums. */
SPK_INLINE T(vec) S(put_some_weights)(S(attention) *t, REAL *scores, REAL above, const bool small)
{
    const REAL scale = S(scale_left)(t) * 1.44269504f;
    const T(vec) from = T(splat)(above), scaled = T(splat)(above * scale);
    T(vec) total = {0};
    for (int64_t j = 0; j < t->used; j += 2 * T(lanes)) {
        const bool is_last = j + T(lanes) >= t->used;
        const T(vec) first = S(power)(S(distance)(T(load)(scores + j), scale, from, scaled, small)),
                     second = is_last ? (T(vec)){0} : S(power)(S(distance)(T(load)(scores + j + T(lanes)), scale, from, scaled, small));
        const T(words) both = (T(words))(__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
        S(least_of)(&t->results.least_weight, both);
        T(store)(scores + j / 2, (T(vec))both);
        total += first + second;
    }
    return total;
}

/* The rounding of a number below 2^12 changes a weight by less than 2^-13 of it, which bfloat16 cannot tell. */
SPK_INLINE T(vec) S(put_weights)(S(attention) *t, REAL *scores, REAL above)
{
    const REAL scaled = above * (S(scale_left)(t) * 1.44269504f);
    return __builtin_expect(scaled < 4096 && scaled > -4096, 1) ? S(put_some_weights)(t, scores, above, true)
                                                                : S(put_some_weights)(t, scores, above, false);
}

/* The keys at hand as columns of pairs, which are turned as if each were one number. The least number. */
SPK_INLINE int S(turn_keys)(const S(attention) *t)
{
    const int64_t depth = t->problem->k, pairs = S(pairs)(depth), ld = t->problem->operand[ATTENTION_K].ld, step = T(attention_step);
    S(pair_least) least = S(least_of_none)();
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes)) {
            const int64_t at = piece->at + j;
            REAL *to = t->own + t->results.job->room.k + at / step * step * pairs + at % step;
            for (int64_t d = 0; d < pairs; d += T(lanes)) {
                T(vec) square[T(lanes)];
#pragma GCC unroll 16
                for (int c = 0; c < T(lanes); c++) {
                    const T(words) line =
                        j + c < piece->count ? S(pairs_of_line)(t->k + (piece->row + j + c) * ld + 2 * d, depth - 2 * d) : (T(words)){0};
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

#if !TILES
/* Sums of products of a query with some keys, of which `count` are there; one key after the other. */
SPK_INLINE T(vec)
    S(score_keys)(const STORED *q, const STORED *from, int64_t ld, int64_t count, int64_t depth, const bool floats, S(pair_least) *least)
{
    const int64_t ahead = S(rows_ahead)(ld, depth), whole = depth / (2 * T(lanes))*(2 * T(lanes));
    S(pair_least) found = *least;
    T(vec) sum[T(lanes)], total = {0};
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++) {
        sum[c] = (T(vec)){0};
        if (c >= count)
            continue;
        for (int64_t d = 0; d < whole; d += 2 * T(lanes)) {
            const T(words) line = (T(words))_mm512_loadu_si512(from + d);
            S(fetch_ahead)(from + d, ahead);
            S(least_of)(&found, line);
            sum[c] = T(pair_fused)(sum[c], (T(words))_mm512_loadu_si512(q + d), line, floats);
        }
        if (whole < depth) {
            const T(words) line = S(pairs_of_line)(from + whole, depth - whole);
            S(least_of)(&found, line);
            sum[c] = T(pair_fused)(sum[c], S(pairs_of_line)(q + whole, depth - whole), line, floats);
        }
        from += ld;
    }
    *least = found;
    T(transpose)(sum);
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++)
        total += sum[c];
    return total;
}

/* Scores of few queries with the keys at hand. The least number of K. */
SPK_INLINE int S(score_few)(const S(attention) *t, REAL *scores, const bool floats)
{
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_K].ld, keys = t->keys;
    S(pair_least) least = S(least_of_none)();
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes))
            for (int64_t i = 0; i < t->queries; i++)
                T(store)(scores + i * keys + piece->at + j,
                         S(score_keys)((const STORED *)(const void *)(t->own + i * S(pairs)(depth)), t->k + (piece->row + j) * ld, ld,
                                       piece->count - j, depth, floats, &least));
    return S(least_number)(least);
}
#endif

SPK_INLINE void S(score)(const S(attention) *t, REAL *scores)
{
    const int64_t pairs = S(pairs)(t->problem->k), keys = t->keys;
    const REAL *k = t->own + t->results.job->room.k;
#if !TILES
    if (t->queries <= S(FEW_QUERIES)) {
        if (!S(pairs_are_exact)(t->results.least_q, S(score_few)(t, scores, false)))
            S(score_few)(t, scores, true);
        return;
    }
#endif
    if (!S(pairs_are_exact)(t->results.least_q, S(turn_keys)(t)))
        T(attention_multiply_floats)(t->queries, t->used, pairs, t->own, pairs, k, scores, keys);
    else
#if TILES
        S(attention_tiles)(t->queries, t->used, false, 2 * pairs, t->own, pairs * 4, (const uint32_t *)(const void *)k, T(attention_step),
                           T(attention_step) *pairs, scores, keys);
#else
        T(attention_multiply)(t->queries, t->used, pairs, t->own, pairs, k, scores, keys);
#endif
}

/* Rows of V as pairs, zeros behind those of a piece and, for tiles, behind the last to a whole one. */
SPK_INLINE S(seen_values) S(pair_values)(const S(attention) *t)
{
    const int64_t columns = t->problem->depth_v, ld = t->problem->operand[ATTENTION_V].ld, wide = t->results.job->room.wide_v;
    S(seen_values) seen = {S(least_of_none)(), _mm512_setzero_si512()};
    REAL *to = t->own + t->results.job->room.v;
    int64_t at = 0;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < (piece->count + T(lanes) - 1) / T(lanes) *T(lanes); j += 2, at += 2, to += wide) {
            const STORED *from = t->v + (piece->row + j) * ld;
            for (int64_t c = 0; c < columns; c += T(lanes)) {
                T(words) pairs = {0};
                if (j < piece->count)
                    pairs = S(pair_up)(from + c, j + 1 < piece->count ? from + ld + c : NULL, columns - c);
                S(see_values)(&seen, pairs);
                T(store)(to + c, (T(vec))pairs);
            }
        }
#if TILES
    for (; at % ATTENTION_TILES != 0; at += 2, to += wide)
        memset(to, 0, (size_t)columns * sizeof *to);
#endif
    return seen;
}

/* O += P V of one query, over the keys that it sees: what others see of V may be no number. */
SPK_INLINE void S(add_seen)(const S(attention) *t, int64_t i, const S(piece) *piece, int64_t column, int64_t end)
{
    const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, t->first + i);
    const STORED *weights = (const STORED *)(const void *)(t->own + t->results.job->room.scores + i * t->keys) + piece->at;
    REAL *out = t->own + t->results.job->room.out + i * t->results.job->room.wide_v;
    for (int64_t j = 0; j < piece->count; j++) {
        const STORED *v = t->v + (piece->row + j) * t->problem->operand[ATTENTION_V].ld;
        if (S(sees)(t, &seen, piece, t->first + i, piece->first + j))
            for (int64_t c = column; c < end; c += T(lanes)) {
                const T(vec) x = end - c >= T(lanes) ? S(load)(v + c) : S(load_part)(v + c, end - c);
                T(store)(out + c, T(load)(out + c) + S(get)(weights + j) * x);
            }
    }
}

#if !TILES
/* O += P V of a query, keys of a piece and a line of columns that begins at `column`: `vectors` of 32, the last of which may end earlier.
 * False: products must be floats', or not of all keys, and nothing was added. */
SPK_INLINE bool S(add_line)(const S(attention) *t, int64_t i, const S(piece) *piece, int64_t column, const int vectors, const bool finite,
                            const bool floats)
{
    const int64_t ld = t->problem->operand[ATTENTION_V].ld, left = t->problem->depth_v - column - (vectors - 1) * 2 * T(lanes),
                  wide = t->results.job->room.wide_v - column, ahead = S(rows_ahead)(ld, t->problem->depth_v);
    const REAL *weights = t->own + t->results.job->room.scores + i * t->keys + piece->at / 2;
    const STORED *from = t->v + piece->row * ld + column;
    REAL *out = t->own + t->results.job->room.out + i * t->results.job->room.wide_v + column;
    const __mmask32 last = left >= 2 * T(lanes) ? ~(__mmask32)0 : (__mmask32)((1ull << left) - 1);
    const __m512i first_half = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4,
                                                35, 3, 34, 2, 33, 1, 32, 0),
                  second_half = _mm512_add_epi16(first_half, _mm512_set1_epi16(16));
    S(seen_values) seen = {S(least_of_none)(), _mm512_setzero_si512()};
    T(vec) sum[S(LINE)][2];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
            sum[v][half] = (2 * v + half) * T(lanes) < wide ? T(load)(out + (2 * v + half) * T(lanes)) : (T(vec)){0};
    for (int64_t j = 0; j < piece->count; j += 2, from += 2 * ld) {
        const T(words) both = T(pair_splat)(weights + j / 2);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const __mmask32 there = v + 1 < vectors ? ~(__mmask32)0 : last;
            S(fetch_ahead)(from + v * 2 * T(lanes), ahead);
            S(fetch_ahead)(from + ld + v * 2 * T(lanes), ahead);
            const __m512i low = _mm512_maskz_loadu_epi16(there, from + v * 2 * T(lanes)),
                          high =
                              j + 1 < piece->count ? _mm512_maskz_loadu_epi16(there, from + ld + v * 2 * T(lanes)) : _mm512_setzero_si512();
            S(see_values)(&seen, (T(words))low);
            S(see_values)(&seen, (T(words))high);
            sum[v][0] = T(pair_fused)(sum[v][0], both, (T(words))_mm512_permutex2var_epi16(low, first_half, high), floats);
            sum[v][1] = T(pair_fused)(sum[v][1], both, (T(words))_mm512_permutex2var_epi16(low, second_half, high), floats);
        }
    }
    if (finite && !S(values_finite)(&seen))
        return false;
    if (!floats && !S(pairs_are_exact)(S(least_number)(t->results.least_weight), S(least_number)(seen.least)))
        return false;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
            if ((2 * v + half) * T(lanes) < wide)
                T(store)(out + (2 * v + half) * T(lanes), sum[v][half]);
    return true;
}

/* O += P V of few queries. finite: a number that is not would reach queries that do not see it. */
SPK_INLINE void S(add_few)(const S(attention) *t, const bool finite)
{
    const int64_t columns = t->problem->depth_v;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t i = 0; i < t->queries; i++)
            for (int64_t c = 0, end; c < columns; c = end) {
                const bool many = columns - c >= S(LINE) * 2 * T(lanes);
                end = many ? c + S(LINE) * 2 * T(lanes) : columns - c < 2 * T(lanes) ? columns : c + 2 * T(lanes);
                if (many ? S(add_line)(t, i, piece, c, S(LINE), finite, false) : S(add_line)(t, i, piece, c, 1, finite, false))
                    continue;
                if (many ? !S(add_line)(t, i, piece, c, S(LINE), finite, true) : !S(add_line)(t, i, piece, c, 1, finite, true))
                    S(add_seen)(t, i, piece, c, end);
            }
}
#endif

/* O += P V over the keys at hand; hidden: some query does not see all of them. */
SPK_INLINE void S(add_values)(const S(attention) *t, bool hidden)
{
    const attention_room *room = &t->results.job->room;
    const bool finite = hidden && !t->problem->assume_finite;
    const int64_t columns = (t->problem->depth_v + T(lanes) - 1) / T(lanes) *T(lanes), keys = t->keys, wide = room->wide_v;
    const REAL *weights = t->own + room->scores, *v = t->own + room->v;
    REAL *out = t->own + room->out;
#if !TILES
    if (t->queries <= S(FEW_QUERIES)) {
        S(add_few)(t, finite);
        return;
    }
#endif
    const S(seen_values) seen = S(pair_values)(t);
    if (finite && !S(values_finite)(&seen)) {
        for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
            for (int64_t i = 0; i < t->queries; i++)
                S(add_seen)(t, i, piece, 0, t->problem->depth_v);
    } else if (!S(pairs_are_exact)(S(least_number)(t->results.least_weight), S(least_number)(seen.least))) {
        T(attention_add_floats)(t->queries, columns, t->used / 2, weights, keys, v, wide, out, wide);
    } else {
#if TILES
        S(attention_tiles)(t->queries, columns, true, t->used, weights, keys * 4, (const uint32_t *)(const void *)v, wide,
                           T(attention_step), out, wide);
#else
        T(attention_add)(t->queries, columns, t->used / 2, weights, keys, v, wide, out, wide);
#endif
    }
}
