/* The tiled GEMM. The register tiles are those of SpMM: rows of A stand for a block that is a step of K deep. With TILE_PAIRED what is
 * copied are pairs along K, and what copies returns the least number other than 0, as tile_pairs.h has it. */
#include <stdatomic.h>

#include "backend/cpu/kernels/gemm/gemm_plan.h"
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_micro.h"
#if TILE_PAIRED
#include "backend/cpu/kernels/tiles/tile_pairs.h"
#else
#include "backend/cpu/kernels/tiles/tile_pack.h"
#endif

typedef struct S(gemm_run) {
    const spk_bound *bound;
    const gemm_state *state;
    spk_args args; /* turned, where the problem is */
    REAL *buffers, *sums;
    int64_t *first_units; /* with groups of rows: of each group, and how many there are in all */
    bool plain;
    atomic_int_fast64_t next_unit;
} S(gemm_run);

/* One tile of an item's D, some of K, and where a worker has its copies. */
typedef struct S(gemm_unit) {
    const S(gemm_run) *run;
    int64_t item;
    spk_problem problem; /* the item's */
    spk_args args;
    REAL *a, *b, *sums;
    gemm_range rows, vectors, depth;
    int64_t panels;
    tile_split split; /* of the rows */
    int64_t tall;     /* elements from one column of a copied sub-tile of A to the next */
} S(gemm_unit);

static gemm_range S(gemm_panel)(const S(gemm_unit) *unit, int64_t panel)
{
    const int64_t first = unit->vectors.begin, count = unit->vectors.end - first;
    const gemm_range part = gemm_part(count, panel, unit->panels);
    return (gemm_range){first + part.begin, first + part.end};
}

/* Columns of B and D that a panel has. */
static int64_t S(gemm_columns)(const S(gemm_unit) *unit, gemm_range panel)
{
    const int64_t n = unit->problem.n, end = panel.end * T(lanes);
    return (end < n ? end : n) - panel.begin * T(lanes);
}

/* Some columns of b, as a panel. */
SPK_INLINE int S(gemm_pack)(spk_layout layout, const STORED *b, int64_t ld, int64_t depth, int width, int64_t columns, REAL *to)
{
#if TILE_PAIRED
    const S(pair_rows) rows = {2, depth}; /* no gaps */
    S(pair_least) least = S(least_of_none)();
    S(pack_pairs)(&rows, layout, b, ld, 0, tile_ceil(depth, 2), width, columns, to, &least);
    return S(least_number)(least);
#else
    S(pack)(layout, b, ld, 0, depth, width, columns, to);
    return 0;
#endif
}

/* Rows k0 .. k0 + depth of some columns of B, as a panel. */
static int S(gemm_copy_b)(const S(gemm_unit) *unit, gemm_range panel, int64_t k0, int64_t depth, REAL *to)
{
    const spk_operand *b = &unit->problem.b;
    const STORED *from = (const STORED *)unit->args.b + k0 * spk_operand_row_step(b) + panel.begin * T(lanes) *spk_operand_col_step(b);
    return S(gemm_pack)(b->layout, from, b->ld, depth, (int)(panel.end - panel.begin), S(gemm_columns)(unit, panel), to);
}

/* The same from a column-major A: each column once, along its line, to its places in all sub-tiles. What a sub-tile's last vector has
 * beyond its height is never read. */
static int S(gemm_copy_columns)(const S(gemm_unit) *unit, int64_t k0, int64_t depth)
{
    const int64_t ld = unit->problem.a.ld;
    const STORED *from = (const STORED *)unit->args.a + unit->rows.begin + k0 * ld;
    const int64_t rows = unit->rows.end - unit->rows.begin, steps = tile_ceil(depth, T(machine).step), step = unit->tall * steps;
#if TILE_PAIRED
    S(pair_least) least = S(least_of_none)();
#endif
    for (int64_t s = 0; s < steps; s++) {
        const STORED *column = from + s * T(machine).step * ld;
        REAL *to = unit->a + s * unit->tall;
        int64_t row = 0;
        for (int tile = 0; tile < unit->split.tiles; tile++) {
            const int64_t height = unit->split.low + (tile < unit->split.taller);
            for (int64_t i = 0; i < height; i += T(lanes)) {
                const int64_t left = rows - row - i;
#if TILE_PAIRED
                const STORED *second = 2 * s + 1 < depth ? column + ld + row + i : NULL;
                const T(words) pairs = S(pair_up)(column + row + i, second, left);
                S(least_of)(&least, pairs);
                T(store)(to + i, (T(vec))pairs);
#else
                T(store)(to + i, left >= T(lanes) ? S(load)(column + row + i) : S(load_part)(column + row + i, left));
#endif
            }
            row += height;
            to += step;
        }
    }
#if TILE_PAIRED
    return S(least_number)(least);
#else
    return 0;
#endif
}

