/* Attention's gradients, a tile of queries at a time against some keys at a time: scores and weights once more, from LSE; their gradients;
 * and three products with these, of which grad_Q is the tile's, and grad_K and grad_V go to sums of the worker's share (Dao et al. 2022,
 * arXiv:2205.14135, algorithm 4, with the loops exchanged). */
#include <string.h>

#ifndef GRADIENTS
#define GRADIENTS 1
#endif
#include "backend/cpu/kernels/attention/attention_products.h"
#if PAIRED
#include "backend/cpu/kernels/attention/attention_backward_pairs.h"
#else
#include "backend/cpu/kernels/attention/attention_backward_rows.h"
#endif

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
        S(put_rows)(of_k, room->wide_k, count, p->k, PAIRED ? (REAL)args->scalar[ATTENTION_SCALE] : 1,
                    HEAD(STORED *, BACKWARD_GRAD_K, head_kv) + first * ld_k, ld_k);
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
#if TILES
    S(attention_begin)();
#endif
    for (int64_t task; (task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->tasks;) {
        REAL *of_task = sums + (shares > 1 ? task : worker) * job->room.sums;
        S(take_share)(job, task / shares, task % shares, own, of_task);
        if (shares == 1)
            S(put_sums)(job, task, 0, spk_attention_keys_written(&job->bound->problem, job->args), of_task);
    }
#if TILES
    tile_release();
#endif
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
