/* A row of SDDMM by strips: who includes this says TYPE and ISA. Threads share slices of the block columns, and take block rows; each
 * copies its slice of Y as panels of 32 columns, and the rows of X as strips of 32. */
#include "backend/cpu/kernels/tiles/strip_types.h"

#include "backend/cpu/kernels/sddmm/sddmm_finish.h"

typedef struct strip_sddmm {
    int64_t strips, panels; /* of a block */
    int64_t slices, workers;
    int64_t padded; /* K */
    /* the workspace, in bytes: counters; of each worker a slice of Y, a block row of X, sums */
    int64_t counter_bytes, panel_bytes, y_bytes, x_bytes, sum_bytes;
} strip_sddmm;

typedef struct strip_run {
    const spk_bound *bound;
    const spk_args *args;
    const strip_sddmm *state;
    strip_queue queue;
} strip_run;

/* A thread at work. */
typedef struct strip_worker {
    const strip_run *run;
    int64_t number;      /* of the slice that it has; -1: none yet */
    strip_range columns; /* its block columns */
    int least;           /* of its numbers */
    char *panels, *sums;
    STORED *strips;
} strip_worker;

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->pattern->block_rows < STRIP_LEAST_SIDE || problem->pattern->block_cols < STRIP_LEAST_SIDE)
        *why = "tiles pay from blocks of 16 x 16 on";
    return *why == NULL;
}

static int64_t slices_of(const spk_problem *problem, const spk_device *device, int64_t grid_rows, int64_t grid_cols)
{
    const int64_t panels = tile_ceil(problem->pattern->block_cols, STRIP_COLUMNS), workers = device->executor.threads,
                  slice_bytes = device->l2_bytes > 0 ? device->l2_bytes / 2 : 1 << 19,
                  near = tile_ceil(grid_cols * panels * strip_padded(problem->k) * STRIP_COLUMNS * 2, slice_bytes),
                  wanted = workers > 1 && grid_rows > 0 ? tile_ceil(2 * workers, grid_rows) : 1, slices = near > wanted ? near : wanted;
    return slices < grid_cols ? slices : grid_cols > 0 ? grid_cols : 1;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const spk_pattern *pattern = problem->pattern;
    const int64_t rows = tile_ceil(problem->m, pattern->block_rows), cols = tile_ceil(problem->n, pattern->block_cols),
                  k = strip_padded(problem->k), panels = tile_ceil(pattern->block_cols, STRIP_COLUMNS),
                  slices = slices_of(problem, device, rows, cols);
    const double blocks = (double)pattern->nnzb,
                 tiles = blocks * (double)(tile_ceil(pattern->block_rows, STRIP_TILE_SIDE) * 2 * panels * k / strip_step(problem->k));
    const double threads = device->executor.threads > 0 ? device->executor.threads : 1,
                 times = threads > (double)slices ? threads : (double)slices;
    const double copies = times / (double)slices * (double)(2 * k * problem->n) + (double)(slices * 3 * k * problem->m) +
                          blocks * (double)(pattern->block_rows * panels * STRIP_COLUMNS * 6);
    return strip_cost(problem, device, tiles, copies, (double)(rows * slices));
}

static void unbind(spk_bound *bound)
{
    if (bound->state != NULL)
        spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static spk_status bind(spk_bound *bound)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *problem = &bound->problem;
    strip_sddmm *state = NULL;
    SPK_TRY(strip_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    state->strips = tile_ceil(view->block_rows, STRIP_ROWS);
    state->panels = tile_ceil(view->block_cols, STRIP_COLUMNS);
    state->padded = strip_padded(problem->k);
    state->slices = slices_of(problem, bound->device, view->grid_rows, view->grid_cols);
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    state->counter_bytes = state->slices * (int64_t)sizeof(strip_counter);
    state->panel_bytes = state->padded * STRIP_LINE_BYTES;
    state->y_bytes = tile_ceil(view->grid_cols, state->slices) * state->panels * state->panel_bytes;
    state->x_bytes = state->strips * STRIP_ROWS * state->padded * 2;
    state->sum_bytes = state->strips * STRIP_ROWS * state->panels * STRIP_COLUMNS * 4;
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->workers * (state->y_bytes + state->x_bytes + state->sum_bytes));
    bound->state = state;
    return SPK_OK;
}

/* Rows of block row number i that are there. */
static int64_t rows_of(const spk_bound *bound, int64_t i)
{
    const int64_t left = bound->problem.m - i * bound->view.block_rows;
    return left < bound->view.block_rows ? left : bound->view.block_rows;
}

