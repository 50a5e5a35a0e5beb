/* The tiled SDDMM. The register tiles are those of SpMM: rows of X stand for a block of A that is a step of K deep, the packed columns of Y
 * for B. With TILE_PAIRED what is copied are pairs along K. */
#include "backend/cpu/kernels/sddmm/sddmm_plan.h"
#include "backend/cpu/kernels/vectors/instance.h"

#ifndef TILE_FETCHES
#define TILE_FETCHES (VECTOR_BYTES >= 32 && !TILE_PAIRED) /* of Y, for the next block */
#endif
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#if TILE_PAIRED
#include "backend/cpu/kernels/tiles/tile_pairs.h"
#else
#include "backend/cpu/kernels/tiles/tile_pack.h"
#endif
#include "backend/cpu/kernels/sddmm/sddmm_finish.h"

#ifndef ROW /* this file alone */
#define ROW sddmm_portable
#endif

typedef struct S(sddmm_run) {
    const spk_bound *bound;
    const spk_args *args;
    const sddmm_state *state;
    REAL *workspace, *y, *sums; /* of the workers; what they share; of all blocks, where they are kept */
    atomic_int *packed;
    strip_queue queue;
    int64_t k0, k1; /* the rows of Y that are taken */
} S(sddmm_run);

/* Some rows of X, columns k0 .. k0 + depth: in place, or a copy in which lines lie side by side as they do in X. */
typedef struct S(sddmm_x) {
    REAL *copy;
    const REAL *first;
    int64_t row_stride, col_stride;
#if TILE_PAIRED
    int least; /* of its numbers */
#endif
} S(sddmm_x);

static void S(sddmm_take_x)(const S(sddmm_run) *run, int64_t row0, int64_t rows, int64_t k0, int64_t depth, S(sddmm_x) *x)
{
    const spk_problem *problem = &run->bound->problem;
    const bool row_major = problem->a.layout == SPK_ROW_MAJOR;
    const int64_t line0 = row_major ? row0 : k0, along0 = row_major ? k0 : row0, lines = row_major ? rows : depth,
                  length = row_major ? depth : rows;
    const STORED *from = (const STORED *)run->args->a + line0 * problem->a.ld + along0;
#if TILE_PAIRED
    const int64_t step = row_major ? 1 : 2, stride = (row_major ? tile_ceil(length, 2) : length) + SDDMM_GAP;
    S(pair_least) least = S(least_of_none)();
    for (int64_t line = 0; line < lines; line += step) {
        const STORED *first = from + line * problem->a.ld;
        REAL *to = x->copy + line / step * stride;
        if (row_major)
            S(pair_line)(first, length, to, &least);
        else
            S(pair_lines)(first, line + 1 < lines ? first + problem->a.ld : NULL, length, to, &least);
    }
    x->least = S(least_number)(least);
    x->first = x->copy;
#else
    const bool in_place = sizeof(STORED) == sizeof(REAL) && SPK_TUNED(ROW, &run->bound->params, COPY) == 0;
    const int64_t stride = in_place ? problem->a.ld : length + SDDMM_GAP;
    for (int64_t line = 0; !in_place && line < lines; line++)
        S(widen_all)(from + line * problem->a.ld, length, x->copy + line * stride);
    x->first = in_place ? (const REAL *)from : x->copy;
#endif
    x->row_stride = row_major ? stride : 1;
    x->col_stride = row_major ? 1 : stride;
}

/* A thread at work: on a slice, -1 for none yet, and a part of K. */
typedef struct S(sddmm_worker) {
    const S(sddmm_run) *run;
    int64_t slice, part;
    strip_range columns; /* block columns of the slice */
    int64_t k0, k1;      /* rows of Y */
    int64_t y0;          /* the first that is packed */
    REAL *y, *sums;
    atomic_int *packed; /* of each block column and step: whether it is packed; of pairs, the least of its numbers */
    S(sddmm_x) x;
    int64_t next; /* the block column that comes then, or -1 */
} S(sddmm_worker);

