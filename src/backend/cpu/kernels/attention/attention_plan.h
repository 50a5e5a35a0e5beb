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

/* How the queries of a head are cut into tiles: a tile lies in one block row of a mask, whose tiles are equally high, in whole squares of
 * products. Where there is no mask, all queries are one block row. */
typedef struct attention_cut {
    int64_t block, parts, height; /* queries of a block row, tiles in it, queries of a tile */
    int64_t tiles;                /* of a head */
} attention_cut;

enum { ATTENTION_SQUARE = 6 };

static inline attention_cut attention_cut_of(const spk_problem *p, attention_tunables tuned)
{
    const bool whole = p->pattern == NULL || p->pattern->block_rows >= p->m;
    attention_cut cut = {.block = whole ? p->m : p->pattern->block_rows};
    if (cut.block == 0)
        return cut;
    cut.parts = (cut.block + tuned.queries - 1) / tuned.queries;
    cut.height = ((cut.block + cut.parts - 1) / cut.parts + ATTENTION_SQUARE - 1) / ATTENTION_SQUARE * ATTENTION_SQUARE;
    cut.height = cut.height < tuned.queries ? cut.height : tuned.queries;
    cut.tiles = (p->m + cut.block - 1) / cut.block * cut.parts;
    return cut;
}

typedef struct attention_job {
    const spk_bound *bound;
    const spk_args *args;
    attention_tunables tuned;
    attention_room room;
    attention_cut cut;
    int64_t all_tiles; /* of all heads */
    atomic_llong next; /* tile that no one has taken */
} attention_job;

static inline int64_t attention_workers(const spk_problem *p, const spk_device *device, attention_tunables tuned)
{
    const int64_t all = attention_cut_of(p, tuned).tiles * spk_operand_heads(&p->operand[ATTENTION_Q]),
                  threads = device->executor.threads > 0 ? device->executor.threads : 1;
    return all < threads ? all : threads;
}

static inline bool attention_applicable(const spk_problem *p, attention_tunables tuned, const char **why)
{
    const int64_t block = p->pattern != NULL && p->pattern->block_rows < p->m ? p->pattern->block_rows : p->m;
    if (p->m < tuned.queries && tuned.queries > 12)
        *why = "the tile has more queries than the problem";
    else if (block <= tuned.queries / 2 && tuned.queries > 48)
        *why = "a block row of the mask has fewer queries than a tile of half the size";
    return *why == NULL;
}

/* Cycles of multiplying, turning K, and exponentials with what a query takes for each step of keys; lanes: of the vectors. */
static inline double attention_cost(const spk_problem *p, const spk_device *device, attention_tunables tuned, int lanes, bool fused)
{
    const cost_machine machine = cost_of_machine(device, fused);
    const attention_cut cut = attention_cut_of(p, tuned);
    const double pairs = p->pairs, tiles = (double)(cut.tiles * spk_operand_heads(&p->operand[ATTENTION_Q])),
                 height = (double)cut.height < (double)p->m ? (double)cut.height : (double)p->m;
    const double multiplied = pairs * (double)(p->k + p->depth_v) / lanes / machine.multiplies * (height < 6 ? 2 : 1.15);
    const double turned = pairs / (height > 0 ? height : 1) * (1.2 * (double)p->k + 0.4 * (double)p->depth_v) * 8 / lanes;
    const double weighed = pairs * ((p->band.use_softcap ? 20 + 14.0 / lanes : 14.0 / lanes) + 60.0 / tuned.keys);
    const double cycles = multiplied + turned + weighed + tiles * 300;
    return cost_finish(p, device, &machine, cycles, tiles, 1);
}

#endif