/* The strips of a block row, and the least of their numbers. */
static int take_x(const strip_worker *worker, int64_t block_row, int64_t rows)
{
    const strip_run *run = worker->run;
    const spk_operand *x = &run->bound->problem.a;
    const int64_t row_step = spk_operand_row_step(x), padded = run->state->padded;
    const STORED *from = (const STORED *)run->args->a + block_row * run->bound->view.block_rows * row_step;
    S(pair_least) least = S(least_of_none)();
    for (int64_t i = 0; i * STRIP_ROWS < rows; i++)
        S(strip_copy)(from + i * STRIP_ROWS * row_step, row_step, spk_operand_col_step(x), strip_rows(rows, i), run->bound->problem.k,
                      padded, worker->strips + strip_at(i, padded), &least);
    return S(least_number)(least);
}

/* The panels of a slice: of a row-major Y a few rows at a time, along its lines. */
static void take_slice(strip_worker *worker, int64_t slice)
{
    const strip_run *run = worker->run;
    const strip_sddmm *state = run->state;
    const spk_problem *problem = &run->bound->problem;
    const int64_t row_step = spk_operand_row_step(&problem->b), col_step = spk_operand_col_step(&problem->b),
                  width = run->bound->view.block_cols, step = problem->b.layout == SPK_ROW_MAJOR ? STRIP_COPY_ROWS : state->padded;
    S(pair_least) least = S(least_of_none)();
    worker->number = slice;
    worker->columns = strip_part(run->bound->view.grid_cols, slice, state->slices);
    for (int64_t k = 0; k < state->padded; k += step) {
        char *to = worker->panels + k * STRIP_LINE_BYTES;
        for (int64_t block = worker->columns.begin; block < worker->columns.end; block++)
            for (int64_t panel = 0; panel < state->panels; panel++, to += state->panel_bytes) {
                const int64_t inside = panel * STRIP_COLUMNS, column = block * width + inside, in_y = problem->n - column;
                S(panel_copy)(problem->b.layout, (const STORED *)run->args->b + k * row_step + column * col_step, problem->b.ld,
                              problem->k - k, state->padded - k < step ? state->padded - k : step,
                              in_y < width - inside ? in_y : width - inside, to, &least);
            }
    }
    worker->least = S(least_number)(least);
}

/* The first of a block row's stored blocks, which are in the order of their columns, from this block column on. */
static int64_t first_from(const spk_bsr_view *view, int64_t block_row, int64_t block_column)
{
    int64_t low = view->offsets[block_row], high = view->offsets[block_row + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (view->columns[middle] < block_column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block row's blocks in the slice. */
static void multiply(const strip_worker *worker, int64_t block_row)
{
    const spk_bound *bound = worker->run->bound;
    const spk_bsr_view *view = &bound->view;
    const strip_sddmm *state = worker->run->state;
    const int64_t rows = rows_of(bound, block_row), begin = first_from(view, block_row, worker->columns.begin),
                  end = first_from(view, block_row, worker->columns.end), ld = state->panels * STRIP_COLUMNS;
    if (begin == end)
        return;
    const bool exact = !S(pairs_are_exact)(take_x(worker, block_row, rows), worker->least);
    for (int64_t p = begin; p < end; p++) {
        const char *panels = worker->panels + (view->columns[p] - worker->columns.begin) * state->panels * state->panel_bytes;
        for (int64_t i = 0; i * STRIP_ROWS < rows; i++) {
            const int64_t there = strip_rows(rows, i);
            row_strip strip = copied_strip(worker->strips + strip_at(i, state->padded), there, state->padded);
            strip.exact = exact;
            T(strip_multiply)(&strip, there, panels, state->panel_bytes, state->panels, worker->sums + i * STRIP_ROWS * ld * 4);
        }
        S(sddmm_finish)(bound, worker->run->args, p, (sddmm_rows){0, rows, view->block_rows}, (const REAL *)(const void *)worker->sums, ld);
    }
}

static void work(void *arg, int64_t number)
{
    const strip_run *run = arg;
    const strip_sddmm *state = run->state;
    strip_worker worker = {.run = run, .number = -1};
    worker.panels = (char *)run->args->workspace + state->counter_bytes + number * (state->y_bytes + state->x_bytes + state->sum_bytes);
    worker.strips = (STORED *)(void *)(worker.panels + state->y_bytes);
    worker.sums = worker.panels + state->y_bytes + state->x_bytes;
    strip_place place = {.slice = -1, .first = number * state->slices / state->workers};
    strip_begin(strip_step(run->bound->problem.k));
    while (strip_take(&run->queue, &place)) {
        if (place.slice != worker.number)
            take_slice(&worker, place.slice);
        multiply(&worker, place.unit);
    }
    strip_end();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const strip_sddmm *state = bound->state;
    if (bound->view.nnzb == 0)
        return SPK_OK;
    strip_run run = {.bound = bound,
                     .args = args,
                     .state = state,
                     .queue = {.slices = state->slices, .units = bound->view.grid_rows, .counters = args->workspace}};
    strip_open(&run.queue);
    spk_execute(&bound->device->executor, state->workers, work, &run);
    return SPK_OK;
}

#define STRIP_SDDMM_OPS                                                                                                                \
    {                                                                                                                                  \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH \
    }