/* What is known of the step of a block column that begins with row k. */
static atomic_int *S(sddmm_packed)(const S(sddmm_worker) *worker, int64_t block_column, int64_t k)
{
    const sddmm_state *state = worker->run->state;
    return &worker->packed[(block_column - worker->columns.begin) * state->steps + (k - worker->y0) / state->depth];
}

/* Where the panel of a block column that begins with this vector is packed. */
static REAL *S(sddmm_panel)(const S(sddmm_worker) *worker, int64_t block_column, int64_t vector)
{
    const sddmm_state *state = worker->run->state;
    return worker->y + ((block_column - worker->columns.begin) * state->vectors + vector) * state->packed_rows * T(lanes);
}

/* Rows k0 .. k1 - 1, which are of one step, of a block column. */
static void S(sddmm_pack)(const S(sddmm_worker) *worker, int64_t block_column, int64_t k0, int64_t k1)
{
    const sddmm_state *state = worker->run->state;
    const spk_problem *problem = &worker->run->bound->problem;
    const int64_t block_cols = worker->run->bound->view.block_cols, begin = k0 - worker->y0, end = k1 - worker->y0;
    atomic_int *packed = S(sddmm_packed)(worker, block_column, k0);
    int found = 0;
#if TILE_PAIRED
    S(pair_least) least = S(least_of_none)();
#endif
    for (int64_t panel = 0; panel < state->panels; panel++) {
        const int64_t start = state->starts[panel], inside = start * T(lanes), column = block_column * block_cols + inside;
        const int64_t in_block = block_cols - inside, in_y = problem->n - column, columns = in_block < in_y ? in_block : in_y;
        if (columns <= 0) /* all of it hangs over */
            break;
        const STORED *y = (const STORED *)worker->run->args->b +
                          (problem->b.layout == SPK_ROW_MAJOR ? worker->y0 * problem->b.ld + column : worker->y0 + column * problem->b.ld);
        REAL *to = S(sddmm_panel)(worker, block_column, start);
        const int width = (int)(state->starts[panel + 1] - start);
#if TILE_PAIRED
        const S(pair_rows) pairs = {2, worker->run->k1 - worker->y0}; /* no gaps */
        S(pack_pairs)(&pairs, problem->b.layout, y, problem->b.ld, begin / 2, tile_ceil(end, 2), width, columns, to, &least);
#else
        S(pack)(problem->b.layout, y, problem->b.ld, begin, end, width, columns, to);
#endif
    }
#if TILE_PAIRED
    found = S(least_number)(least);
#endif
    for (int before = atomic_load_explicit(packed, memory_order_relaxed);
         (before == SDDMM_NOT_PACKED || found < before) && !atomic_compare_exchange_weak(packed, &before, found);)
        continue;
}

/* Some rows of a step for all block columns of the slice: along the rows of a row-major Y, where a column is a line of as many pages. */
static void S(sddmm_pack_rows)(const S(sddmm_worker) *worker, int64_t k0, int64_t k1)
{
    for (int64_t column = worker->columns.begin; column < worker->columns.end; column++)
        S(sddmm_pack)(worker, column, k0, k1);
}

static void S(sddmm_pack_slice)(const S(sddmm_worker) *worker)
{
    const int64_t depth = worker->run->state->depth;
    for (int64_t step = worker->k0; step < worker->k1; step += depth) {
        const int64_t end = step + depth < worker->k1 ? step + depth : worker->k1;
        for (int64_t k0 = step; k0 < end; k0 += TILE_PACK_ROWS)
            S(sddmm_pack_rows)(worker, k0, k0 + TILE_PACK_ROWS < end ? k0 + TILE_PACK_ROWS : end);
    }
}

/* A worker with the copy that all share. */
static S(sddmm_worker) S(sddmm_sharer)(const S(sddmm_run) *run)
{
    return (S(sddmm_worker)){
        .run = run, .slice = -1, .columns = {0, run->bound->view.grid_cols}, .y0 = run->k0, .y = run->y, .packed = run->packed};
}

