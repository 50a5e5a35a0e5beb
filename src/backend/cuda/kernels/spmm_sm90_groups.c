/* spmm_sm90_groups: host side. A group of block rows by BN columns a tile. */
#include <limits.h>

#include "backend/cuda/kernels/spmm_sm90_groups.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/groups/group_lists.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/schedule/schedule.h"

enum { MOST_STAGES_OF_ONE = 20 /* of a tile, which one warp loads as fast as four (docs/log/hopper-spmm.md) */ };

#define TUNED(params, name) SPK_TUNED(spmm_sm90_groups, params, name)

typedef struct state {
    spk_cuda_index index;
    CUfunction function;
    void *memory; /* of the lists */
    void *order;  /* who computes what (schedule.h); NULL: tiles are dealt out */
    group_lists lists;
    spk_tile_order tiles;
    int clusters; /* of blocks of threads; perhaps of one each */
    groups_constants constants;
    groups_shape shape;
} state;

static groups_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int block_cols = spk_sm90_block_cols(problem);
    return (groups_constants){.block_rows = spk_sm90_block_rows(problem),
                              .block_cols = block_cols,
                              .height = TUNED(params, HEIGHT),
                              .bn = TUNED(params, BN),
                              .producers = TUNED(params, PRODUCERS),
                              .slots = TUNED(params, SLOTS),
                              .cluster = TUNED(params, CLUSTER),
                              .edge_k = (int)(problem->k % block_cols),
                              .b_whole = spk_sm90_b_whole(problem)};
}

static groups_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    return groups_shape_of(constants_of(problem, params));
}

/* Of the columns that a group's rows have, the share that is distinct: independent draws, less what choosing the rows gains, and what
 * neighbours share. */
static double union_share(const spk_problem *problem, int rows)
{
    const double density = problem->pattern->density,
                 overlap = problem->trans_a == SPK_TRANS ? density : problem->pattern->features.row_overlap;
    double absent = 1;
    for (int i = 0; i < rows; i++)
        absent *= 1 - density;
    const double apart = density > 0 ? (1 - absent) / (rows * density) : 1, near = 1 - overlap * (rows - 1) / rows;
    return 0.9 * (near < apart ? near : apart);
}

