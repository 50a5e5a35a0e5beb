/* spmm_bf16_amx: D = epilogue(A_bsr B) in bfloat16 with float32 sums, with AMX. Blocks of 16 x 16 and more, any layout, orientation, N and
 * epilogue. B is copied as pairs of rows in panels of 32 columns; blocks whose sides are whole tiles are read where they are (PACK=0), others
 * and all that PACK=1 says are copied first, once and for all where the values are static. Then threads share slices of at most COLUMNS
 * columns, and take strips of 32 rows. Bound: the tiles' loads from the second cache, and copies where few rows of B's panels are used. */
#define ROW spmm_bf16_amx
#include "backend/cpu/kernels/amx_types.h"

typedef struct amx_spmm {
    int64_t panels, slices, workers;
    int64_t step, padded_rows, padded_cols; /* of a block */
    int64_t strips;                         /* of a block row */
    bool in_place;                          /* A */
    STORED *kept;                           /* static values, copied; NULL: there are none */
    bool ready;
    int least; /* of their numbers */
    /* the workspace, in bytes: counters, B, A, sums of each worker */
    int64_t counter_bytes, b_bytes, a_bytes, sum_bytes;
} amx_spmm;

typedef struct amx_run {
    const spk_bound *bound;
    const spk_args *args;
    const amx_spmm *state;
    amx_queue queue;
    const STORED *values;
    STORED *copies; /* of the values; NULL: none are made */
    char *panels, *sums;
    int64_t a_tasks, b_tasks;
    atomic_int least_a, least_b;
} amx_run;

/* Whether blocks are whole tiles, all inside the matrix, whose rows lie as tiles want them. */
static bool whole_tiles(const spk_problem *problem)
{
    const spk_pattern *pattern = problem->pattern;
    const int64_t rows = tile_block_rows(problem), cols = tile_block_cols(problem);
    return (problem->block_layout == SPK_ROW_MAJOR) == (problem->trans_a != SPK_TRANS) && rows % TILE_ROWS == 0 && cols % amx_step(cols) == 0 &&
           pattern->rows % pattern->block_rows == 0 && pattern->cols % pattern->block_cols == 0;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int64_t columns = SPK_TUNED(ROW, params, COLUMNS);
    const bool packs = SPK_TUNED(ROW, params, PACK) != 0;
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (tile_block_rows(problem) < AMX_LEAST_SIDE || tile_block_cols(problem) < AMX_LEAST_SIDE)
        *why = "tiles pay from blocks of 16 x 16 on";
    else if (!packs && !whole_tiles(problem))
        *why = "PACK=0 reads blocks in place: their rows must be whole tiles, and inside the matrix";
    else if (!packs && problem->static_values)
        *why = "static values are copied once: PACK=1";
    else if (columns > 128 && problem->n <= columns / 2)
        *why = "a smaller COLUMNS makes the same slices";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int64_t rows = tile_block_rows(problem), cols = tile_block_cols(problem), panels = tile_ceil(problem->n, AMX_PANEL);
    const double blocks = (double)problem->pattern->nnzb, slices = (double)amx_slices(device, panels, problem->k, SPK_TUNED(ROW, params, COLUMNS));
    const double tiles = blocks * (double)(tile_ceil(rows, TILE_ROWS) * amx_padded(cols) / amx_step(cols) * 2 * panels);
    const double values = 2 * blocks * (double)(rows * cols);
    const double copies = (double)(problem->k * panels * AMX_PANEL * 2) + (problem->static_values ? 0 : SPK_TUNED(ROW, params, PACK) ? 2 : 1) * values +
                          slices * values + (double)problem->m * (double)panels * AMX_PANEL * 4;
    return amx_cost(problem, device, tiles, copies, (double)tile_grid_rows(problem) * (double)tile_ceil(rows, AMX_STRIP) * slices);
}

static void unbind(spk_bound *bound)
{
    amx_spmm *state = bound->state;
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
    amx_spmm *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(amx_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    state->step = amx_step(view->block_cols);
    state->padded_cols = amx_padded(view->block_cols);
    state->padded_rows = amx_padded_rows(view->block_rows);
    state->strips = tile_ceil(view->block_rows, AMX_STRIP);
    state->in_place = SPK_TUNED(ROW, &bound->params, PACK) == 0;
    state->panels = tile_ceil(problem->n, AMX_PANEL);
    state->slices = amx_slices(bound->device, state->panels, view->grid_cols * state->padded_cols, SPK_TUNED(ROW, &bound->params, COLUMNS));
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    state->counter_bytes = state->slices * (int64_t)sizeof(amx_counter);
    state->b_bytes = state->panels * view->grid_cols * state->padded_cols * (AMX_PAIR_BYTES / 2);
    const int64_t copied = view->nnzb * state->padded_rows * state->padded_cols;
    state->a_bytes = state->in_place || problem->static_values ? 0 : tile_ceil(copied * 2, 64) * 64;
    state->sum_bytes = AMX_STRIP * tile_ceil(state->panels, state->slices) * AMX_PANEL * 4;
    if (problem->static_values)
        SPK_GOTO(spk_alloc(&bound->device->mem, copied > 0 ? (size_t)copied : 1, sizeof *state->kept, &state->kept));
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->b_bytes + state->a_bytes + state->workers * state->sum_bytes);
    return SPK_OK;
done:
    unbind(bound);
    return status;
}

