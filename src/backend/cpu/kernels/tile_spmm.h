/* Template of a tiled SpMM, after vector.h, epilogue_body.h, tile_micro.h, tile_pack.h and tile_plan.h: bind and run. */

typedef struct T(tile_state) {
    tile_cut cut;
    int64_t *bounds; /* of the parts: parts + 1 block rows */
    int64_t batch;   /* block rows taken together: the epilogue gets enough rows at a time */
    int64_t longest; /* blocks in the fullest block row */
    int64_t packed_elements, value_elements; /* of the workspace: B, then the values of a batch for each task */
    int64_t *starts; /* of the panels, in vectors: panels + 1 */
} T(tile_state);

typedef struct T(tile_run) {
    const spk_bound *bound;
    const spk_spmm_args *args;
    const T(tile_state) * state;
    REAL *packed;
    bool plain;
    int64_t pack_step; /* rows of B a packing task */
} T(tile_run);

/* Sums of some rows of D in one panel that wait for the epilogue. */
typedef struct T(tile_buffer) {
    REAL sums[TILE_BUFFER_ROWS * TILE_MAX_WIDTH * T(lanes)] __attribute__((aligned(64)));
    int held;
} T(tile_buffer);

/* The packed panels lie one after another, each of K rows. */
static REAL *T(packed_panel)(const T(tile_run) * run, int64_t panel)
{
    const T(tile_state) *state = run->state;
    return run->packed + run->bound->problem.k * (state->starts[panel] - state->starts[state->cut.first_packed]) * T(lanes);
}

static void T(pack_panels)(const T(tile_run) * run, int64_t first, int64_t last, int64_t k0, int64_t k1)
{
    const spk_problem *problem = &run->bound->problem;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t start = run->state->starts[panel], column = start * T(lanes);
        const int width = (int)(run->state->starts[panel + 1] - start);
        const REAL *b = (const REAL *)run->args->b + (problem->layout_b == SPK_ROW_MAJOR ? column : column * problem->ldb);
        T(pack)(problem->layout_b, b, problem->ldb, k0, k1, width, problem->n - column, T(packed_panel)(run, panel));
    }
}

/* Rows of B for all panels, a few at a time: B is read along its rows. */
static void T(pack_task)(void *arg, int64_t task)
{
    const T(tile_run) *run = arg;
    const tile_cut *cut = &run->state->cut;
    const int64_t k = run->bound->problem.k, begin = task * run->pack_step, end = begin + run->pack_step < k ? begin + run->pack_step : k;
    enum { ROWS = 32 };
    for (int64_t k0 = begin; k0 < end; k0 += ROWS)
        T(pack_panels)(run, cut->first_packed, cut->panels, k0, k0 + ROWS < end ? k0 + ROWS : end);
}

/* What of the next block a tile of `height` rows fetches ahead: its rows where they are contiguous, else a line of each column. */
static void T(fetch_ahead)(T(tile_job) * job, int64_t height)
{
    enum { MOST_LINES = 8 }; /* the hardware follows from there */
    if (job->col_stride == 1) {
        const int64_t lines = (height * job->depth * (int64_t)sizeof(REAL) + 63) / 64;
        job->ahead_bytes = 64;
        job->ahead_count = lines < MOST_LINES ? lines : MOST_LINES;
    } else {
        job->ahead_bytes = job->col_stride * (int64_t)sizeof(REAL);
        job->ahead_count = job->depth;
    }
}

/* Block row `block_row` as a job, without its panel; values are the row's packed ones where there are any. */
static void T(start_block_row)(const T(tile_run) *run, T(tile_job) *job, int64_t block_row, const REAL *packed)
{
    const spk_bsr_view *view = &run->bound->view;
    const int64_t first = view->offsets[block_row];
    job->blocks = view->offsets[block_row + 1] - first;
    job->columns = view->columns + first;
    job->positions = packed == NULL && view->positions != NULL ? view->positions + first : NULL;
    job->values = run->args->values;
    if (packed != NULL)
        job->values = packed;
    else if (view->positions == NULL && job->blocks > 0) /* else there may be no values */
        job->values += first * view->block_stride;
}

/* The lines of D that the epilogue will write, fetched while the sums are made. */
SPK_INLINE void T(fetch_rows_of_d)(const T(tile_run) *run, int64_t row, int64_t rows, int64_t column, int64_t bytes)
{
    const char *line = (const char *)((const REAL *)run->args->d + row * run->bound->problem.ldd + column);
    for (int64_t i = 0; i < rows; i++, line += run->bound->problem.ldd * (int64_t)sizeof(REAL))
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(line + at, 1, 3);
}