/* The rows of A, columns k0 .. k0 + depth, one behind the other; of a column-major A as above. */
static int S(gemm_copy_a)(const S(gemm_unit) *unit, int64_t k0, int64_t depth)
{
    const int64_t ld = unit->problem.a.ld, line = unit->run->state->a_line, rows = unit->rows.end - unit->rows.begin;
    if (line == 0)
        return S(gemm_copy_columns)(unit, k0, depth);
    const STORED *from = (const STORED *)unit->args.a + unit->rows.begin * ld + k0;
    enum { AHEAD = 4 }; /* rows: they are on other pages, where no hardware looks ahead */
#if TILE_PAIRED
    S(pair_least) least = S(least_of_none)();
#endif
    for (int64_t row = 0; row < rows; row++) {
        if (row + AHEAD < rows)
            S(fetch_lines)(from, ld, row + AHEAD, row + AHEAD + 1, depth);
#if TILE_PAIRED
        S(pair_line)(from + row * ld, depth, unit->a + row * line, &least);
#else
        S(widen_all)(from + row * ld, depth, unit->a + row * line);
#endif
    }
#if TILE_PAIRED
    return S(least_number)(least);
#else
    return 0;
#endif
}

/* Some rows of the tile, `row` the first, whose sums are complete. */
static void S(gemm_finish)(const S(gemm_unit) *unit, gemm_range panel, int64_t row, int64_t rows, const REAL *sums)
{
    const spk_problem *problem = &unit->problem;
    const bool same = problem->d.dtype == problem->a.dtype;
    (same ? S(epilogue) : T(epilogue))(problem, &unit->args, sums, (panel.end - panel.begin) * T(lanes), unit->rows.begin + row, rows,
                                       panel.begin * T(lanes), S(gemm_columns)(unit, panel));
}

/* A step of one panel. */
typedef struct S(gemm_panel_step) {
    gemm_range panel;
    int64_t k0, depth;
    const REAL *b;
    int64_t b_stride;
    bool exact;    /* pairs are not multiplied as such */
    REAL *sums;    /* of the steps before, and for the steps behind */
    bool first;    /* there are none before */
    bool direct;   /* the sums go to D at once */
    bool finishes; /* they go to the epilogue, a few rows at a time while they are in the first cache */
} S(gemm_panel_step);

static void S(gemm_step)(const S(gemm_unit) *unit, const S(gemm_panel_step) *s)
{
    static const int32_t first_column = 0;
    const spk_problem *problem = &unit->problem;
    const spk_operand *a = &problem->a;
    const bool copied = unit->run->state->pack_a;
    const int64_t line = unit->run->state->a_line;
    const int width = (int)(s->panel.end - s->panel.begin);
    const int64_t steps = tile_ceil(s->depth, T(machine).step);
    const int64_t stride = width * T(lanes), row_step = !copied ? spk_operand_row_step(a) : line;
    const bool holds = s->finishes || !s->first;
    REAL held[GEMM_HELD_ROWS * T(widest) *T(lanes)] __attribute__((aligned(64)));
    T(tile_job) job = {
        .columns = &first_column, .blocks = 1, .depth = steps, .edge_column = -1, .panel = s->b, .panel_stride = s->b_stride};
    job.alpha = s->direct ? (REAL)unit->args.alpha : 1;
    job.row_stride = !copied ? row_step : line > 0 ? line : 1;
    job.col_stride = !copied ? spk_operand_col_step(a) : line > 0 ? 1 : unit->tall;
    job.values = copied ? unit->a : (const REAL *)unit->args.a + unit->rows.begin * row_step + s->k0 * spk_operand_col_step(a);
    REAL *out = s->direct ? (REAL *)unit->args.d + unit->rows.begin * problem->d.ld + s->panel.begin * T(lanes) : s->sums;
    const int64_t out_stride = s->direct ? problem->d.ld : stride;
    int64_t row = 0, begin = 0; /* rows from `begin` on are held */
    for (int tile = 0; tile < unit->split.tiles; tile++) {
        const int height = unit->split.low + (tile < unit->split.taller);
        REAL *sums = holds ? held + (row - begin) * stride : out, *total = s->finishes ? sums : out;
        job.out = sums;
        job.out_stride = holds ? stride : out_stride;
#if TILE_PAIRED
        (s->exact ? T(exact_tiles) : T(tiles))[width - 1][height - 1](&job);
#else
        T(tiles)[width - 1][height - 1](&job);
#endif
        for (int64_t i = 0; !s->first && i < height * stride; i += T(lanes))
            T(store)(total + i, T(load)(out + i) + T(load)(sums + i));
        job.values += copied && line == 0 ? unit->tall * steps : height * row_step;
        out += height * out_stride;
        row += height;
        const bool full = row - begin + unit->split.low + 1 > GEMM_HELD_ROWS || tile + 1 == unit->split.tiles;
        if (s->finishes && full)
            S(gemm_finish)(unit, s->panel, begin, row - begin, held);
        if (!s->finishes || full)
            begin = row;
    }
}