/* Numbers that stay where they are. */
static void look_at(const STORED *from, int64_t count, S(pair_least) *least)
{
    S(pair_least) found = *least;
    for (int64_t i = 0; i < count; i += 2 * T(lanes))
        S(least_of)(&found, S(pairs_of_line)(from + i, count - i));
    *least = found;
}

/* Stored blocks begin .. end - 1 in the order of op(A): copied, or looked at. */
static void take_values(amx_run *run, int64_t begin, int64_t end)
{
    const spk_bsr_view *view = &run->bound->view;
    const amx_spmm *state = run->state;
    S(pair_least) least = S(least_of_none)();
    if (run->copies == NULL) {
        for (int64_t p = begin; p < end; p++)
            look_at(run->values + p * view->block_stride, view->block_stride, &least);
        amx_least(&run->least_a, S(least_number)(least));
        return;
    }
    int64_t row = 0, high = view->grid_rows;
    while (high - row > 1) { /* the block row of `begin`: the last one that begins there or before */
        const int64_t middle = row + (high - row) / 2;
        if (view->offsets[middle] <= begin)
            row = middle;
        else
            high = middle;
    }
    for (int64_t p = begin; p < end; p++) {
        while (view->offsets[row + 1] <= p)
            row++;
        const int64_t rows = view->rows - row * view->block_rows, cols = view->cols - view->columns[p] * (int64_t)view->block_cols;
        const int64_t there = rows < view->block_rows ? rows : view->block_rows;
        const STORED *from = run->values + (view->positions != NULL ? view->positions[p] : p) * view->block_stride;
        STORED *to = run->copies + p * state->padded_rows * state->padded_cols;
        for (int64_t i = 0; i * AMX_STRIP < there; i++)
            S(amx_copy_strip)(from + i * AMX_STRIP * view->row_stride, view->row_stride, view->col_stride, amx_strip_rows(there, i),
                              cols < view->block_cols ? cols : view->block_cols, state->padded_cols, to + amx_strip_at(i, state->padded_cols),
                              &least);
    }
    amx_least(&run->least_a, S(least_number)(least));
}

/* Some block columns' rows of B, all panels. */
static void take_b(amx_run *run, int64_t begin, int64_t end)
{
    const spk_bsr_view *view = &run->bound->view;
    const spk_problem *problem = &run->bound->problem;
    const amx_spmm *state = run->state;
    const bool row_major = problem->b.layout == SPK_ROW_MAJOR;
    const int64_t panel_bytes = view->grid_cols * state->padded_cols * (AMX_PAIR_BYTES / 2);
    S(pair_least) least = S(least_of_none)();
    for (int64_t block = begin; block < end; block++)
        for (int64_t panel = 0; panel < state->panels; panel++) {
            const int64_t k = block * view->block_cols, n = panel * AMX_PANEL, left = view->cols - k;
            const STORED *b = (const STORED *)run->args->b + (row_major ? k * problem->b.ld + n : k + n * problem->b.ld);
            S(amx_copy_panel)(problem->b.layout, b, problem->b.ld, left < view->block_cols ? left : view->block_cols, state->padded_cols,
                              problem->n - n, run->panels + panel * panel_bytes + block * state->padded_cols * (AMX_PAIR_BYTES / 2), &least);
        }
    amx_least(&run->least_b, S(least_number)(least));
}

static void prepare(void *arg, int64_t task)
{
    amx_run *run = arg;
    const spk_bsr_view *view = &run->bound->view;
    const bool is_b = task < run->b_tasks;
    const amx_range part = is_b ? amx_part(view->grid_cols, task, run->b_tasks) : amx_part(view->nnzb, task - run->b_tasks, run->a_tasks);
    if (is_b)
        take_b(run, part.begin, part.end);
    else
        take_values(run, part.begin, part.end);
}

