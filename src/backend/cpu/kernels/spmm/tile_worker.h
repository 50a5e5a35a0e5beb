/* A worker of the tiled SpMM: the panels that it packs, and its register tiles, block row by block row. Tiles multiply REAL. Where STORED
 * is something else, the values are always copied, B is copied or converted by the tiles, and D may be of either. A step along K is a row
 * of B, or with TILE_PAIRED two. */
#include <stdatomic.h>

#include "backend/cpu/kernels/tiles/tile_plan.h"
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"
#include "backend/cpu/kernels/tiles/tile_values.h"

#ifndef TILE_WORKER_H
#define TILE_WORKER_H

#if TILE_PAIRED
#include "backend/cpu/kernels/tiles/tile_pairs.h"
#else
#if STORED_BITS == 16 /* tiles that convert B */
#include "backend/cpu/kernels/tiles/tile_micro_body.h"
#endif
#include "backend/cpu/kernels/tiles/tile_pack.h"
#endif

enum { S(converts) = sizeof(STORED) != sizeof(REAL) };

typedef struct S(tile_state) {
    tile_cut cut;
    double *cuts;    /* of the parts: parts + 1 block rows, with the share of the columns that the part before takes */
    int64_t *starts; /* of the panels, in vectors: panels + 1 */
    int64_t steps;   /* of K: rows of a panel */
    int64_t batch;   /* block rows taken together: the epilogue gets enough rows at a time */
    /* of the workspace: packed panels (of each slice where it packs for itself), then values of each task, */
    int64_t panel_elements, value_elements;
    int64_t value_copies; /* so many times value_elements */
    bool by_row;          /* a tile's rows of the values are converted when it is their turn, and multiplied with all panels */
    int32_t *order;       /* 0, 1, 2 ...: the block columns of what lies there block by block */
    /* of pieces of B: blocks, columns of a block, and elements that a task's copy and sums take */
    int64_t near_blocks, near_depth, near_elements;
} S(tile_state);

typedef struct S(tile_run) {
    const spk_bound *bound;
    const spk_args *args;
    const S(tile_state) *state;
    bool plain;
    int64_t pack_step; /* steps of B a packing task */
#if TILE_PAIRED
    atomic_int least; /* of B's numbers, where tasks find it packed */
#endif
} S(tile_run);

/* A task at work. */
typedef struct S(tile_worker) {
    const S(tile_run) *run;
    REAL *panels;         /* where packed panels lie, one after another, each of K rows */
    int64_t panels_start; /* the vector with which they begin */
    const STORED *stored; /* the values of a block row: element (0, 0) of the block at position 0 */
    int64_t first_block;  /* of that row, in the index */
    REAL *values;         /* where a copy of them lies that the tiles read; NULL: they read what is stored */
    REAL *near;           /* sums of a block row in a panel, then a piece of B */
#if TILE_PAIRED
    S(pair_least) found; /* of B's numbers that it packed */
    bool exact;          /* pairs are not multiplied as such */
#endif
    /* what tiles fetch for later ones, of B: */
    int64_t next_row, next_panel; /* what comes then; nothing: next_row is -1 */
    const REAL *fetch;            /* where that panel begins */
    int64_t fetch_blocks;         /* of that block row */
    /* of the values: */
    int64_t next_values; /* the block row that comes then, or -1 */
    int64_t fetched;     /* elements of it */
    bool first_panel;    /* of those that a block row's values are read for: later ones find them in a near cache */
    T(tile_job) job;
} S(tile_worker);

/* Sums of some rows of D in one panel that wait for the epilogue. */
typedef struct S(tile_buffer) {
    REAL sums[(TILE_BUFFER_ROWS * T(widest))*T(lanes)] __attribute__((aligned(64)));
    int held;
} S(tile_buffer);

static REAL *S(packed_panel)(const S(tile_worker) *worker, int64_t panel)
{
    return worker->panels + worker->run->state->steps * (worker->run->state->starts[panel] - worker->panels_start) * T(lanes);
}

