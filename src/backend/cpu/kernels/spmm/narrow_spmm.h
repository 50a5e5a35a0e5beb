/* The SpMM with a few columns: bind and run. */
#include "backend/cpu/kernels/tiles/narrow_plan.h"
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/spmm/narrow_micro.h"
#include "backend/cpu/kernels/vectors/transpose.h"

typedef struct S(narrow_state) {
    narrow_way way;
    bool scalar;   /* blocks of one element, one column */
    bool turned;   /* B is first copied into the workspace: along k column by column, else row by row */
    bool ahead;    /* values are fetched ahead */
    int64_t parts; /* of the block rows */
    int64_t *bounds;
} S(narrow_state);

typedef struct S(narrow_run) {
    const spk_bound *bound;
    const spk_args *args;
    const S(narrow_state) *state;
    int64_t turn_step; /* rows of B a turning task */
} S(narrow_run);

/* The sums of the lanes of count vectors. */
static void S(narrow_add_lanes)(const T(vec) *sums, int64_t count, REAL *out)
{
    for (int64_t i = 0; i < count; i += T(lanes)) {
        T(vec) v[T(lanes)];
        for (int64_t j = 0; j < T(lanes); j++)
            v[j] = i + j < count ? sums[i + j] : (T(vec)){0};
        T(transpose)(v);
        for (int64_t j = 1; j < T(lanes); j++)
            v[0] += v[j];
        if (i + T(lanes) <= count)
            T(store)(out + i, v[0]);
        else
            T(store_part)(out + i, v[0], count - i);
    }
}

/* Rows of D that wait for the epilogue: their sums, lane by lane where vectors run along k. */
typedef struct S(narrow_buffer) {
    T(vec) sums[NARROW_ROWS * NARROW_COLUMNS_K] __attribute__((aligned(64)));
    REAL out[NARROW_ROWS * NARROW_COLUMNS] __attribute__((aligned(64)));
    int64_t held;
} S(narrow_buffer);

/* The finished sums of rows rows to out, row by row. */
static void S(narrow_collect)(narrow_way way, const T(vec) *sums, int64_t rows, int n, REAL *out)
{
    const int w = (n + T(lanes) - 1) / T(lanes);
    for (int64_t i = 0; i < rows; i++) {
        if (way == NARROW_ALONG_N) {
            if (w > 1)
                T(store)(out + i * n, sums[i * w]);
            T(store_part)(out + i * n + (w - 1) * T(lanes), sums[i * w + w - 1], n - (w - 1) * T(lanes));
        } else {
            for (int j = 0; j < n; j++)
                out[i * n + j] = sums[i / T(lanes) *n + j][i % T(lanes)];
        }
    }
}

