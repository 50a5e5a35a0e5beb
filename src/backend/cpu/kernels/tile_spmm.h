/* Template of a tiled SpMM, after vector.h, epilogue_body.h, tile_micro.h, tile_pack.h and tile_plan.h: bind and run. */

typedef struct T(tile_run) {
    const spk_bound *bound;
    const spk_spmm_args *args;
    const struct T(tile_state) *state;
    REAL *packed;
    bool plain;
    int64_t pack_step; /* rows of B a packing task */
} T(tile_run);

typedef struct T(tile_state) {
    tile_cut cut;
    int64_t *bounds; /* of the parts: parts + 1 block rows */
} T(tile_state);

static const REAL *T(panel_address)(const T(tile_run) *run, int64_t panel, int64_t *stride)
{
    const tile_cut *cut = &run->state->cut;
    const int64_t start = tile_panel_start(cut, panel), width = tile_panel_start(cut, panel + 1) - start;
    *stride = 0;
    if (run->bound->problem.k == 0)
        return NULL; /* there may be no B */
    if (panel < cut->first_packed) {
        *stride = run->bound->problem.ldb;
        return (const REAL *)run->args->b + start * cut->lanes;
    }
    *stride = width * cut->lanes;
    return run->packed + run->bound->problem.k * cut->lanes * (start - tile_panel_start(cut, cut->first_packed));
}

static void T(pack_panels)(const T(tile_run) *run, int64_t first, int64_t last, int64_t k0, int64_t k1)
{
    const tile_cut *cut = &run->state->cut;
    const spk_problem *problem = &run->bound->problem;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t start = tile_panel_start(cut, panel), column = start * cut->lanes;
        const int width = (int)(tile_panel_start(cut, panel + 1) - start);
        REAL *to = run->packed + problem->k * cut->lanes * (start - tile_panel_start(cut, cut->first_packed));
        const REAL *b = (const REAL *)run->args->b + (problem->layout_b == SPK_ROW_MAJOR ? column : column * problem->ldb);
        T(pack)(problem->layout_b, b, problem->ldb, k0, k1, width, problem->n - column, to);
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

/* All rows of one block row times one panel; job has what does not change along a task. */
static void T(block_row)(const T(tile_run) *run, T(tile_job) *job, int64_t block_row, int64_t first_column, int width)
{
    enum { BUFFER_ROWS = 24 };
    const spk_bound *bound = run->bound;
    const spk_problem *problem = &bound->problem;
    const int64_t row0 = block_row * bound->view.block_rows;
    const int rows = (int)(row0 + bound->view.block_rows <= problem->m ? bound->view.block_rows : problem->m - row0);
    const int limit = tile_height(width), tiles = (rows + limit - 1) / limit, low = rows / tiles, taller = rows % tiles;
    const int64_t columns = (int64_t)width * T(lanes) < problem->n - first_column ? (int64_t)width * T(lanes) : problem->n - first_column;
    const bool direct = run->plain && columns == (int64_t)width * T(lanes);
    const REAL *values = run->args->values;
    REAL buffer[BUFFER_ROWS * TILE_MAX_WIDTH * T(lanes)] __attribute__((aligned(64)));
    int held = 0, row = 0;
    job->alpha = direct ? (REAL)run->args->alpha : 1;
    if (direct)
        job->out = (REAL *)run->args->d + row0 * problem->ldd + first_column;
    else
        job->out_stride = (int64_t)width * T(lanes);
    for (int tile = 0; tile < tiles; tile++) {
        const int height = low + (tile < taller);
        if (job->first < job->last) /* else there may be no values */
            job->values = values + row * job->row_stride;
        if (!direct)
            job->out = buffer + held * job->out_stride;
        T(tiles)[width - 1][height - 1](job);
        row += height;
        if (direct) {
            job->out += height * job->out_stride;
            continue;
        }
        held += height;
        if (held + TILE_MAX_HEIGHT > BUFFER_ROWS || tile + 1 == tiles) {
            T(epilogue)(problem, run->args, buffer, job->out_stride, row0 + row - held, held, first_column, columns);
            held = 0;
        }
    }
}

static void T(tile_task)(void *arg, int64_t task)
{
    const T(tile_run) *run = arg;
    const spk_bound *bound = run->bound;
    const spk_bsr_view *view = &bound->view;
    const tile_cut *cut = &run->state->cut;
    const int64_t group = task / cut->parts, part = task % cut->parts;
    const int64_t first = cut->panels * group / cut->groups, last = cut->panels * (group + 1) / cut->groups;
    if (cut->fused && bound->problem.k > 0)
        T(pack_panels)(run, first, last, 0, bound->problem.k);
    T(tile_job) job = {.columns = view->columns,
                       .positions = view->positions,
                       .row_stride = view->row_stride,
                       .col_stride = view->col_stride,
                       .block_stride = view->block_stride,
                       .depth = view->block_cols,
                       .edge_column = view->grid_cols - 1,
                       .edge_depth = view->cols - (view->grid_cols - 1) * view->block_cols};
    for (int64_t block_row = run->state->bounds[part]; block_row < run->state->bounds[part + 1]; block_row++) {
        job.first = view->offsets[block_row];
        job.last = view->offsets[block_row + 1];
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t start = tile_panel_start(cut, panel);
            job.panel = T(panel_address)(run, panel, &job.panel_stride);
            job.out_stride = bound->problem.ldd;
            T(block_row)(run, &job, block_row, start * cut->lanes, (int)(tile_panel_start(cut, panel + 1) - start));
        }
    }
}

static spk_status T(tile_bind)(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    T(tile_state) *state = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *state, &state));
    state->cut = tile_make_cut(&bound->problem, &bound->params, bound->device->executor.threads, T(lanes));
    spk_status status = spk_partition_rows(mem, &bound->view, (int)state->cut.parts, &state->bounds);
    if (status != SPK_OK) {
        spk_free(mem, state);
        return status;
    }
    bound->workspace_bytes = (size_t)tile_packed_elements(&state->cut, bound->problem.k) * sizeof(REAL);
    bound->state = state;
    return SPK_OK;
}

static void T(tile_unbind)(spk_bound *bound)
{
    T(tile_state) *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->bounds);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
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
        const int64_t row_bytes = (cut->vectors - tile_panel_start(cut, cut->first_packed)) * VECTOR_BYTES;
        int64_t step = tile_ceil(tile_ceil(problem->k, 4 * (int64_t)executor->threads), 32) * 32;
        while (step * row_bytes < 8192)
            step *= 2;
        run.pack_step = step;
        spk_execute(executor, tile_ceil(problem->k, step), T(pack_task), &run);
    }
    spk_execute(executor, cut->groups * cut->parts, T(tile_task), &run);
    return SPK_OK;
}