/* All panels of the tile for one step; last: none follows. */
static void S(gemm_panels)(const S(gemm_unit) *unit, int64_t k0, int64_t depth, bool first, bool last)
{
    const S(gemm_run) *run = unit->run;
    const gemm_state *state = run->state;
    const spk_operand *b = &unit->problem.b;
    const int64_t rows = unit->rows.end - unit->rows.begin;
    S(gemm_panel_step) s = {.k0 = k0, .depth = depth, .sums = unit->sums, .first = first};
    int least_a = 0, least_b = 0;
    if (state->pack_a && depth > 0)
        least_a = S(gemm_copy_a)(unit, k0, depth);
    for (int64_t i = 0; i < unit->panels; i++) {
        s.panel = S(gemm_panel)(unit, i);
        const int64_t width = (s.panel.end - s.panel.begin) * T(lanes), columns = S(gemm_columns)(unit, s.panel);
        const bool in_place = !state->pack_b && columns == width;
        s.direct = run->plain && first && last && columns == width;
        s.finishes = last && !s.direct && state->splits == 1;
        s.b = in_place ? (const REAL *)unit->args.b + k0 * b->ld + s.panel.begin * T(lanes) : unit->b;
        s.b_stride = in_place ? b->ld : width;
        if (!in_place && depth > 0)
            least_b = S(gemm_copy_b)(unit, s.panel, k0, depth, unit->b);
#if TILE_PAIRED
        s.exact = !S(pairs_are_exact)(least_a, least_b);
#else
        (void)least_a, (void)least_b;
#endif
        S(gemm_step)(unit, &s);
        s.sums += rows * width;
    }
}

/* Tile number `tile` of the unit's item, which has so many in all. */
static void S(gemm_tile)(S(gemm_unit) *unit, int64_t tile, int64_t tiles)
{
    const gemm_state *state = unit->run->state;
    const int64_t down = tiles / state->across;
    unit->rows = gemm_part(unit->problem.m, tile % down, down);
    unit->vectors = gemm_part(state->vectors, tile / down, state->across);
    unit->panels = tile_ceil(unit->vectors.end - unit->vectors.begin, state->width);
    unit->split = tile_make_split(&T(machine), (int)(unit->rows.end - unit->rows.begin), state->width);
    unit->tall = tile_ceil(unit->split.low + (unit->split.taller > 0), T(lanes)) * T(lanes);
}

static void S(gemm_take_item)(S(gemm_unit) *unit, int64_t item)
{
    const S(gemm_run) *run = unit->run;
    if (unit->item != item)
        spk_product_take(&run->state->problem, &run->args, item, &unit->problem, &unit->args);
    unit->item = item;
}