/* Some rows for it: steps are whole tasks, but for the last. */
static void S(sddmm_pack_task)(void *arg, int64_t task)
{
    const S(sddmm_run) *run = arg;
    const S(sddmm_worker) worker = S(sddmm_sharer)(run);
    const int64_t pieces = tile_ceil(run->state->depth, TILE_PACK_ROWS), step = run->k0 + task / pieces * run->state->depth,
                  k0 = step + task % pieces * TILE_PACK_ROWS;
    int64_t k1 = k0 + TILE_PACK_ROWS < step + run->state->depth ? k0 + TILE_PACK_ROWS : step + run->state->depth;
    k1 = k1 < run->k1 ? k1 : run->k1;
    if (k0 < k1)
        S(sddmm_pack_rows)(&worker, k0, k1);
}

/* Goes on to a slice and a part of K, where `left` strips of blocks are to be computed in that slice and those behind it: the whole slice
 * is packed where that many have use for it, else a block column when it is met. */
static void S(sddmm_begin_slice)(S(sddmm_worker) *worker, const sddmm_piece *piece, int64_t left)
{
    const S(sddmm_run) *run = worker->run;
    const sddmm_state *state = run->state;
    if (worker->slice == piece->slice && worker->part == piece->part)
        return;
    const strip_range steps =
        strip_part(state->depth > 0 ? tile_ceil(run->k1 - run->k0, state->depth) : 0, piece->part, state->runs.splits);
    worker->slice = piece->slice;
    worker->part = piece->part;
    worker->k0 = run->k0 + steps.begin * state->depth;
    worker->k1 = run->k0 + steps.end * state->depth < run->k1 ? run->k0 + steps.end * state->depth : run->k1;
    if (!state->own)
        return;
    worker->y0 = worker->k0;
    worker->columns = strip_part(run->bound->view.grid_cols, piece->slice, state->runs.slices);
    sddmm_forget(worker->packed, state->flags);
    if (left >= (worker->columns.end - worker->columns.begin) * state->runs.strips)
        S(sddmm_pack_slice)(worker);
}

/* The block column of the stored block behind p; -1: it is of another slice, or there is none. */
static int64_t S(sddmm_column_after)(const S(sddmm_worker) *worker, int64_t p)
{
    const spk_bound *bound = worker->run->bound;
    if (p + 1 >= bound->view.nnzb)
        return -1;
    const int64_t column = bound->view.columns[p + 1];
    return column >= worker->columns.begin && column < worker->columns.end ? column : -1;
}

#if TILE_FETCHES
/* What a tile fetches to the second cache: its share of the same panel of the next block, a vector at each step of K. */
static void S(sddmm_fetch)(const S(sddmm_worker) *worker, int64_t start, int64_t k0, int64_t depth, int tile, int width, T(tile_job) *job)
{
    job->fetch_blocks = worker->next >= 0 && tile < width;
    if (job->fetch_blocks == 0)
        return;
    job->fetch = S(sddmm_panel)(worker, worker->next, start) + (k0 - worker->y0) * job->panel_stride + tile * depth * T(lanes);
    job->fetch_columns = job->columns;
    job->fetch_stride = T(lanes);
}
#endif

/* A step of a strip of one stored block: the sums from X and the rows of Y from k0 on, beside those that are there already unless they are
 * the first. */
