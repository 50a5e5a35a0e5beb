/* What a tiled SDDMM decides, whatever the element type. Y is packed as SpMM packs B, each block column into panels of a few vectors; then
 * a stored block is a few register tiles over K, taken in steps, so that Y's part stays in the first caches and X's, in place or a copy,
 * serves all blocks of a row. There is one packed copy for all threads, made before; or each thread packs the slice of the block columns
 * that it is at (OWN=1): then none waits for the others, nor reads what another core's cache has just written, but X is read once a slice.
 * Threads take runs of stored blocks (sddmm_runs.h). Where there are fewer blocks than runs are wanted, a block's rows are split into
 * strips; if that is too few, K is split too, and the sums of its parts are added in the order of K. */
#ifndef SPK_BACKEND_CPU_KERNELS_SDDMM_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_SDDMM_PLAN_H

#include <math.h>

#include "backend/cpu/kernels/cost.h"
#include "backend/cpu/kernels/sddmm/sddmm_runs.h"

/* The tunables of a row. */
typedef struct sddmm_tunables {
    int nv, depth, copy; /* vectors of a panel, at most; rows of Y a step; whether X is copied, a step at a time */
    int own;             /* whether each thread copies Y for itself */
    int serial;
} sddmm_tunables;
#define SDDMM_TUNED(row, params)                                                                               \
    ((sddmm_tunables){SPK_TUNED(row, params, NV), SPK_TUNED(row, params, DEPTH), SPK_TUNED(row, params, COPY), \
                      SPK_TUNED(row, params, OWN), SPK_TUNED(row, params, SERIAL)})

enum { SDDMM_MOST_PANELS = 128, SDDMM_PACKED_BYTES = 1 << 23, SDDMM_NOT_PACKED = -1 };

/* Elements between the lines of the copy of X, so that they do not share sets of a cache. */
enum { SDDMM_GAP = 16 };

/* Runs of a thread; rows of a strip, at least; threads that have copies of their own, at least; sums that wait until they are finished. */
enum { SDDMM_RUNS = 4, SDDMM_LEAST_STRIP = 16, SDDMM_OWNERS = 3, SDDMM_SUM_BYTES = 1 << 18 };

typedef struct sddmm_state {
    int64_t vectors;                       /* of a row of a block */
    int64_t panels;                        /* of a block column */
    int64_t starts[SDDMM_MOST_PANELS + 1]; /* of the panels, in vectors */
    int width;                             /* of the widest panel */
    int64_t chunk;                         /* rows of Y taken at a time: all, unless they are very many */
    int64_t depth, steps;                  /* of them a step, and steps */
    bool own;                              /* each worker packs Y for itself; else there is one slice, and one copy */
    bool fetches;                          /* a tile fetches packed Y for the next block, as it is not in this core's second cache */
    sddmm_runs runs;
    int64_t workers;
    int64_t slice_columns;             /* of the largest slice */
    int64_t packed_rows;               /* elements of a packed column: rows, or pairs */
    bool keeps_sums;                   /* of all blocks, as a block's come from several steps that do not follow each other */
    int64_t strip_elements;            /* of a strip of a block */
    int64_t flags;                     /* of what is packed: of each block column of a slice and step */
    int64_t y_elements, flag_elements; /* of the workspace: packed Y, flags; of each worker */
    int64_t x_elements, sum_elements;  /* a copy of some of X, and sums; */
    int64_t worker_elements;           /* and all that a worker has */
} sddmm_state;

static inline int64_t sddmm_step(sddmm_tunables tuned, int64_t k)
{
    return k < tuned.depth ? k : tuned.depth;
}

static inline int64_t sddmm_wanted(int64_t threads)
{
    return threads > 1 ? SDDMM_RUNS * threads : 1;
}

/* How many pieces a block is cut into, `most` at most: about as many in all as runs are wanted, or some more where that gives all workers
 * equally many. */
static inline int64_t sddmm_cuts(int64_t blocks, int64_t wanted, int64_t most)
{
    const int64_t least = blocks > 0 ? tile_ceil(wanted, blocks) : 1, end = 2 * least - 1 < most ? 2 * least - 1 : most,
                  workers = tile_ceil(wanted, SDDMM_RUNS);
    int64_t best = least < end ? least : end > 1 ? end : 1;
    for (int64_t cuts = best + 1; cuts <= end; cuts++)
        if (tile_ceil(blocks * cuts, workers) * best < tile_ceil(blocks * best, workers) * cuts)
            best = cuts;
    return best;
}

