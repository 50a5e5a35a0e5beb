/* The rows that gather tiles: shapes, options, model, binding and running. */
#include "backend/cuda/host/tiles/gather.h"

#include <stdlib.h>

#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/frame/launch.h"

enum { GATHER_MOST_SHARED = 232448, GATHER_LEAST_STEPS = 8 }; /* LEAST_STEPS: of a piece of a row */

int64_t spk_gather_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

int spk_gather_round(int value, int step)
{
    return (value + step - 1) / step * step;
}

int spk_gather_block_rows(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_cols : problem->pattern->block_rows;
}

int spk_gather_block_cols(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_rows : problem->pattern->block_cols;
}

bool spk_gather_a_along_k(const spk_problem *problem)
{
    return (problem->block_layout == SPK_ROW_MAJOR) != (problem->trans_a == SPK_TRANS);
}

int spk_gather_vector(spk_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    int width = 16 / (int)spk_dtype_bytes(dtype);
    while (width > 1 && (a % width != 0 || b % width != 0 || c % width != 0))
        width /= 2;
    return width;
}

int spk_gather_pitch(int line, int bytes, bool along_k)
{
    if (bytes == 2) {
        line = spk_gather_round(line, 8);
        return line / 8 % 2 == 1 ? line : line + 8;
    }
    if (bytes == 8)
        return spk_gather_round(line, 8) + 4;
    return along_k ? spk_gather_round(line, 8) + 4 : spk_gather_round(line + 8, 16) - 8;
}

int spk_gather_shared_limit(const spk_device *device)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    return cuda != NULL && cuda->shared_bytes > 0 ? cuda->shared_bytes : GATHER_MOST_SHARED;
}

int spk_gather_sum_bytes(const spk_problem *problem)
{
    return problem->compute == SPK_F64 ? 8 : 4;
}

/* Elements of a tile of sums in the workspace. */
static int tile_sums(const spk_problem *problem, const gather_shape *s)
{
    return team_sums(s->c, problem->d.layout == SPK_ROW_MAJOR);
}

void spk_gather_fit(gather_shape *s, int stage_bytes, int sum_bytes)
{
    s->c.team_bytes = spk_gather_round(s->c.stages * stage_bytes > sum_bytes ? s->c.stages * stage_bytes : sum_bytes, 128);
    s->c.teams = s->c.threads >= 128 ? 1 : 128 / s->c.threads;
    while (s->c.teams > 1 && s->c.teams * s->c.team_bytes > 64 * 1024)
        s->c.teams /= 2;
}

/* Tiles across D, of all items of a batch. */
static int64_t gather_columns(const spk_problem *problem, const gather_shape *s)
{
    return spk_gather_ceil(problem->n, s->c.tile_n) * problem->batch;
}

void spk_gather_complete(const spk_problem *problem, gather_shape *s)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem);
    const int bytes_a = (int)spk_dtype_bytes(problem->a.dtype), bytes_b = (int)spk_dtype_bytes(problem->b.dtype);
    const bool along_a = spk_gather_a_along_k(problem), along_b = problem->b.layout == SPK_COL_MAJOR;
    team_constants *c = &s->c;
    c->block_rows = rows;
    c->block_cols = cols;
    c->pitch_a = spk_gather_pitch(along_a ? c->tile_k : c->tile_m, bytes_a, along_a);
    c->pitch_b = spk_gather_pitch(along_b ? c->tile_k : c->tile_n, bytes_b, along_b);
    c->pitch_d = problem->d.layout == SPK_ROW_MAJOR ? c->tile_n + 8 : spk_gather_round(c->tile_m, 8) + 4;
    c->vector_a =
        along_a ? spk_gather_vector(problem->a.dtype, cols, c->tile_k, cols) : spk_gather_vector(problem->a.dtype, rows, c->tile_m, rows);
    c->vector_b = along_b ? spk_gather_vector(problem->b.dtype, problem->b.ld, c->tile_k, cols)
                          : spk_gather_vector(problem->b.dtype, problem->b.ld, c->tile_n, c->tile_n);
    spk_gather_fit(s, team_a_bytes(*c, along_a, bytes_a) + team_b_bytes(*c, along_b, bytes_b),
                   tile_sums(problem, s) * spk_gather_sum_bytes(problem));
}