static void S(sddmm_block)(const S(sddmm_worker) *worker, const tile_split *split, int64_t block_column, int64_t k0, int64_t depth,
                           REAL *to, bool first)
{
    static const int32_t first_column = 0;
    const sddmm_state *state = worker->run->state;
    const S(sddmm_x) *x = &worker->x;
    const int64_t stride = state->vectors * T(lanes);
    REAL step[sizeof(T(vec)) / sizeof(REAL) * T(accumulators)] __attribute__((aligned(64)));
    T(tile_job) job = {.columns = &first_column, .blocks = 1, .depth = tile_ceil(depth, T(machine).step), .edge_column = -1, .alpha = 1};
    atomic_int *packed = depth > 0 ? S(sddmm_packed)(worker, block_column, k0) : NULL;
    if (depth > 0 && atomic_load_explicit(packed, memory_order_relaxed) == SDDMM_NOT_PACKED)
        S(sddmm_pack)(worker, block_column, k0, k0 + depth);
#if TILE_PAIRED
    const bool exact = depth > 0 && !S(pairs_are_exact)(x->least, atomic_load_explicit(packed, memory_order_relaxed));
    const T(tile_function)(*const tiles)[T(tallest)] = exact ? T(exact_tiles) : T(tiles);
#else
    const T(tile_function)(*const tiles)[T(tallest)] = T(tiles);
#endif
    job.row_stride = x->row_stride;
    job.col_stride = x->col_stride;
    for (int64_t panel = 0; panel < state->panels; panel++) {
        const int64_t start = state->starts[panel];
        REAL *sums = to + start * T(lanes);
        const int width = (int)(state->starts[panel + 1] - start);
        job.panel_stride = width * T(lanes);
        job.panel = S(sddmm_panel)(worker, block_column, start) + (k0 - worker->y0) / T(machine).step * job.panel_stride;
        job.values = x->first;
        for (int tile = 0; tile < split->tiles; tile++) {
            const int height = split->low + (tile < split->taller);
#if TILE_FETCHES
            S(sddmm_fetch)(worker, start, k0, depth, tile, width, &job);
#endif
            job.out = first ? sums : step;
            job.out_stride = first ? stride : job.panel_stride;
            tiles[width - 1][height - 1](&job);
            for (int64_t i = 0; !first && i < height; i++)
                for (int64_t j = 0; j < job.panel_stride; j += T(lanes))
                    T(store)(sums + i * stride + j, T(load)(sums + i * stride + j) + T(load)(step + i * job.panel_stride + j));
            job.values += height * x->row_stride;
            sums += height * stride;
        }
    }
}

/* The rows of a strip. */
static sddmm_rows S(sddmm_strip)(const S(sddmm_run) *run, int64_t block_row, int64_t strip)
{
    const int64_t height = run->bound->view.block_rows, left = run->bound->problem.m - block_row * height;
    const strip_range range = strip_part(height, strip, run->state->runs.strips);
    const int64_t there = left < range.end ? left - range.begin : range.end - range.begin;
    return (sddmm_rows){range.begin, there > 0 ? there : 0, range.end};
}

/* Sums of a strip of stored block p, and of a part of K: kept, or of the piece that the worker is at. */
static REAL *S(sddmm_kept)(const S(sddmm_run) *run, int64_t p, int64_t strip, int64_t part)
{
    const sddmm_state *state = run->state;
    return run->sums + ((part * run->bound->view.nnzb + p) * state->runs.strips + strip) * state->strip_elements;
}

static REAL *S(sddmm_sums)(const S(sddmm_worker) *worker, const sddmm_piece *piece, int64_t p)
{
    return worker->run->state->keeps_sums ? S(sddmm_kept)(worker->run, p, piece->strip, piece->part)
                                          : worker->sums + (p - piece->first) * worker->run->state->strip_elements;
}

/* Blocks are finished together: stores to D between their products slow those down. */
static void S(sddmm_row)(S(sddmm_worker) *worker, const sddmm_piece *piece)
{
    const S(sddmm_run) *run = worker->run;
    const sddmm_state *state = run->state;
    const sddmm_rows rows = S(sddmm_strip)(run, piece->block_row, piece->strip);
    const tile_split split = rows.there > 0 ? tile_make_split(&T(machine), (int)rows.there, state->width) : (tile_split){0, 0, 0};
    const int64_t row0 = piece->block_row * run->bound->view.block_rows + rows.first;
    bool begins = run->k0 == 0; /* nothing is there yet; without any K, sums of 0 are to be */
    for (int64_t k0 = worker->k0; rows.there > 0 && (k0 < worker->k1 || begins); begins = false) {
        const int64_t depth = worker->k1 - k0 < state->depth ? worker->k1 - k0 : state->depth;
        if (depth > 0)
            S(sddmm_take_x)(run, row0, rows.there, k0, depth, &worker->x);
        for (int64_t p = piece->first; p < piece->last; p++) {
            worker->next = state->fetches ? S(sddmm_column_after)(worker, p) : -1;
            S(sddmm_block)(worker, &split, run->bound->view.columns[p], k0, depth, S(sddmm_sums)(worker, piece, p), begins);
        }
        k0 += depth;
    }
    for (int64_t p = piece->first; state->runs.splits == 1 && run->k1 == run->bound->problem.k && p < piece->last; p++)
        S(sddmm_finish)(run->bound, run->args, p, rows, S(sddmm_sums)(worker, piece, p), state->vectors * T(lanes));
}

