/* What an SDDMM decides, whatever the element type: Y is packed as SpMM packs B, each block column into panels of a few vectors; then a
 * stored block is a few register tiles over K, taken in steps, so that Y's part stays in the first caches and X's, in place or a copy,
 * serves all blocks of a row. Sums wait in the workspace between steps. A task is a run of stored blocks; where there are fewer blocks than
 * tasks are wanted, K is split among several tasks, each with sums of its own, which are added in the order of K. */
#ifndef SPK_BACKEND_CPU_KERNELS_SDDMM_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_SDDMM_PLAN_H

#include "backend/cpu/kernels/cost.h"

/* The tunables of a row. */
typedef struct sddmm_tunables {
    int nv, depth, copy; /* vectors of a panel, at most; rows of Y a step; whether X is copied, a step at a time */
} sddmm_tunables;
#define SDDMM_TUNED(row, params) ((sddmm_tunables){SPK_TUNED(row, params, NV), SPK_TUNED(row, params, DEPTH), SPK_TUNED(row, params, COPY)})

enum { SDDMM_MOST_PANELS = 128, SDDMM_PACKED_BYTES = 1 << 23 };

/* Elements between the lines of the copy of X, so that they do not share sets of a cache. */
enum { SDDMM_GAP = 16 };

typedef struct sddmm_state {
    int64_t vectors;                       /* of a row of a block */
    int64_t panels;                        /* of a block column */
    int64_t starts[SDDMM_MOST_PANELS + 1]; /* of the panels, in vectors */
    int width;                             /* of the widest panel */
    int64_t chunk;                         /* rows of Y packed at a time: all, unless they are very many */
    int64_t depth;                         /* of them a step */
    int64_t parts, splits;                 /* tasks: runs of blocks, parts of K */
    int64_t y_elements, x_elements;        /* of the workspace: packed Y; a copy of some of X for each task; */
    int64_t sum_elements;                  /* and the sums of each block and part of K */
} sddmm_state;

static inline int64_t sddmm_step(sddmm_tunables tuned, int64_t k)
{
    return k < tuned.depth ? k : tuned.depth;
}

/* Parts of K, whole steps each. */
static inline int64_t sddmm_splits(int64_t blocks, int threads, int64_t steps)
{
    const int64_t wanted = blocks > 0 && threads > 1 ? 4 * threads / blocks : 1;
    return wanted < 1 || steps < 1 ? 1 : wanted < steps ? wanted : steps;
}

static inline bool sddmm_applicable(const spk_problem *problem, sddmm_tunables tuned, const tile_machine *machine, const char **why)
{
    const int nv = tuned.nv;
    const int64_t vectors = tile_ceil(problem->pattern->block_cols, machine->lanes);
    if (machine->lanes > 4 * (int64_t)problem->pattern->block_cols)
        *why = "its vectors are more than four times as wide as a block";
    else if (nv > 2 && (tile_ceil(vectors, nv) == tile_ceil(vectors, 2) || (nv > 3 && tile_ceil(vectors, nv) == tile_ceil(vectors, 3))))
        *why = "a smaller NV makes the same panels";
    else if (tuned.copy == 0 && (problem->a.layout != SPK_ROW_MAJOR || tile_converts(problem)))
        *why = "COPY=0 reads rows of X in place: X must be row-major, not f16 or bf16";
    else if (tuned.depth > 256 && problem->k <= 256)
        *why = "K is one step for DEPTH=256 too";
    return *why == NULL;
}

static inline spk_status sddmm_bind(spk_bound *bound, sddmm_tunables tuned, const tile_machine *machine)
{
    const spk_bsr_view *view = &bound->view;
    const int64_t threads = bound->device->executor.threads, k = bound->problem.k, lanes = machine->lanes;
    const bool serial = spk_problem_flops(&bound->problem) < TILE_SERIAL_FLOPS || threads == 1;
    sddmm_state *state = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    state->vectors = tile_ceil(view->block_cols, lanes);
    state->panels = tile_ceil(state->vectors, tuned.nv);
    for (int64_t panel = 0; panel <= state->panels; panel++)
        state->starts[panel] = state->vectors * panel / state->panels;
    state->width = (int)tile_ceil(state->vectors, state->panels);
    const int64_t row = view->grid_cols * state->vectors * lanes, most = SDDMM_PACKED_BYTES / machine->element_bytes;
    state->depth = sddmm_step(tuned, k);
    state->chunk = row * k <= most || state->depth == 0 ? k : (most / row > state->depth ? most / row / state->depth : 1) * state->depth;
    state->parts = serial || view->nnzb < 2 ? 1 : view->nnzb < 4 * threads ? view->nnzb : 4 * threads;
    state->splits = serial ? 1 : sddmm_splits(view->nnzb, (int)threads, state->depth > 0 ? tile_ceil(state->chunk, state->depth) : 1);
    state->y_elements = tile_ceil(row * tile_ceil(state->chunk, machine->step), 16) * 16;
    state->x_elements = tile_ceil((view->block_rows + SDDMM_GAP) * (state->depth + SDDMM_GAP), 16) * 16;
    state->sum_elements = view->block_rows * state->vectors * lanes;
    const int64_t elements = state->y_elements + state->splits * (state->parts * state->x_elements + view->nnzb * state->sum_elements);
    bound->workspace_bytes = (size_t)(elements * machine->element_bytes);
    bound->state = state;
    return SPK_OK;
}

static inline void sddmm_unbind(spk_bound *bound)
{
    if (bound->state != NULL)
        spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static inline double sddmm_cost(const spk_problem *problem, const spk_device *device, sddmm_tunables tuned, const tile_machine *tiles)
{
    const cost_machine machine = cost_of_machine(device, tiles->fused);
    const spk_pattern *pattern = problem->pattern;
    const int64_t vectors = tile_ceil(pattern->block_cols, tiles->lanes), panels = tile_ceil(vectors, tuned.nv);
    const int width = (int)tile_ceil(vectors, panels);
    const tile_split split = tile_make_split(tiles, pattern->block_rows, width);
    const double k = (double)problem->k, blocks = (double)pattern->nnzb,
                 steps = k / (double)(problem->k > 0 ? sddmm_step(tuned, problem->k) : 1);
    const double tile = cost_of_tile_block(&machine, split.low > 0 ? split.low : 1, width, k / (double)tiles->step),
                 rows = (double)tile_grid_rows(problem);
    const double packed = k * (double)tile_ceil(pattern->cols, pattern->block_cols) * (double)(vectors * tiles->lanes);
    double cycles = blocks * (double)panels * split.tiles * (tile + 20 * steps + 2.0 * (double)width * (split.low + 1) * steps);
    cycles += packed * (double)tiles->element_bytes / (double)tiles->step / (problem->b.layout == SPK_ROW_MAJOR ? 6 : 4);
    cycles += (tuned.copy ? 0.6 : 0.1) * k * (double)pattern->block_rows * rows + blocks * (double)(pattern->block_rows * vectors) * 6;
    const int64_t splits = sddmm_splits(pattern->nnzb, device->executor.threads, (int64_t)steps + 1);
    return cost_finish(problem, device, &machine, cycles, blocks * (double)splits, splits > 1 ? 3 : 2);
}

#endif