/* All rows of the block row in job times one panel. packed: its values lie as the tiles read them. */
static void T(block_row)(const T(tile_run) *run, T(tile_job) *job, const tile_split *split, int64_t row0, int64_t panel, T(tile_buffer) *buffer, const REAL *packed)
{
    const spk_problem *problem = &run->bound->problem;
    const int64_t column0 = run->state->starts[panel] * T(lanes);
    const int width = (int)(run->state->starts[panel + 1] - run->state->starts[panel]);
    const int64_t columns = problem->n - column0 < width * T(lanes) ? problem->n - column0 : width * T(lanes);
    const REAL *values = job->values;
    int64_t row = 0;
    if (buffer == NULL)
        job->out = (REAL *)run->args->d + row0 * problem->ldd + column0;
    for (int tile = 0; tile < split->tiles; tile++) {
        const int height = split->low + (tile < split->taller);
        if (packed != NULL) {
            job->values = packed + row * job->blocks * job->depth;
            job->col_stride = height;
            job->block_stride = height * job->depth;
        } else if (job->blocks > 0) {
            job->values = values + row * job->row_stride;
            if (run->state->cut.ahead)
                T(fetch_ahead)(job, height);
        }
        if (buffer != NULL) {
            job->out = buffer->sums + buffer->held * job->out_stride;
            if (problem->layout_d == SPK_ROW_MAJOR)
                T(fetch_rows_of_d)(run, row0 + row, height, column0, columns * (int64_t)sizeof(REAL));
        }
        T(tiles)[width - 1][height - 1](job);
        row += height;
        if (buffer == NULL) {
            job->out += height * job->out_stride;
            continue;
        }
        buffer->held += height;
        if (buffer->held + TILE_MAX_HEIGHT > TILE_BUFFER_ROWS) {
            T(epilogue)(problem, run->args, buffer->sums, job->out_stride, row0 + row - buffer->held, buffer->held, column0, columns);
            buffer->held = 0;
        }
    }
    job->values = values;
}

static int64_t T(rows_of_block_row)(const T(tile_run) *run, int64_t block_row)
{
    const int64_t row0 = block_row * run->bound->view.block_rows, m = run->bound->problem.m;
    return row0 + run->bound->view.block_rows <= m ? run->bound->view.block_rows : m - row0;
}

/* A batch of block rows times one panel; job has the strides. */
static void T(block_rows)(const T(tile_run) *run, T(tile_job) *job, int64_t first, int64_t last, int64_t panel, const REAL *packed)
{
    const spk_bound *bound = run->bound;
    const spk_problem *problem = &bound->problem;
    const T(tile_state) *state = run->state;
    const int64_t column0 = state->starts[panel] * T(lanes);
    const int width = (int)(state->starts[panel + 1] - state->starts[panel]);
    const int64_t columns = problem->n - column0 < width * T(lanes) ? problem->n - column0 : width * T(lanes);
    const bool direct = run->plain && columns == width * T(lanes);
    const tile_split full = tile_make_split(bound->view.block_rows, packed != NULL ? state->cut.width : width);
    T(tile_buffer) buffer;
    buffer.held = 0;
    if (problem->k == 0) { /* there may be no B */
        job->panel = NULL;
        job->panel_stride = 0;
    } else if (panel < state->cut.first_packed) {
        job->panel = (const REAL *)run->args->b + column0;
        job->panel_stride = problem->ldb;
    } else {
        job->panel = T(packed_panel)(run, panel);
        job->panel_stride = width * T(lanes);
    }
    job->out_stride = direct ? problem->ldd : width * T(lanes);
    job->alpha = direct ? (REAL)run->args->alpha : 1;
    for (int64_t block_row = first; block_row < last; block_row++) {
        const int64_t rows = T(rows_of_block_row)(run, block_row);
        const tile_split split = rows == bound->view.block_rows ? full : tile_make_split((int)rows, packed != NULL ? state->cut.width : width);
        T(start_block_row)(run, job, block_row, packed);
        T(block_row)(run, job, &split, block_row * bound->view.block_rows, panel, direct ? NULL : &buffer, packed);
        if (packed != NULL)
            packed += state->longest * bound->view.block_stride;
    }
    if (buffer.held > 0) {
        const int64_t end = last * bound->view.block_rows < problem->m ? last * bound->view.block_rows : problem->m;
        T(epilogue)(problem, run->args, buffer.sums, job->out_stride, end - buffer.held, buffer.held, column0, columns);
    }
}

/* The values of a batch as its tiles read them. */
static void T(pack_batch)(const T(tile_run) *run, T(tile_job) job, int64_t first, int64_t last, REAL *packed)
{
    for (int64_t block_row = first; block_row < last; block_row++) {
        const tile_split split = tile_make_split((int)T(rows_of_block_row)(run, block_row), run->state->cut.width);
        T(start_block_row)(run, &job, block_row, NULL);
        T(pack_values)(&job, &split, packed);
        packed += run->state->longest * run->bound->view.block_stride;
    }
}