/* Stages of a tile, in the mean. */
static double stages_of_tile(const spk_problem *problem, const spk_params *params)
{
    const groups_shape shape = shape_of(problem, params);
    const double per_row = spk_sm90_grid_rows(problem) > 0 ? (double)problem->pattern->nnzb / (double)spk_sm90_grid_rows(problem) : 0;
    return per_row * shape.rows * union_share(problem, shape.rows) * shape.chunks / TUNED(params, SLOTS);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int rows = spk_sm90_block_rows(problem), cols = spk_sm90_block_cols(problem), slots = TUNED(params, SLOTS);
    if (rows != 16 && rows != 32 && rows != 64)
        *why = "the rows of a block are not 16, 32 or 64";
    else if (cols % 16 != 0)
        *why = "the columns of a block are not a multiple of 16";
    else if (rows < 64 && !problem->assume_finite)
        *why = "needs assume_finite";
    else if (TUNED(params, HEIGHT) * TUNED(params, BN) > 128 * 256)
        *why = "a thread would keep too many sums";
    else if (TUNED(params, HEIGHT) / rows > GROUPS_MOST_ROWS)
        *why = "too many block rows in a group";
    else if (rows == 64 && slots > 1)
        *why = "one column a stage keeps absent blocks out exactly";
    else if (slots > 1 && cols * slots > 64)
        *why = "a stage holds 64 of K";
    else if (slots == 1 && cols == 16 && rows == 16)
        *why = "stages of 16 of K are too small";
    else if (TUNED(params, CLUSTER) > 1 && problem->n <= TUNED(params, BN))
        *why = "one column tile holds all columns";
    else if (TUNED(params, BN) > 128 && problem->n <= 128)
        *why = "a narrower tile holds all columns";
    else if (TUNED(params, PRODUCERS) == 1 && stages_of_tile(problem, params) > MOST_STAGES_OF_ONE)
        *why = "long tiles want more warps that load";
    else if (shape_of(problem, params).stages <
             (TUNED(params, PRODUCERS) > 2 ? TUNED(params, PRODUCERS) : 2)) /* a warp must not be a whole phase ahead of another */
        *why = "fewer stages than two, or than warps that load, fit into shared memory";
    else
        spk_sm90_applicable(problem, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const groups_shape shape = shape_of(problem, params);
    const int bn = TUNED(params, BN), slots = TUNED(params, SLOTS), cluster = TUNED(params, CLUSTER);
    const double columns = (double)((problem->n + bn - 1) / bn),
                 groups = (double)((spk_sm90_grid_rows(problem) + shape.rows - 1) / shape.rows);
    const double per_row = spk_sm90_grid_rows(problem) > 0 ? (double)problem->pattern->nnzb / (double)spk_sm90_grid_rows(problem) : 0;
    const double united = per_row * shape.rows * union_share(problem, shape.rows),
                 filled = united > 0 ? per_row * shape.rows / united / shape.rows : 1;
    /* Tiles of 64 rows that have a block in a slot, and rows of A that are loaded. */
    double absent = 1;
    for (int i = 0; i < shape.tile_rows * slots; i++)
        absent *= 1 - filled;
    const double k = (double)shape.chunk * slots, busy = 1 - absent, narrow = bn >= 256 ? 1 : 1.08;
    const double boxes = slots * ((spk_sm90_b_whole(problem) ? 1 : bn / 64.0) + filled * shape.rows);
    const sm90_load load = {.tiles = groups * columns,
                            .longest = spk_sm90_longest_row(problem) * shape.chunks / slots,
                            .stages = groups * columns * united * shape.chunks / slots,
                            .stage_flops = 2.0 * TUNED(params, HEIGHT) * bn * k * busy * narrow,
                            .stage_bytes = 2.0 * k * (TUNED(params, HEIGHT) * filled / cluster + bn),
                            .stage_issue_us = (0.10 + 0.05 * boxes) / (TUNED(params, PRODUCERS) < 2    ? 1
                                                                       : TUNED(params, PRODUCERS) == 2 ? 1.7
                                                                                                       : 2.5),
                            .tile_us = 0.5 + 1.0 * TUNED(params, HEIGHT) * bn / (128.0 * 256) + 0.3 * (cluster - 1),
                            .blocks_per_processor = 1};
    return 1.2 + spk_sm90_predict(problem, device, &load); /* three warpgroups and its lists take longer to begin */
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const groups_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_sm90_groups.cu", "spmm_sm90_groups", problem);
    build->shared_bytes = groups_shape_of(constants).shared_bytes;
    GROUPS_CONSTANTS(SPK_BUILD_DEFINE)
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    if (made->memory != NULL)
        bound->device->backend->release(bound->device, made->memory);
    if (made->order != NULL)
        bound->device->backend->release(bound->device, made->order);
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* Who computes which groups, where some have more to do. */
static spk_status order_groups(const spk_bound *bound, const group_memory *lists, state *made)
{
    int *lengths = NULL;
    SPK_TRY(spk_alloc(&bound->device->mem, (size_t)lists->groups, sizeof *lengths, &lengths));
    for (int64_t g = 0; g < lists->groups; g++)
        lengths[g] = (lists->memory[g + 1] - lists->memory[g]) * made->shape.chunks;
    const spk_status status =
        spk_schedule_upload(bound->device, lengths, lists->groups, made->tiles.col_tiles, made->clusters, &made->order);
    spk_free(&bound->device->mem, lengths);
    made->tiles.order = made->order;
    made->tiles.across = made->order != NULL;
    return status;
}

/* Column tiles of a cluster, whose last one may lie beyond N, and how many clusters there are. */
static spk_status deal(const spk_bound *bound, int chunks, int64_t groups, groups_dealt *dealt)
{
    const int64_t width = (int64_t)TUNED(&bound->params, BN) * TUNED(&bound->params, CLUSTER),
                  columns = (bound->problem.n + width - 1) / width;
    const int slots = spk_sm90_processors(bound->device) / TUNED(&bound->params, CLUSTER);
    if (groups * columns > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld x %lld tiles of D: the limit is 2^31", (long long)groups, (long long)columns);
    *dealt = (groups_dealt){.col_tiles = columns, .chunks = chunks, .blocks = groups * columns < slots ? (int)(groups * columns) : slots};
    return SPK_OK;
}

static spk_status upload(const spk_bound *bound, const group_memory *lists, groups_dealt dealt, state *made)
{
    const size_t bytes = (size_t)lists->count * sizeof *lists->memory;
    SPK_TRY(bound->device->backend->allocate(bound->device, bytes, &made->memory));
    SPK_TRY(bound->device->backend->copy_in(bound->device, made->memory, lists->memory, bytes));
    const int *base = made->memory;
    made->lists =
        (group_lists){base, base + spk_groups_at_rows(lists), base + spk_groups_at_present(lists), base + spk_groups_at_words(lists)};
    made->tiles = (spk_tile_order){
        .row_tiles = (int)lists->groups, .col_tiles = (int)dealt.col_tiles, .tiles = (int)(lists->groups * dealt.col_tiles)};
    made->clusters = dealt.blocks;
    return made->tiles.tiles > 0 ? order_groups(bound, lists, made) : SPK_OK;
}

static spk_status prepare(spk_bound *bound, state *made)
{
    spk_build program = {0};
    group_memory lists = {0};
    groups_dealt dealt = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    spk_status status;
    SPK_GOTO(spk_cuda_function(bound->device, &program, &made->function));
    SPK_GOTO(spk_cuda_index_make(bound, &made->index));
    SPK_GOTO(deal(bound, made->shape.chunks, spk_groups_count(bound->view.grid_rows, made->shape.rows), &dealt));
    SPK_GOTO(spk_groups_make(&bound->device->mem, &bound->view, made->shape.rows, made->shape.tile_rows, TUNED(&bound->params, SLOTS),
                             dealt, &lists));
    SPK_GOTO(upload(bound, &lists, dealt, made));
done:
    spk_free(&bound->device->mem, lists.memory);
    return status;
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->constants = constants_of(&bound->problem, &bound->params);
    made->shape = groups_shape_of(made->constants);
    const spk_status status = prepare(bound, made);
    if (status != SPK_OK)
        unbind(bound);
    return status;
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    CUtensorMap maps[3] = {{{0}}, {{0}}, {{0}}};
    spk_cuda_arguments arguments;
    spk_tile_order tiles = made->tiles;
    group_lists lists = made->lists;
    tiles.direct = spk_sm90_d_direct(&bound->problem, args->d);
    const spk_tensor_map_desc a = spk_sm90_map_block(bound, args->a, made->shape.chunk);
    const spk_tensor_map_desc b = spk_sm90_map_b(&bound->problem, args->b, TUNED(&bound->params, BN), made->shape.chunk);
    const spk_tensor_map_desc d = spk_sm90_map_d(&bound->problem, args->d, made->constants.block_rows, 64);
    SPK_TRY(spk_sm90_maps(bound, args, &a, &b, &d, tiles.direct, maps));
    spk_cuda_arguments_fill(&made->index, args, &arguments);
    void *parameters[] = {&maps[0], &maps[1], &maps[2], &arguments, &tiles, &lists};
    const unsigned blocks = (unsigned)(made->clusters * TUNED(&bound->params, CLUSTER));
    return spk_cuda_launch_early(bound->device, made->function, blocks, GROUPS_THREADS, made->shape.shared_bytes, stream, parameters);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->tiles.tiles == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

const spk_kernel_ops spmm_sm90_groups_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .build = build,
                                             .bind = bind,
                                             .unbind = unbind,
                                             .accepts = spk_sm90_accepts,
                                             .run = run,
                                             .source_hash = SPK_SOURCE_HASH};
