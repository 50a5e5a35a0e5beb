/* The tiled SpMM: its tasks, bind and run. */
#include "backend/cpu/kernels/spmm/tile_worker.h"
#if !TILE_PAIRED
#include "backend/cpu/kernels/spmm/tile_near.h"
#endif

#ifndef ROW /* this file alone */
#define ROW spmm_portable
#endif

/* The blocks of job, cut into tiles of rows: tile by tile, block by block, column by column. job->values is the block row's first row. */
static void S(pack_values)(const T(tile_job) *job, const tile_split *split, REAL *packed)
{
    int64_t row = 0;
    for (int tile = 0; tile < split->tiles; tile++) {
        const int height = split->low + (tile < split->taller);
        for (int64_t p = 0; p < job->blocks; p++) {
            const int64_t depth = job->columns[p] == job->edge_column ? job->edge_depth : job->depth;
            const REAL *from = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride + row * job->row_stride;
            T(pack_tile)(from, job->row_stride, job->col_stride, depth, height, packed + (row * job->blocks + p * height) * job->depth);
        }
        row += height;
    }
}

/* The copy of a block row's values that its tiles read: converted, and laid out by tiles where those want it. */
static void S(copy_values)(S(tile_worker) *worker, int64_t block_row)
{
    const S(tile_run) *run = worker->run;
    S(tile_worker) from = S(make_worker)(run);
    T(tile_job) *job = &from.job;
    S(start_block_row)(&from, block_row);
    job->values = (const REAL *)from.stored;
    if (S(converts)) {
        REAL *to = worker->values + (run->state->cut.by_tile ? run->state->value_elements : 0);
#if TILE_PAIRED
        const spk_bsr_view *view = &run->bound->view;
        S(pair_least) least = S(least_of_none)();
        for (int64_t p = 0; p < job->blocks; p++) {
            const int64_t left = view->cols - (int64_t)job->columns[p] * view->block_cols;
            S(pair_block)(view, from.stored + (job->positions != NULL ? job->positions[p] : p) * view->block_stride,
                          S(rows_of)(run->bound, block_row), left < view->block_cols ? left : view->block_cols, to + p * job->block_stride,
                          &least);
        }
        const int least_b = run->state->cut.fused ? S(least_number)(worker->found) : atomic_load(&((S(tile_run) *)run)->least);
        worker->exact = !S(pairs_are_exact)(S(least_number)(least), least_b);
#else
        for (int64_t p = 0; p < job->blocks; p++)
            S(widen_all)(from.stored + (job->positions != NULL ? job->positions[p] : p) * job->block_stride, job->block_stride,
                         to + p * job->block_stride);
#endif
        job->values = to;
        job->positions = NULL;
    }
    if (run->state->cut.by_tile) {
        const tile_split split = tile_make_split(&T(machine), S(rows_of)(run->bound, block_row), run->state->cut.width);
        S(pack_values)(job, &split, worker->values);
    }
}

static void S(tile_task)(void *arg, int64_t task)
{
    const S(tile_run) *run = arg;
    const S(tile_state) *state = run->state;
    const tile_cut *cut = &state->cut;
    const int64_t slice = task / cut->parts, part = task % cut->parts, k = state->steps;
    const int64_t first = cut->panels * slice / cut->slices, count = cut->panels * (slice + 1) / cut->slices - first,
                  groups = tile_ceil(count, cut->group), pack_rows = tile_pack_rows(&run->bound->problem);
    S(tile_worker) worker = S(make_worker)(run);
    if (state->value_elements > 0)
        worker.values =
            worker.panels + state->panel_elements * (cut->fused ? cut->slices : 1) + task * state->value_copies * state->value_elements;
    if (cut->near)
        worker.near = worker.panels + cut->slices * cut->parts * state->value_copies * state->value_elements + task * state->near_elements;
    if (cut->fused)
        worker.panels += slice * state->panel_elements;
    for (int64_t group = 0; group < groups; group++) {
        const int64_t begin = first + count * group / groups, end = first + count * (group + 1) / groups;
        if (cut->fused && k > 0) {
            worker.panels_start = state->starts[begin];
#if TILE_PAIRED
            worker.found = S(least_of_none)();
#endif
            for (int64_t k0 = 0; k0 < k; k0 += pack_rows)
                S(pack_panels)(&worker, begin, end, k0, k0 + pack_rows < k ? k0 + pack_rows : k);
        }
        const tile_place from = tile_place_of(state->cuts[part], end - begin), to = tile_place_of(state->cuts[part + 1], end - begin);
        const int64_t last = to.row + (to.panel > 0);
        for (int64_t row = from.row; row < last; row += state->batch) {
            const int64_t row_end = row + state->batch < last ? row + state->batch : last;
            const int64_t panel_end = row < to.row ? end : begin + to.panel;
            if (worker.values != NULL && !state->by_row)
                S(copy_values)(&worker, row);
            worker.next_values = row_end < last ? row_end : -1;
            worker.fetched = 0;
            const int64_t panel_begin = row > from.row ? begin : begin + from.panel;
#if !TILE_PAIRED
            if (state->by_row) {
                S(convert_and_multiply)(&worker, row, panel_begin, panel_end);
                continue;
            }
#endif
            for (int64_t panel = panel_begin; panel < panel_end; panel++) {
                worker.next_row = panel + 1 < panel_end ? row : row_end < last ? row_end : -1;
                worker.next_panel = panel + 1 < panel_end ? panel + 1 : begin;
                worker.first_panel = panel == panel_begin;
#if !TILE_PAIRED
                if (cut->near && S(converts)) {
                    S(multiply_near)(&worker, row, panel);
                    continue;
                }
#endif
                S(block_rows)(&worker, row, row_end, panel);
            }
        }
    }
}

