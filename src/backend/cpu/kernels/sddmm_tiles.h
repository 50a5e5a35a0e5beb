/* Template of a tiled SDDMM, after vector.h, epilogue_body.h, tile_micro.h, transpose.h, tile_pack.h (or tile_pairs.h), sddmm_finish.h and
 * sddmm_plan.h. The register tiles are those of SpMM: rows of X stand for a block of A that is a step of K deep, the packed columns of Y
 * for B. With TILE_PAIRED what is copied are pairs along K. */

typedef struct S(sddmm_run) {
    const spk_bound *bound;
    const spk_args *args;
    const sddmm_state *state;
    REAL *y, *x, *sums;
    int64_t k0, k1; /* the rows of Y that are packed */
    bool adds_up;   /* the sums are there: they are added and finished */
#if TILE_PAIRED
    atomic_int least; /* of Y's numbers that are packed */
#endif
} S(sddmm_run);

/* Elements of a panel's column: rows of Y, or pairs. */
static int64_t S(sddmm_chunk)(const sddmm_state *state)
{
    return tile_ceil(state->chunk, T(machine).step);
}

/* Some rows of Y for all block columns: Y is read along its rows. */
static void S(sddmm_pack_task)(void *arg, int64_t task)
{
    S(sddmm_run) *run = arg;
    const sddmm_state *state = run->state;
    const spk_problem *problem = &run->bound->problem;
    const spk_bsr_view *view = &run->bound->view;
    const bool row_major = problem->b.layout == SPK_ROW_MAJOR;
#if TILE_PAIRED
    S(pair_least) least = S(least_of_none)();
#endif
    const int64_t begin = task * TILE_PACK_ROWS, rows = run->k1 - run->k0,
                  end = begin + TILE_PACK_ROWS < rows ? begin + TILE_PACK_ROWS : rows;
    for (int64_t block = 0; block < view->grid_cols; block++)
        for (int64_t panel = 0; panel < state->panels; panel++) {
            const int64_t start = state->starts[panel], inside = start * T(lanes), column = block * view->block_cols + inside;
            const int64_t in_block = view->block_cols - inside, in_y = problem->n - column, columns = in_block < in_y ? in_block : in_y;
            if (columns <= 0) /* all of it hangs over */
                continue;
            const STORED *y =
                (const STORED *)run->args->b + (row_major ? run->k0 * problem->b.ld + column : run->k0 + column * problem->b.ld);
            REAL *to = run->y + (block * state->vectors + start) * S(sddmm_chunk)(state) * T(lanes);
            const int width = (int)(state->starts[panel + 1] - start);
#if TILE_PAIRED
            const S(pair_rows) pairs = {2, rows}; /* no gaps */
            S(pack_pairs)(&pairs, problem->b.layout, y, problem->b.ld, begin / 2, tile_ceil(end, 2), width, columns, to, &least);
#else
            S(pack)(problem->b.layout, y, problem->b.ld, begin, end, width, columns, to);
#endif
        }
#if TILE_PAIRED
    const int found = S(least_number)(least);
    for (int before = atomic_load(&run->least); found < before && !atomic_compare_exchange_weak(&run->least, &before, found);)
        continue;
#endif
}

/* Some rows of X, columns k0 .. k0 + depth: in place, or a copy in which lines lie side by side as they do in X. */
typedef struct S(sddmm_x) {
    REAL *copy;
    const REAL *first;
    int64_t row_stride, col_stride;
#if TILE_PAIRED
    int least; /* of its numbers */
#endif
} S(sddmm_x);

