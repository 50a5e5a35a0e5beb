/* Attention's gradients, a tile of queries at a time against some keys at a time: scores and weights once more, from LSE; their gradients;
 * and three products with these, of which grad_Q is the tile's, and grad_K and grad_V go to sums of the worker's share (Dao et al. 2022,
 * arXiv:2205.14135, algorithm 4, with the loops exchanged). */
#include <string.h>

#ifndef GRADIENTS
#define GRADIENTS 1
#endif
#include "backend/cpu/kernels/attention/attention_pieces.h"

SPK_INLINE REAL S(dot)(const STORED *a, const STORED *b, int64_t count)
{
    T(vec) sum = {0};
    int64_t c = 0;
    for (; c + T(lanes) <= count; c += T(lanes))
        sum += S(load)(a + c) * S(load)(b + c);
    if (c < count)
        sum += S(load_part)(a + c, count - c) * S(load_part)(b + c, count - c);
    return T(attention_total)(sum);
}

/* Rows of Q, times the scale, and of grad_O; what is taken from a score before its exponential, and from its gradient. A query without
 * weights has LSE -infinity: infinity is taken from its scores. */
SPK_INLINE void S(take_queries)(S(attention) *t)
{
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    S(results) *r = &t->results;
    const int64_t ldq = p->operand[ATTENTION_Q].ld, ldo = p->operand[ATTENTION_O].ld, ldg = p->operand[BACKWARD_GRAD_O].ld;
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE];
    REAL *q = t->own + room->q, *out = t->own + room->out;
    S(take_rows)(t->q + t->first * ldq, ldq, p->k > 0 ? t->queries : 0, p->k, room->wide_k, q);
    S(take_rows)(r->grad_o + t->first * ldg, ldg, p->depth_v > 0 ? t->queries : 0, p->depth_v, room->wide_v, out);
    r->finite = S(all_finite)(q, room->wide_k, t->queries, room->wide_k) && S(all_finite)(out, room->wide_v, t->queries, room->wide_v);
    for (int64_t i = 0; i < t->queries * room->wide_k; i += T(lanes))
        T(store)(q + i, T(load)(q + i) * scale);
    for (int64_t i = 0; i < t->queries; i++) {
        const int64_t row = t->first + i;
        r->above[i] = r->lse[row] == -(REAL)INFINITY ? (REAL)INFINITY : r->lse[row];
        r->delta[i] = (p->depth_v > 0 ? S(dot)(r->grad_o + row * ldg, r->o + row * ldo, p->depth_v) : 0) -
                      (r->grad_lse != NULL ? r->grad_lse[row] : 0);
    }
}

/* Of one query: its scores become weights, and the products with grad_O the gradients of the scores. True: it does not see all keys. */
SPK_INLINE bool S(weigh)(const S(attention) *t, int64_t i, REAL *scores, REAL *gradients)
{
    const double cap = t->args->scalar[ATTENTION_SOFTCAP];
    const bool capped = t->problem->band.use_softcap && cap != 0;
    const REAL above = t->results.above[i], delta = t->results.delta[i];
    for (int64_t j = 0; capped && j < t->used; j++) {
        const double bent = tanh((double)scores[j] / cap);
        scores[j] = (REAL)(cap * bent);
        gradients[j] = (gradients[j] - delta) * (REAL)(1 - bent * bent);
    }
    const T(vec) zero = {0};
    for (int64_t j = 0; j < t->used; j += T(lanes)) {
        const T(vec) distance = T(load)(scores + j) - above, along = T(load)(gradients + j),
                     weight = T(attention_exp)(T(select)(distance > zero, zero, distance)); /* LSE is rounded: none is above 1 */
        T(store)(scores + j, weight);
        T(store)(gradients + j, weight * (along - (capped ? 0 : delta)));
    }
    const bool hidden = S(hide)(t, t->first + i, scores, 0);
    return S(hide)(t, t->first + i, gradients, 0) || hidden;
}