/* Strips of a block's rows, and parts of K. Strips make tiles lower; parts of K cost a pass over the sums, which is nothing where K is
 * long: then K alone is split. */
static inline void sddmm_split_blocks(int64_t blocks, int block_rows, int64_t wanted, int64_t steps, sddmm_runs *runs)
{
    const bool is_long = blocks > 0 && steps >= 2 * tile_ceil(wanted, blocks);
    runs->strips = is_long ? 1 : sddmm_cuts(blocks, wanted, tile_ceil(block_rows, SDDMM_LEAST_STRIP));
    runs->splits = sddmm_cuts(blocks * runs->strips, wanted, steps);
}

/* What of Y stays in a second cache, bytes. */
static inline double sddmm_near_bytes(int64_t l2_bytes)
{
    return l2_bytes > 0 ? (double)l2_bytes / 2 : 1 << 19;
}

/* Slices of the block columns: each in a second cache, and so many that workers read few numbers: of Y, which each packs for itself (a
 * worker reads a number, writes it, and reads it again), and of X, of which a slice reads the rows that have blocks there. */
static inline int64_t sddmm_slices(int64_t l2_bytes, int64_t workers, int64_t columns, double y_bytes, double x_bytes, double blocks_a_row)
{
    const double cache = sddmm_near_bytes(l2_bytes), own = (double)workers;
    double best = 0, slices = 1;
    const double tried[] = {1, sqrt(3 * y_bytes * own / (x_bytes + 1)), blocks_a_row, own};
    for (int i = 0; i < 4; i++) {
        const double parts = tried[i] < 1 ? 1 : tried[i] < own ? tried[i] : own;
        const double read = 3 * y_bytes / parts + x_bytes / own * (parts < blocks_a_row ? parts : blocks_a_row);
        if (i == 0 || read < best) {
            best = read;
            slices = parts;
        }
    }
    slices = ceil(slices > y_bytes / cache ? slices : y_bytes / cache);
    return columns < 1 ? 1 : slices < (double)columns ? (int64_t)slices : columns;
}

static inline bool sddmm_applicable(const spk_problem *problem, const spk_device *device, sddmm_tunables tuned, const tile_machine *machine,
                                    const char **why)
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
    else if (tuned.own && (tuned.serial || device->executor.threads < SDDMM_OWNERS))
        *why = "OWN=1 is for three threads and more: two share a copy at no cost";
    return *why == NULL;
}

/* What the workspace holds: counters, what each worker has, the shared copy, and the sums that are kept. */
static inline void sddmm_measure(spk_bound *bound, sddmm_state *state, const tile_machine *machine)
{
    const spk_bsr_view *view = &bound->view;
    const int64_t rows = tile_ceil(view->block_rows, state->runs.strips), element = machine->element_bytes,
                  part = tile_ceil(state->steps, state->runs.splits) * state->depth,
                  packed = state->own && part < state->chunk ? part : state->chunk;
    state->slice_columns = tile_ceil(view->grid_cols, state->runs.slices);
    state->keeps_sums = state->chunk < bound->problem.k || state->runs.splits > 1;
    state->packed_rows = tile_ceil(packed, machine->step);
    state->strip_elements = rows * state->vectors * machine->lanes;
    state->runs.most = SDDMM_SUM_BYTES / (state->strip_elements * element) > 1 ? SDDMM_SUM_BYTES / (state->strip_elements * element) : 1;
    if (state->runs.most > state->slice_columns)
        state->runs.most = state->slice_columns;
    state->flags = state->slice_columns * state->steps;
    state->y_elements = tile_ceil(state->slice_columns * state->vectors * machine->lanes * state->packed_rows, 16) * 16;
    state->flag_elements = tile_ceil(state->flags * (int64_t)sizeof(atomic_int), 16 * element) * 16;
    state->x_elements = tile_ceil((rows + SDDMM_GAP) * (state->depth + SDDMM_GAP), 16) * 16;
    state->sum_elements = state->keeps_sums ? 0 : tile_ceil(state->runs.most * state->strip_elements, 16) * 16;
    state->worker_elements = state->x_elements + state->sum_elements + (state->own ? state->y_elements + state->flag_elements : 0);
    bound->workspace_bytes =
        (size_t)(state->workers * ((int64_t)sizeof(strip_counter) + state->worker_elements * element) +
                 (state->own ? 0 : state->y_elements + state->flag_elements) * element +
                 (state->keeps_sums ? view->nnzb * state->runs.strips * state->runs.splits * state->strip_elements * element : 0));
}

