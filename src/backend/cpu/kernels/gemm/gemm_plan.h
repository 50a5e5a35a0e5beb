/* What a GEMM decides, whatever the element type: D is cut into tiles, each of which is one worker's at a time; a worker goes along K in
 * steps, copies the tile's rows of A for a step, and then one panel of B after another, as the register tiles of SpMM read them, and adds
 * to the tile's sums, which wait in the second or third cache. In the last step they go through the epilogue a few rows at a time. Where
 * there are fewer tiles than threads, K is split among several units of work, each with sums of its own, which are added in the order of K.
 */
#ifndef SPK_BACKEND_CPU_KERNELS_GEMM_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_GEMM_PLAN_H

#include <math.h>

#include "backend/cpu/kernels/cost.h"
#include "op/groups.h"

/* The tunables of a row. */
typedef struct gemm_tunables {
    int nv;    /* vectors of a panel, at most */
    int depth; /* of a step of K, at most */
    int rows;  /* of a tile, at most */
    int pack;  /* what is copied: nothing (0), B (1), A too (2) */
} gemm_tunables;
#define GEMM_TUNED(row, params) \
    ((gemm_tunables){SPK_TUNED(row, params, NV), SPK_TUNED(row, params, DEPTH), SPK_TUNED(row, params, ROWS), SPK_TUNED(row, params, PACK)})

/* A tile is as wide as its sums fit into a cache; where K is one step there are none that wait, and A is copied the fewer times. */
enum { GEMM_TILE_COLUMNS = 768, GEMM_ONE_STEP_COLUMNS = 3072, GEMM_LEAST_DEPTH = 128, GEMM_HELD_ROWS = 32 };

typedef struct gemm_state {
    spk_problem problem; /* as the vectors lie along N: the given one, or turned */
    bool turned;         /* D^T = B^T A^T */
    bool pack_a, pack_b;
    int64_t vectors;      /* of a row of D */
    int64_t items;        /* of a batch, or groups */
    int64_t down, across; /* tiles of an item; of groups of rows each has as many as it needs */
    int64_t tile_rows;    /* at most */
    int64_t splits;       /* of K */
    int64_t depth;        /* rows of B a step, a multiple of 16 unless it is all */
    int width;            /* of the widest panel, in vectors */
    int64_t a_line;       /* elements from one row of a copy of A to the next; 0: it lies by columns of a register tile */
    int64_t workers;
    int64_t a_elements, b_elements, sum_elements; /* of the workspace: of a worker, and of a tile's sums */
} gemm_state;

typedef struct gemm_range {
    int64_t begin, end;
} gemm_range;

/* Part i of `parts` nearly equal ones. */
static inline gemm_range gemm_part(int64_t total, int64_t i, int64_t parts)
{
    return (gemm_range){total * i / parts, total * (i + 1) / parts};
}

static inline spk_layout gemm_other_layout(spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
}

static inline spk_operand gemm_turned(spk_operand operand)
{
    const int64_t rows = operand.rows;
    operand.rows = operand.cols;
    operand.cols = rows;
    operand.layout = gemm_other_layout(operand.layout);
    return operand;
}

/* D^T = B^T A^T, with all that lies like D. */
static inline spk_problem gemm_turn(const spk_problem *given)
{
    spk_problem p = *given;
    p.m = given->n;
    p.n = given->m;
    p.a = gemm_turned(given->b);
    p.b = gemm_turned(given->a);
    p.c = gemm_turned(given->c);
    p.d = gemm_turned(given->d);
    p.residual = gemm_turned(given->residual);
    p.group_axis = given->group_axis == SPK_GROUP_ROWS   ? SPK_GROUP_COLS
                   : given->group_axis == SPK_GROUP_COLS ? SPK_GROUP_ROWS
                                                         : given->group_axis;
    p.preact = gemm_turned(given->preact);
    if (given->epilogue.bias != SPK_BIAS_NONE)
        p.epilogue.bias = given->epilogue.bias == SPK_BIAS_PER_ROW ? SPK_BIAS_PER_COL : SPK_BIAS_PER_ROW;
    return p;
}

/* Vectors lie along the lines of D, unless that leaves most of their lanes empty. Groups are of rows. */
static inline bool gemm_is_turned(const spk_problem *problem, int64_t lanes)
{
    if (problem->group_axis == SPK_GROUP_ROWS || problem->group_axis == SPK_GROUP_COLS)
        return problem->group_axis == SPK_GROUP_COLS;
    const double along_n = (double)tile_ceil(problem->n, lanes) * (double)lanes * (double)problem->m,
                 along_m = (double)tile_ceil(problem->m, lanes) * (double)lanes * (double)problem->n;
    return problem->d.layout == SPK_ROW_MAJOR ? along_n > 1.5 * along_m : along_m <= 1.5 * along_n;
}