/* The three products over the pairs that are kept alone: of the others something may be no number. */
SPK_INLINE void S(add_seen)(const S(attention) *t, const S(piece) *piece, S(rows) k)
{
    const backward_room *room = &t->results.job->room;
    for (int64_t i = 0; i < t->queries; i++) {
        const spk_seen seen = spk_attention_seen(t->problem, &t->sequence, t->first + i);
        const REAL *weights = t->own + room->weights + i * t->keys + piece->at,
                   *gradients = t->own + room->scores + i * t->keys + piece->at, *q = t->own + room->q + i * room->wide_k,
                   *out = t->own + room->out + i * room->wide_v;
        REAL *of_q = t->own + room->of_q + i * room->wide_k;
        for (int64_t j = 0; j < piece->count; j++) {
            if (!S(sees)(t, &seen, piece, t->first + i, piece->first + j))
                continue;
            REAL *of_k = t->results.of_k + (piece->row + j) * room->wide_k, *of_v = t->results.of_v + (piece->row + j) * room->wide_v;
            for (int64_t c = 0; c < t->problem->k; c += T(lanes)) {
                T(store)(of_q + c, T(load)(of_q + c) + gradients[j] * T(load)(k.rows + j * k.ld + c));
                T(store)(of_k + c, T(load)(of_k + c) + gradients[j] * T(load)(q + c));
            }
            for (int64_t c = 0; c < t->problem->depth_v; c += T(lanes))
                T(store)(of_v + c, T(load)(of_v + c) + weights[j] * T(load)(out + c));
        }
    }
}

/* The keys at hand: weights and gradients of scores, and what these add to the sums. */
static void S(take_keys)(S(attention) *t)
{
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    const int64_t keys = t->keys, ldk = p->operand[ATTENTION_K].ld, columns_k = (p->k + T(lanes) - 1) / T(lanes) *T(lanes),
                  columns_v = (p->depth_v + T(lanes) - 1) / T(lanes) *T(lanes);
    REAL *weights = t->own + room->weights, *gradients = t->own + room->scores, *q = t->own + room->q, *out = t->own + room->out;
    bool hidden = false;
    S(turn_keys)(t, t->k, ldk, p->k, t->own + room->k);
    S(turn_keys)(t, t->v, p->operand[ATTENTION_V].ld, p->depth_v, t->own + room->v);
    T(attention_multiply)(t->queries, t->used, p->k, q, room->wide_k, t->own + room->k, weights, keys);
    T(attention_multiply)(t->queries, t->used, p->depth_v, out, room->wide_v, t->own + room->v, gradients, keys);
    for (int64_t i = 0; i < t->queries; i++)
        hidden = S(weigh)(t, i, weights + i * keys, gradients + i * keys) || hidden;
    for (const S(piece) *piece = t->piece; piece < t->piece + t->pieces; piece++) {
        const S(rows) k = S(rows_of)(piece, t->k, ldk, p->k, room->wide_k, t->own + room->rows);
        if (hidden && !p->assume_finite && !(t->results.finite && S(all_finite)(k.rows, k.ld, piece->count, columns_k))) {
            S(add_seen)(t, piece, k);
            continue;
        }
        T(attention_add)(t->queries, columns_k, piece->count, gradients + piece->at, keys, k.rows, k.ld, t->own + room->of_q, room->wide_k);
        T(attention_add_turned)(piece->count, columns_k, t->queries, gradients + piece->at, keys, q, room->wide_k,
                                t->results.of_k + piece->row * room->wide_k, room->wide_k);
        T(attention_add_turned)(piece->count, columns_v, t->queries, weights + piece->at, keys, out, room->wide_v,
                                t->results.of_v + piece->row * room->wide_v, room->wide_v);
    }
    t->pieces = t->used = 0;
}

/* Rows of sums, times a factor, as rows of a result. */
SPK_INLINE void S(put_rows)(const REAL *from, int64_t wide, int64_t count, int64_t columns, REAL factor, STORED *to, int64_t ld)
{
    for (int64_t i = 0; i < count; i++, from += wide, to += ld)
        for (int64_t c = 0; c < columns; c += T(lanes)) {
            const T(vec) x = T(load)(from + c) * factor;
            if (columns - c >= T(lanes))
                S(store)(to + c, x);
            else
                S(store_part)(to + c, x, columns - c);
        }
}

static void S(attend)(S(attention) *t)
{
    const spk_problem *p = t->problem;
    const backward_room *room = &t->results.job->room;
    const int64_t ld = p->operand[BACKWARD_GRAD_Q].ld;
    memset(t->own + room->of_q, 0, (size_t)(t->queries * room->wide_k) * sizeof(REAL));
    S(take_queries)(t);
    S(take_all_keys)(t);
    if (p->k > 0)
        S(put_rows)(t->own + room->of_q, room->wide_k, t->queries, p->k, (REAL)t->args->scalar[ATTENTION_SCALE],
                    t->results.grad_q + t->first * ld, ld);
}

