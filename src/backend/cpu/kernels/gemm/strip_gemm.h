/* A row of GEMM by strips: who includes this says ROW, TYPE and ISA. B is cut into slices of at most COLUMNS columns, which are copied as
 * panels of 32 columns, A into strips of 32 rows, each copied before it is multiplied. DEPTH=0: a thread keeps its copy of a slice for all
 * strips that it takes. Else a thread takes some strips at once, whose sums wait in the second cache, and goes along K in steps of DEPTH: a
 * strip's step stays in the first cache, the slice's in the second. */
#include "backend/cpu/kernels/tiles/strip_types.h"

#ifndef ROW /* this file alone */
#if ISA == NEON
#define ROW gemm_bf16_neon
#else
#define ROW gemm_bf16_amx
#endif
#endif

typedef struct strip_gemm {
    int64_t strips, panels, slices, workers;
    int64_t groups; /* of strips: a unit of work is one and a slice */
    int64_t padded; /* K */
    int64_t depth;  /* of a step along it */
    /* the workspace, in bytes: counters; of each worker a slice of B, a strip of A, sums */
    int64_t counter_bytes, panel_bytes, b_bytes, a_bytes, sum_bytes;
} strip_gemm;

typedef struct strip_run {
    const spk_bound *bound;
    const spk_args *args;
    const strip_gemm *state;
    strip_queue queue;
} strip_run;

/* Steps along K; all at once where it is short. */
static int64_t depth_of(const spk_problem *problem, const spk_params *params)
{
    const int64_t depth = SPK_TUNED(ROW, params, DEPTH), padded = strip_padded(problem->k);
    return depth > 0 && depth < padded ? depth : padded;
}

/* Groups of strips: each strip alone where K is taken at once; else as few as leave the sums some room in the second cache, and every
 * thread a unit. */
static int64_t groups_of(const spk_problem *problem, const spk_params *params, int64_t strips, int64_t panels, int64_t slices, int threads)
{
    enum { SUMS = 65536 };
    if (depth_of(problem, params) == strip_padded(problem->k))
        return strips;
    const int64_t fitting = tile_ceil(strips * STRIP_ROWS * tile_ceil(panels, slices) * STRIP_COLUMNS, SUMS),
                  least = tile_ceil(threads, slices), groups = fitting > least ? fitting : least;
    return groups < strips ? groups : strips;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int64_t columns = SPK_TUNED(ROW, params, COLUMNS);
    if (problem->a.dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->m < STRIP_LEAST_SIDE || problem->n < STRIP_LEAST_SIDE)
        *why = "tiles pay from 16 x 16 on";
    else if (columns > 64 && problem->n <= columns / 2)
        *why = "a smaller COLUMNS makes the same slices";
    else if (SPK_TUNED(ROW, params, DEPTH) >= problem->k && SPK_TUNED(ROW, params, DEPTH) > 0)
        *why = "DEPTH=0 makes the same step";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int64_t strips = tile_ceil(problem->m, STRIP_ROWS), panels = tile_ceil(problem->n, STRIP_COLUMNS), k = strip_padded(problem->k);
    const int64_t whole_slices = strip_slices(panels, SPK_TUNED(ROW, params, COLUMNS));
    const double slices = (double)whole_slices;
    const double tiles = (double)(strips * panels * 4 * k / strip_step(problem->k));
    const double threads = device->executor.threads > 0 ? device->executor.threads : 1,
                 groups = (double)groups_of(problem, params, strips, panels, whole_slices, device->executor.threads);
    const bool steps = depth_of(problem, params) < k;
    /* A copy of a slice that leaves the second cache no room is read from the last. */
    const bool far = !steps && (double)(2 * k * STRIP_COLUMNS * tile_ceil(panels, whole_slices)) > 0.4 * (double)device->l2_bytes;
    const double copies = steps ? groups : threads > slices ? threads / slices : 1;
    const double bytes = copies * (double)(2 * k * panels * STRIP_COLUMNS) + slices * (double)(3 * k * problem->m) +
                         (double)(problem->m * panels * STRIP_COLUMNS * 4);
    return strip_cost(problem, device, far ? 1.4 * tiles : tiles, bytes, groups * slices);
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
    strip_gemm *state = NULL;
    SPK_TRY(strip_request());
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    state->strips = tile_ceil(problem->m, STRIP_ROWS);
    state->panels = tile_ceil(problem->n, STRIP_COLUMNS);
    state->padded = strip_padded(problem->k);
    state->depth = depth_of(problem, &bound->params);
    state->slices = strip_slices(state->panels, SPK_TUNED(ROW, &bound->params, COLUMNS));
    state->workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : bound->device->executor.threads;
    state->groups = groups_of(problem, &bound->params, state->strips, state->panels, state->slices, bound->device->executor.threads);
    const int64_t widest = tile_ceil(state->panels, state->slices);
    state->counter_bytes = state->slices * (int64_t)sizeof(strip_counter);
    state->panel_bytes = state->depth * STRIP_LINE_BYTES;
    state->b_bytes = widest * state->panel_bytes;
    state->a_bytes = STRIP_ROWS * state->depth * 2;
    state->sum_bytes = tile_ceil(state->strips, state->groups) * STRIP_ROWS * widest * STRIP_COLUMNS * 4;
    bound->workspace_bytes = (size_t)(state->counter_bytes + state->workers * (state->b_bytes + state->a_bytes + state->sum_bytes));
    bound->state = state;
    return SPK_OK;
}