static void S(pack_panels)(S(tile_worker) *worker, int64_t first, int64_t last, int64_t k0, int64_t k1)
{
    const S(tile_run) *run = worker->run;
    const spk_problem *problem = &run->bound->problem;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t start = run->state->starts[panel], column = start * T(lanes);
        const int width = (int)(run->state->starts[panel + 1] - start);
        const STORED *b = (const STORED *)run->args->b + (problem->b.layout == SPK_ROW_MAJOR ? column : column * problem->b.ld);
        REAL *to = S(packed_panel)(worker, panel);
#if TILE_PAIRED
        const S(pair_rows) rows = {run->bound->view.block_cols, problem->k};
        S(pack_pairs)(&rows, problem->b.layout, b, problem->b.ld, k0, k1, width, problem->n - column, to, &worker->found);
#else
        S(pack)(problem->b.layout, b, problem->b.ld, k0, k1, width, problem->n - column, to);
#endif
    }
}

/* The worker of tasks that find their panels packed. */
static S(tile_worker) S(make_worker)(const S(tile_run) *run)
{
    const spk_bsr_view *view = &run->bound->view;
    const int64_t step = T(machine).step, steps = tile_ceil(view->block_cols, step);
    S(tile_worker) worker = {.run = run,
                             .panels = run->args->workspace,
                             .job = {.row_stride = view->row_stride,
                                     .col_stride = view->col_stride,
                                     .block_stride = view->block_stride,
                                     .depth = steps,
                                     .edge_column = view->grid_cols - 1,
                                     .edge_depth = tile_ceil(view->cols - (view->grid_cols - 1) * view->block_cols, step)}};
#if TILE_PAIRED /* of a copy */
    worker.job.row_stride = S(pairs_by_row)(view) ? steps : 1;
    worker.job.col_stride = S(pairs_by_row)(view) ? 1 : view->block_rows;
    worker.job.block_stride = steps * view->block_rows;
    worker.found = S(least_of_none)();
#endif
    return worker;
}

/* Rows of B for all panels, some at a time (tile_pack_rows). */
static void S(pack_task)(void *arg, int64_t task)
{
    S(tile_run) *run = arg;
    const tile_cut *cut = &run->state->cut;
    S(tile_worker) worker = S(make_worker)(run);
    const int64_t k = run->state->steps, begin = task * run->pack_step, end = begin + run->pack_step < k ? begin + run->pack_step : k,
                  step = tile_pack_rows(&run->bound->problem);
    for (int64_t k0 = begin; k0 < end; k0 += step)
        S(pack_panels)(&worker, 0, cut->panels, k0, k0 + step < end ? k0 + step : end);
#if TILE_PAIRED
    const int least = S(least_number)(worker.found);
    for (int before = atomic_load(&run->least); least < before && !atomic_compare_exchange_weak(&run->least, &before, least);)
        continue;
#endif
}

/* What of a later block a tile of `height` rows fetches: its rows where they are contiguous, else a line of each column. */
static void S(fetch_ahead)(T(tile_job) *job, int64_t height)
{
    const int64_t element = (int64_t)sizeof(REAL), block = job->block_stride * element;
    const bool lines = job->col_stride == 1 || height == job->col_stride;
    job->ahead_bytes = lines ? 64 : job->col_stride * element;
    job->ahead_count = lines ? tile_ceil(height * job->depth * element, 64) : job->depth;
    job->ahead_blocks = tile_ceil(TILE_AHEAD_BYTES, block);
}

/* The blocks of a block row as they are stored. */
static void S(start_block_row)(S(tile_worker) *worker, int64_t block_row)
{
    const spk_bsr_view *view = &worker->run->bound->view;
    T(tile_job) *job = &worker->job;
    const int64_t first = view->offsets[block_row];
    job->blocks = view->offsets[block_row + 1] - first;
    job->columns = view->columns + first;
    job->positions = view->positions != NULL ? view->positions + first : NULL;
    worker->stored = worker->run->args->a;
    worker->first_block = first;
    if (view->positions == NULL && job->blocks > 0) /* else there may be no values */
        worker->stored += first * view->block_stride;
}

/* A piece of a row-major array like D. */
SPK_INLINE void S(fetch_piece)(const spk_problem *problem, const void *array, int64_t ld, int64_t row, int64_t rows, int64_t column,
                               int64_t columns)
{
    const int64_t element = problem->d.dtype == problem->a.dtype ? (int64_t)sizeof(STORED) : (int64_t)sizeof(REAL);
    const char *line = (const char *)array + (row * ld + column) * element;
    for (int64_t i = 0; i < rows; i++, line += ld * element)
        for (int64_t at = 0; at < columns * element; at += 64)
            __builtin_prefetch(line + at, 1, 3);
}