/* A share of a head of K and V: each `shares`-th of the tiles of all heads of Q that go with it. */
static void S(take_share)(const backward_job *job, int64_t head_kv, int64_t share, REAL *own, REAL *sums)
{
    const spk_problem *p = &job->bound->problem;
    const spk_args *args = job->args;
    const int64_t sharing = spk_attention_sharing(p), tiles = job->cut.tiles * sharing;
    const spk_operand *operand = p->operand;
    memset(sums, 0, (size_t)job->room.sums * sizeof(REAL));
    for (int64_t tile = share; tile < tiles; tile += job->tuned.shares) {
        const int64_t head = head_kv * sharing + tile / job->cut.tiles;
        int64_t end;
        const int64_t first = S(tile_queries)(&job->cut, p, tile % job->cut.tiles, &end);
        if (first >= end)
            continue;
#define HEAD(type, operand_, head_) ((type)args->at[operand_] + (head_)*operand[operand_].head_stride)
        S(attention)
        t = {.problem = p,
             .args = args,
             .q = HEAD(const STORED *, ATTENTION_Q, head),
             .k = HEAD(const STORED *, ATTENTION_K, head_kv),
             .v = HEAD(const STORED *, ATTENTION_V, head_kv),
             .list_row = spk_attention_list_row(p, args->item, head, first),
             .keys = job->tuned.tile.keys,
             .own = own,
             .results = {.job = job,
                         .o = HEAD(const STORED *, ATTENTION_O, head),
                         .grad_o = HEAD(const STORED *, BACKWARD_GRAD_O, head),
                         .lse = HEAD(const REAL *, ATTENTION_LSE, head),
                         .grad_lse =
                             operand[BACKWARD_GRAD_LSE].dtype != SPK_DTYPE_DEFAULT ? HEAD(const REAL *, BACKWARD_GRAD_LSE, head) : NULL,
                         .grad_q = HEAD(STORED *, BACKWARD_GRAD_Q, head),
                         .of_k = sums,
                         .of_v = sums + job->room.of_v,
                         .above = own + job->room.deltas,
                         .delta = own + job->room.deltas + job->tuned.tile.queries}};
        S(attend_tile)(&t, first, end);
    }
}

/* Some rows of grad_K and grad_V of a head: the sums of its shares, in their order, into the first. */
static void S(put_sums)(const backward_job *job, int64_t head_kv, int64_t first, int64_t end, REAL *sums)
{
    const spk_problem *p = &job->bound->problem;
    const spk_args *args = job->args;
    const spk_operand *operand = p->operand;
    const backward_room *room = &job->room;
    const int64_t count = end - first, ld_k = operand[BACKWARD_GRAD_K].ld, ld_v = operand[BACKWARD_GRAD_V].ld;
    REAL *of_k = sums + first * room->wide_k, *of_v = sums + room->of_v + first * room->wide_v;
    if (count <= 0)
        return;
    for (int share = 1; share < job->tuned.shares; share++) {
        for (int64_t i = 0; i < count * room->wide_k; i += T(lanes))
            T(store)(of_k + i, T(load)(of_k + i) + T(load)(of_k + share * room->sums + i));
        for (int64_t i = 0; i < count * room->wide_v; i += T(lanes))
            T(store)(of_v + i, T(load)(of_v + i) + T(load)(of_v + share * room->sums + i));
    }
    if (p->k > 0)
        S(put_rows)(of_k, room->wide_k, count, p->k, 1, HEAD(STORED *, BACKWARD_GRAD_K, head_kv) + first * ld_k, ld_k);
    if (p->depth_v > 0)
        S(put_rows)(of_v, room->wide_v, count, p->depth_v, 1, HEAD(STORED *, BACKWARD_GRAD_V, head_kv) + first * ld_v, ld_v);
#undef HEAD
}

/* Shares as long as there are any. Where a head has but one, it is put at once. */
static void S(take_some)(void *pointer, int64_t worker)
{
    backward_job *job = pointer;
    REAL *own = (REAL *)job->args->workspace + worker * job->room.elements,
         *sums = (REAL *)job->args->workspace + job->workers * job->room.elements;
    const int shares = job->tuned.shares;
    for (int64_t task; (task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->tasks;) {
        REAL *of_task = sums + (shares > 1 ? task : worker) * job->room.sums;
        S(take_share)(job, task / shares, task % shares, own, of_task);
        if (shares == 1)
            S(put_sums)(job, task, 0, spk_attention_keys_written(&job->bound->problem, job->args), of_task);
    }
}

/* The sums of a head with several shares, some rows a task. */
static void S(put_some)(void *pointer, int64_t task)
{
    const backward_job *job = pointer;
    const spk_problem *p = &job->bound->problem;
    const int64_t parts = (p->n + BACKWARD_ROWS - 1) / BACKWARD_ROWS, head = task / parts, first = task % parts * BACKWARD_ROWS,
                  written = spk_attention_keys_written(p, job->args);
    REAL *sums = (REAL *)job->args->workspace + job->workers * job->room.elements + head * job->tuned.shares * job->room.sums;
    S(put_sums)(job, head, first, first + BACKWARD_ROWS < written ? first + BACKWARD_ROWS : written, sums);
}
