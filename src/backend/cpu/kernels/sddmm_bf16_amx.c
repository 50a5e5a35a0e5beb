/* sddmm_bf16_amx: the stored blocks of D = alpha X Y + beta C in bfloat16 with float32 sums, with AMX. Blocks of 16 x 16 and more, any
 * layouts, any K. X is copied as strips of 32 rows of block rows, Y as panels of 32 columns of block columns; then threads share slices of
 * the block columns, and take block rows. Bound: the tiles' loads from the second cache; copies where few blocks are stored. */
#define ROW sddmm_bf16_amx
#include "backend/cpu/kernels/amx_types.h"

#include "backend/cpu/kernels/sddmm_finish.h"

typedef struct amx_sddmm {
    int64_t strips, panels; /* of a block */
    int64_t slices, workers;
    int64_t padded; /* K */
    /* the workspace, in bytes: counters, Y, X, sums of each worker */
    int64_t counter_bytes, y_bytes, x_bytes, sum_bytes;
} amx_sddmm;

typedef struct amx_run {
    const spk_bound *bound;
    const spk_args *args;
    const amx_sddmm *state;
    amx_queue queue;
    char *panels, *sums;
    STORED *strips;
    int64_t x_tasks, y_tasks, y_depths; /* of Y: parts of the block columns times parts of K */
    atomic_int least_x, least_y;
} amx_run;

enum { DEPTH_OF_COPIES = 32 }; /* rows of a row-major Y a task, and a multiple of it: lines are read along */

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->pattern->block_rows < AMX_LEAST_SIDE || problem->pattern->block_cols < AMX_LEAST_SIDE)
        *why = "tiles pay from blocks of 16 x 16 on";
    return *why == NULL;
}

static int64_t slices_of(const spk_problem *problem, const spk_device *device, int64_t grid_rows, int64_t grid_cols)
{
    const int64_t panels = tile_ceil(problem->pattern->block_cols, AMX_PANEL), workers = device->executor.threads,
                  slice_bytes = device->l2_bytes > 0 ? device->l2_bytes / 2 : 1 << 19,
                  near = tile_ceil(grid_cols * panels * amx_padded(problem->k) * AMX_PANEL * 2, slice_bytes),
                  wanted = workers > 1 && grid_rows > 0 ? tile_ceil(2 * workers, grid_rows) : 1, slices = near > wanted ? near : wanted;
    return slices < grid_cols ? slices : grid_cols > 0 ? grid_cols : 1;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const spk_pattern *pattern = problem->pattern;
    const int64_t rows = tile_ceil(problem->m, pattern->block_rows), cols = tile_ceil(problem->n, pattern->block_cols),
                  k = amx_padded(problem->k), panels = tile_ceil(pattern->block_cols, AMX_PANEL),
                  slices = slices_of(problem, device, rows, cols);
    const double blocks = (double)pattern->nnzb,
                 tiles = blocks * (double)(tile_ceil(pattern->block_rows, TILE_ROWS) * 2 * panels * k / amx_step(problem->k));
    const double copies = (double)(3 * k * (problem->m + problem->n)) + (double)(slices * 2 * k * problem->m) +
                          blocks * (double)(pattern->block_rows * panels * AMX_PANEL * 6);
    return amx_cost(problem, device, tiles, copies, (double)(rows * slices));
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
    amx_sddmm *state = NULL;
    SPK_TRY(amx_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    state->strips = tile_ceil(view->block_rows, AMX_STRIP);
    state->panels = tile_ceil(view->block_cols, AMX_PANEL);
    state->padded = amx_padded(problem->k);
    state->slices = slices_of(problem, bound->device, view->grid_rows, view->grid_cols);
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    state->counter_bytes = state->slices * (int64_t)sizeof(amx_counter);
    state->y_bytes = view->grid_cols * state->panels * state->padded * (AMX_PAIR_BYTES / 2);
    state->x_bytes = view->grid_rows * state->strips * AMX_STRIP * state->padded * 2;
    state->sum_bytes = state->strips * AMX_STRIP * state->panels * AMX_PANEL * 4;
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->y_bytes + state->x_bytes + state->workers * state->sum_bytes);
    bound->state = state;
    return SPK_OK;
}

/* Rows of block row number i that are there. */
static int64_t rows_of(const spk_bound *bound, int64_t i)
{
    const int64_t left = bound->problem.m - i * bound->view.block_rows;
    return left < bound->view.block_rows ? left : bound->view.block_rows;
}

static void take_x(amx_run *run, int64_t begin, int64_t end)
{
    const spk_operand *x = &run->bound->problem.a;
    const int64_t row_step = spk_operand_row_step(x), padded = run->state->padded, height = run->bound->view.block_rows;
    S(pair_least) least = S(least_of_none)();
    for (int64_t block_row = begin; block_row < end; block_row++)
        for (int64_t i = 0; i * AMX_STRIP < rows_of(run->bound, block_row); i++)
            S(amx_copy_strip)((const STORED *)run->args->a + (block_row * height + i * AMX_STRIP) * row_step, row_step,
                              spk_operand_col_step(x), amx_strip_rows(rows_of(run->bound, block_row), i), run->bound->problem.k, padded,
                              run->strips + amx_strip_at(block_row * run->state->strips + i, padded), &least);
    amx_least(&run->least_x, S(least_number)(least));
}

