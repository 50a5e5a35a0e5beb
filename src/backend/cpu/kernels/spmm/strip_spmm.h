/* A row of SpMM by strips: who includes this says ROW, TYPE and ISA. Threads share slices of at most COLUMNS columns of B, and take strips
 * of 32 rows; each copies what its strips need of its slice as panels of 32 columns, which stay in its second cache, where one copy for all
 * would come from other cores' caches. Where the product can, blocks whose sides are whole tiles are read where they are; of others a strip
 * is copied before it is multiplied, and static values once and for all. */
#include "backend/cpu/kernels/tiles/strip_types.h"

#ifndef ROW /* this file alone */
#if ISA == NEON
#define ROW spmm_bf16_neon
#else
#define ROW spmm_bf16_amx
#endif
#endif

typedef struct strip_spmm {
    int64_t panels, slices, workers;
    int64_t step, padded_rows, padded_cols; /* of a block */
    int64_t strips;                         /* of a block row */
    bool in_place;                          /* A */
    STORED *kept;                           /* static values, copied; NULL: there are none */
    bool ready;
    int least; /* of their numbers */
    /* the workspace, in bytes: counters; of each worker a slice of B, a strip of A, sums, the least numbers of B's block rows */
    int64_t counter_bytes, panel_bytes, b_bytes, a_bytes, sum_bytes, least_bytes;
} strip_spmm;

typedef struct strip_run {
    const spk_bound *bound;
    const spk_args *args;
    const strip_spmm *state;
    strip_queue queue;
} strip_run;

enum { NOT_COPIED = -1 };

/* A thread at work. */
typedef struct strip_worker {
    const strip_run *run;
    int64_t number;    /* of the slice that it has; -1: none yet */
    strip_range slice; /* its panels */
    int32_t *least;    /* of the numbers of their block rows; NOT_COPIED */
    char *panels, *sums;
    STORED *copy; /* of a strip */
} strip_worker;

/* Whether blocks are whole tiles, all inside the matrix, whose rows lie as tiles want them. */
static bool whole_tiles(const spk_problem *problem)
{
#if !STRIP_IN_PLACE
    (void)problem;
    return false;
#else
    const spk_pattern *pattern = problem->pattern;
    const int64_t rows = tile_block_rows(problem), cols = tile_block_cols(problem);
    return (problem->block_layout == SPK_ROW_MAJOR) == (problem->trans_a != SPK_TRANS) && rows % TILE_ROWS == 0 &&
           cols % strip_step(cols) == 0 && pattern->rows % pattern->block_rows == 0 && pattern->cols % pattern->block_cols == 0;
#endif
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int64_t columns = SPK_TUNED(ROW, params, COLUMNS);
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (tile_block_rows(problem) < STRIP_LEAST_SIDE || tile_block_cols(problem) < STRIP_LEAST_SIDE)
        *why = "tiles pay from blocks of 16 x 16 on";
    else if (columns > 32 && problem->n <= columns / 2)
        *why = "a smaller COLUMNS makes the same slices";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int64_t rows = tile_block_rows(problem), cols = tile_block_cols(problem), panels = tile_ceil(problem->n, STRIP_COLUMNS);
    const double blocks = (double)problem->pattern->nnzb, slices = (double)strip_slices(panels, SPK_TUNED(ROW, params, COLUMNS)),
                 threads = device->executor.threads > 0 ? device->executor.threads : 1, copies = threads > slices ? threads : slices;
    const double tiles = blocks * (double)(tile_ceil(rows, STRIP_TILE_SIDE) * strip_padded(cols) / strip_step(cols) * 2 * panels);
    const double values = 2 * blocks * (double)(rows * cols), b = (double)(problem->k * panels * STRIP_COLUMNS) * 2;
    const double bytes = copies / slices * b + slices * values * (whole_tiles(problem) || problem->static_values ? 1 : 2) +
                         (double)problem->m * (double)panels * STRIP_COLUMNS * 4 +
                         (4 * (b / slices) > 3 * (double)device->l2_bytes ? 128 * tiles : 0);
    return strip_cost(problem, device, tiles, bytes, (double)tile_grid_rows(problem) * (double)tile_ceil(rows, STRIP_ROWS) * slices);
}

static int64_t worker_bytes(const strip_spmm *state)
{
    return state->b_bytes + state->a_bytes + state->sum_bytes + state->least_bytes;
}

