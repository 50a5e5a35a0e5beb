/* Attention, a tile of queries at a time against some keys at a time: scores, their running maximum and sum, and O, which is scaled down
 * where the maximum grows (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). */
#include <string.h>

#include "backend/cpu/kernels/attention/attention_products.h"
#if PAIRED
#include "backend/cpu/kernels/attention/attention_pairs.h"
#else
#include "backend/cpu/kernels/attention/attention_rows.h"
#endif

SPK_INLINE void S(cap)(const S(attention) *t, REAL *scores)
{
#if PAIRED
    const REAL scale = (REAL)t->args->scalar[ATTENTION_SCALE];
    for (int64_t j = 0; S(scale_left)(t) == 1 && j < t->used; j += T(lanes))
        T(store)(scores + j, T(load)(scores + j) * scale);
#endif
    const double cap = t->args->scalar[ATTENTION_SOFTCAP];
    for (int64_t j = 0; t->problem->band.use_softcap && cap != 0 && j < t->used; j++)
        scores[j] = (REAL)(cap * tanh((double)scores[j] / cap));
}

/* Scores become exponentials above the running maximum. */
SPK_INLINE void S(weigh)(S(attention) *t, int64_t i, REAL *scores)
{
    const int64_t keys = t->used, wide = t->results.job->room.wide_v;
    const REAL before = t->results.most[i];
    T(vec) highest = T(splat)(before);
    for (int64_t j = 0; j < keys; j += T(lanes)) {
        const T(vec) x = T(load)(scores + j);
        highest = T(attention_greater)(x, highest);
    }
    const REAL most = T(attention_highest)(highest), above = most == -(REAL)INFINITY ? 0 : most; /* no key yet: all become 0 */
    const T(vec) total = S(put_weights)(t, scores, above);
    if (most != before) {
        const T(vec) factor = T(attention_exp)(T(splat)((before - most) * S(scale_left)(t)));
        REAL *out = t->own + t->results.job->room.out + i * wide;
        t->results.sum[i] *= factor[0];
        for (int64_t c = 0; c < wide; c += T(lanes))
            T(store)(out + c, T(load)(out + c) * factor);
        t->results.most[i] = most;
    }
    t->results.sum[i] += T(attention_total)(total);
}

/* The keys at hand: scores, exponentials, O. */
static void S(take_keys)(S(attention) *t)
{
    const int64_t keys = t->keys;
    REAL *scores = t->own + t->results.job->room.scores;
    bool hidden = false;
#if PAIRED
    t->results.least_weight = S(least_of_none)();
#endif
    S(score)(t, scores);
    for (int64_t i = 0; i < t->queries; i++) {
        S(cap)(t, scores + i * keys);
        hidden = S(hide)(t, t->first + i, scores + i * keys, -(REAL)INFINITY) || hidden;
        S(weigh)(t, i, scores + i * keys);
    }
    S(add_values)(t, hidden);
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
            t->results.lse[t->first + i] = t->results.most[i] == -(REAL)INFINITY
                                               ? -(REAL)INFINITY
                                               : t->results.most[i] * S(scale_left)(t) + (REAL)log((double)t->results.sum[i]);
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
#if TILES
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
#if TILES
    tile_release();
#endif
}