/* Block columns and rows of Y, to panels. */
static void take_y(amx_run *run, amx_range blocks, amx_range depth)
{
    const spk_problem *problem = &run->bound->problem;
    const int64_t row_step = spk_operand_row_step(&problem->b), col_step = spk_operand_col_step(&problem->b);
    const int64_t padded = run->state->padded, width = run->bound->view.block_cols;
    S(pair_least) least = S(least_of_none)();
    for (int64_t block = blocks.begin; block < blocks.end; block++)
        for (int64_t panel = 0; panel < run->state->panels; panel++) {
            const int64_t inside = panel * AMX_PANEL, column = block * width + inside, in_y = problem->n - column;
            S(amx_copy_panel)(problem->b.layout, (const STORED *)run->args->b + depth.begin * row_step + column * col_step, problem->b.ld,
                              problem->k - depth.begin, depth.end - depth.begin, in_y < width - inside ? in_y : width - inside,
                              run->panels + ((block * run->state->panels + panel) * padded + depth.begin) * (AMX_PAIR_BYTES / 2), &least);
        }
    amx_least(&run->least_y, S(least_number)(least));
}

static void prepare(void *arg, int64_t task)
{
    amx_run *run = arg;
    const spk_bsr_view *view = &run->bound->view;
    const int64_t padded = run->state->padded, columns = run->y_tasks / run->y_depths;
    if (task >= run->y_tasks) {
        const amx_range part = amx_part(view->grid_rows, task - run->y_tasks, run->x_tasks);
        take_x(run, part.begin, part.end);
        return;
    }
    amx_range depth = amx_part(tile_ceil(padded, DEPTH_OF_COPIES), task % run->y_depths, run->y_depths);
    depth.begin *= DEPTH_OF_COPIES;
    depth.end = depth.end * DEPTH_OF_COPIES < padded ? depth.end * DEPTH_OF_COPIES : padded;
    take_y(run, amx_part(view->grid_cols, task / run->y_depths, columns), depth);
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

static void multiply(const amx_run *run, const amx_place *place, bool exact, char *sums)
{
    const spk_bsr_view *view = &run->bound->view;
    const amx_sddmm *state = run->state;
    const amx_range columns = amx_part(view->grid_cols, place->slice, state->slices);
    const int64_t rows = rows_of(run->bound, place->unit), last = first_from(view, place->unit, columns.end),
                  panel_bytes = state->padded * (AMX_PAIR_BYTES / 2), ld = state->panels * AMX_PANEL;
    for (int64_t p = first_from(view, place->unit, columns.begin); p < last; p++) {
        for (int64_t i = 0; i * AMX_STRIP < rows; i++) {
            const int64_t there = amx_strip_rows(rows, i);
            amx_strip strip =
                amx_copied_strip(run->strips + amx_strip_at(place->unit * state->strips + i, state->padded), there, state->padded);
            strip.exact = exact;
            T(amx_multiply)(&strip, there, run->panels + view->columns[p] * state->panels * panel_bytes, panel_bytes, state->panels,
                            sums + i * AMX_STRIP * ld * 4);
        }
        S(sddmm_finish)(run->bound, run->args, p, rows, (const REAL *)(const void *)sums, ld);
    }
}

static void work(void *arg, int64_t worker)
{
    amx_run *run = arg;
    const amx_sddmm *state = run->state;
    amx_place place = {.slice = -1, .first = worker * state->slices / state->workers};
    const bool exact = !S(pairs_are_exact)(atomic_load(&run->least_x), atomic_load(&run->least_y));
    amx_begin(amx_step(run->bound->problem.k));
    while (amx_take(&run->queue, &place))
        multiply(run, &place, exact, run->sums + worker * state->sum_bytes);
    tile_release();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const amx_sddmm *state = bound->state;
    const spk_bsr_view *view = &bound->view;
    const spk_executor *executor = &bound->device->executor;
    const int64_t tasks = state->workers * AMX_COPIES_A_THREAD;
    if (view->nnzb == 0)
        return SPK_OK;
    char *workspace = args->workspace;
    amx_run run = {.bound = bound, .args = args, .state = state};
    run.queue = (amx_queue){state->slices, view->grid_rows, (amx_counter *)(void *)workspace, false};
    run.panels = workspace + state->counter_bytes;
    run.strips = (STORED *)(void *)(run.panels + state->y_bytes);
    run.sums = run.panels + state->y_bytes + state->x_bytes;
    run.y_depths = bound->problem.b.layout == SPK_ROW_MAJOR && state->padded > 0 ? tile_ceil(state->padded, DEPTH_OF_COPIES) : 1;
    const int64_t columns = tile_ceil(tasks, run.y_depths);
    run.y_tasks = (view->grid_cols < columns ? view->grid_cols : columns) * run.y_depths;
    run.x_tasks = view->grid_rows < tasks ? view->grid_rows : tasks;
    atomic_init(&run.least_x, S(LEAST_OF_NONE));
    atomic_init(&run.least_y, S(LEAST_OF_NONE));
    amx_open(&run.queue);
    spk_execute(executor, run.y_tasks + run.x_tasks, prepare, &run);
    spk_execute(executor, state->workers, work, &run);
    return SPK_OK;
}

const spk_kernel_ops sddmm_bf16_amx_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH};