static void unbind(spk_bound *bound)
{
    strip_spmm *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->kept);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status bind(spk_bound *bound)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *problem = &bound->problem;
    strip_spmm *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(strip_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    state->step = strip_step(view->block_cols);
    state->padded_cols = strip_padded(view->block_cols);
    state->padded_rows = strip_padded_rows(view->block_rows);
    state->strips = tile_ceil(view->block_rows, STRIP_ROWS);
    state->in_place = whole_tiles(problem) && !problem->static_values;
    state->panels = tile_ceil(problem->n, STRIP_COLUMNS);
    state->slices = strip_slices(state->panels, SPK_TUNED(ROW, &bound->params, COLUMNS));
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    int64_t longest = 0;
    for (int64_t row = 0; row < view->grid_rows; row++)
        if (view->offsets[row + 1] - view->offsets[row] > longest)
            longest = view->offsets[row + 1] - view->offsets[row];
    const int64_t copied = view->nnzb * state->padded_rows * state->padded_cols, widest = tile_ceil(state->panels, state->slices);
    state->counter_bytes = state->slices * (int64_t)sizeof(strip_counter);
    state->panel_bytes = view->grid_cols * state->padded_cols * STRIP_LINE_BYTES;
    state->b_bytes = widest * state->panel_bytes;
    state->a_bytes = state->in_place || problem->static_values ? 0 : longest * STRIP_ROWS * state->padded_cols * 2;
    state->sum_bytes = STRIP_ROWS * widest * STRIP_COLUMNS * 4;
    state->least_bytes = tile_ceil(view->grid_cols * (int64_t)sizeof(int32_t), 64) * 64;
    if (problem->static_values)
        SPK_GOTO(spk_alloc(&bound->device->mem, copied > 0 ? (size_t)copied : 1, sizeof *state->kept, &state->kept));
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->workers * worker_bytes(state));
    return SPK_OK;
done:
    unbind(bound);
    return status;
}

/* Strip number i of stored block p, of which `rows` rows are there, to its copy. */
static void copy_strip(const spk_bound *bound, const STORED *values, int64_t p, int64_t i, int64_t rows, STORED *to, S(pair_least) *least)
{
    const spk_bsr_view *view = &bound->view;
    const strip_spmm *state = bound->state;
    const int64_t left = view->cols - (int64_t)view->columns[p] * view->block_cols;
    const STORED *from =
        values + (view->positions != NULL ? view->positions[p] : p) * view->block_stride + i * STRIP_ROWS * view->row_stride;
    S(strip_copy)(from, view->row_stride, view->col_stride, rows, left < view->block_cols ? left : view->block_cols, state->padded_cols, to,
                  least);
}

/* Rows of strip number i of a block row that are there. */
static int64_t rows_of(const spk_bound *bound, int64_t block_row, int64_t i)
{
    const int64_t left = bound->problem.m - block_row * bound->view.block_rows;
    return strip_rows(left < bound->view.block_rows ? left : bound->view.block_rows, i);
}

/* None of a slice's panels yet. */
static void take_slice(strip_worker *worker, int64_t slice)
{
    worker->number = slice;
    worker->slice = strip_part(worker->run->state->panels, slice, worker->run->state->slices);
    for (int64_t block = 0; block < worker->run->bound->view.grid_cols; block++)
        worker->least[block] = NOT_COPIED;
}

/* The panels' rows beside one block. */
static void take_rows(strip_worker *worker, int64_t block)
{
    const spk_bsr_view *view = &worker->run->bound->view;
    const spk_problem *problem = &worker->run->bound->problem;
    const strip_spmm *state = worker->run->state;
    const int64_t k = block * view->block_cols, left = view->cols - k, rows = left < view->block_cols ? left : view->block_cols,
                  col_step = spk_operand_col_step(&problem->b);
    const STORED *b = (const STORED *)worker->run->args->b + k * spk_operand_row_step(&problem->b);
    char *to = worker->panels + block * state->padded_cols * STRIP_LINE_BYTES;
    S(pair_least) least = S(least_of_none)();
    for (int64_t panel = worker->slice.begin; panel < worker->slice.end; panel++, to += state->panel_bytes) {
        const int64_t n = panel * STRIP_COLUMNS;
        S(panel_copy)(problem->b.layout, b + n * col_step, problem->b.ld, rows, state->padded_cols, problem->n - n, to, &least);
    }
    worker->least[block] = S(least_number)(least);
}

/* The panels' rows beside the blocks of a block row, and the least of their numbers. */
static int take_panels(strip_worker *worker, int64_t block_row)
{
    const spk_bsr_view *view = &worker->run->bound->view;
    int least = S(LEAST_OF_NONE);
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++) {
        const int32_t block = view->columns[p];
        if (worker->least[block] == NOT_COPIED)
            take_rows(worker, block);
        least = worker->least[block] < least ? worker->least[block] : least;
    }
    return least;
}

