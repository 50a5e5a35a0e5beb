/* The tiled gradients of attention: cut of the work, and what its threads share. */
#ifndef SPK_BACKEND_CPU_KERNELS_ATTENTION_BACKWARD_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_ATTENTION_BACKWARD_PLAN_H

#include "backend/cpu/kernels/attention/attention_plan.h"
#include "op/attention_backward/operands.h"

/* Of a candidate: queries of a tile, keys that it takes at once, and into how many shares the tiles of a head of K and V are dealt out.
 * Each share sums grad_K and grad_V for itself; the sums are added in the order of the shares, so that the bits do not depend on the
 * threads. */
typedef struct backward_tunables {
    attention_tunables tile;
    int shares;
} backward_tunables;

#define BACKWARD_TUNED(row, params) ((backward_tunables){ATTENTION_TUNED(row, params), SPK_TUNED(row, params, SHARES)})

/* Elements of REAL that a worker has for itself, and where each array begins, and those of the sums of a share. Lines begin at multiples of
 * 16 elements. */
typedef struct backward_room {
    int64_t wide_k, wide_v;                                    /* columns of K and of V, in whole lines */
    int64_t q, out, k, v, rows, weights, scores, of_q, deltas; /* scaled Q; grad_O; K and V, turned; rows of K; P; grad_S; grad_Q */
#if PAIRED
    int64_t q_rows, out_rows, rows_of_scores; /* Q and grad_O as pairs of rows; grad_S by rows */
    int64_t turned, buffer;                   /* TILES: P or grad_S as rows of keys; sums of keys that are no whole tiles */
#endif
    int64_t elements;   /* of a worker */
    int64_t of_v, sums; /* of a share: where grad_V begins, behind grad_K; all */
} backward_room;

#if PAIRED
static inline backward_room backward_room_of(const spk_problem *p, backward_tunables tuned)
{
    const int64_t queries = tuned.tile.queries, keys = tuned.tile.keys, pairs_k = (p->k + 1) / 2, pairs_v = (p->depth_v + 1) / 2;
    backward_room made = {.wide_k = attention_line(p->k), .wide_v = attention_line(p->depth_v)};
    made.out = attention_line(queries * pairs_k);
    made.q_rows = made.out + attention_line(queries * pairs_v);
    made.out_rows = made.q_rows + queries / 2 * made.wide_k;
    made.k = made.out_rows + queries / 2 * made.wide_v;
    made.v = made.k + keys * pairs_k;
    made.rows = made.v + keys * pairs_v;
    made.weights = made.rows + keys / 2 * made.wide_k;
    made.scores = made.weights + queries * keys;
    made.rows_of_scores = made.scores + queries * keys;
    made.of_q = made.rows_of_scores + queries * keys / 2;
    made.deltas = made.of_q + queries * made.wide_k;
    made.turned = made.deltas + attention_line(2 * queries);
    made.elements = made.turned;
#if TILES /* a square of tiles may begin at any vector of keys */
    made.buffer = made.turned + (keys + 32) * queries / 2;
    made.elements = made.buffer + (keys + 32) * (made.wide_k > made.wide_v ? made.wide_k : made.wide_v);
#endif
    made.of_v = p->n * made.wide_k;
    made.sums = p->n * (made.wide_k + made.wide_v);
    return made;
}
#else
static inline backward_room backward_room_of(const spk_problem *p, backward_tunables tuned)
{
    const int64_t queries = tuned.tile.queries, keys = tuned.tile.keys;
    backward_room made = {.wide_k = attention_line(p->k), .wide_v = attention_line(p->depth_v)};
    made.out = queries * made.wide_k;
    made.k = made.out + queries * made.wide_v;
    made.v = made.k + attention_line(keys * p->k);
    made.rows = made.v + attention_line(keys * p->depth_v);
    made.weights = made.rows + keys * made.wide_k;
    made.scores = made.weights + queries * keys;
    made.of_q = made.scores + queries * keys;
    made.deltas = made.of_q + queries * made.wide_k;
    made.elements = made.deltas + attention_line(2 * queries);
    made.of_v = p->n * made.wide_k;
    made.sums = p->n * (made.wide_k + made.wide_v);
    return made;
}
#endif

typedef struct backward_job {
    const spk_bound *bound;
    const spk_args *args;
    backward_tunables tuned;
    backward_room room;
    attention_cut cut;
    int64_t workers, tasks; /* tasks: shares of all heads of K and V */
    atomic_llong next;      /* task that no one has taken */
} backward_job;

static inline int64_t backward_tasks(const spk_problem *p, backward_tunables tuned)
{
    return spk_operand_heads(&p->operand[ATTENTION_K]) * tuned.shares;
}

static inline int64_t backward_workers(const spk_problem *p, const spk_device *device, backward_tunables tuned)
{
    const int64_t tasks = backward_tasks(p, tuned), threads = device->executor.threads > 0 ? device->executor.threads : 1;
    return tasks < threads ? tasks : threads;
}

/* Arrays of sums: one for each share, or where there is but one share a head, for each worker, who is done with a head before the next. */
static inline int64_t backward_arrays(const spk_problem *p, const spk_device *device, backward_tunables tuned)
{
    return tuned.shares > 1 ? backward_tasks(p, tuned) : backward_workers(p, device, tuned);
}

/* Rows of K and V in a piece of the adding up. */
enum { BACKWARD_ROWS = 256 };

static inline bool backward_applicable(const spk_problem *p, const spk_device *device, backward_tunables tuned, const char **why)
{
    const double elements = (double)backward_arrays(p, device, tuned) * (double)backward_room_of(p, tuned).sums;
    if (!attention_applicable(p, tuned.tile, why))
        return false;
    if (tuned.shares > 1 && tuned.shares > attention_cut_of(p, tuned.tile).tiles * spk_attention_sharing(p))
        *why = "a head has fewer tiles of queries than there are shares";
    else if (tuned.shares > 1 && elements > 0x1p28)
        *why = "the sums of all shares take more than 2^28 numbers";
    return *why == NULL;
}

/* Cycles of multiplying, turning K and V, and exponentials; lanes: of the vectors. */
static inline double backward_cost(const spk_problem *p, const spk_device *device, backward_tunables tuned, int lanes, bool fused)
{
    const cost_machine machine = cost_of_machine(device, fused);
    const attention_cut cut = attention_cut_of(p, tuned.tile);
    const double tiles = (double)(cut.tiles * spk_operand_heads(&p->operand[ATTENTION_Q])),
                 height = (double)cut.height < (double)p->m ? (double)cut.height : (double)p->m, tasks = (double)backward_tasks(p, tuned);
    const double multiplied = p->pairs * (double)(3 * p->k + 2 * p->depth_v) / lanes / machine.multiplies * (height < 6 ? 2 : 1.2);
    const double turned = p->pairs / (height > 0 ? height : 1) * (2 * (double)p->k + 1.2 * (double)p->depth_v) * 8 / lanes;
    const double weighed = p->pairs * ((p->band.use_softcap ? 20 : 0) + 24.0 / lanes + 60.0 / tuned.tile.keys);
    const double summed = tasks * (double)backward_room_of(p, tuned).sums * 3 / lanes;
    return cost_finish(p, device, &machine, multiplied + turned + weighed + summed + tiles * 400, tasks, 1);
}

#endif