static void T(tile_task)(void *arg, int64_t task)
{
    const T(tile_run) *run = arg;
    const T(tile_state) *state = run->state;
    const spk_bsr_view *view = &run->bound->view;
    const tile_cut *cut = &state->cut;
    const int64_t group = task / cut->parts, part = task % cut->parts;
    const int64_t first = cut->panels * group / cut->groups, last = cut->panels * (group + 1) / cut->groups;
    if (cut->fused && run->bound->problem.k > 0)
        T(pack_panels)(run, first, last, 0, run->bound->problem.k);
    const T(tile_job) as_stored = {.row_stride = view->row_stride,
                                   .col_stride = view->col_stride,
                                   .block_stride = view->block_stride,
                                   .depth = view->block_cols,
                                   .edge_column = view->grid_cols - 1,
                                   .edge_depth = view->cols - (view->grid_cols - 1) * view->block_cols};
    T(tile_job) job = as_stored;
    REAL *packed = NULL;
    if (cut->values && view->nnzb > 0) {
        packed = run->packed + state->packed_elements + task * state->value_elements;
        job.row_stride = 1;
    }
    for (int64_t row = state->bounds[part]; row < state->bounds[part + 1]; row += state->batch) {
        const int64_t end = row + state->batch < state->bounds[part + 1] ? row + state->batch : state->bounds[part + 1];
        if (packed != NULL)
            T(pack_batch)(run, as_stored, row, end, packed);
        for (int64_t panel = first; panel < last; panel++)
            T(block_rows)(run, &job, row, end, panel, packed);
    }
}

static void T(tile_unbind)(spk_bound *bound)
{
    T(tile_state) *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->starts);
    spk_free(&bound->device->mem, state->bounds);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status T(tile_bind)(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    T(tile_state) *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(mem, 1, sizeof *state, &state));
    bound->state = state;
    state->cut = tile_make_cut(&bound->problem, &bound->params, bound->device->executor.threads, T(lanes), sizeof(REAL));
    const tile_cut *cut = &state->cut;
    SPK_GOTO(spk_partition_rows(mem, &bound->view, (int)cut->parts, &state->bounds));
    SPK_GOTO(spk_alloc(mem, (size_t)cut->panels + 1, sizeof *state->starts, &state->starts));
    for (int64_t panel = 0; panel <= cut->panels; panel++)
        state->starts[panel] = cut->panels > 0 ? cut->vectors * panel / cut->panels : 0;
    state->batch = bound->view.block_rows < TILE_BUFFER_ROWS ? TILE_BUFFER_ROWS / bound->view.block_rows : 1;
    for (int64_t row = 0; row < bound->view.grid_rows; row++)
        if (bound->view.offsets[row + 1] - bound->view.offsets[row] > state->longest)
            state->longest = bound->view.offsets[row + 1] - bound->view.offsets[row];
    state->packed_elements = bound->problem.k * (state->starts[cut->panels] - state->starts[cut->first_packed]) * T(lanes);
    if (cut->values)
        state->value_elements = tile_ceil(state->batch * state->longest * bound->view.block_stride, 16) * 16;
    bound->workspace_bytes = (size_t)(state->packed_elements + cut->groups * cut->parts * state->value_elements) * sizeof(REAL);
    return SPK_OK;
done:
    T(tile_unbind)(bound);
    return status;
}

static spk_status T(tile_execute)(const spk_bound *bound, const spk_spmm_args *args)
{
    const T(tile_state) *state = bound->state;
    const tile_cut *cut = &state->cut;
    const spk_problem *problem = &bound->problem;
    const spk_executor *executor = &bound->device->executor;
    if (problem->m == 0 || problem->n == 0)
        return SPK_OK;
    T(tile_run) run = {.bound = bound, .args = args, .state = state, .packed = args->workspace, .plain = spk_epilogue_is_plain(problem, args)};
    if (cut->first_packed < cut->panels && !cut->fused && problem->k > 0) {
        /* Multiples of 32 rows, of 8 KiB at least. */
        const int64_t row_bytes = (cut->vectors - state->starts[cut->first_packed]) * VECTOR_BYTES;
        run.pack_step = tile_ceil(tile_ceil(problem->k, 4 * (int64_t)executor->threads), 32) * 32;
        while (run.pack_step * row_bytes < 8192)
            run.pack_step *= 2;
        spk_execute(executor, tile_ceil(problem->k, run.pack_step), T(pack_task), &run);
    }
    spk_execute(executor, cut->groups * cut->parts, T(tile_task), &run);
    return SPK_OK;
}