static void S(sddmm_work)(void *arg, int64_t number)
{
    const S(sddmm_run) *run = arg;
    const sddmm_state *state = run->state;
    S(sddmm_worker) worker = S(sddmm_sharer)(run);
    worker.x.copy = run->workspace + number * state->worker_elements;
    worker.sums = worker.x.copy + state->x_elements;
    if (state->own) {
        worker.y = worker.sums + state->sum_elements;
        worker.packed = (atomic_int *)(void *)(worker.y + state->y_elements);
    }
    const sddmm_runs *runs = &state->runs;
    strip_place place = {.slice = -1, .first = number};
    sddmm_piece piece;
    while (strip_take(&run->queue, &place))
        for (sddmm_walk walk = sddmm_walk_run(runs, run->bound->view.nnzb, place.slice * run->queue.units + place.unit);
             sddmm_next(runs, &walk, &piece);) {
            S(sddmm_begin_slice)(&worker, &piece, walk.left + piece.last - piece.first);
            S(sddmm_row)(&worker, &piece);
        }
}

/* The sums of the parts of K to those of the first part, and on to D. */
static void S(sddmm_add_up)(void *arg, int64_t block_row)
{
    const S(sddmm_run) *run = arg;
    const sddmm_state *state = run->state;
    for (int64_t p = run->bound->view.offsets[block_row]; p < run->bound->view.offsets[block_row + 1]; p++)
        for (int64_t strip = 0; strip < state->runs.strips; strip++) {
            REAL *sums = S(sddmm_kept)(run, p, strip, 0);
            for (int64_t part = 1; part < state->runs.splits; part++) {
                const REAL *more = S(sddmm_kept)(run, p, strip, part);
                for (int64_t i = 0; i < state->strip_elements; i += T(lanes))
                    T(store)(sums + i, T(load)(sums + i) + T(load)(more + i));
            }
            S(sddmm_finish)(run->bound, run->args, p, S(sddmm_strip)(run, block_row, strip), sums, state->vectors * T(lanes));
        }
}

static spk_status S(sddmm_execute)(const spk_bound *bound, const spk_args *args)
{
    const sddmm_state *state = bound->state;
    const spk_executor *executor = &bound->device->executor;
    const int64_t k = bound->problem.k;
    if (bound->view.nnzb == 0)
        return SPK_OK;
    S(sddmm_run) run = {.bound = bound,
                        .args = args,
                        .state = state,
                        .queue = {.slices = state->workers,
                                  .units = state->runs.count / state->workers,
                                  .counters = args->workspace,
                                  .free_to_leave = !state->own}};
    run.workspace = (REAL *)(void *)(run.queue.counters + state->workers);
    run.y = run.workspace + state->workers * state->worker_elements;
    run.packed = (atomic_int *)(void *)(run.y + state->y_elements);
    run.sums = run.y + (state->own ? 0 : state->y_elements + state->flag_elements);
    do {
        run.k0 = run.k1;
        run.k1 = k - run.k0 < state->chunk ? k : run.k0 + state->chunk;
        strip_open(&run.queue);
        if (!state->own && run.k0 < run.k1) {
            sddmm_forget(run.packed, state->flags);
            spk_execute(executor, state->steps * tile_ceil(state->depth, TILE_PACK_ROWS), S(sddmm_pack_task), &run);
        }
        spk_execute(executor, state->workers, S(sddmm_work), &run);
    } while (run.k1 < k);
    if (state->runs.splits > 1)
        spk_execute(executor, bound->view.grid_rows, S(sddmm_add_up), &run);
    return SPK_OK;
}