/* A strip of a block row times the panels of a slice. */
static void multiply(const amx_run *run, const amx_place *place, bool exact, void *sums)
{
    const spk_bsr_view *view = &run->bound->view;
    const spk_problem *problem = &run->bound->problem;
    const amx_spmm *state = run->state;
    const int64_t block_row = place->unit / state->strips, i = place->unit % state->strips, first = view->offsets[block_row];
    const int64_t row0 = block_row * view->block_rows, in_d = problem->m - row0,
                  rows = amx_strip_rows(in_d < view->block_rows ? in_d : view->block_rows, i);
    if (rows <= 0) /* all of it hangs over */
        return;
    const amx_range panels = amx_part(state->panels, place->slice, state->slices);
    const int64_t count = panels.end - panels.begin, column0 = panels.begin * AMX_PANEL, left = problem->n - column0,
                  panel_bytes = view->grid_cols * state->padded_cols * (AMX_PAIR_BYTES / 2);
    const STORED *copies = state->kept != NULL ? state->kept : run->copies;
    amx_strip strip = amx_copied_strip(copies, rows, state->padded_cols);
    strip.block_bytes = state->padded_rows * state->padded_cols * 2;
    if (copies == NULL) {
        strip.tile_bytes = strip.row_bytes;
        strip.row_bytes = state->padded_cols * 2;
        strip.positions = view->positions != NULL ? view->positions + first : NULL;
    }
    strip.a = (const char *)((copies != NULL ? copies : run->values) + amx_strip_at(i, state->padded_cols));
    if (strip.positions == NULL)
        strip.a += first * strip.block_bytes;
    strip.columns = view->columns + first;
    strip.blocks = view->offsets[block_row + 1] - first;
    strip.exact = exact;
    T(amx_multiply)(&strip, rows, run->panels + panels.begin * panel_bytes, panel_bytes, count, sums);
    amx_finish(problem, run->args, sums, count * AMX_PANEL, row0 + i * AMX_STRIP, rows, column0,
               left < count * AMX_PANEL ? left : count * AMX_PANEL);
}

static void work(void *arg, int64_t worker)
{
    amx_run *run = arg;
    const amx_spmm *state = run->state;
    amx_place place = {.first = worker * state->slices / state->workers};
    const bool exact = !S(pairs_are_exact)(atomic_load(&run->least_a), atomic_load(&run->least_b));
    amx_begin(state->step);
    while (amx_take(&run->queue, &place))
        multiply(run, &place, exact, run->sums + worker * state->sum_bytes);
    tile_release();
}

static spk_status update_values(spk_bound *bound, const void *values)
{
    amx_spmm *state = bound->state;
    if (!bound->problem.static_values)
        return SPK_OK;
    amx_run run = {.bound = bound, .state = state, .values = values, .copies = state->kept};
    run.a_tasks = bound->view.nnzb < state->workers * AMX_COPIES_A_THREAD ? bound->view.nnzb : state->workers * AMX_COPIES_A_THREAD;
    atomic_init(&run.least_a, S(LEAST_OF_NONE));
    spk_execute(&bound->device->executor, run.a_tasks, prepare, &run);
    state->least = atomic_load(&run.least_a);
    state->ready = true;
    return SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const amx_spmm *state = bound->state;
    const spk_bsr_view *view = &bound->view;
    const spk_executor *executor = &bound->device->executor;
    const int64_t tasks = state->workers * AMX_COPIES_A_THREAD;
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    if (state->kept != NULL && !state->ready)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    char *workspace = args->workspace;
    amx_run run = {.bound = bound, .args = args, .state = state, .values = args->a};
    run.queue = (amx_queue){state->slices, view->grid_rows * state->strips, (amx_counter *)(void *)workspace};
    run.panels = workspace + state->counter_bytes;
    run.sums = run.panels + state->b_bytes + state->a_bytes;
    run.copies = state->a_bytes > 0 ? (STORED *)(void *)(run.panels + state->b_bytes) : NULL;
    run.b_tasks = view->grid_cols < tasks ? view->grid_cols : tasks;
    run.a_tasks = state->kept != NULL ? 0 : view->nnzb < tasks ? view->nnzb : tasks;
    atomic_init(&run.least_a, state->kept != NULL ? state->least : S(LEAST_OF_NONE));
    atomic_init(&run.least_b, S(LEAST_OF_NONE));
    amx_open(&run.queue);
    spk_execute(executor, run.b_tasks + run.a_tasks, prepare, &run);
    spk_execute(executor, state->workers, work, &run);
    return SPK_OK;
}

const spk_kernel_ops spmm_bf16_amx_ops = {.applicable = applicable,
                                          .predict_us = predict_us,
                                          .bind = bind,
                                          .unbind = unbind,
                                          .update_values = update_values,
                                          .run = run,
                                          .source_hash = SPK_SOURCE_HASH};