static void S(sddmm_take_x)(const S(sddmm_run) *run, int64_t row0, int64_t rows, int64_t k0, int64_t depth, S(sddmm_x) *x)
{
    const spk_problem *problem = &run->bound->problem;
    const bool row_major = problem->a.layout == SPK_ROW_MAJOR;
    const int64_t line0 = row_major ? row0 : k0, along0 = row_major ? k0 : row0, lines = row_major ? rows : depth,
                  length = row_major ? depth : rows;
    const STORED *from = (const STORED *)run->args->a + line0 * problem->a.ld + along0;
#if TILE_PAIRED
    const int64_t step = row_major ? 1 : 2, stride = (row_major ? tile_ceil(length, 2) : length) + SDDMM_GAP;
    S(pair_least) least = S(least_of_none)();
    for (int64_t line = 0; line < lines; line += step) {
        const STORED *first = from + line * problem->a.ld;
        REAL *to = x->copy + line / step * stride;
        if (row_major)
            S(pair_line)(first, length, to, &least);
        else
            S(pair_lines)(first, line + 1 < lines ? first + problem->a.ld : NULL, length, to, &least);
    }
    x->least = S(least_number)(least);
    x->first = x->copy;
#else
    const bool in_place = sizeof(STORED) == sizeof(REAL) && SPK_TUNED(ROW, &run->bound->params, COPY) == 0;
    const int64_t stride = in_place ? problem->a.ld : length + SDDMM_GAP;
    for (int64_t line = 0; !in_place && line < lines; line++)
        S(widen_all)(from + line * problem->a.ld, length, x->copy + line * stride);
    x->first = in_place ? (const REAL *)from : x->copy;
#endif
    x->row_stride = row_major ? stride : 1;
    x->col_stride = row_major ? 1 : stride;
}

/* A part of K among the rows of Y that are packed, and the sums that it has. */
typedef struct S(sddmm_range) {
    int64_t k0, k1;
    REAL *sums;
} S(sddmm_range);

static S(sddmm_range) S(sddmm_part)(const S(sddmm_run) *run, int64_t part)
{
    const sddmm_state *state = run->state;
    const int64_t rows = run->k1 - run->k0, steps = state->depth > 0 ? tile_ceil(rows, state->depth) : 0;
    const int64_t begin = steps * part / state->splits * state->depth, end = steps * (part + 1) / state->splits * state->depth;
    return (S(sddmm_range)){run->k0 + begin, end < rows ? run->k0 + end : run->k1,
                            run->sums + part * run->bound->view.nnzb * state->sum_elements};
}

/* A step of one stored block: the sums from X and the rows of packed Y from k0 on, beside those that are there already unless they are the
 * first. */
static void S(sddmm_block)(const S(sddmm_run) *run, const tile_split *split, int64_t p, int64_t k0, int64_t depth, const S(sddmm_x) *x,
                           REAL *all, bool first)
{
    static const int32_t first_column = 0;
    const sddmm_state *state = run->state;
    const int64_t stride = state->vectors * T(lanes), block_column = run->bound->view.columns[p];
    REAL step[sizeof(T(vec)) / sizeof(REAL) * T(accumulators)] __attribute__((aligned(64)));
    T(tile_job) job = {.columns = &first_column, .blocks = 1, .depth = tile_ceil(depth, T(machine).step), .edge_column = -1, .alpha = 1};
#if TILE_PAIRED
    const bool exact = depth > 0 && !S(pairs_are_exact)(x->least, atomic_load(&((S(sddmm_run) *)run)->least));
    const T(tile_function)(*const tiles)[T(tallest)] = exact ? T(exact_tiles) : T(tiles);
#else
    const T(tile_function)(*const tiles)[T(tallest)] = T(tiles);
#endif
    job.row_stride = x->row_stride;
    job.col_stride = x->col_stride;
    for (int64_t panel = 0; panel < state->panels; panel++) {
        const int64_t start = state->starts[panel];
        const int width = (int)(state->starts[panel + 1] - start);
        REAL *sums = all + p * state->sum_elements + start * T(lanes);
        job.panel_stride = width * T(lanes);
        job.panel = run->y + (block_column * state->vectors + start) * S(sddmm_chunk)(state) * T(lanes) +
                    (k0 - run->k0) / T(machine).step * job.panel_stride;
        job.values = x->first;
        for (int tile = 0; tile < split->tiles; tile++) {
            const int height = split->low + (tile < split->taller);
            job.out = first ? sums : step;
            job.out_stride = first ? stride : job.panel_stride;
            tiles[width - 1][height - 1](&job);
            for (int64_t i = 0; !first && i < height; i++)
                for (int64_t j = 0; j < job.panel_stride; j += T(lanes))
                    T(store)(sums + i * stride + j, T(load)(sums + i * stride + j) + T(load)(step + i * job.panel_stride + j));
            job.values += height * x->row_stride;
            sums += height * stride;
        }
    }
}