/* Up to NARROW_ROWS rows of a block row, from row `from` on; job has what does not change along a task. */
static void S(narrow_rows_of_block_row)(const S(narrow_run) *run, S(narrow_job) job, int64_t from, int64_t rows, S(narrow_buffer) *buffer)
{
    const narrow_way way = run->state->way;
    const bool along_k = way == NARROW_ALONG_K, along_rows = way == NARROW_ALONG_ROWS, whole = job.depth <= T(lanes);
    if (job.n < 1 || job.n > NARROW_COLUMNS)
        __builtin_unreachable();                                                   /* narrow_applicable */
    const int n = (int)job.n, unit = along_rows ? T(lanes) : 1;                    /* rows of a vector of sums */
    const int columns = way == NARROW_ALONG_N ? (n + T(lanes) - 1) / T(lanes) : n; /* vectors of sums a row, or a vector of rows */
    const int units = (int)(rows + unit - 1) / unit, most = narrow_most(way, whole, n, T(lanes)), tiles = (units + most - 1) / most,
              low = units / tiles, taller = units % tiles;
    const S(narrow_function) *functions = S(narrow_rows)[n - 1];
    if (way == NARROW_ALONG_N)
        functions = S(narrow_n)[columns - 1];
    else if (along_k)
        functions = whole ? S(narrow_k_short)[n - 1] : S(narrow_k)[n - 1];
    /* Several tiles take turns on each block, so that the values are read as they lie; unless one keeps its sums in registers, or all
     * blocks of the row fit the first cache. */
    const int64_t last = job.last, bytes = (job.last - job.first) * job.block_stride * (int64_t)sizeof(STORED);
    const int64_t step = tiles == 1 || bytes <= 16384 ? job.last - job.first : 1;
    const STORED *values = run->args->a;
    T(vec) *sums = along_k ? buffer->sums + buffer->held * n : buffer->sums;
    for (int i = 0; i < units * columns; i++)
        sums[i] = (T(vec)){0};
    job.last_of_row = last;
    for (; job.first < last; job.first = job.last) {
        job.last = job.first + step;
        for (int tile = 0, done = 0; tile < tiles; tile++) {
            const int height = low + (tile < taller);
            const int64_t row = from + (int64_t)done * unit;
            job.values = values + row * (along_rows ? 1 : job.stride);
            job.sums = sums + done * columns;
            job.rows_part = tile + 1 < tiles ? unit : rows - (int64_t)(units - 1) * unit;
            job.share = values + row * job.depth;
            job.share_bytes = run->state->ahead ? height * unit * job.depth * (int64_t)sizeof(STORED) : 0;
            functions[height - 1](&job);
            done += height;
        }
    }
    if (!along_k)
        S(narrow_collect)(way, sums, rows, n, buffer->out + buffer->held * n);
}

static void S(narrow_flush)(const S(narrow_run) *run, S(narrow_buffer) *buffer, int64_t end)
{
    const spk_problem *problem = &run->bound->problem;
    if (buffer->held == 0)
        return;
    if (run->state->way == NARROW_ALONG_K && !run->state->scalar)
        S(narrow_add_lanes)(buffer->sums, buffer->held * problem->n, buffer->out);
    (problem->d.dtype == problem->a.dtype ? S(epilogue) : T(epilogue))(problem, run->args, buffer->out, problem->n, end - buffer->held,
                                                                       buffer->held, 0, problem->n);
    buffer->held = 0;
}

static void S(narrow_task)(void *arg, int64_t task)
{
    const S(narrow_run) *run = arg;
    const S(narrow_state) *state = run->state;
    const spk_problem *problem = &run->bound->problem;
    const spk_bsr_view *view = &run->bound->view;
    const bool row_major = problem->b.layout == SPK_ROW_MAJOR;
    S(narrow_job) job = {.columns = view->columns, .values = run->args->a, .positions = view->positions};
    job.stride = state->way == NARROW_ALONG_ROWS ? view->col_stride : view->row_stride;
    job.block_stride = view->block_stride;
    job.depth = view->block_cols;
    job.edge_column = view->grid_cols - 1;
    job.edge_depth = view->cols - (view->grid_cols - 1) * view->block_cols;
    job.n = problem->n;
    job.ahead_bytes = NARROW_AHEAD;
    job.b = state->turned ? run->args->workspace : run->args->b;
    job.b_down = row_major ? problem->b.ld : 1;
    job.b_across = row_major ? 1 : problem->b.ld;
    if (state->turned) {
        job.b_down = state->way == NARROW_ALONG_K ? 1 : problem->n;
        job.b_across = state->way == NARROW_ALONG_K ? problem->k : 1;
    }
    S(narrow_buffer) buffer;
    buffer.held = 0;
    for (int64_t block_row = state->bounds[task]; block_row < state->bounds[task + 1]; block_row++) {
        const int64_t row0 = block_row * view->block_rows,
                      rows = row0 + view->block_rows <= problem->m ? view->block_rows : problem->m - row0;
        job.first = view->offsets[block_row];
        job.last = view->offsets[block_row + 1];
        for (int64_t from = 0; from < rows; from += NARROW_ROWS) {
            const int64_t count = rows - from < NARROW_ROWS ? rows - from : NARROW_ROWS;
            if (buffer.held + count > NARROW_ROWS)
                S(narrow_flush)(run, &buffer, row0 + from);
            if (state->scalar)
                buffer.out[buffer.held] = S(narrow_scalar)(&job);
            else
                S(narrow_rows_of_block_row)(run, job, from, count, &buffer);
            buffer.held += count;
        }
    }
    const int64_t end = state->bounds[task + 1] * view->block_rows;
    S(narrow_flush)(run, &buffer, end < problem->m ? end : problem->m);
}

