/* The SDDMM rows that gather tiles: shapes, options, model, binding and running. */
#include "backend/cuda/host/tiles/sddmm_gather.h"

#include <limits.h>

#include "backend/cuda/host/frame/launch.h"

typedef struct sddmm_gather_state {
    spk_cuda_index index;
    sddmm_functions functions;
    void *memory; /* of the tiles, on the device */
    sddmm_work work;
    unsigned grid, block;
    int shared_bytes;
} sddmm_gather_state;

static int sddmm_vector(spk_dtype dtype, int64_t ld, int64_t tile, int64_t block, int64_t stride)
{
    const int one = spk_gather_vector(dtype, ld, tile, stride), other = spk_gather_vector(dtype, block, block, block);
    return one < other ? one : other;
}

void spk_sddmm_gather_complete(const spk_problem *problem, gather_shape *s)
{
    const int rows = problem->pattern->block_rows, cols = problem->pattern->block_cols, bytes = (int)spk_dtype_bytes(problem->a.dtype);
    const bool along_a = problem->a.layout == SPK_ROW_MAJOR, along_b = problem->b.layout == SPK_COL_MAJOR,
               down = problem->block_layout == SPK_COL_MAJOR;
    s->c.pitch_a = spk_gather_pitch(along_a ? s->c.tile_k : s->c.tile_m, bytes, along_a);
    s->c.pitch_b = spk_gather_pitch(along_b ? s->c.tile_k : s->c.tile_n, bytes, along_b);
    s->c.pitch_d = down ? spk_gather_round(s->c.tile_m, 8) + 4 : s->c.tile_n + 8;
    s->c.vector_a =
        sddmm_vector(problem->a.dtype, problem->a.ld, along_a ? s->c.tile_k : s->c.tile_m, along_a ? s->c.tile_k : rows, problem->a.stride);
    s->c.vector_b =
        sddmm_vector(problem->b.dtype, problem->b.ld, along_b ? s->c.tile_k : s->c.tile_n, along_b ? s->c.tile_k : cols, problem->b.stride);
    s->c.block_rows = rows;
    s->c.block_cols = cols;
    spk_gather_fit(s, team_a_bytes(s->c, along_a, bytes) + team_b_bytes(s->c, along_b, bytes),
                   team_sums(s->c, !down) * (problem->compute == SPK_F64 ? 8 : 4));
}

static int sddmm_gather_splits(const spk_problem *problem, const gather_shape *s)
{
    return team_splits(problem->pattern->block_rows, s->c.tile_m);
}

/* Tiles of one item, where rows are alike. */
static double sddmm_gather_tiles(const spk_problem *problem, const gather_shape *s)
{
    const double rows = (double)spk_gather_ceil(problem->m, problem->pattern->block_rows);
    const double columns = rows > 0 ? (double)problem->pattern->nnzb / rows * problem->pattern->block_cols : 0,
                 each = columns / s->c.tile_n;
    return rows * sddmm_gather_splits(problem, s) * (each < 1 ? 1 : (double)(int64_t)(each + 0.9));
}

bool spk_sddmm_gather_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, const char **why)
{
    const double tiles = sddmm_gather_tiles(problem, s) * (double)problem->batch;
    const double columns = (double)problem->pattern->features.longest_row * problem->pattern->block_cols;
    if (problem->b.dtype != problem->a.dtype)
        *why = "X and Y must have the same type";
    else if (problem->m > INT32_MAX / 2 || problem->n > INT32_MAX / 2 || problem->k > INT32_MAX / 2 || problem->batch > 65535)
        *why = "M, N and K must be less than 2^30, and the batch 2^16";
    else if (tiles * parts > INT32_MAX / 2)
        *why = "D has more than 2^30 tiles";
    else if (s->c.tile_n > 32 && s->c.tile_n / 2 >= columns)
        *why = "a narrower tile holds all columns";
    else if (s->c.teams * s->c.team_bytes > spk_gather_shared_limit(device))
        *why = "its tiles need more shared memory than the device has";
    else
        spk_sddmm_split_fits(problem, device, parts, 8 * (int64_t)s->c.tile_k, tiles, why);
    return *why == NULL;
}

void spk_sddmm_gather_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build)
{
    spk_build_begin(build, file, entry, problem);
    build->shared_bytes = s->c.teams * s->c.team_bytes;
    spk_team_define(s->c, build);
    const sddmm_gather_constants constants = {.ragged = spk_sddmm_ragged(problem)};
    SDDMM_GATHER_CONSTANTS(SPK_BUILD_DEFINE)
}