int spk_gather_resident(const gather_shape *s)
{
    const int room = 200 * 1024 / (s->c.teams * s->c.team_bytes + 1024) * s->c.teams, most = 1024 / s->c.threads;
    return room > most ? most : room < 1 ? 1 : room;
}

double spk_gather_processors(const spk_device *device)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    return cuda != NULL && cuda->processors > 0 ? cuda->processors : 100;
}

/* Blocks of the longest row, estimated for op T. */
static double gather_longest_row(const spk_problem *problem)
{
    const double rows = (double)spk_gather_ceil(problem->m, spk_gather_block_rows(problem)),
                 mean = rows > 0 ? (double)problem->pattern->nnzb / rows : 0;
    return problem->trans_a == SPK_TRANS ? mean * (1 + 3 * problem->pattern->features.col_spread)
                                         : (double)problem->pattern->features.longest_row;
}

/* The most blocks of a piece of a row: a team's share of all of them, but enough to be worth a tile of sums. */
static int64_t gather_piece_blocks(const spk_problem *problem, const spk_device *device, const gather_shape *s)
{
    const double tiles =
        (double)team_splits(spk_gather_block_rows(problem), s->c.tile_m) * (double)gather_columns(problem, s); /* of a block row */
    const int64_t share = (int64_t)((double)problem->pattern->nnzb * tiles / (spk_gather_processors(device) * spk_gather_resident(s))) + 1;
    const int64_t least = spk_gather_ceil(GATHER_LEAST_STEPS * s->c.tile_k, spk_gather_block_cols(problem));
    return share > least ? share : least;
}

bool spk_gather_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, const char **why)
{
    const int64_t splits = team_splits(spk_gather_block_rows(problem), s->c.tile_m),
                  grid_rows = spk_gather_ceil(problem->m, spk_gather_block_rows(problem));
    if (problem->m > INT32_MAX / 2 || problem->k > INT32_MAX / 2)
        *why = "M and K must be less than 2^30";
    else if ((double)(grid_rows * splits) * (double)gather_columns(problem, s) > INT32_MAX)
        *why = "D has more than 2^31 tiles";
    else if (s->c.teams * s->c.team_bytes > spk_gather_shared_limit(device))
        *why = "its tiles need more shared memory than the device has";
    else if (s->adding != NULL && problem->pattern->device_only)
        *why = "it needs the indices on the host";
    else if (s->adding != NULL && gather_longest_row(problem) < 2 * (double)gather_piece_blocks(problem, device, s))
        *why = "no row is long enough to be cut";
    return *why == NULL;
}

void spk_team_define(team_constants constants, spk_build *build)
{
    TEAM_CONSTANTS(SPK_BUILD_DEFINE)
}

void spk_gather_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build)
{
    spk_build_begin(build, file, entry, problem);
    build->shared_bytes = s->c.teams * s->c.team_bytes;
    spk_team_define(s->c, build);
    const gather_constants constants = {.ragged_k = problem->k % s->c.block_cols != 0, .pieces = s->adding != NULL};
    GATHER_CONSTANTS(SPK_BUILD_DEFINE)
}