/* As few tiles as their limits allow, or more where the last round of them would leave threads without work. */
static inline void gemm_cut_tiles(gemm_state *s, gemm_tunables tuned, int64_t workers, const tile_machine *machine)
{
    const bool by_group = s->problem.group_axis == SPK_GROUP_ROWS;
    const int64_t m = by_group ? tile_ceil(s->problem.m, s->items) : s->problem.m, lanes = machine->lanes,
                  height = tile_height(machine, tuned.nv);
    const int64_t columns = s->problem.k <= tuned.depth ? GEMM_ONE_STEP_COLUMNS : GEMM_TILE_COLUMNS;
    const int64_t down = tile_ceil(m, tuned.rows), across = tile_ceil(s->vectors * lanes, columns);
    double best = INFINITY;
    s->down = down > 0 ? down : 1;
    s->across = across > 0 ? across : 1;
    s->tile_rows = tuned.rows;
    const int64_t most = s->down * s->across + 2 * workers;
    for (int64_t i = down; workers > 1 && i * across <= most && (i == down || m / i >= 2 * height); i++)
        for (int64_t j = across; i * j <= most && (j == across || s->vectors / j >= 2 * tuned.nv); j++) {
            const double rows = (double)tile_ceil(m, i), width = (double)(tile_ceil(s->vectors, j) * lanes),
                         rounds = (double)tile_ceil(i * j * s->items, workers), tile = rows * width + 12 * (rows + width);
            if (rounds * tile < 0.995 * best) {
                best = rounds * tile;
                s->down = i;
                s->across = j;
            }
        }
    if (!by_group)
        s->tile_rows = tile_ceil(m, s->down);
}

static inline void gemm_cut_depth(gemm_state *s, gemm_tunables tuned, int64_t workers)
{
    const int64_t k = s->problem.k, tiles = s->items * s->down * s->across, most = k / GEMM_LEAST_DEPTH,
                  wanted = s->problem.group_axis == SPK_GROUP_NONE ? workers / tiles : 1;
    s->splits = wanted < most ? wanted : most;
    s->splits = s->splits > 1 ? s->splits : 1;
    const int64_t part = tile_ceil(k, s->splits), steps = tile_ceil(part, tuned.depth);
    s->depth = steps > 0 ? tile_ceil(tile_ceil(part, steps), 16) * 16 : 0;
    s->workers = tiles * s->splits < workers ? tiles * s->splits : workers;
}

static inline gemm_state gemm_make_state(const spk_problem *problem, gemm_tunables tuned, int threads, const tile_machine *machine)
{
    const int64_t lanes = machine->lanes, workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : threads;
    gemm_state s = {.turned = gemm_is_turned(problem, lanes), .pack_a = tuned.pack > 1, .pack_b = tuned.pack > 0, .items = problem->batch};
    s.problem = s.turned ? gemm_turn(problem) : *problem;
    s.vectors = tile_ceil(s.problem.n, lanes);
    gemm_cut_tiles(&s, tuned, workers, machine);
    gemm_cut_depth(&s, tuned, workers);
    const int64_t rows = s.tile_rows < s.problem.m ? s.tile_rows : s.problem.m, vectors = tile_ceil(s.vectors, s.across),
                  panels = tile_ceil(vectors, tuned.nv);
    s.width = panels > 0 ? (int)tile_ceil(vectors, panels) : 1;
    const int64_t height = tile_height(machine, s.width), padded = tile_ceil(height, lanes) * lanes;
    const int64_t steps = tile_ceil(s.depth, machine->step);
    if (s.pack_a && s.problem.a.layout == SPK_ROW_MAJOR) { /* an odd number of cache lines, so that rows lie in different sets */
        s.a_line = (tile_ceil(steps * machine->element_bytes, 64) | 1) * (64 / machine->element_bytes);
        s.a_elements = tile_ceil(rows * s.a_line, 16) * 16;
    } else if (s.pack_a)
        s.a_elements = tile_most_tiles(machine, rows, s.width) * padded * steps;
    s.b_elements = s.depth * lanes * s.width;
    s.sum_elements = s.splits == 1 && s.problem.k <= s.depth ? 0 : tile_ceil(rows * vectors * lanes, 16) * 16;
    return s;
}