/* What the epilogue will read and write by rows, fetched while the sums are made. */
SPK_INLINE void S(fetch_for_epilogue)(const S(tile_run) *run, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const spk_problem *problem = &run->bound->problem;
    const spk_epilogue *e = &problem->epilogue;
    S(fetch_piece)(problem, run->args->d, problem->d.ld, row, rows, column, columns);
    if (e->residual != SPK_RESIDUAL_NONE && run->args->residual != run->args->d)
        S(fetch_piece)(problem, run->args->residual, problem->residual.ld, row, rows, column, columns);
    if (e->use_c && run->args->beta != 0 && run->args->c != run->args->d)
        S(fetch_piece)(problem, run->args->c, problem->c.ld, row, rows, column, columns);
}

/* `rows` rows of sums become rows of D. */
static void S(finish_rows)(const S(tile_run) *run, REAL *sums, int64_t stride, int64_t row, int64_t rows, int64_t column0, int64_t columns)
{
    const spk_problem *problem = &run->bound->problem;
    (problem->d.dtype == problem->a.dtype ? S(epilogue) : T(epilogue))(problem, run->args, sums, stride, row, rows, column0, columns);
}

/* The buffer's rows, the last of which is row end - 1 of D. */
static void S(finish)(const S(tile_run) *run, S(tile_buffer) *buffer, int64_t out_stride, int64_t end, int64_t column0, int64_t columns)
{
    S(finish_rows)(run, buffer->sums, out_stride, end - buffer->held, buffer->held, column0, columns);
    buffer->held = 0;
}

#if TILE_FETCHES
/* What the tiles of a panel fetch for those of the next one. */
static void S(fetch_next)(S(tile_worker) *worker)
{
    const S(tile_run) *run = worker->run;
    const spk_bsr_view *view = &run->bound->view;
    worker->fetch_blocks = 0;
    if (worker->next_row < 0 || run->bound->problem.k == 0) /* there may be no B */
        return;
    const int64_t first = view->offsets[worker->next_row];
    worker->fetch = (const REAL *)run->args->b + run->state->starts[worker->next_panel] * T(lanes);
    worker->fetch_blocks = view->offsets[worker->next_row + 1] - first;
    worker->job.fetch_columns = view->columns + first;
    worker->job.fetch_stride = run->bound->problem.b.ld;
}

/* A tile's share of it: a column of lines; of every second block, where there are tiles for the others. */
static void S(fetch_by_tile)(S(tile_worker) *worker, int tile, int tiles, int width)
{
    T(tile_job) *job = &worker->job;
    job->fetch_mask = tiles >= 2 * width;
    job->fetch_turn = tile / width;
    job->fetch_blocks = job->fetch_turn <= job->fetch_mask ? worker->fetch_blocks : 0;
    if (job->fetch_blocks > 0)
        job->fetch = worker->fetch + tile % width * T(lanes);
}

/* What a tile fetches of the next block row's values: the next piece of them, as long as it can fetch. */
static void S(fetch_values)(S(tile_worker) *worker)
{
    enum { ELEMENTS = 64 / sizeof(REAL) }; /* a line */
    const S(tile_run) *run = worker->run;
    const spk_bsr_view *view = &run->bound->view;
    T(tile_job) *job = &worker->job;
    job->fetch_blocks = 0;
    if (worker->next_values < 0)
        return;
    const int64_t first = view->offsets[worker->next_values], all = (view->offsets[worker->next_values + 1] - first) * view->block_stride;
    if (worker->fetched >= all)
        return;
    job->fetch = (const REAL *)run->args->a + first * view->block_stride + worker->fetched;
    job->fetch_columns = run->state->order;
    job->fetch_stride = ELEMENTS;
    job->fetch_blocks = job->blocks;
    worker->fetched += job->blocks * job->depth * ELEMENTS;
}
#endif

static T(tile_function) S(tile_of)(const S(tile_worker) *worker, int width, int height)
{
#if TILE_PAIRED
    return (worker->exact ? T(exact_tiles) : T(tiles))[width - 1][height - 1];
#else
#if TILE_HAS_TWINS
    if (!worker->run->state->cut.packed && worker->job.back == 0)
        return S(twin_tiles)[width - 1][height - 1];
#endif
    return (worker->run->state->cut.packed ? T(tiles) : S(tiles))[width - 1][height - 1];
#endif
}

