/* Template of an SpMM with a few columns, after vector.h, epilogue_body.h, tile_pack.h and narrow_micro.h: bind and run. */

enum { T(NARROW_ROWS) = 64, T(NARROW_COLUMNS_K) = 4, T(NARROW_COLUMNS) = 8 };

typedef struct T(narrow_state) {
    bool along_k;   /* else along rows */
    bool turned;    /* B is first copied column by column into the workspace */
    int64_t parts;  /* of the block rows */
    int64_t *bounds;
} T(narrow_state);

typedef struct T(narrow_run) {
    const spk_bound *bound;
    const spk_spmm_args *args;
    const T(narrow_state) *state;
    int64_t turn_step; /* rows of B a turning task */
} T(narrow_run);

/* Whether a row of a block of op(A) is contiguous. */
static inline bool T(narrow_rows_contiguous)(const spk_problem *problem)
{
    return (problem->trans_a == SPK_NO_TRANS) == (problem->block_layout == SPK_ROW_MAJOR);
}

static bool T(narrow_applicable)(const spk_problem *problem, const char **why)
{
    if (problem->n > T(NARROW_COLUMNS))
        *why = "it is for N of at most 8";
    else if (T(narrow_rows_contiguous)(problem) && problem->n > T(NARROW_COLUMNS_K))
        *why = "where the rows of a block are contiguous it is for N of at most 4";
    return *why == NULL;
}

/* The sums of the lanes of count vectors. */
static void T(narrow_add_lanes)(const T(vec) *sums, int64_t count, REAL *out)
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

/* Up to NARROW_ROWS rows of a block row, from row `from` on; job has what does not change along a task. */
static void T(narrow_rows_of_block_row)(const T(narrow_run) *run, T(narrow_job) job, int64_t first, int64_t last, int64_t row0, int64_t from, int64_t rows)
{
    static const int most[] = {8, 6, 4, 3, 2, 2, 1, 1};
    const spk_bound *bound = run->bound;
    const bool along_k = run->state->along_k;
    const int n = (int)bound->problem.n, unit = along_k ? 1 : T(lanes); /* rows of a vector of sums */
    const int units = (int)((rows + unit - 1) / unit), tiles = (units + most[n - 1] - 1) / most[n - 1], low = units / tiles, taller = units % tiles;
    const REAL *values = run->args->values;
    T(vec) sums[T(NARROW_ROWS) * T(NARROW_COLUMNS_K)] __attribute__((aligned(64)));
    REAL out[T(NARROW_ROWS) * T(NARROW_COLUMNS)] __attribute__((aligned(64)));
    for (int i = 0; i < units * n; i++)
        sums[i] = (T(vec)){0};
    /* Several tiles take turns on each block, so that the values are read as they lie; a single one keeps its sums in registers. */
    const int64_t step = tiles == 1 ? last - first : 1;
    for (job.first = first; job.first < last; job.first = job.last) {
        job.last = job.first + step;
        for (int tile = 0, done = 0; tile < tiles; tile++) {
            const int height = low + (tile < taller);
            job.values = values + (from + (int64_t)done * unit) * (along_k ? job.stride : 1);
            job.sums = sums + done * n;
            job.rows_part = tile + 1 < tiles ? unit : rows - (int64_t)(units - 1) * unit;
            (along_k ? T(narrow_k)[n - 1][height - 1] : T(narrow_rows)[n - 1][height - 1])(&job);
            done += height;
        }
    }
    if (along_k) {
        T(narrow_add_lanes)(sums, rows * n, out);
    } else {
        for (int64_t i = 0; i < rows; i++)
            for (int j = 0; j < n; j++)
                out[i * n + j] = sums[i / T(lanes) * n + j][i % T(lanes)];
    }
    T(epilogue)(&bound->problem, run->args, out, n, row0 + from, rows, 0, n);
}

static void T(narrow_task)(void *arg, int64_t task)
{
    const T(narrow_run) *run = arg;
    const spk_bound *bound = run->bound;
    const spk_problem *problem = &bound->problem;
    const spk_bsr_view *view = &bound->view;
    const bool row_major = problem->layout_b == SPK_ROW_MAJOR;
    T(narrow_job) job = {.columns = view->columns,
                         .positions = view->positions,
                         .stride = run->state->along_k ? view->row_stride : view->col_stride,
                         .block_stride = view->block_stride,
                         .depth = view->block_cols,
                         .edge_column = view->grid_cols - 1,
                         .edge_depth = view->cols - (view->grid_cols - 1) * view->block_cols,
                         .b = run->state->turned ? run->args->workspace : run->args->b,
                         .b_down = row_major ? problem->ldb : 1,
                         .b_across = run->state->turned ? problem->k : row_major ? 1 : problem->ldb};
    for (int64_t block_row = run->state->bounds[task]; block_row < run->state->bounds[task + 1]; block_row++) {
        const int64_t row0 = block_row * view->block_rows, rows = row0 + view->block_rows <= problem->m ? view->block_rows : problem->m - row0;
        for (int64_t from = 0; from < rows; from += T(NARROW_ROWS))
            T(narrow_rows_of_block_row)(run, job, view->offsets[block_row], view->offsets[block_row + 1], row0, from,
                                        rows - from < T(NARROW_ROWS) ? rows - from : T(NARROW_ROWS));
    }
}

/* Rows of B become contiguous columns. */
static void T(narrow_turn)(void *arg, int64_t task)
{
    const T(narrow_run) *run = arg;
    const spk_problem *problem = &run->bound->problem;
    const int64_t begin = task * run->turn_step, end = begin + run->turn_step < problem->k ? begin + run->turn_step : problem->k;
    const REAL *b = run->args->b;
    REAL *to = run->args->workspace;
    for (int64_t k = begin; k < end; k++)
        for (int64_t j = 0; j < problem->n; j++)
            to[j * problem->k + k] = b[k * problem->ldb + j];
}

static spk_status T(narrow_bind)(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    const spk_problem *problem = &bound->problem;
    const int threads = bound->device->executor.threads;
    T(narrow_state) *state = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *state, &state));
    state->along_k = T(narrow_rows_contiguous)(problem);
    state->turned = state->along_k && problem->layout_b == SPK_ROW_MAJOR && problem->ldb > 1 && problem->n > 0;
    const double bytes = (double)spk_problem_operand_elements(problem, SPK_OPERAND_VALUES) * sizeof(REAL);
    state->parts = bytes < 128e3 ? 1 : 4 * (int64_t)threads;
    spk_status status = spk_partition_rows(mem, &bound->view, (int)state->parts, &state->bounds);
    if (status != SPK_OK) {
        spk_free(mem, state);
        return status;
    }
    bound->workspace_bytes = state->turned ? (size_t)(problem->k * problem->n) * sizeof(REAL) : 0;
    bound->state = state;
    return SPK_OK;
}

static void T(narrow_unbind)(spk_bound *bound)
{
    T(narrow_state) *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->bounds);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status T(narrow_execute)(const spk_bound *bound, const spk_spmm_args *args)
{
    const T(narrow_state) *state = bound->state;
    const spk_executor *executor = &bound->device->executor;
    T(narrow_run) run = {.bound = bound, .args = args, .state = state, .turn_step = 8192};
    if (bound->problem.m == 0 || bound->problem.n == 0)
        return SPK_OK;
    if (state->turned && bound->view.nnzb > 0)
        spk_execute(executor, (bound->problem.k + run.turn_step - 1) / run.turn_step, T(narrow_turn), &run);
    spk_execute(executor, state->parts, T(narrow_task), &run);
    return SPK_OK;
}