static inline void sddmm_forget(atomic_int *packed, int64_t flags)
{
    for (int64_t i = 0; i < flags; i++)
        atomic_store_explicit(&packed[i], SDDMM_NOT_PACKED, memory_order_relaxed);
}

static inline void sddmm_unbind(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    sddmm_state *state = bound->state;
    if (state != NULL) {
        sddmm_free_runs(mem, &state->runs);
        spk_free(mem, state);
    }
    bound->state = NULL;
}

static inline spk_status sddmm_bind(spk_bound *bound, sddmm_tunables tuned, const tile_machine *machine)
{
    const spk_bsr_view *view = &bound->view;
    const int64_t k = bound->problem.k, lanes = machine->lanes;
    const int threads = spk_problem_flops(&bound->problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    sddmm_state *state = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    state->vectors = tile_ceil(view->block_cols, lanes);
    state->panels = tile_ceil(state->vectors, tuned.nv);
    for (int64_t panel = 0; panel <= state->panels; panel++)
        state->starts[panel] = state->vectors * panel / state->panels;
    state->width = (int)tile_ceil(state->vectors, state->panels);
    const int64_t row = view->grid_cols * state->vectors * lanes, most = SDDMM_PACKED_BYTES / machine->element_bytes;
    state->depth = sddmm_step(tuned, k);
    state->chunk = row * k <= most || state->depth == 0 ? k : (most / row > state->depth ? most / row / state->depth : 1) * state->depth;
    state->steps = state->depth > 0 ? tile_ceil(state->chunk, state->depth) : 1;
    state->workers = threads;
    state->own = tuned.own;
    state->runs = (sddmm_runs){.count = sddmm_wanted(threads), .slices = 1};
    sddmm_split_blocks(view->nnzb, view->block_rows, state->runs.count, state->steps, &state->runs);
    if (tuned.own) {
        const double bytes = (double)(state->chunk * machine->element_bytes) / machine->step;
        state->runs.slices =
            sddmm_slices(bound->device->l2_bytes, threads, view->grid_cols, bytes * (double)row, bytes * (double)bound->problem.m,
                         view->grid_rows > 0 ? (double)view->nnzb / (double)view->grid_rows : 1);
    }
    sddmm_measure(bound, state, machine);
    const bool shared = threads > 1 && !tuned.own; /* then most of it is in other cores' caches, or the last one */
    state->fetches = shared || (double)(state->y_elements * machine->element_bytes) > sddmm_near_bytes(bound->device->l2_bytes);
    const spk_status status = sddmm_make_runs(&bound->device->mem, view, &state->runs);
    if (status != SPK_OK)
        sddmm_unbind(bound);
    return status;
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
    const int64_t threads = device->executor.threads;
    sddmm_runs runs;
    sddmm_split_blocks(pattern->nnzb, pattern->block_rows, sddmm_wanted(threads), (int64_t)steps, &runs);
    double copies = 1;
    if (tuned.own) {
        const double bytes = (double)tiles->element_bytes / (double)tiles->step * k;
        const int64_t slices = sddmm_slices(device->l2_bytes, threads, tile_ceil(pattern->cols, pattern->block_cols),
                                            k > 0 ? packed / k * bytes : 0, bytes * (double)problem->m, rows > 0 ? blocks / rows : 1);
        copies = slices < threads ? (double)threads / (double)slices : 1;
    }
    cycles += copies * packed * (double)tiles->element_bytes / (double)tiles->step / (problem->b.layout == SPK_ROW_MAJOR ? 6 : 4);
    cycles += (tuned.copy ? 0.6 : 0.1) * k * (double)pattern->block_rows * rows + blocks * (double)(pattern->block_rows * vectors) * 6;
    return cost_finish(problem, device, &machine, cycles, blocks * (double)(runs.strips * runs.splits),
                       (runs.splits > 1 ? 2 : 1) + !tuned.own);
}

#endif