/* The tiles of the block row in the worker's job times its panel: `columns` columns from column0 on; into D, or the buffer where there is
 * one. */
static void S(block_row)(S(tile_worker) *worker, const tile_split *split, int64_t row0, int width, int64_t column0, int64_t columns,
                         S(tile_buffer) *buffer)
{
    const S(tile_run) *run = worker->run;
    const spk_problem *problem = &run->bound->problem;
    T(tile_job) *job = &worker->job;
    int64_t row = 0;
    if (buffer == NULL)
        job->out = (REAL *)run->args->d + row0 * problem->d.ld + column0;
    for (int tile = 0; tile < split->tiles; tile++) {
        const int height = split->low + (tile < split->taller);
        if (run->state->cut.by_tile) {
            job->values = worker->values + row * job->blocks * job->depth;
            job->positions = NULL;
            job->row_stride = 1;
            job->col_stride = height;
            job->block_stride = height * job->depth;
        } else if (worker->values != NULL) {
            job->values = worker->values + row * job->row_stride;
            job->positions = NULL;
        } else if (job->blocks > 0 && !S(converts)) {
            job->values = (const REAL *)worker->stored + row * job->row_stride;
            job->ahead_count = 0;
            if (run->state->cut.ahead && worker->first_panel)
                S(fetch_ahead)(job, height);
        }
        if (buffer != NULL) {
            if (buffer->held + height > TILE_BUFFER_ROWS)
                S(finish)(run, buffer, job->out_stride, row0 + row, column0, columns);
            job->out = buffer->sums + buffer->held * job->out_stride;
            if (problem->d.layout == SPK_ROW_MAJOR)
                S(fetch_for_epilogue)(run, row0 + row, height, column0, columns);
        }
#if TILE_FETCHES
        if (run->state->cut.fetches)
            S(fetch_by_tile)(worker, tile, split->tiles, width);
        if (run->state->cut.fetches_values)
            S(fetch_values)(worker);
#endif
        S(tile_of)(worker, width, height)(job);
        row += height;
        if (buffer == NULL) {
            job->out += height * job->out_stride;
            continue;
        }
        buffer->held += height;
    }
}

static int S(rows_of)(const spk_bound *bound, int64_t block_row)
{
    const int64_t row0 = block_row * bound->view.block_rows;
    return row0 + bound->view.block_rows <= bound->problem.m ? bound->view.block_rows : (int)(bound->problem.m - row0);
}

/* A panel of B, and the columns of D that are made of it. */
typedef struct S(tile_panel) {
    int width; /* vectors */
    int64_t column0, columns;
    bool direct; /* sums go to D, not to a buffer */
} S(tile_panel);

/* Prepares the worker's job for a panel. */
static S(tile_panel) S(start_panel)(S(tile_worker) *worker, int64_t panel)
{
    const S(tile_run) *run = worker->run;
    const spk_problem *problem = &run->bound->problem;
    const S(tile_state) *state = run->state;
    T(tile_job) *job = &worker->job;
    const bool in_place = !state->cut.packed;
    S(tile_panel) at = {.width = (int)(state->starts[panel + 1] - state->starts[panel]), .column0 = state->starts[panel] * T(lanes)};
    at.columns = problem->n - at.column0 < at.width * T(lanes) ? problem->n - at.column0 : at.width * T(lanes);
    at.direct = run->plain && (in_place || at.columns == at.width * T(lanes));
    if (problem->k == 0) { /* there may be no B */
        job->panel = NULL;
        job->panel_stride = 0;
    } else if (in_place) {
        job->panel = (const STORED *)run->args->b + at.column0;
        job->panel_stride = problem->b.ld;
    } else {
        job->panel = S(packed_panel)(worker, panel);
        job->panel_stride = at.width * T(lanes);
    }
    job->out_stride = at.direct ? problem->d.ld : at.width * T(lanes);
    job->back = in_place ? at.width * T(lanes) - at.columns : 0; /* the last vector ends where B does */
    job->alpha = at.direct ? (REAL)run->args->alpha : 1;
    return at;
}

