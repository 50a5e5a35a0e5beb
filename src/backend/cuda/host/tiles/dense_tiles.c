/* The rows that multiply dense tiles: shapes, options, model, binding and running. */
#include "backend/cuda/host/tiles/dense_tiles.h"

#include <math.h>

#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/frame/launch.h"

enum { LEAST_STEPS = 8, SMALL_TILE = 64 * 64, REGISTERS = 65536, OTHER_REGISTERS = 72 }; /* LEAST_STEPS: of a part of K */

void spk_dense_tiles_complete(const spk_problem *problem, gather_shape *s, int parts, const char *adding)
{
    const spk_operand *a = &problem->a, *b = &problem->b;
    const bool along_a = a->layout == SPK_ROW_MAJOR, along_b = b->layout == SPK_COL_MAJOR, rows = problem->d.layout == SPK_ROW_MAJOR;
    const int bytes_a = (int)spk_dtype_bytes(a->dtype), bytes_b = (int)spk_dtype_bytes(b->dtype);
    team_constants *c = &s->c;
    s->adding = parts > 1 ? adding : NULL;
    c->block_rows = c->block_cols = 0;
    c->pitch_a = spk_gather_pitch(along_a ? c->tile_k : c->tile_m, bytes_a, along_a);
    c->pitch_b = spk_gather_pitch(along_b ? c->tile_k : c->tile_n, bytes_b, along_b);
    c->pitch_d = rows ? c->tile_n + 8 : spk_gather_round(c->tile_m, 8) + 4;
    c->vector_a = spk_gather_vector(a->dtype, a->ld, along_a ? c->tile_k : c->tile_m, a->stride);
    c->vector_b = spk_gather_vector(b->dtype, b->ld, along_b ? c->tile_k : c->tile_n, b->stride);
    spk_gather_fit(s, team_a_bytes(*c, along_a, bytes_a) + team_b_bytes(*c, along_b, bytes_b),
                   team_sums(*c, rows) * spk_gather_sum_bytes(problem));
}

/* Tiles of all items. Groups that cut D are known on the device only: each has one more than fill it, at most. */
static double count_tiles(const spk_problem *problem, const gather_shape *s)
{
    const double down = (double)spk_gather_ceil(problem->m, s->c.tile_m), across = (double)spk_gather_ceil(problem->n, s->c.tile_n),
                 items = (double)problem->batch;
    return problem->group_axis == SPK_GROUP_ROWS   ? (down + items) * across
           : problem->group_axis == SPK_GROUP_COLS ? down * (across + items)
                                                   : down * across * items;
}

/* Teams that a multiprocessor holds at once: their sums take registers too. */
static double count_resident(const spk_problem *problem, const gather_shape *s)
{
    const int sums = s->c.tile_m * s->c.tile_n / s->c.threads * spk_gather_sum_bytes(problem) / 4;
    const int room = REGISTERS / (s->c.threads * (sums + OTHER_REGISTERS)), most = spk_gather_resident(s);
    return room < 1 ? 1 : room < most ? room : most;
}

static size_t sums_bytes(const spk_problem *problem, const gather_shape *s, int parts)
{
    const double bytes = count_tiles(problem, s) * parts * team_sums(s->c, problem->d.layout == SPK_ROW_MAJOR);
    return parts > 1 ? (size_t)bytes * (size_t)spk_gather_sum_bytes(problem) : 0;
}

static const char *tile_refusal(const spk_problem *p, const spk_device *device, const gather_shape *s)
{
    const team_constants *c = &s->c;
    const double elements = (double)p->m * (double)p->n * (double)p->batch;
    if (p->m > INT32_MAX / 2 || p->n > INT32_MAX / 2 || p->k > INT32_MAX / 2 || p->batch > INT32_MAX / 2)
        return "M, N, K and the batch must be less than 2^30";
    if (c->tile_m > 8 && c->tile_m / 2 >= p->m)
        return "a lower tile holds all rows";
    if (c->tile_n > 8 && c->tile_n / 2 >= p->n)
        return "a narrower tile holds all columns";
    if (c->tile_m * c->tile_n < SMALL_TILE && p->m > 2 * c->tile_m && p->n > 2 * c->tile_n &&
        elements > 2.0 * SMALL_TILE * spk_gather_processors(device))
        return "so small a tile is for small products";
    if (c->teams * c->team_bytes > spk_gather_shared_limit(device))
        return "its tiles need more shared memory than the device has";
    return NULL;
}

static const char *parts_refusal(const spk_problem *p, const spk_device *device, const gather_shape *s, int parts)
{
    const double tiles = count_tiles(p, s);
    if (tiles * parts > INT32_MAX / 2)
        return "D has more than 2^30 tiles";
    if (parts > 1 && p->k < (int64_t)LEAST_STEPS * s->c.tile_k * parts)
        return "K is too short for so many parts";
    if (parts > 1 && tiles * parts / 2 >= spk_gather_processors(device) * count_resident(p, s))
        return "fewer parts fill the device";
    if (device->memory_bytes > 0 && (double)sums_bytes(p, s, parts) > (double)device->memory_bytes / 8)
        return "the parts' sums would take more than an eighth of the memory";
    return NULL;
}

