/* gemm_bf16_amx: D = epilogue(A B) in bfloat16 with float32 sums, with AMX. 16 rows and columns of D and more, any K, layouts and epilogue.
 * Threads share slices of at most COLUMNS columns of B, and take strips of 32 rows; each copies its slice as panels of 32 columns, and a
 * strip of A before it is multiplied. Bound: the tiles' loads from the second cache; copies where M or N is small. */
#define ROW gemm_bf16_amx
#include "backend/cpu/kernels/amx_types.h"

typedef struct amx_gemm {
    int64_t strips, panels, slices, workers;
    int64_t padded; /* K */
    /* the workspace, in bytes: counters; of each worker a slice of B, a strip of A, sums */
    int64_t counter_bytes, panel_bytes, b_bytes, a_bytes, sum_bytes;
} amx_gemm;

typedef struct amx_run {
    const spk_bound *bound;
    const spk_args *args;
    const amx_gemm *state;
    amx_queue queue;
} amx_run;

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
    const double threads = device->executor.threads > 0 ? device->executor.threads : 1, copies = threads > slices ? threads : slices;
    const double bytes = copies / slices * (double)(2 * k * panels * AMX_PANEL) + slices * (double)(3 * k * problem->m) +
                         (double)(problem->m * panels * AMX_PANEL * 4);
    return amx_cost(problem, device, tiles, bytes, (double)strips * slices);
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
    const int64_t widest = tile_ceil(state->panels, state->slices);
    state->counter_bytes = state->slices * (int64_t)sizeof(amx_counter);
    state->panel_bytes = state->padded * (AMX_PAIR_BYTES / 2);
    state->b_bytes = widest * state->panel_bytes;
    state->a_bytes = AMX_STRIP * state->padded * 2;
    state->sum_bytes = AMX_STRIP * widest * AMX_PANEL * 4;
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->workers * (state->b_bytes + state->a_bytes + state->sum_bytes));
    bound->state = state;
    return SPK_OK;
}

/* Panels, and the least of their numbers. */
static int take_slice(const amx_run *run, amx_range panels, char *to)
{
    const spk_problem *problem = &run->bound->problem;
    const STORED *b = run->args->b;
    const int64_t row_step = spk_operand_row_step(&problem->b), col_step = spk_operand_col_step(&problem->b), padded = run->state->padded,
                  step = problem->b.layout == SPK_ROW_MAJOR ? AMX_COPY_ROWS : padded;
    S(pair_least) least = S(least_of_none)();
    for (int64_t k = 0; k < padded; k += step)
        for (int64_t panel = panels.begin; panel < panels.end; panel++)
            S(amx_copy_panel)(problem->b.layout, b + k * row_step + panel * AMX_PANEL * col_step, problem->b.ld, problem->k - k,
                              padded - k < step ? padded - k : step, problem->n - panel * AMX_PANEL,
                              to + (panel - panels.begin) * run->state->panel_bytes + k * (AMX_PAIR_BYTES / 2), &least);
    return S(least_number)(least);
}

/* A strip, and the least of its numbers. */
static int take_strip(const amx_run *run, int64_t i, int64_t rows, STORED *to)
{
    const spk_operand *a = &run->bound->problem.a;
    const int64_t row_step = spk_operand_row_step(a);
    S(pair_least) least = S(least_of_none)();
    S(amx_copy_strip)((const STORED *)run->args->a + i * AMX_STRIP * row_step, row_step, spk_operand_col_step(a), rows,
                      run->bound->problem.k, run->state->padded, to, &least);
    return S(least_number)(least);
}

static void work(void *arg, int64_t worker)
{
    const amx_run *run = arg;
    const spk_problem *problem = &run->bound->problem;
    const amx_gemm *state = run->state;
    char *slice = (char *)run->args->workspace + state->counter_bytes + worker * (state->b_bytes + state->a_bytes + state->sum_bytes),
         *copy = slice + state->b_bytes, *sums = copy + state->a_bytes;
    amx_place place = {.slice = -1, .first = worker * state->slices / state->workers};
    int64_t number = -1;
    int least_b = 0;
    amx_begin(amx_step(problem->k));
    while (amx_take(&run->queue, &place)) {
        const amx_range panels = amx_part(state->panels, place.slice, state->slices);
        if (place.slice != number)
            least_b = take_slice(run, panels, slice);
        number = place.slice;
        const int64_t rows = amx_strip_rows(problem->m, place.unit), columns = (panels.end - panels.begin) * AMX_PANEL,
                      column0 = panels.begin * AMX_PANEL, left = problem->n - column0;
        amx_strip strip = amx_copied_strip(copy, rows, state->padded);
        strip.exact = !S(pairs_are_exact)(take_strip(run, place.unit, rows, (STORED *)(void *)copy), least_b);
        T(amx_multiply)(&strip, rows, slice, state->panel_bytes, panels.end - panels.begin, sums);
        amx_finish(problem, run->args, sums, columns, place.unit * AMX_STRIP, rows, column0, left < columns ? left : columns);
    }
    tile_release();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const amx_gemm *state = bound->state;
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    amx_run run = {.bound = bound, .args = args, .state = state, .queue = {state->slices, state->strips, args->workspace}};
    amx_open(&run.queue);
    spk_execute(&bound->device->executor, state->workers, work, &run);
    return SPK_OK;
}

const spk_kernel_ops gemm_bf16_amx_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH};
