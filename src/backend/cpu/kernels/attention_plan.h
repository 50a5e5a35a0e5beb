/* The tiled attention's cut of the work, and what its threads share. */
#ifndef SPK_BACKEND_CPU_KERNELS_ATTENTION_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_ATTENTION_PLAN_H

#include <math.h>
#include <stdatomic.h>

#include "backend/cpu/kernels/cost.h"
#include "op/attention/attention.h"

/* Of a candidate: queries of a tile, and keys that it takes at once. */
typedef struct attention_tunables {
    int queries, keys;
} attention_tunables;

#define ATTENTION_TUNED(row, params) ((attention_tunables){SPK_TUNED(row, params, QUERIES), SPK_TUNED(row, params, KEYS)})

/* Elements of REAL that a worker has for itself, and where each array begins. Lines begin at multiples of 16 elements. */
typedef struct attention_room {
    int64_t wide_v;                     /* columns of V and O, whole vectors */
    int64_t q, k, v, scores, out, most; /* scaled Q; K, turned; V; scores of a tile; O; maxima and sums */
    int64_t elements;
} attention_room;

static inline int64_t attention_line(int64_t elements)
{
    return (elements + 15) / 16 * 16;
}

static inline attention_room attention_room_of(const spk_problem *p, attention_tunables tuned)
{
    attention_room made = {.wide_v = attention_line(p->depth_v)};
    made.k = attention_line(tuned.queries * p->k);
    made.v = made.k + attention_line(tuned.keys * p->k);
    made.scores = made.v + tuned.keys * made.wide_v;
    made.out = made.scores + (int64_t)tuned.queries * tuned.keys;
    made.most = made.out + tuned.queries * made.wide_v;
    made.elements = made.most + attention_line(2 * (int64_t)tuned.queries);
    return made;
}

/* Tiles of queries of one head. */
static inline int64_t attention_tiles(const spk_problem *p, attention_tunables tuned)
{
    return (p->m + tuned.queries - 1) / tuned.queries;
}

typedef struct attention_job {
    const spk_bound *bound;
    const spk_args *args;
    attention_tunables tuned;
    attention_room room;
    int64_t tiles, all_tiles; /* of a head, and of all */
    atomic_llong next;        /* tile that no one has taken */
} attention_job;

static inline int64_t attention_workers(const spk_problem *p, const spk_device *device, attention_tunables tuned)
{
    const int64_t all = attention_tiles(p, tuned) * spk_operand_heads(&p->operand[ATTENTION_Q]),
                  threads = device->executor.threads > 0 ? device->executor.threads : 1;
    return all < threads ? all : threads;
}

static inline bool attention_applicable(const spk_problem *p, attention_tunables tuned, const char **why)
{
    if (p->m < tuned.queries && tuned.queries > 12)
        *why = "the tile has more queries than the problem";
    return *why == NULL;
}

/* Cycles of multiplying, exponentials, and turning K; lanes: of the vectors. */
static inline double attention_cost(const spk_problem *p, const spk_device *device, attention_tunables tuned, int lanes, bool fused)
{
    const cost_machine machine = cost_of_machine(device, fused);
    const double heads = (double)spk_operand_heads(&p->operand[ATTENTION_Q]), pairs = spk_attention_pairs(p) * heads,
                 tiles = (double)attention_tiles(p, tuned) * heads,
                 height = (double)tuned.queries < (double)p->m ? tuned.queries : (double)p->m;
    const double multiplied = pairs * (double)(p->k + p->depth_v) / lanes / machine.multiplies * (height < 6 ? 2 : 1.15);
    const double turned = pairs / (height > 0 ? height : 1) * (1.2 * (double)p->k + 0.4 * (double)p->depth_v) * 8 / lanes;
    const double cycles = multiplied + turned + pairs * (p->band.soft_cap ? 20 + 14.0 / lanes : 14.0 / lanes) + tiles * 300;
    return cost_finish(p, device, &machine, cycles, tiles, 1);
}

#endif