/* A batch of block rows times one panel. */
static void S(block_rows)(S(tile_worker) *worker, int64_t first, int64_t last, int64_t panel)
{
    const S(tile_run) *run = worker->run;
    const spk_bound *bound = run->bound;
    const S(tile_panel) at = S(start_panel)(worker, panel);
    const int64_t height = bound->view.block_rows, end = last * height < bound->problem.m ? last * height : bound->problem.m;
    const int split_width = run->state->cut.by_tile ? run->state->cut.width : at.width;
    const tile_split whole = tile_make_split(&T(machine), bound->view.block_rows, split_width);
    S(tile_buffer) buffer;
    buffer.held = 0;
#if TILE_FETCHES
    if (run->state->cut.fetches)
        S(fetch_next)(worker);
#endif
    for (int64_t block_row = first; block_row < last; block_row++) {
        const int rows = S(rows_of)(bound, block_row);
        const tile_split split = rows == bound->view.block_rows ? whole : tile_make_split(&T(machine), rows, split_width);
        S(start_block_row)(worker, block_row);
        S(block_row)(worker, &split, block_row * height, at.width, at.column0, at.columns, at.direct ? NULL : &buffer);
    }
    if (buffer.held > 0)
        S(finish)(run, &buffer, worker->job.out_stride, end, at.column0, at.columns);
}

#if !TILE_PAIRED
/* A tile's rows of the job's blocks, converted one after another. */
static void S(convert_rows)(S(tile_worker) *worker, int64_t row, int64_t height)
{
    const spk_bsr_view *view = &worker->run->bound->view;
    T(tile_job) *job = &worker->job;
    const int64_t first = job->columns - view->columns;
    const int64_t *positions = view->positions != NULL ? view->positions + first : NULL;
    job->values = worker->values;
    job->positions = NULL;
    job->block_stride = height * view->row_stride;
    for (int64_t p = 0; p < job->blocks; p++)
        S(widen_all)(worker->stored + (positions != NULL ? positions[p] : first - worker->first_block + p) * view->block_stride +
                         row * view->row_stride,
                     job->block_stride, worker->values + p * job->block_stride);
}

/* The tiles of a block row, each times the panels first to last - 1, a few blocks at a time: what was converted of them is in the first
 * cache then. Sums wait in the buffer for the next few blocks; where it cannot hold those of all panels, the tile takes all blocks at once,
 * whose values stay in the second cache. */
static void S(convert_and_multiply)(S(tile_worker) *worker, int64_t block_row, int64_t first, int64_t last)
{
    const S(tile_run) *run = worker->run;
    const spk_problem *problem = &run->bound->problem;
    const int64_t *starts = run->state->starts, row0 = block_row * run->bound->view.block_rows;
    const bool to_buffer = !run->plain;
    T(tile_job) *job = &worker->job;
    const tile_split split = tile_make_split(&T(machine), S(rows_of)(run->bound, block_row), run->state->cut.width);
    S(tile_buffer) buffer;
    S(start_block_row)(worker, block_row);
    const int64_t blocks = job->blocks;
    const int32_t *columns = job->columns;
    for (int64_t tile = 0, row = row0; tile < split.tiles; tile++) {
        const int height = split.low + (tile < split.taller);
        const bool waits = to_buffer && height * (starts[last] - starts[first]) <= TILE_BUFFER_ROWS * T(widest);
        const int64_t few = TILE_CONVERTED_BYTES / (height * run->bound->view.block_cols * (int64_t)sizeof(REAL));
        const int64_t step = to_buffer && !waits && blocks > 0 ? blocks : few > 0 ? few : 1;
        for (int64_t p = 0; p == 0 || p < blocks; p += step) {
            job->columns = columns + p;
            job->blocks = blocks - p < step ? blocks - p : step;
            job->adds = p > 0;
            S(convert_rows)(worker, row - row0, height);
            REAL *sums = buffer.sums;
            for (int64_t panel = first; panel < last; panel++) {
                const S(tile_panel) at = S(start_panel)(worker, panel);
                job->out = to_buffer ? sums : (REAL *)run->args->d + row * problem->d.ld + at.column0;
                if (p == 0 && to_buffer && problem->d.layout == SPK_ROW_MAJOR)
                    S(fetch_for_epilogue)(run, row, height, at.column0, at.columns);
                S(tile_of)(worker, at.width, height)(job);
                if (to_buffer && p + step >= blocks)
                    S(finish_rows)(run, sums, job->out_stride, row, height, at.column0, at.columns);
                if (waits)
                    sums += height * job->out_stride;
            }
        }
        row += height;
    }
}
#endif

#endif
