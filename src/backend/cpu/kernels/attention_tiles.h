/* Template of attention, a tile of queries at a time against some keys at a time: scores, their running maximum and sum, and O, which is
 * scaled down where the maximum grows (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). For one type of
 * matrices (STORED) and of sums (REAL), after vector.h or stored_half.h and attention_products.h. */

/* What a worker has for its tile, besides S(attention). */
typedef struct S(results) {
    const attention_job *job;
    STORED *o; /* of the head */
    REAL *lse; /* NULL: not wanted */
    REAL *most, *sum;
} S(results);

#include "backend/cpu/kernels/attention_pieces.h"

#if PAIRED /* the scale is the scores' */
SPK_INLINE void S(take_queries)(const S(attention) *t)
{
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_Q].ld;
    for (int64_t i = 0; i < t->queries; i++)
        memcpy((STORED *)t->own + i * depth, t->q + (t->first + i) * ld, (size_t)depth * sizeof(STORED));
}
#else
/* Rows of Q, times the scale. */
SPK_INLINE void S(take_queries)(const S(attention) *t)
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
#endif

#if PAIRED
/* The keys at hand as columns of pairs, which are turned as if each were one number. */
SPK_INLINE void S(turn_keys)(const S(attention) *t)
{
    const int64_t pairs = t->problem->k / 2, ld = t->problem->operand[ATTENTION_K].ld, step = T(attention_step);
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes)) {
            const int64_t at = piece->at + j;
            REAL *to = t->own + t->results.job->room.k + at / step * step * pairs + at % step;
            for (int64_t d = 0; d < pairs; d += T(lanes)) {
                T(vec) square[T(lanes)];
#pragma GCC unroll 16
                for (int c = 0; c < T(lanes); c++)
                    square[c] = j + c < piece->count ? (T(vec))_mm512_loadu_ps(t->k + (piece->row + j + c) * ld + 2 * d) : (T(vec)){0};
                T(transpose)(square);
#pragma GCC unroll 16
                for (int r = 0; r < T(lanes); r++)
                    T(store)(to + (d + r) * step, square[r]);
            }
        }
}
#else
enum { S(FEW_QUERIES) = 5 }; /* for so many it does not pay to turn keys */

/* Sums of products of a query with some keys, of which `count` are there. */
SPK_INLINE T(vec) S(score_keys)(const REAL *q, const STORED *from, int64_t ld, int64_t count, int64_t depth)
{
    T(vec) sum[T(lanes)], total = {0};
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
    T(transpose)(sum);
#pragma GCC unroll 16
    for (int c = 0; c < T(lanes); c++)
        total += sum[c];
    return total;
}

/* Scores of few queries with the keys at hand. */
SPK_INLINE void S(score_few)(const S(attention) *t, REAL *scores)
{
    const int64_t depth = t->problem->k, ld = t->problem->operand[ATTENTION_K].ld, keys = t->keys;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < piece->count; j += T(lanes))
            for (int64_t i = 0; i < t->queries; i++)
                T(store)(scores + i * keys + piece->at + j,
                         S(score_keys)(t->own + i * depth, t->k + (piece->row + j) * ld, ld, piece->count - j, depth));
}
#endif

SPK_INLINE void S(cap)(const S(attention) *t, REAL *scores)
{
#if PAIRED
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE];
    for (int64_t j = 0; j < t->used; j += T(lanes))
        T(store)(scores + j, T(load)(scores + j) * scale);
#endif
    const double cap = t->args->scalar[ATTENTION_SOFTCAP];
    for (int64_t j = 0; t->problem->band.soft_cap && cap != 0 && j < t->used; j++)
        scores[j] = (REAL)(cap * tanh((double)scores[j] / cap));
}

/* Scores become exponentials above the running maximum. */
SPK_INLINE void S(weigh)(const S(attention) *t, int64_t i, REAL *scores)
{
    const int64_t keys = t->used, wide = t->results.job->room.wide_v;
    const REAL before = t->results.most[i];
    T(vec) highest = T(splat)(before), total = {0};
    for (int64_t j = 0; j < keys; j += T(lanes)) {
        const T(vec) x = T(load)(scores + j);
        highest = T(attention_greater)(x, highest);
    }
    const REAL most = T(attention_highest)(highest), above = most == -(REAL)INFINITY ? 0 : most; /* no key yet: all become 0 */
#if PAIRED /* bfloat16 from here on, zeros behind the last to a whole tile */
    STORED *paired = (STORED *)(void *)scores;
    for (int64_t j = 0; j < keys; j += 2 * T(lanes)) {
        const T(vec) e = T(attention_exp)(T(load)(scores + j) - above);
        const T(vec) second = j + T(lanes) < keys ? T(attention_exp)(T(load)(scores + j + T(lanes)) - above) : (T(vec)){0};
        S(store_two)(paired + j, e, second);
        total += e + second;
    }
#else
    for (int64_t j = 0; j < keys; j += T(lanes)) {
        const T(vec) e = T(attention_exp)(T(load)(scores + j) - above);
        T(store)(scores + j, e);
        total += e;
    }
#endif
    if (most != before) {
        const T(vec) factor = T(attention_exp)(T(splat)(before - most));
        REAL *out = t->own + t->results.job->room.out + i * wide;
        t->results.sum[i] *= factor[0];
        for (int64_t c = 0; c < wide; c += T(lanes))
            T(store)(out + c, T(load)(out + c) * factor);
        t->results.most[i] = most;
    }
    t->results.sum[i] += T(attention_total)(total);
}