double spk_sddmm_gather_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, double tflops)
{
    const double processors = device->processors > 0 ? device->processors : 100,
                 tiles = sddmm_gather_tiles(problem, s) * (double)problem->batch;
    const double bytes = (double)spk_dtype_bytes(problem->a.dtype), k = (double)problem->k;
    int resident = 200 * 1024 / (s->c.teams * s->c.team_bytes + 1024) * s->c.teams;
    const int most = 1024 / s->c.threads;
    resident = resident > most ? most : resident < 1 ? 1 : resident;
    const double waves = tiles * parts / (processors * resident), whole = (double)spk_gather_ceil((int64_t)(waves * 100 + 1), 100);
    const double uneven = waves > 8 || waves <= 0 ? 1 : whole / waves;
    const double narrow = s->c.vector_b * bytes < 16 ? 16 / (s->c.vector_b * bytes) : 1;
    const double computing = tiles * 2 * s->c.tile_m * s->c.tile_n * k / tflops / 1e6,
                 filling = tiles * k * (s->c.tile_m + s->c.tile_n) * bytes * (1 + 0.5 * (narrow - 1)) / 6.0e6;
    const double chain = whole * (1.5 + k / parts / s->c.tile_k * (0.12 + 0.5 / s->c.stages));
    double worst = (computing > filling ? computing + 0.3 * filling : filling + 0.3 * computing) * (uneven > 2 ? 2 : uneven);
    worst = worst > chain ? worst : chain;
    return 2.5 + worst + spk_sddmm_split_us(problem, parts);
}

void spk_sddmm_gather_unbind(spk_bound *bound)
{
    sddmm_gather_state *state = bound->state;
    if (state == NULL)
        return;
    if (state->memory != NULL)
        bound->device->backend->release(bound->device, state->memory);
    spk_cuda_index_release(bound->device, &state->index);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

/* The tiles of the pattern, those of a row one after the other. */
static spk_status sddmm_gather_list(const spk_bound *bound, const gather_shape *s, sddmm_gather_state *state)
{
    const spk_bsr_view *view = &bound->view;
    const int splits = sddmm_gather_splits(&bound->problem, s);
    sddmm_tile *tiles = NULL;
    int64_t count = 0;
    spk_status status = SPK_OK;
    for (int64_t i = 0; i < view->grid_rows; i++)
        count += splits * spk_gather_ceil((view->offsets[i + 1] - view->offsets[i]) * view->block_cols, s->c.tile_n);
    if (count * state->work.parts * bound->problem.batch > INT_MAX || view->grid_rows * splits > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of D in %d parts for %lld items: the limit is 2^31", (long long)count,
                        state->work.parts, (long long)bound->problem.batch);
    if (count == 0)
        return SPK_OK;
    SPK_TRY(spk_alloc(&bound->device->mem, (size_t)count, sizeof *tiles, &tiles));
    int64_t at = 0;
    for (int64_t i = 0; i < view->grid_rows; i++)
        for (int part = 0; part < splits; part++)
            for (int64_t column = 0; column < (view->offsets[i + 1] - view->offsets[i]) * view->block_cols; column += s->c.tile_n)
                tiles[at++] = (sddmm_tile){(int)(i * splits + part), (int)column};
    SPK_GOTO(bound->device->backend->allocate(bound->device, (size_t)count * sizeof *tiles, &state->memory));
    SPK_GOTO(bound->device->backend->copy_in(bound->device, state->memory, tiles, (size_t)count * sizeof *tiles));
    state->work.tiles = state->memory;
    state->work.tiles_count = (int)count;
done:
    spk_free(&bound->device->mem, tiles);
    return status;
}

spk_status spk_sddmm_gather_bind(spk_bound *bound, const gather_shape *s, const spk_build *build, int parts)
{
    const spk_problem *p = &bound->problem;
    sddmm_gather_state *state = NULL;
    spk_status status;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_sddmm_load(bound, build, parts, &state->functions));
    SPK_GOTO(spk_cuda_index_make(bound, &state->index));
    state->work = (sddmm_work){
        .parts = parts, .steps = (int)spk_gather_ceil(p->k, s->c.tile_k), .elements = bound->view.nnzb * bound->view.block_stride};
    SPK_GOTO(sddmm_gather_list(bound, s, state));
    bound->workspace_bytes = spk_sddmm_workspace(bound, parts);
    state->grid = (unsigned)spk_gather_ceil((int64_t)state->work.tiles_count * parts * p->batch, s->c.teams);
    state->block = (unsigned)(s->c.teams * s->c.threads);
    state->shared_bytes = build->shared_bytes;
done:
    if (status != SPK_OK)
        spk_sddmm_gather_unbind(bound);
    return status;
}

static spk_status sddmm_gather_launch(const spk_bound *bound, const spk_args *args, CUstream stream)
{
    const sddmm_gather_state *state = bound->state;
    spk_cuda_arguments arguments;
    sddmm_work work = state->work;
    spk_cuda_arguments_fill(&state->index, args, &arguments);
    void *parameters[] = {&arguments, &work};
    SPK_TRY(spk_cuda_launch_early(bound->device, state->functions.multiply, state->grid, state->block, state->shared_bytes, stream,
                                  parameters));
    return work.parts > 1 ? spk_sddmm_launch_reduce(bound, &state->functions, &arguments, work.parts, stream) : SPK_OK;
}

spk_status spk_sddmm_gather_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const sddmm_gather_state *state = bound->state;
    if (state->grid == 0)
        return SPK_OK;
    return sddmm_gather_launch(bound, args, (CUstream)stream);
}