double spk_gather_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, double tflops)
{
    const double processors = spk_gather_processors(device), resident = spk_gather_resident(s),
                 most = (double)gather_piece_blocks(problem, device, s);
    const double rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem),
                 splits = (double)team_splits((int)rows, s->c.tile_m);
    const double columns = (double)gather_columns(problem, s), grid_rows = (double)spk_gather_ceil(problem->m, (int64_t)rows),
                 blocks = (double)problem->pattern->nnzb;
    const double passes = blocks * splits * columns; /* of a block through a tile */
    const double flops = passes * 2 * s->c.tile_m * s->c.tile_n * cols;
    const double bytes =
        passes * cols * (s->c.tile_m * (double)spk_dtype_bytes(problem->a.dtype) + s->c.tile_n * (double)spk_dtype_bytes(problem->b.dtype));
    const double tiles = grid_rows * splits * columns, slots = processors * resident, waves = tiles / slots;
    const double whole = (double)spk_gather_ceil((int64_t)(waves * 100 + 1), 100), uneven = waves > 8 || waves <= 0 ? 1 : whole / waves;
    double mean = grid_rows > 0 ? blocks / grid_rows : 0, longest = gather_longest_row(problem), adding = 0; /* of a tile, in blocks */
    if (s->adding != NULL) {
        mean = mean < most ? mean : most;
        longest = longest < most ? longest : most;
        adding = 2.5;
    }
    const double step_us = 0.12 + 0.5 / s->c.stages, steps = mean * cols / s->c.tile_k;
    const double small = s->c.vector_b * (double)spk_dtype_bytes(problem->b.dtype) < 16
                             ? 16 / (s->c.vector_b * (double)spk_dtype_bytes(problem->b.dtype))
                             : 1;
    const double computing = flops / tflops / 1e6, filling = bytes * (1 + 0.5 * (small - 1)) / 6.0e6;
    const double chain = whole * (1.5 + steps * step_us);
    const double alone =
        1.5 + longest * cols / s->c.tile_k * step_us * ((int)cols % s->c.tile_k == 0 ? 1.4 : 2.8); /* measured on an H200 */
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3;
    double worst = (computing > filling ? computing + 0.3 * filling : filling + 0.3 * computing) * (uneven > 2 ? 2 : uneven);
    worst = worst > chain ? worst : chain;
    worst = worst > alone ? worst : alone;
    return 2.5 + adding + (worst > memory ? worst : memory);
}

/* ---- binding and running: the same for all */

typedef struct gather_state {
    spk_cuda_index index;
    CUfunction function;
    void *order;    /* in device memory: block rows, longest first (NULL: as they come), or the list of their pieces */
    CUfunction add; /* the second launch; its grid is 0 where there is none */
    unsigned grid, add_grid, block;
    int shared_bytes;
} gather_state;

typedef struct gather_row {
    int64_t blocks;
    int row;
} gather_row;