static void S(tile_unbind)(spk_bound *bound)
{
    S(tile_state) *state = bound->state;
    if (state == NULL)
        return;
    spk_free(&bound->device->mem, state->starts);
    spk_free(&bound->device->mem, state->order);
    spk_free(&bound->device->mem, state->cuts);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status S(tile_bind)(spk_bound *bound)
{
    const spk_mem *mem = &bound->device->mem;
    S(tile_state) *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(mem, 1, sizeof *state, &state));
    bound->state = state;
    state->cut = tile_make_cut(&bound->problem, TILE_TUNED(ROW, &bound->params), bound->device->executor.threads, &T(machine));
    const tile_cut *cut = &state->cut;
    state->steps = T(machine).step == 1 ? bound->problem.k : bound->view.grid_cols * tile_ceil(bound->view.block_cols, T(machine).step);
    SPK_GOTO(spk_alloc(mem, (size_t)cut->panels + 1, sizeof *state->starts, &state->starts));
    for (int64_t panel = 0; panel <= cut->panels; panel++)
        state->starts[panel] = cut->panels > 0 ? cut->vectors * panel / cut->panels : 0;
    state->batch = bound->view.block_rows < TILE_BUFFER_ROWS && !cut->values && !cut->fetches && !cut->fetches_values
                       ? TILE_BUFFER_ROWS / bound->view.block_rows
                       : 1;
    SPK_GOTO(spk_partition_cuts(mem, &bound->view, (int)cut->parts, &state->cuts));
    for (int64_t part = 0; part <= cut->parts && (state->batch > 1 || cut->values); part++)
        state->cuts[part] = floor(state->cuts[part] + 0.5); /* block rows are taken together, or their values copied for each task */
    const int64_t in_slice = tile_ceil(cut->panels, cut->slices), in_group = in_slice < cut->group ? in_slice : cut->group;
    const int64_t packed = cut->fused ? in_group * cut->width : cut->packed ? cut->vectors : 0;
    state->panel_elements = tile_ceil(state->steps * packed * T(lanes), 16) * 16;
    int64_t longest = 0;
    for (int64_t row = 0; (cut->values || cut->fetches_values) && row < bound->view.grid_rows; row++)
        if (bound->view.offsets[row + 1] - bound->view.offsets[row] > longest)
            longest = bound->view.offsets[row + 1] - bound->view.offsets[row];
    state->by_row = !TILE_PAIRED && !cut->packed && !cut->near && bound->view.col_stride == 1 &&
                    bound->view.row_stride == bound->view.block_cols && S(converts);
    int64_t block_elements =
        T(machine).step == 1 ? bound->view.block_stride : bound->view.block_rows * tile_ceil(bound->view.block_cols, T(machine).step);
    if (state->by_row) {
        const int64_t tallest = tile_height(&T(machine), cut->width);
        block_elements = bound->view.block_cols * (tallest < bound->view.block_rows ? tallest : bound->view.block_rows);
    }
    if (cut->values)
        state->value_elements = tile_ceil(longest * block_elements, 16) * 16;
    if (cut->fetches_values || cut->near) {
        SPK_GOTO(spk_alloc(mem, (size_t)longest + 1, sizeof *state->order, &state->order));
        for (int64_t block = 0; block <= longest; block++)
            state->order[block] = (int32_t)block;
    }
    if (cut->near) {
        const int64_t most = TILE_NEAR_BYTES / (cut->width * VECTOR_BYTES), depth = bound->view.block_cols;
        state->near_blocks = most > depth ? most / depth : 1;
        state->near_depth = tile_ceil(depth, tile_ceil(depth, most));
        state->near_elements = (bound->view.block_rows + state->near_blocks * state->near_depth) * cut->width * T(lanes);
    }
    state->value_copies = cut->by_tile && S(converts) ? 2 : 1;
    bound->workspace_bytes =
        sizeof(REAL) * (size_t)(state->panel_elements * (cut->fused ? cut->slices : 1) +
                                cut->slices * cut->parts * (state->value_copies * state->value_elements + state->near_elements));
    return SPK_OK;
done:
    S(tile_unbind)(bound);
    return status;
}

static spk_status S(tile_execute)(const spk_bound *bound, const spk_args *args)
{
    const S(tile_state) *state = bound->state;
    const tile_cut *cut = &state->cut;
    const spk_problem *problem = &bound->problem;
    const spk_executor *executor = &bound->device->executor;
    if (problem->m == 0 || problem->n == 0)
        return SPK_OK;
    S(tile_run) run = {.bound = bound, .args = args, .state = state, .plain = spk_epilogue_is_plain(problem, args)};
    if (problem->d.dtype == problem->a.dtype && S(converts))
        run.plain = false; /* tiles store REAL */

#if TILE_PAIRED
    atomic_init(&run.least, S(LEAST_OF_NONE));
#endif
    if (cut->packed && !cut->fused && problem->k > 0) {
        /* Multiples of 32 rows, of 8 KiB at least. */
        const int64_t row_bytes = cut->vectors * VECTOR_BYTES;
        run.pack_step = tile_ceil(tile_ceil(state->steps, 4 * (int64_t)executor->threads), 32) * 32;
        while (run.pack_step * row_bytes < 8192)
            run.pack_step *= 2;
        spk_execute(executor, tile_ceil(state->steps, run.pack_step), S(pack_task), &run);
    }
    spk_execute(executor, cut->slices * cut->parts, S(tile_task), &run);
    return SPK_OK;
}