bool spk_dense_tiles_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, const char **why)
{
    *why = tile_refusal(problem, device, s);
    if (*why == NULL)
        *why = parts_refusal(problem, device, s, parts);
    return *why == NULL;
}

void spk_dense_tiles_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build)
{
    spk_build_begin(build, file, entry, problem);
    build->shared_bytes = s->c.teams * s->c.team_bytes;
    spk_team_define(s->c, build);
    const dense_constants constants = {.pieces = s->adding != NULL};
    DENSE_CONSTANTS(SPK_BUILD_DEFINE)
}

/* ---- the model */

/* Bytes of a line's piece of an operand's tile, as if all came in copies of 16: smaller ones take longer. */
static double copy_bytes(const spk_operand *operand, int elements, int vector)
{
    const double bytes = (double)spk_dtype_bytes(operand->dtype), small = 16 / (vector * bytes);
    return elements * bytes * (1 + 0.5 * (small - 1));
}

double spk_dense_tiles_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, double tflops)
{
    static const double L2_BYTES_US = 6.0e6;
    const team_constants *c = &s->c;
    const double processors = spk_gather_processors(device), tiles = count_tiles(problem, s) * parts;
    const double each = fmax(ceil(tiles / processors), 1), resident = fmin(count_resident(problem, s), each); /* of a multiprocessor */
    const double steps = ceil(ceil((double)problem->k / c->tile_k) / parts), warps = resident * c->threads / 32;
    const double computing = each * steps * 2 * c->tile_m * c->tile_n * c->tile_k * processors / (tflops * 1e6) * fmax(8 / warps, 1);
    const double filling = each * steps * c->tile_k * processors / L2_BYTES_US *
                           (copy_bytes(&problem->a, c->tile_m, c->vector_a) + copy_bytes(&problem->b, c->tile_n, c->vector_b));
    const double chain = ceil(each / resident) * (1.5 + steps * (0.12 + 0.5 / c->stages));
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3;
    const double busy = fmax(computing, filling) + 0.3 * fmin(computing, filling);
    const double adding = parts > 1 ? 2.5 + 2 * (double)sums_bytes(problem, s, parts) / L2_BYTES_US : 0;
    return 2.5 + adding + fmax(fmax(busy, chain), memory);
}

/* ---- binding and running: the same for all */

typedef struct dense_state {
    spk_cuda_index index;
    CUfunction function, add; /* add: the second launch; its grid is 0 where there is none */
    dense_work work;
    unsigned grid, add_grid, block;
    int shared_bytes;
} dense_state;

void spk_dense_tiles_unbind(spk_bound *bound)
{
    dense_state *state = bound->state;
    if (state == NULL)
        return;
    spk_cuda_index_release(bound->device, &state->index);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

spk_status spk_dense_tiles_bind(spk_bound *bound, const gather_shape *s, int parts, const spk_build *build)
{
    const spk_problem *p = &bound->problem;
    const double tiles = count_tiles(p, s);
    dense_state *state = NULL;
    spk_status status;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_cuda_function(bound->device, build, &state->function));
    SPK_GOTO(spk_cuda_index_make(bound, &state->index));
    state->work = (dense_work){.tiles_m = (int)spk_gather_ceil(p->m, s->c.tile_m),
                               .tiles_n = (int)spk_gather_ceil(p->n, s->c.tile_n),
                               .tiles = (int)tiles,
                               .parts = parts,
                               .steps = (int)spk_gather_ceil(p->k, s->c.tile_k)};
    state->block = (unsigned)(s->c.teams * s->c.threads);
    state->grid = (unsigned)spk_gather_ceil((int64_t)tiles * parts, s->c.teams);
    state->shared_bytes = build->shared_bytes;
    bound->workspace_bytes = sums_bytes(p, s, parts);
    if (parts > 1) {
        spk_build second = *build;
        const int64_t lines = (int64_t)(bound->workspace_bytes / (size_t)parts / 16); /* of 16 bytes: a thread for each */
        second.entry = s->adding;
        second.shared_bytes = 0;
        SPK_GOTO(spk_cuda_function(bound->device, &second, &state->add));
        state->add_grid = (unsigned)spk_gather_ceil(lines, state->block);
    }
done:
    if (status != SPK_OK)
        spk_dense_tiles_unbind(bound);
    return status;
}

spk_status spk_dense_tiles_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const dense_state *state = bound->state;
    spk_cuda_arguments arguments;
    dense_work work = state->work;
    if (state->grid == 0)
        return SPK_OK;
    spk_cuda_arguments_fill(&state->index, args, &arguments);
    void *parameters[] = {&arguments, &work};
    spk_status status =
        spk_cuda_launch_early(bound->device, state->function, state->grid, state->block, state->shared_bytes, (CUstream)stream, parameters);
    if (status == SPK_OK && state->add_grid > 0)
        status = spk_cuda_launch_early(bound->device, state->add, state->add_grid, state->block, 0, (CUstream)stream, parameters);
    return status;
}