/* Unit number `number` of all: its item, tile, and part of K. */
static void S(gemm_take)(S(gemm_unit) *unit, int64_t number)
{
    const gemm_state *state = unit->run->state;
    const int64_t *first = unit->run->first_units, tiles = state->down * state->across, a_item = tiles * state->splits;
    if (first == NULL) {
        S(gemm_take_item)(unit, number / a_item);
        S(gemm_tile)(unit, number % a_item / state->splits, tiles);
        unit->depth = gemm_part(unit->problem.k, number % state->splits, state->splits);
        return;
    }
    int64_t low = 0, high = state->items; /* first[low] <= number < first[high] */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    S(gemm_take_item)(unit, low);
    S(gemm_tile)(unit, number - first[low], first[low + 1] - first[low]);
    unit->depth = (gemm_range){0, unit->problem.k};
}

static int64_t S(gemm_units)(const S(gemm_run) *run)
{
    const gemm_state *state = run->state;
    return run->first_units != NULL ? run->first_units[state->items] : state->items * state->down * state->across * state->splits;
}

static void S(gemm_worker)(void *arg, int64_t task)
{
    S(gemm_run) *run = arg;
    const gemm_state *state = run->state;
    const int64_t units = S(gemm_units)(run);
    S(gemm_unit) unit = {.run = run, .item = -1, .a = run->buffers + task * (state->a_elements + state->b_elements)};
    unit.b = unit.a + state->a_elements;
    for (int64_t i; (i = atomic_fetch_add(&run->next_unit, 1)) < units;) {
        S(gemm_take)(&unit, i);
        unit.sums = run->sums + (state->splits > 1 ? i : task) * state->sum_elements;
        int64_t k0 = unit.depth.begin, depth;
        do {
            depth = unit.depth.end - k0 < state->depth ? unit.depth.end - k0 : state->depth;
            S(gemm_panels)(&unit, k0, depth, k0 == unit.depth.begin, k0 + depth == unit.depth.end);
            k0 += depth;
        } while (k0 < unit.depth.end);
    }
}

/* The sums of the parts of K to those of the first part, and to D. */
static void S(gemm_add_up)(void *arg, int64_t tile)
{
    const S(gemm_run) *run = arg;
    const gemm_state *state = run->state;
    S(gemm_unit) unit = {.run = run, .item = -1};
    REAL *sums = run->sums + tile * state->splits * state->sum_elements;
    S(gemm_take)(&unit, tile * state->splits);
    for (int64_t part = 1; part < state->splits; part++)
        for (int64_t i = 0; i < state->sum_elements; i += T(lanes))
            T(store)(sums + i, T(load)(sums + i) + T(load)(sums + part * state->sum_elements + i));
    for (int64_t i = 0; i < unit.panels; i++) {
        const gemm_range panel = S(gemm_panel)(&unit, i);
        S(gemm_finish)(&unit, panel, 0, unit.rows.end - unit.rows.begin, sums);
        sums += (unit.rows.end - unit.rows.begin) * (panel.end - panel.begin) * T(lanes);
    }
}

/* Groups of rows have as many tiles as they need. */
static void S(gemm_count_units)(S(gemm_run) *run)
{
    const gemm_state *state = run->state;
    int64_t units = 0;
    for (int64_t group = 0; group < state->items; group++) {
        const spk_group_range range = spk_group_at(&run->args, group);
        run->first_units[group] = units;
        units += tile_ceil(range.end - range.begin, state->tile_rows) * state->across;
    }
    run->first_units[state->items] = units;
}

static spk_status S(gemm_execute)(const spk_bound *bound, const spk_args *args)
{
    const gemm_state *state = bound->state;
    const spk_problem *problem = &state->problem;
    const spk_executor *executor = &bound->device->executor;
    S(gemm_run) run = {.bound = bound, .state = state, .args = *args, .buffers = args->workspace};
    if (problem->m == 0 || problem->n == 0)
        return SPK_OK;
    if (state->turned) {
        run.args.a = args->b;
        run.args.b = args->a;
    }
    run.sums = run.buffers + state->workers * (state->a_elements + state->b_elements);
    if (problem->group_axis == SPK_GROUP_ROWS) {
        run.first_units = (int64_t *)(void *)(run.sums + state->workers * state->sum_elements);
        S(gemm_count_units)(&run);
    }
    run.plain = spk_epilogue_is_plain(problem, args) && state->splits == 1 && spk_dtype_bytes(problem->d.dtype) == sizeof(REAL);
    spk_execute(executor, state->workers, S(gemm_worker), &run);
    if (state->splits > 1)
        spk_execute(executor, state->items * state->down * state->across, S(gemm_add_up), &run);
    return SPK_OK;
}
