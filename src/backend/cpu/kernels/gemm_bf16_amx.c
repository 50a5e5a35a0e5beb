/* gemm_bf16_amx: D = epilogue(A B) in bfloat16 with float32 sums, with AMX. 16 rows and columns of D and more, any K, layouts and epilogue.
 * A is copied as strips of 32 rows, B as panels of 32 columns; then threads share slices of at most COLUMNS columns, and take strips.
 * Bound: the tiles' loads from the second cache; copies where M or N is small. */
#define ROW gemm_bf16_amx
#include "backend/cpu/kernels/amx_types.h"

typedef struct amx_gemm {
    int64_t strips, panels, slices, workers;
    int64_t padded; /* K */
    /* the workspace, in bytes: counters, B, A, sums of each worker */
    int64_t counter_bytes, b_bytes, a_bytes, sum_bytes;
} amx_gemm;

typedef struct amx_run {
    const spk_bound *bound;
    const spk_args *args;
    const amx_gemm *state;
    amx_queue queue;
    char *panels, *sums;
    STORED *strips;
    int64_t a_tasks, b_tasks;
    atomic_int least_a, least_b;
} amx_run;

enum { DEPTH_OF_COPIES = 32 }; /* rows of B a task, and a multiple of it */

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int64_t columns = SPK_TUNED(ROW, params, COLUMNS);
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->m < AMX_LEAST_SIDE || problem->n < AMX_LEAST_SIDE)
        *why = "tiles pay from 16 x 16 on";
    else if (columns > 64 && problem->n <= columns / 2)
        *why = "a smaller COLUMNS makes the same slices";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int64_t strips = tile_ceil(problem->m, AMX_STRIP), panels = tile_ceil(problem->n, AMX_PANEL), k = amx_padded(problem->k);
    const double slices = (double)amx_slices(panels, SPK_TUNED(ROW, params, COLUMNS));
    const double tiles = (double)(strips * panels * 4 * k / amx_step(problem->k));
    const double copies = (double)(2 * k * (panels * AMX_PANEL + strips * AMX_STRIP)) * 1.5 + slices * (double)(2 * k * problem->m) +
                          (double)(problem->m * panels * AMX_PANEL * 4);
    return amx_cost(problem, device, tiles, copies, (double)strips * slices);
}