/* Panels of rows k0 .. k0 + depth of B, and the least of their numbers. */
static int take_slice(const strip_run *run, strip_range panels, int64_t k0, int64_t depth, char *to)
{
    const spk_problem *problem = &run->bound->problem;
    const STORED *b = run->args->b;
    const int64_t row_step = spk_operand_row_step(&problem->b), col_step = spk_operand_col_step(&problem->b),
                  step = problem->b.layout == SPK_ROW_MAJOR ? STRIP_COPY_ROWS : depth;
    S(pair_least) least = S(least_of_none)();
    for (int64_t k = 0; k < depth; k += step)
        for (int64_t panel = panels.begin; panel < panels.end; panel++) {
            const STORED *from = b + (k0 + k) * row_step + panel * STRIP_COLUMNS * col_step;
            for (int64_t ahead = step; k + ahead < depth && ahead < 2 * step && k0 + k + ahead < problem->k; ahead++)
                __builtin_prefetch(from + ahead * row_step, 0, 2);
            S(panel_copy)(problem->b.layout, from, problem->b.ld, problem->k - k0 - k, depth - k < step ? depth - k : step,
                          problem->n - panel * STRIP_COLUMNS, to + (panel - panels.begin) * run->state->panel_bytes + k * STRIP_LINE_BYTES,
                          &least);
        }
    return S(least_number)(least);
}

/* Columns k0 .. k0 + depth of a strip, and the least of their numbers. */
static int take_strip(const strip_run *run, int64_t i, int64_t rows, int64_t k0, int64_t depth, STORED *to)
{
    const spk_operand *a = &run->bound->problem.a;
    const int64_t row_step = spk_operand_row_step(a), col_step = spk_operand_col_step(a), left = run->bound->problem.k - k0;
    S(pair_least) least = S(least_of_none)();
    S(strip_copy)((const STORED *)run->args->a + i * STRIP_ROWS * row_step + k0 * col_step, row_step, col_step, rows,
                  left < depth ? left : depth, depth, to, &least);
    return S(least_number)(least);
}

/* A thread at work. */
typedef struct strip_worker {
    const strip_run *run;
    int64_t slice; /* that it has copied, of all of K; -1: none */
    int least;     /* of the numbers that it copied of B last */
    char *panels, *sums;
    STORED *copy; /* of a strip */
} strip_worker;

/* Strips times the panels: a step along K after the other. */
static void multiply(strip_worker *worker, int64_t slice, strip_range strips)
{
    const strip_run *run = worker->run;
    const spk_problem *problem = &run->bound->problem;
    const strip_gemm *state = run->state;
    const strip_range panels = strip_part(state->panels, slice, state->slices);
    const int64_t count = panels.end - panels.begin, columns = count * STRIP_COLUMNS, column0 = panels.begin * STRIP_COLUMNS,
                  left = problem->n - column0;
    bool exact = false; /* one strip's step, and so all that follow: sums of float instructions may be denormal */
    int64_t k = 0;
    do {
        const int64_t depth = state->padded - k < state->depth ? state->padded - k : state->depth;
        if (slice != worker->slice)
            worker->least = take_slice(run, panels, k, depth, worker->panels);
        worker->slice = state->depth < state->padded ? -1 : slice;
        for (int64_t i = strips.begin; i < strips.end; i++) {
            const int64_t rows = strip_rows(problem->m, i);
            char *sums = worker->sums + (i - strips.begin) * STRIP_ROWS * columns * 4;
            row_strip strip = copied_strip(worker->copy, rows, depth);
            exact |= !S(pairs_are_exact)(take_strip(run, i, rows, k, depth, worker->copy), worker->least);
            strip.exact = exact;
            strip.adds = k > 0;
            T(strip_multiply)(&strip, rows, worker->panels, state->panel_bytes, count, sums);
            if (k + depth >= state->padded)
                strip_finish(problem, run->args, sums, columns, i * STRIP_ROWS, rows, column0, left < columns ? left : columns);
        }
        k += depth;
    } while (k < state->padded);
}

static void work(void *arg, int64_t number)
{
    const strip_run *run = arg;
    const strip_gemm *state = run->state;
    strip_worker worker = {.run = run, .slice = -1};
    worker.panels = (char *)run->args->workspace + state->counter_bytes + number * (state->b_bytes + state->a_bytes + state->sum_bytes);
    worker.copy = (STORED *)(void *)(worker.panels + state->b_bytes);
    worker.sums = worker.panels + state->b_bytes + state->a_bytes;
    strip_place place = {.slice = -1, .first = number * state->slices / state->workers};
    strip_begin(strip_step(run->bound->problem.k));
    while (strip_take(&run->queue, &place))
        multiply(&worker, place.slice, strip_part(state->strips, place.unit, state->groups));
    strip_end();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const strip_gemm *state = bound->state;
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    strip_run run = {.bound = bound,
                     .args = args,
                     .state = state,
                     .queue = {.slices = state->slices, .units = state->groups, .counters = args->workspace}};
    strip_open(&run.queue);
    spk_execute(&bound->device->executor, state->workers, work, &run);
    return SPK_OK;
}

#define STRIP_GEMM_OPS                                                                                                                 \
    {                                                                                                                                  \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH \
    }