#if PAIRED
/* Rows of V as pairs, zeros behind those of a piece and behind the last to a whole tile. Whether every number of them is finite. */
SPK_INLINE bool S(pair_values)(const S(attention) *t)
{
    const int64_t columns = t->problem->depth_v, ld = t->problem->operand[ATTENTION_V].ld, wide = t->results.job->room.wide_v;
    uint32_t *pairs = (uint32_t *)(void *)(t->own + t->results.job->room.v);
    T(words) most = {0};
    int64_t at = 0;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
        for (int64_t j = 0; j < (piece->count + T(lanes) - 1) / T(lanes) *T(lanes); j += 2, at += 2)
            for (int64_t c = 0; c < columns; c += T(lanes)) {
                const STORED *from = t->v + (piece->row + j) * ld + c;
                const T(words) low = j < piece->count ? S(lengthen)(*(const S(halves) *)from) : (T(words)){0},
                               high = j + 1 < piece->count ? S(lengthen)(*(const S(halves) *)(from + ld)) : (T(words)){0};
                *(T(words) *)(pairs + at / 2 * wide + c) = low | high << 16;
                most |= (T(words))((T(bits))(low & 0x7f80) == 0x7f80) | (T(words))((T(bits))(high & 0x7f80) == 0x7f80);
            }
    for (; at % ATTENTION_TILES != 0; at += 2)
        memset(pairs + at / 2 * wide, 0, (size_t)columns * sizeof *pairs);
    return _mm512_test_epi32_mask((__m512i)most, (__m512i)most) == 0;
}

/* O += P V of one query, over the keys that it sees: what others see of V may be no number. */
SPK_INLINE void S(add_seen)(const S(attention) *t, int64_t i, const S(piece) *piece)
{
    const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, t->first + i);
    const int64_t ld = t->problem->operand[ATTENTION_V].ld;
    const STORED *weights = (const STORED *)(const void *)(t->own + t->results.job->room.scores + i * t->keys) + piece->at;
    REAL *out = t->own + t->results.job->room.out + i * t->results.job->room.wide_v;
    for (int64_t j = 0; j < piece->count; j++) {
        if (S(sees)(t, &seen, piece, t->first + i, piece->first + j))
            for (int64_t c = 0; c < t->problem->depth_v; c += T(lanes))
                T(store)(out + c, T(load)(out + c) + S(get)(weights + j) * S(load)(t->v + (piece->row + j) * ld + c));
    }
}
#else
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
#endif

/* The keys at hand: scores, exponentials, O. */
static void S(take_keys)(S(attention) *t)
{
    const attention_room *room = &t->results.job->room;
    const int64_t keys = t->keys, depth = t->problem->k, columns = (t->problem->depth_v + T(lanes) - 1) / T(lanes) *T(lanes);
    REAL *scores = t->own + room->scores;
    bool hidden = false;
#if PAIRED
    S(turn_keys)(t);
    S(attention_tiles)(t->queries, t->used, false, depth, t->own, depth * 2, (const uint32_t *)(const void *)(t->own + room->k),
                       T(attention_step), T(attention_step) *depth / 2, scores, keys);
#else
    if (t->queries <= S(FEW_QUERIES) &&depth > 0) {
        S(score_few)(t, scores);
    } else {
        S(turn_keys)(t, t->k, t->problem->operand[ATTENTION_K].ld, depth, t->own + room->k);
        T(attention_multiply)(t->queries, t->used, depth, t->own, depth, t->own + room->k, scores, keys);
    }
#endif
    for (int64_t i = 0; i < t->queries; i++) {
        S(cap)(t, scores + i * keys);
        hidden = S(hide)(t, t->first + i, scores + i * keys, -(REAL)INFINITY) || hidden;
        S(weigh)(t, i, scores + i * keys);
    }
#if PAIRED
    if (S(pair_values)(t) || !hidden || t->problem->assume_finite)
        S(attention_tiles)(t->queries, columns, true, t->used, scores, keys * 4, (const uint32_t *)(const void *)(t->own + room->v),
                           room->wide_v, T(attention_step), t->own + room->out, room->wide_v);
    else
        for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++)
            for (int64_t i = 0; i < t->queries; i++)
                S(add_seen)(t, i, piece);