static void unbind(spk_bound *bound)
{
    if (bound->state != NULL)
        spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static spk_status bind(spk_bound *bound)
{
    const spk_problem *problem = &bound->problem;
    amx_gemm *state = NULL;
    SPK_TRY(amx_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    state->strips = tile_ceil(problem->m, AMX_STRIP);
    state->panels = tile_ceil(problem->n, AMX_PANEL);
    state->padded = amx_padded(problem->k);
    state->slices = amx_slices(state->panels, SPK_TUNED(ROW, &bound->params, COLUMNS));
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    state->counter_bytes = state->slices * (int64_t)sizeof(amx_counter);
    state->b_bytes = state->panels * state->padded * (AMX_PAIR_BYTES / 2);
    state->a_bytes = state->strips * AMX_STRIP * state->padded * 2;
    state->sum_bytes = AMX_STRIP * tile_ceil(state->panels, state->slices) * AMX_PANEL * 4;
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->b_bytes + state->a_bytes + state->workers * state->sum_bytes);
    bound->state = state;
    return SPK_OK;
}

static void take_a(amx_run *run, int64_t begin, int64_t end)
{
    const spk_problem *problem = &run->bound->problem;
    const int64_t row_step = spk_operand_row_step(&problem->a), padded = run->state->padded;
    S(pair_least) least = S(least_of_none)();
    for (int64_t i = begin; i < end; i++)
        S(amx_copy_strip)((const STORED *)run->args->a + i * AMX_STRIP * row_step, row_step, spk_operand_col_step(&problem->a),
                          amx_strip_rows(problem->m, i), problem->k, padded, run->strips + amx_strip_at(i, padded), &least);
    amx_least(&run->least_a, S(least_number)(least));
}

/* Rows of B, all panels. */
static void take_b(amx_run *run, int64_t begin, int64_t end)
{
    const spk_problem *problem = &run->bound->problem;
    const int64_t row_step = spk_operand_row_step(&problem->b), col_step = spk_operand_col_step(&problem->b), padded = run->state->padded;
    S(pair_least) least = S(least_of_none)();
    for (int64_t panel = 0; panel < run->state->panels; panel++)
        S(amx_copy_panel)(problem->b.layout, (const STORED *)run->args->b + begin * row_step + panel * AMX_PANEL * col_step, problem->b.ld,
                          problem->k - begin, end - begin, problem->n - panel * AMX_PANEL,
                          run->panels + (panel * padded + begin) * (AMX_PAIR_BYTES / 2), &least);
    amx_least(&run->least_b, S(least_number)(least));
}

static void prepare(void *arg, int64_t task)
{
    amx_run *run = arg;
    const int64_t padded = run->state->padded;
    if (task < run->b_tasks) {
        const amx_range part = amx_part(tile_ceil(padded, DEPTH_OF_COPIES), task, run->b_tasks);
        const int64_t end = part.end * DEPTH_OF_COPIES;
        take_b(run, part.begin * DEPTH_OF_COPIES, end < padded ? end : padded);
    } else {
        const amx_range part = amx_part(run->state->strips, task - run->b_tasks, run->a_tasks);
        take_a(run, part.begin, part.end);
    }
}

static void work(void *arg, int64_t worker)
{
    amx_run *run = arg;
    const spk_problem *problem = &run->bound->problem;
    const amx_gemm *state = run->state;
    amx_place place = {.slice = -1, .first = worker * state->slices / state->workers};
    const bool exact = !S(pairs_are_exact)(atomic_load(&run->least_a), atomic_load(&run->least_b));
    const int64_t panel_bytes = state->padded * (AMX_PAIR_BYTES / 2);
    void *sums = run->sums + worker * state->sum_bytes;
    amx_begin(amx_step(problem->k));
    while (amx_take(&run->queue, &place)) {
        const amx_range panels = amx_part(state->panels, place.slice, state->slices);
        const int64_t rows = amx_strip_rows(problem->m, place.unit), columns = (panels.end - panels.begin) * AMX_PANEL,
                      column0 = panels.begin * AMX_PANEL, left = problem->n - column0;
        amx_strip strip = amx_copied_strip(run->strips + amx_strip_at(place.unit, state->padded), rows, state->padded);
        strip.exact = exact;
        T(amx_multiply)(&strip, rows, run->panels + panels.begin * panel_bytes, panel_bytes, panels.end - panels.begin, sums);
        amx_finish(problem, run->args, sums, columns, place.unit * AMX_STRIP, rows, column0, left < columns ? left : columns);
    }
    tile_release();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const amx_gemm *state = bound->state;
    const spk_executor *executor = &bound->device->executor;
    const int64_t tasks = state->workers * AMX_COPIES_A_THREAD, deep = tile_ceil(state->padded, DEPTH_OF_COPIES);
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    char *workspace = args->workspace;
    amx_run run = {.bound = bound, .args = args, .state = state};
    run.queue = (amx_queue){state->slices, state->strips, (amx_counter *)(void *)workspace, false};
    run.panels = workspace + state->counter_bytes;
    run.strips = (STORED *)(void *)(run.panels + state->b_bytes);
    run.sums = run.panels + state->b_bytes + state->a_bytes;
    run.b_tasks = deep < tasks ? deep : tasks;
    run.a_tasks = state->strips < tasks ? state->strips : tasks;
    atomic_init(&run.least_a, S(LEAST_OF_NONE));
    atomic_init(&run.least_b, S(LEAST_OF_NONE));
    amx_open(&run.queue);
    spk_execute(executor, run.b_tasks + run.a_tasks, prepare, &run);
    spk_execute(executor, state->workers, work, &run);
    return SPK_OK;
}

const spk_kernel_ops gemm_bf16_amx_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH};