/* The sums of the parts of K to those of the first part. */
static void S(sddmm_add_up)(const S(sddmm_run) *run, int64_t p)
{
    const sddmm_state *state = run->state;
    REAL *sums = run->sums + p * state->sum_elements;
    for (int64_t part = 1; part < state->splits; part++) {
        const REAL *more = sums + part * run->bound->view.nnzb * state->sum_elements;
        for (int64_t i = 0; i < state->sum_elements; i += T(lanes))
            T(store)(sums + i, T(load)(sums + i) + T(load)(more + i));
    }
}

/* Stored blocks first .. last - 1, all of one block row, and a part of K. */
static void S(sddmm_row)(const S(sddmm_run) *run, int64_t block_row, int64_t first, int64_t last, int64_t part, S(sddmm_x) *x)
{
    const sddmm_state *state = run->state;
    const spk_problem *problem = &run->bound->problem;
    const int64_t height = run->bound->view.block_rows, row0 = block_row * height,
                  rows = row0 + height <= problem->m ? height : problem->m - row0;
    const tile_split split = tile_make_split(&T(machine), (int)rows, state->width);
    const S(sddmm_range) range = S(sddmm_part)(run, part);
    bool begins = run->k0 == 0; /* nothing is there yet; without any K, sums of 0 are to be */
    for (int64_t k0 = range.k0; !run->adds_up && (k0 < range.k1 || begins); begins = false) {
        const int64_t depth = range.k1 - k0 < state->depth ? range.k1 - k0 : state->depth;
        if (depth > 0)
            S(sddmm_take_x)(run, row0, rows, k0, depth, x);
        for (int64_t p = first; p < last; p++)
            S(sddmm_block)(run, &split, p, k0, depth, x, range.sums, begins);
        k0 += depth;
    }
    for (int64_t p = first; (run->adds_up || (state->splits == 1 && run->k1 == problem->k)) && p < last; p++) {
        S(sddmm_add_up)(run, p);
        S(sddmm_finish)(run->bound, run->args, p, rows, run->sums + p * state->sum_elements, state->vectors * T(lanes));
    }
}

static void S(sddmm_task)(void *arg, int64_t task)
{
    const S(sddmm_run) *run = arg;
    const sddmm_state *state = run->state;
    const spk_bsr_view *view = &run->bound->view;
    const int64_t run_of_blocks = task % state->parts, end = view->nnzb * (run_of_blocks + 1) / state->parts;
    S(sddmm_x) x = {.copy = run->x + task * state->x_elements};
    int64_t p = view->nnzb * run_of_blocks / state->parts, low = 0, high = view->grid_rows;
    while (high - low > 1) { /* the block row of p: the last one that begins at p or before */
        const int64_t middle = (low + high) / 2;
        if (view->offsets[middle] <= p)
            low = middle;
        else
            high = middle;
    }
    for (int64_t row = low; p < end; row++) {
        const int64_t last = view->offsets[row + 1] < end ? view->offsets[row + 1] : end;
        if (p < last)
            S(sddmm_row)(run, row, p, last, task / state->parts, &x);
        p = last;
    }
}

static spk_status S(sddmm_execute)(const spk_bound *bound, const spk_args *args)
{
    const sddmm_state *state = bound->state;
    const spk_executor *executor = &bound->device->executor;
    const int64_t k = bound->problem.k;
    S(sddmm_run) run = {.bound = bound, .args = args, .state = state, .y = args->workspace};
    if (bound->view.nnzb == 0)
        return SPK_OK;
    run.x = run.y + state->y_elements;
    run.sums = run.x + state->parts * state->splits * state->x_elements;
    do {
        run.k0 = run.k1;
        run.k1 = k - run.k0 < state->chunk ? k : run.k0 + state->chunk;
#if TILE_PAIRED
        atomic_store(&run.least, S(LEAST_OF_NONE));
#endif
        spk_execute(executor, tile_ceil(run.k1 - run.k0, TILE_PACK_ROWS), S(sddmm_pack_task), &run);
        spk_execute(executor, state->parts * state->splits, S(sddmm_task), &run);
    } while (run.k1 < k);
    run.adds_up = true;
    if (state->splits > 1)
        spk_execute(executor, state->parts, S(sddmm_task), &run);
    return SPK_OK;
}
