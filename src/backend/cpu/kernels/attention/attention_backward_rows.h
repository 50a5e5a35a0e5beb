/* The operands of attention's gradients as numbers of REAL. */
#include "backend/cpu/kernels/attention/attention_backward_dot.h"

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