#else
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        const S(rows) v = S(rows_of)(piece, t->v, t->problem->operand[ATTENTION_V].ld, t->problem->depth_v, room->wide_v, t->own + room->v);
        if (!hidden || t->problem->assume_finite || S(all_finite)(v.rows, v.ld, piece->count, columns))
            T(attention_add)(t->queries, columns, piece->count, scores + piece->at, keys, v.rows, v.ld, t->own + room->out, room->wide_v);
        else
            for (int64_t i = 0; i < t->queries; i++)
                S(add_seen)(t, i, piece, v);
    }
#endif
    t->pieces = t->used = 0;
}

SPK_INLINE void S(put_results)(const S(attention) *t)
{
    const int64_t columns = t->problem->depth_v, ld = t->problem->operand[ATTENTION_O].ld, wide = t->results.job->room.wide_v;
    for (int64_t i = 0; i < t->queries; i++) {
        const REAL *out = t->own + t->results.job->room.out + i * wide,
                   factor = t->results.most[i] == -(REAL)INFINITY ? 0 : 1 / t->results.sum[i];
        STORED *to = t->results.o + (t->first + i) * ld;
        for (int64_t c = 0; c < columns; c += T(lanes)) {
            const T(vec) x = T(load)(out + c) * factor;
            if (columns - c >= T(lanes))
                S(store)(to + c, x);
            else
                S(store_part)(to + c, x, columns - c);
        }
        if (t->results.lse != NULL)
            t->results.lse[t->first + i] =
                t->results.most[i] == -(REAL)INFINITY ? -(REAL)INFINITY : t->results.most[i] + (REAL)log((double)t->results.sum[i]);
    }
}

static void S(attend)(S(attention) *t)
{
    memset(t->own + t->results.job->room.out, 0, (size_t)(t->queries * t->results.job->room.wide_v) * sizeof(REAL));
    for (int64_t i = 0; i < t->queries; i++) {
        t->results.most[i] = -(REAL)INFINITY;
        t->results.sum[i] = 0;
    }
    S(take_queries)(t);
    S(take_all_keys)(t);
    S(put_results)(t);
}

/* Tiles as long as there are any, head by head, whose keys stay in the second cache; of a head the last first: with causal it has the most
 * keys. */
static void S(attend_some)(void *pointer, int64_t worker)
{
    attention_job *job = pointer;
    const spk_problem *p = &job->bound->problem;
    const attention_cut *cut = &job->cut;
    const spk_operand *q = &p->operand[ATTENTION_Q], *k = &p->operand[ATTENTION_K], *v = &p->operand[ATTENTION_V],
                      *o = &p->operand[ATTENTION_O], *lse = &p->operand[ATTENTION_LSE];
    REAL *own = (REAL *)job->args->workspace + worker * job->room.elements;
#if PAIRED
    S(attention_begin)();
#endif
    for (int64_t tile; (tile = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->all_tiles;) {
        const int64_t head = tile / cut->tiles, head_kv = head / spk_attention_sharing(p);
        int64_t end;
        const int64_t first = S(tile_queries)(cut, p, cut->tiles - 1 - tile % cut->tiles, &end);
        if (first >= end)
            continue;
        S(attention)
        t = {.problem = p,
             .args = job->args,
             .q = (const STORED *)job->args->at[ATTENTION_Q] + head * q->head_stride,
             .k = (const STORED *)job->args->at[ATTENTION_K] + head_kv * k->head_stride,
             .v = (const STORED *)job->args->at[ATTENTION_V] + head_kv * v->head_stride,
             .list_row = spk_attention_list_row(p, job->args->item, head, first),
             .keys = job->tuned.keys,
             .own = own,
             .results = {.job = job,
                         .o = (STORED *)job->args->at[ATTENTION_O] + head * o->head_stride,
                         .lse = lse->dtype != SPK_DTYPE_DEFAULT ? (REAL *)job->args->at[ATTENTION_LSE] + head * lse->head_stride : NULL,
                         .most = own + job->room.most,
                         .sum = own + job->room.most + job->tuned.queries}};
        S(attend_tile)(&t, first, end);
    }
#if PAIRED
    tile_release();
#endif
}