/* Along k the columns of B become contiguous, else its rows. */
static void S(narrow_turn)(void *arg, int64_t task)
{
    const S(narrow_run) *run = arg;
    const spk_problem *problem = &run->bound->problem;
    const bool along_k = run->state->way == NARROW_ALONG_K, row_major = problem->b.layout == SPK_ROW_MAJOR;
    const int64_t begin = task * run->turn_step, end = begin + run->turn_step < problem->k ? begin + run->turn_step : problem->k;
    const int64_t down = along_k ? 1 : problem->n, across = along_k ? problem->k : 1;
    const int64_t from_down = row_major ? problem->b.ld : 1, from_across = row_major ? 1 : problem->b.ld;
    const STORED *b = run->args->b;
    REAL *to = run->args->workspace;
    if (from_down == 1 && down == 1)
        for (int64_t j = 0; j < problem->n; j++)
            S(widen_all)(b + j * from_across + begin, end - begin, to + j * across + begin);
    else if (from_across == 1 && across == 1 && problem->b.ld == problem->n)
        S(widen_all)(b + begin * problem->n, (end - begin) * problem->n, to + begin * problem->n);
    else
        for (int64_t k = begin; k < end; k++)
            for (int64_t j = 0; j < problem->n; j++)
                to[j * across + k * down] = S(get)(b + k * from_down + j * from_across);
}

static spk_status S(narrow_bind)(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    const spk_problem *problem = &bound->problem;
    const int threads = bound->device->executor.threads;
    S(narrow_state) *state = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *state, &state));
    state->way = narrow_way_of(problem);
    state->scalar = problem->n == 1 && bound->view.block_stride == 1;
    if (state->way == NARROW_ALONG_K)
        state->turned = !state->scalar && problem->b.layout == SPK_ROW_MAJOR && problem->b.ld > 1;
    else if (state->way == NARROW_ALONG_N)
        state->turned = problem->b.layout == SPK_COL_MAJOR;
    state->turned = state->turned || S(narrow_converts);
    const double bytes = (double)spk_problem_operand_elements(problem, SPK_A) * sizeof(STORED);
    state->parts = bytes < 128e3 ? 1 : 4 * (int64_t)threads;
    state->ahead = bytes >= NARROW_AHEAD_FROM;
    spk_status status = spk_partition_rows(mem, &bound->view, (int)state->parts, &state->bounds);
    if (status != SPK_OK) {
        spk_free(mem, state);
        return status;
    }
    bound->workspace_bytes = state->turned ? (size_t)(problem->k * problem->n) * sizeof(REAL) : 0;
    bound->state = state;
    return SPK_OK;
}

static void S(narrow_unbind)(spk_bound *bound)
{
    S(narrow_state) *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->bounds);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status S(narrow_execute)(const spk_bound *bound, const spk_args *args)
{
    const S(narrow_state) *state = bound->state;
    const spk_executor *executor = &bound->device->executor;
    S(narrow_run) run = {.bound = bound, .args = args, .state = state, .turn_step = S(narrow_converts) ? 1024 : 8192};
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    if (state->turned && bound->view.nnzb > 0)
        spk_execute(executor, (bound->problem.k + run.turn_step - 1) / run.turn_step, S(narrow_turn), &run);
    spk_execute(executor, state->parts, S(narrow_task), &run);
    return SPK_OK;
}
