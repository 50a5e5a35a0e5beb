/* A model of one multiprocessor, fitted to times on an H200 at the clock that its power allows (tests/unit/test_attention_model.c). */
#include "backend/cuda/model/attention_sm90.h"

#include <math.h>

#include "backend/cuda/host/attention/attention.h"

enum { ROWS = 64 };

static const double FLOPS_US = 6.2e6, STEP_US = 0.148, L2_BYTES_US = 86.8e3, HBM_BYTES_US = 35e3;

/* Exponentials and what goes with them, of a step: a thousand a microsecond, and what each warpgroup waits. */
static double softened_us(const attention_constants *c)
{
    const double elements = (double)ROWS * c->consumers * c->step_keys;
    return c->consumers < 3 ? elements / 15.16e3 + 0.0838 * c->consumers : elements / 18.45e3 + 0.0877 * c->consumers;
}

/* One step of each of a block's warpgroups. once: nothing else reads these keys. */
static double step_us(const attention_constants *c, const attention_shape *s, bool once)
{
    const double multiplied = 2.0 * ROWS * c->consumers * c->step_keys * (s->depth16 + c->depth_v) / FLOPS_US + STEP_US * c->consumers,
                 brought = (double)s->rings * (s->k_bytes + s->v_bytes) / (once ? HBM_BYTES_US : L2_BYTES_US);
    const bool wide = c->depth_v >= 192, narrow = c->step_keys <= 80 && !wide;
    double us = multiplied + (c->consumers == 1 ? 0.25 : 0) + (narrow && !c->q_held ? 0.04 : 0); /* Q is read from shared memory, too */
    us = fmax(us, softened_us(c));
    us *= c->q_held && c->depth <= 64 && c->consumers < 3 ? 0.978 : 1;
    us *= s->registers > 180 && !wide ? 1.028 : 1;
    us *= c->join ? 1.032 : 1;
    us *= !c->turns ? 1 : c->depth > 128 ? 0.949 : c->consumers == 3 ? 0.986 : 0.996;
    us *= c->form != ATTENTION_ALONE ? 1 : c->consumers == 3 ? 1.013 : 1.054;
    return fmax(us, brought);
}

/* Beginning and end of a tile, which the other warpgroups' products hide in part. */
static double tile_us(const attention_constants *c, const attention_shape *s)
{
    return 0.05 + 0.01534 * c->depth_v + (c->turns ? 0.381 : 0) - (s->staged ? 0.487 + 0.00284 * c->depth_v : 0);
}

static int common_divisor(int a, int b)
{
    while (b != 0) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Steps of a tile that a limit adds to its share of pairs: it goes down the tile by as many keys as that has rows, of which half are waste,
 * and ends within a step. And what hiding costs in those that it goes through, in steps. */
static double edge_steps(const attention_constants *c, double queries, double *hidden)
{
    const double part = queries / c->step_keys, ragged = 1 - (double)common_divisor((int)queries, c->step_keys) / c->step_keys;
    *hidden = 0.23 * (c->left + c->right) * (part + 1);
    return (c->left + c->right) * 0.5 * (part + ragged);
}

double spk_cuda_attention_sm90_us(const spk_problem *p, const attention_constants *c, int64_t block_queries, int splits, int processors)
{
    const attention_shape s = attention_shape_of(*c);
    const attention_tiling t = spk_cuda_attention_tiling(p, s.rows, s.heads, c->step_keys);
    const double workers = (double)processors * s.rings, whole = (double)t.all > 1 ? (double)t.all : 1, tiles = whole * splits;
    const double queries = fmax(fmin(s.rows, (double)block_queries), 1), rows = queries * s.heads;
    double hidden;
    const double edges = edge_steps(c, queries, &hidden), seen = p->pairs * (double)p->batch / (whole * rows * c->step_keys) + edges;
    const double steps = (edges > 0 ? seen + fmin(hidden, 0.23 * seen) : ceil(seen - 0.01)) / splits;
    const double waves = ceil(tiles / workers), even = tiles / workers > 1 ? tiles / workers : 1;
    const bool uneven = c->left || c->right || c->masked;
    const double turns = uneven ? 0.2 * waves + 0.8 * even : waves;
    const double tile = fmax(steps, 1) * step_us(c, &s, t.row_tiles == 1) + tile_us(c, &s);
    if (c->shared && !uneven) /* every worker has as much to do; some have parts of two tiles at the end */
        return 4 + 3 + even * tile + 2 * tile_us(c, &s);
    return 4 + (splits > 1 ? 3 + 0.05 * splits : 0) + turns * tile;
}