static int gather_longer_first(const void *a, const void *b)
{
    const gather_row *x = a, *y = b;
    return x->blocks != y->blocks ? (x->blocks < y->blocks ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

/* Block rows of unequal length: longest first, so that none is left over at the end. */
static spk_status gather_make_order(const spk_bound *bound, void **order)
{
    const spk_bsr_view *view = &bound->view;
    spk_device *device = bound->device;
    gather_row *rows = NULL;
    int *list = NULL;
    spk_status status = SPK_OK;
    int64_t longest = 0;
    if (bound->problem.pattern->device_only)
        return SPK_OK;
    for (int64_t i = 0; i < view->grid_rows; i++)
        longest = view->offsets[i + 1] - view->offsets[i] > longest ? view->offsets[i + 1] - view->offsets[i] : longest;
    if (view->grid_rows == 0 || longest * view->grid_rows * 4 <= view->nnzb * 5)
        return SPK_OK;
    void *memory = NULL;
    SPK_GOTO(spk_calloc(&device->mem, (size_t)view->grid_rows, sizeof *rows, &rows));
    SPK_GOTO(spk_calloc(&device->mem, (size_t)view->grid_rows, sizeof *list, &list));
    for (int64_t i = 0; i < view->grid_rows; i++)
        rows[i] = (gather_row){view->offsets[i + 1] - view->offsets[i], (int)i};
    qsort(rows, (size_t)view->grid_rows, sizeof *rows, gather_longer_first);
    for (int64_t i = 0; i < view->grid_rows; i++)
        list[i] = rows[i].row;
    SPK_GOTO(device->backend->allocate(device, (size_t)view->grid_rows * sizeof *list, &memory));
    SPK_GOTO(device->backend->copy_in(device, memory, list, (size_t)view->grid_rows * sizeof *list));
    *order = memory;
    memory = NULL;
done:
    if (memory != NULL)
        device->backend->release(device, memory);
    spk_free(&device->mem, list);
    spk_free(&device->mem, rows);
    return status;
}

void spk_gather_unbind(spk_bound *bound)
{
    gather_state *state = bound->state;
    if (state == NULL)
        return;
    if (state->order != NULL)
        bound->device->backend->release(bound->device, state->order);
    spk_cuda_index_release(bound->device, &state->index);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

/* The list of pieces, the second launch, and room for the sums. Returns the number of pieces in *pieces. */
static spk_status gather_cut_rows(spk_bound *bound, const gather_shape *s, const spk_build *build, gather_state *state, int64_t *pieces)
{
    const spk_problem *problem = &bound->problem;
    spk_device *device = bound->device;
    spk_build second = *build;
    pieces_list list = {0};
    spk_status status;
    second.entry = s->adding;
    second.shared_bytes = 0;
    SPK_TRY(spk_cuda_function(device, &second, &state->add));
    SPK_TRY(spk_pieces_make(&device->mem, &bound->view, gather_piece_blocks(problem, device, s), &list));
    const int64_t parts = team_splits(bound->view.block_rows, s->c.tile_m), columns = gather_columns(problem, s);
    bound->workspace_bytes =
        (size_t)(list.cut_pieces * parts * columns) * (size_t)tile_sums(problem, s) * (size_t)spk_gather_sum_bytes(problem);
    const int64_t lines =
        list.cut_rows * parts * columns * (tile_sums(problem, s) * spk_gather_sum_bytes(problem) / 16); /* of 16 bytes: a thread for each */
    state->add_grid = (unsigned)spk_gather_ceil(lines, s->c.teams * s->c.threads);
    SPK_GOTO(device->backend->allocate(device, (size_t)list.count * sizeof *list.memory, &state->order));
    SPK_GOTO(device->backend->copy_in(device, state->order, list.memory, (size_t)list.count * sizeof *list.memory));
    *pieces = list.pieces;
done:
    spk_free(&device->mem, list.memory);
    return status;
}

spk_status spk_gather_bind(spk_bound *bound, const gather_shape *s, const spk_build *build)
{
    gather_state *state = NULL;
    spk_status status;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_cuda_function(bound->device, build, &state->function));
    SPK_GOTO(spk_cuda_index_make(bound, &state->index));
    int64_t rows = bound->view.grid_rows;
    if (s->adding != NULL)
        SPK_GOTO(gather_cut_rows(bound, s, build, state, &rows));
    else
        SPK_GOTO(gather_make_order(bound, &state->order));
    const int64_t tiles = rows * team_splits(bound->view.block_rows, s->c.tile_m);
    state->index.arguments.item_blocks = (int)(spk_gather_ceil(tiles, s->c.teams) * spk_gather_ceil(bound->problem.n, s->c.tile_n));
    state->grid = (unsigned)(spk_gather_ceil(tiles, s->c.teams) * gather_columns(&bound->problem, s));
    state->block = (unsigned)(s->c.teams * s->c.threads);
    state->shared_bytes = build->shared_bytes;
done:
    if (status != SPK_OK)
        spk_gather_unbind(bound);
    return status;
}

spk_status spk_gather_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const gather_state *state = bound->state;
    spk_cuda_arguments arguments;
    if (state->grid == 0)
        return SPK_OK;
    spk_cuda_arguments_fill(&state->index, args, &arguments);
    const void *order = state->order;
    void *parameters[] = {&arguments, &order};
    spk_status status =
        spk_cuda_launch_early(bound->device, state->function, state->grid, state->block, state->shared_bytes, (CUstream)stream, parameters);
    if (status == SPK_OK && state->add_grid > 0)
        status = spk_cuda_launch_early(bound->device, state->add, state->add_grid, state->block, 0, (CUstream)stream, parameters);
    return status;
}