/* A strip of a block row as tiles read it, and the least of its numbers. */
static int take_strip(const strip_worker *worker, int64_t block_row, int64_t i, int64_t rows, row_strip *strip)
{
    const spk_bound *bound = worker->run->bound;
    const spk_bsr_view *view = &bound->view;
    const strip_spmm *state = worker->run->state;
    const int64_t first = view->offsets[block_row], inside = strip_at(i, state->padded_cols),
                  block = state->padded_rows * state->padded_cols;
    S(pair_least) least = S(least_of_none)();
    *strip = copied_strip(worker->copy, rows, state->padded_cols);
    strip->columns = view->columns + first;
    strip->blocks = view->offsets[block_row + 1] - first;
    if (state->kept != NULL) {
        strip->block_bytes = block * 2;
        strip->a = (const char *)(state->kept + inside + first * block);
        return state->least;
    }
#if STRIP_IN_PLACE
    if (state->in_place) {
        strip->block_bytes = block * 2;
        strip->tile_bytes = strip->row_bytes;
        strip->row_bytes = state->padded_cols * 2;
        strip->positions = view->positions != NULL ? view->positions + first : NULL;
        strip->a = (const char *)((const STORED *)worker->run->args->a + inside + (strip->positions == NULL ? first * block : 0));
        for (int64_t p = 0; p < strip->blocks; p++)
            S(strip_look)(strip_block(strip, p), rows * strip->row_bytes, &least);
        return S(least_number)(least);
    }
#endif
    strip->block_bytes = STRIP_ROWS * state->padded_cols * 2;
    for (int64_t p = 0; p < strip->blocks; p++)
        copy_strip(bound, worker->run->args->a, first + p, i, rows, worker->copy + p * STRIP_ROWS * state->padded_cols, &least);
    return S(least_number)(least);
}

static void work(void *arg, int64_t number)
{
    const strip_run *run = arg;
    const spk_problem *problem = &run->bound->problem;
    const strip_spmm *state = run->state;
    strip_worker worker = {.run = run, .number = -1};
    worker.panels = (char *)run->args->workspace + state->counter_bytes + number * worker_bytes(state);
    worker.copy = (STORED *)(void *)(worker.panels + state->b_bytes);
    worker.sums = worker.panels + state->b_bytes + state->a_bytes;
    worker.least = (int32_t *)(void *)(worker.sums + state->sum_bytes);
    strip_place place = {.slice = -1, .first = number * state->slices / state->workers};
    strip_begin(state->step);
    while (strip_take(&run->queue, &place)) {
        const int64_t block_row = place.unit / state->strips, i = place.unit % state->strips, rows = rows_of(run->bound, block_row, i);
        if (rows <= 0) /* all of it hangs over */
            continue;
        if (place.slice != worker.number)
            take_slice(&worker, place.slice);
        row_strip strip;
        const int least_b = take_panels(&worker, block_row), least = take_strip(&worker, block_row, i, rows, &strip);
        const int64_t count = worker.slice.end - worker.slice.begin, columns = count * STRIP_COLUMNS,
                      column0 = worker.slice.begin * STRIP_COLUMNS;
        strip.exact = !S(pairs_are_exact)(least, least_b);
        T(strip_multiply)(&strip, rows, worker.panels, state->panel_bytes, count, worker.sums);
        strip_finish(problem, run->args, worker.sums, columns, block_row * run->bound->view.block_rows + i * STRIP_ROWS, rows, column0,
                     problem->n - column0 < columns ? problem->n - column0 : columns);
    }
    strip_end();
}

typedef struct strip_keeping {
    const spk_bound *bound;
    const STORED *values;
    atomic_int least;
} strip_keeping;

/* The blocks of a block row. */
static void keep(void *arg, int64_t block_row)
{
    strip_keeping *keeping = arg;
    const spk_bsr_view *view = &keeping->bound->view;
    const strip_spmm *state = keeping->bound->state;
    S(pair_least) least = S(least_of_none)();
    for (int64_t p = view->offsets[block_row]; p < view->offsets[block_row + 1]; p++)
        for (int64_t i = 0, rows; i < state->strips && (rows = rows_of(keeping->bound, block_row, i)) > 0; i++)
            copy_strip(keeping->bound, keeping->values, p, i, rows,
                       state->kept + p * state->padded_rows * state->padded_cols + strip_at(i, state->padded_cols), &least);
    strip_least(&keeping->least, S(least_number)(least));
}

static spk_status update_values(spk_bound *bound, const void *values)
{
    strip_spmm *state = bound->state;
    if (!bound->problem.static_values)
        return SPK_OK;
    strip_keeping keeping = {.bound = bound, .values = values};
    atomic_init(&keeping.least, S(LEAST_OF_NONE));
    spk_execute(&bound->device->executor, bound->view.grid_rows, keep, &keeping);
    state->least = atomic_load(&keeping.least);
    state->ready = true;
    return SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const strip_spmm *state = bound->state;
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    if (state->kept != NULL && !state->ready)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    strip_run run = {.bound = bound, .args = args, .state = state};
    run.queue = (strip_queue){.slices = state->slices, .units = bound->view.grid_rows * state->strips, .counters = args->workspace};
    strip_open(&run.queue);
    spk_execute(&bound->device->executor, state->workers, work, &run);
    return SPK_OK;
}

#define STRIP_SPMM_OPS                                                                                                                  \
    {                                                                                                                                   \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .update_values = update_values, .run = run, \
        .source_hash = SPK_SOURCE_HASH                                                                                                  \
    }