static inline bool gemm_applicable(const spk_problem *problem, gemm_tunables tuned, const spk_device *device, const tile_machine *machine,
                                   const char **why)
{
    const gemm_state s = gemm_make_state(problem, tuned, device->executor.threads, machine);
    const int nv = tuned.nv, pack = tuned.pack;
    const int64_t least_depth = 256 * machine->step, least_rows = 192 * machine->step; /* that the table has */
    if (pack < 2 && tile_converts(problem))
        *why = "f16 and bf16 are converted as they are copied: PACK=2";
    else if (pack == 0 && s.problem.b.layout != SPK_ROW_MAJOR)
        *why = "PACK=0 reads along vectors in place: what they lie along must be contiguous";
    else if ((tuned.depth > least_depth && problem->k <= least_depth) || (tuned.depth > 1024 && problem->k <= 1024))
        *why = "K is one step for a smaller DEPTH too";
    else if (tuned.rows > least_rows && s.problem.m <= least_rows)
        *why = "smaller ROWS make the same tiles";
    else if (nv > 2 &&
             (tile_ceil(s.vectors, nv) == tile_ceil(s.vectors, 2) || (nv > 3 && tile_ceil(s.vectors, nv) == tile_ceil(s.vectors, 3))))
        *why = "a smaller NV makes the same panels";
    return *why == NULL;
}

static inline spk_status gemm_bind(spk_bound *bound, gemm_tunables tuned, const tile_machine *machine)
{
    gemm_state *state = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    *state = gemm_make_state(&bound->problem, tuned, bound->device->executor.threads, machine);
    const int64_t sums = state->splits > 1 ? state->items * state->down * state->across * state->splits : state->workers;
    const int64_t elements = state->workers * (state->a_elements + state->b_elements) + sums * state->sum_elements;
    bound->workspace_bytes = (size_t)(elements * machine->element_bytes);
    if (state->problem.group_axis == SPK_GROUP_ROWS) /* units before each group, and all */
        bound->workspace_bytes += (size_t)(state->items + 1) * sizeof(int64_t);
    bound->state = state;
    return SPK_OK;
}

static inline void gemm_unbind(spk_bound *bound)
{
    if (bound->state != NULL)
        spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static inline double gemm_cost(const spk_problem *problem, const spk_device *device, gemm_tunables tuned, const tile_machine *tiles)
{
    const cost_machine machine = cost_of_machine(device, tiles->fused);
    const gemm_state s = gemm_make_state(problem, tuned, device->executor.threads, tiles);
    const spk_problem *p = &s.problem;
    if (p->m == 0 || p->n == 0)
        return 0.1;
    const bool by_group = p->group_axis == SPK_GROUP_ROWS;
    const double items = (double)s.items, m = (double)p->m / (by_group ? items : 1),
                 k = (double)p->k / (p->group_axis == SPK_GROUP_DEPTH ? items : 1);
    const int64_t lanes = tiles->lanes, rows = tile_ceil((int64_t)ceil(m), s.down), vectors = tile_ceil(s.vectors, s.across);
    const tile_split split = tile_make_split(tiles, rows > 0 ? (int)rows : 1, s.width);
    const double steps = s.depth > 0 ? ceil(k / (double)s.depth) : 1, units = (double)(s.down * s.across),
                 panels = (double)tile_ceil(vectors, s.width);
    const double deep = k / steps / tiles->step;
    const double step = split.taller * cost_of_tile_block(&machine, split.low + 1, s.width, deep) +
                        (split.tiles - split.taller) * (split.low > 0 ? cost_of_tile_block(&machine, split.low, s.width, deep) : 0);
    double cycles = units * steps * panels * (step + 20 * split.tiles) + 200 * units;
    if (steps > 1)
        cycles += 2 * steps * m * (double)s.vectors;
    /* Copies: B once a row of tiles, A once a column of them; turning costs more. In place the rows of a register tile must not share the
     * few places that a cache has for their addresses. */
    const double b_copy = p->b.layout == SPK_ROW_MAJOR ? 0.2 : 0.6, a_copy = 0.3;
    const double scale = (double)tiles->element_bytes / 4 / tiles->step;
    const bool crowded = p->a.layout == SPK_ROW_MAJOR && p->a.ld * tiles->element_bytes % 4096 == 0 && split.low >= 8;
    if (s.pack_a)
        cycles += a_copy * scale * (double)s.across * k * m;
    else
        cycles *= crowded ? 1.4 : 1.02;
    /* So must rows of B in place, each of which a panel has some lines of. */
    if (!s.pack_b && p->b.ld * tiles->element_bytes % 4096 == 0)
        cycles *= s.depth > 256 ? 1.9 : 1.2;
    if (s.pack_b || p->n % lanes != 0)
        cycles += b_copy * scale * (double)s.down * k * (double)((s.pack_b ? s.vectors : s.width) * lanes);
    cycles += m * (double)s.vectors * cost_of_epilogue(p, (double)lanes);
    return cost_finish(problem, device, &machine, items * cycles, items * units * (double)s.splits, s.splits > 1 ? 2 : 1);
}

#endif
