/* spmm_sm90_wgmma: host side. One block row (or 128 rows of one) by BN columns a tile. */
#include <limits.h>

#include "backend/cuda/kernels/spmm_sm90_wgmma.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/schedule/cluster_cut.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "backend/cuda/host/schedule/row_period.h"

enum { MOST_ACROSS_BYTES = 8 << 20, MOST_EXCHANGE_BYTES = 1 << 16, MOST_SPLIT_TILES = 64, ATTRIBUTE_CLUSTER_DIMENSION = 4 };

#define TUNED(params, name) SPK_TUNED(spmm_sm90_wgmma, params, name)

typedef struct state {
    spk_cuda_index index;
    CUfunction function;
    void *order; /* on the device: who computes what (schedule.h; SPLIT > 1: cluster_split.h); NULL: tiles are dealt out */
    spk_tile_order tiles;
    int blocks; /* of threads */
    wgmma_constants constants;
    wgmma_shape shape;
} state;

/* Clusters of two whose order is "across" cut one tile each (cluster_cut.h). */
static bool is_cut(const spk_params *params)
{
    return TUNED(params, SPLIT) == 2 && TUNED(params, ACROSS);
}

static wgmma_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int block_cols = spk_sm90_block_cols(problem);
    return (wgmma_constants){.block_rows = spk_sm90_block_rows(problem),
                             .block_cols = block_cols,
                             .bn = TUNED(params, BN),
                             .consumers = TUNED(params, CONSUMERS),
                             .ctas = TUNED(params, CTAS),
                             .edge_k = (int)(problem->k % block_cols),
                             .b_whole = spk_sm90_b_whole(problem),
                             .split = TUNED(params, SPLIT),
                             .cut = is_cut(params),
                             .pingpong = TUNED(params, PINGPONG)};
}

static wgmma_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    return wgmma_shape_of(constants_of(problem, params));
}

/* Of a thread. */
static int sums_of(const wgmma_shape *shape)
{
    return shape->wg_m * shape->wg_n / 2;
}

/* Arrays of D's size that the epilogue reads or writes beside D. */
static int epilogue_weight(const spk_problem *problem)
{
    const spk_epilogue *e = &problem->epilogue;
    return e->use_c + (e->residual != SPK_RESIDUAL_NONE) + e->keep_preact;
}

/* The most of it for which two blocks on a multiprocessor have registers enough. */
static int epilogue_of_two(const spk_problem *problem, const wgmma_shape *shape)
{
    if (problem->batch > 1)
        return problem->epilogue.keep_preact ? 0 : 1;
    return sums_of(shape) > 64 ? 1 : INT_MAX;
}

typedef struct tile_count {
    double tiles, stages, longest; /* of D; of all tiles; of the longest */
    double slots;                  /* blocks of threads that run at once */
} tile_count;

static tile_count count_tiles(const spk_problem *problem, const spk_device *device, const spk_params *params, const wgmma_shape *shape)
{
    const double columns = (double)((problem->n + TUNED(params, BN) - 1) / TUNED(params, BN)) * (double)problem->batch,
                 parts = shape->parts, chunks = shape->chunks;
    const int processors = spk_sm90_processors(device);
    return (tile_count){.tiles = (double)spk_sm90_grid_rows(problem) * parts * columns,
                        .stages = (double)problem->pattern->nnzb * chunks * parts * columns,
                        .longest = spk_sm90_longest_row(problem) * chunks,
                        .slots = processors / TUNED(params, SPLIT) * TUNED(params, SPLIT) * TUNED(params, CTAS)};
}

/* Sharing long rows pays where they take longer than all the work spread evenly. */
static bool split_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const wgmma_shape *shape,
                             const char **why)
{
    const tile_count count = count_tiles(problem, device, params, shape);
    const double share = (count.stages + SCHEDULE_TILE_COST * count.tiles) / count.slots, over = is_cut(params) ? 1.15 : 1.3;
    if (problem->pattern->device_only)
        *why = "it needs the indices on the host";
    else if (is_cut(params) && (TUNED(params, CONSUMERS) != 2 || TUNED(params, CTAS) != 1))
        *why = "a tile is cut only where two warpgroups have a multiprocessor for themselves";
    else if ((TUNED(params, ACROSS) && !is_cut(params)) || TUNED(params, CTAS) > 2)
        *why = "clusters have their own order, and at most two blocks on a multiprocessor";
    else if (shape->exchange_bytes > MOST_EXCHANGE_BYTES)
        *why = "the sums of a cluster would take too much shared memory";
    else if (count.longest < 2.0 * TUNED(params, SPLIT) || count.longest + SCHEDULE_TILE_COST < over * share + SPLIT_EXCHANGE_COST)
        *why = "no row is long enough to be shared";
    else if (count.tiles > MOST_SPLIT_TILES * count.slots)
        *why = "so many tiles even out by themselves";
    else if (shape->stages < 3)
        *why = "too few stages fit into shared memory";
    return *why == NULL;
}

/* Column tiles fastest: neighbours read the same of A, and B in whole rows, soon or for few rows of A: where B is small, or few block rows
 * share a row of it (a mixture of experts). Otherwise row tiles fastest keep a few columns of B in L2. */
static bool suits_across(const spk_problem *problem, const spk_params *params)
{
    const double block_columns = ((double)problem->k + spk_sm90_block_cols(problem) - 1) / spk_sm90_block_cols(problem);
    return problem->n > TUNED(params, BN) &&
           ((double)problem->k * (double)problem->n * 2 <= MOST_ACROSS_BYTES || (double)problem->pattern->nnzb <= 2 * block_columns);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    if (spk_sm90_block_rows(problem) % 64 != 0) {
        *why = "the rows of a block are not a multiple of 64";
        return false;
    }
    if (spk_sm90_block_cols(problem) % 16 != 0) {
        *why = "the columns of a block are not a multiple of 16";
        return false;
    }
    const wgmma_shape shape = shape_of(problem, params);
    if (TUNED(params, BN) < 64 ? shape.wg_n != TUNED(params, BN) : shape.wg_n % 64 != 0)
        *why = "a warpgroup would have too few columns";
    else if (TUNED(params, BN) < 64 && problem->n > TUNED(params, BN))
        *why = "so narrow a tile is for one that holds all columns";
    else if (TUNED(params, CTAS) > 2 && (TUNED(params, CONSUMERS) > 1 || sums_of(&shape) > 32))
        *why = "so many blocks leave too few registers";
    else if (TUNED(params, CTAS) > 3 && epilogue_weight(problem) > 0)
        *why = "its epilogue needs more registers than four blocks leave";
    else if (sums_of(&shape) > 128)
        *why = "a thread would keep too many sums";
    else if (TUNED(params, CTAS) == 2 && TUNED(params, CONSUMERS) == 2 && sums_of(&shape) > 32)
        *why = "two blocks of so many threads leave too few registers";
    else if (TUNED(params, CTAS) == 2 && epilogue_weight(problem) > epilogue_of_two(problem, &shape))
        *why = "its epilogue needs more registers than two blocks leave";
    else if (TUNED(params, PINGPONG) && (TUNED(params, CONSUMERS) != 2 || TUNED(params, CTAS) != 1 || TUNED(params, SPLIT) != 1))
        *why = "two warpgroups take turns at tiles that are not shared, with a multiprocessor for themselves";
    else if (TUNED(params, ACROSS) && !is_cut(params) && !suits_across(problem, params))
        *why = "tiles go across only where there are several, and B is small or hardly shared";
    else if (shape.stages < (TUNED(params, CTAS) > 2 ? 4 : 2))
        *why = "too few stages fit into shared memory";
    else if (TUNED(params, BN) > 16 && TUNED(params, BN) / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (TUNED(params, SPLIT) == 1 || split_applicable(problem, device, params, &shape, why))
        spk_sm90_applicable(problem, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const wgmma_shape shape = shape_of(problem, params);
    const int bn = TUNED(params, BN), ctas = TUNED(params, CTAS), split = TUNED(params, SPLIT);
    const tile_count count = count_tiles(problem, device, params, &shape);
    const double even =
        is_cut(params) && count.tiles > count.slots ? count.tiles / count.slots : 1; /* tiles a block, which all end together */
    const double shared = even > 1                                   ? count.slots
                          : split == 1 || count.tiles >= count.slots ? count.tiles
                          : count.tiles * split < count.slots        ? count.tiles * split
                                                                     : count.slots;
    const double boxes = bn < 64 || spk_sm90_b_whole(problem) ? 2 : 1 + bn / 64.0;
    const double narrow = shape.wg_n >= 256 ? 1 : shape.wg_n >= 128 ? 1.08 : 1.3; /* wgmma reads A again for every instruction */
    const sm90_load load = {.tiles = shared,
                            .longest = split > 1 ? count.longest / split + SPLIT_EXCHANGE_COST : count.longest,
                            .stages = count.stages,
                            .stage_flops = 2.0 * shape.tile_m * bn * shape.chunk * narrow,
                            .stage_bytes = 2.0 * (shape.tile_m + bn) * shape.chunk,
                            .stage_issue_us = SM90_ISSUE_US * boxes / 2,
                            .tile_us = even * (0.5 + (ctas > 1 || TUNED(params, PINGPONG) ? 0.5 : 1.0) * shape.tile_m * bn / (128.0 * 256)),
                            .blocks_per_processor = ctas};
    return spk_sm90_predict(problem, device, &load) + 0.05 * TUNED(params, ACROSS) + (split > 1 ? 0.6 : 0);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const wgmma_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_sm90_wgmma.cu", "spmm_sm90_wgmma", problem);
    build->shared_bytes = wgmma_shape_of(constants).shared_bytes;
    WGMMA_CONSTANTS(SPK_BUILD_DEFINE)
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    if (made->order != NULL)
        bound->device->backend->release(bound->device, made->order);
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* Rows of one length have nothing to balance. */
static bool rows_alike(const spk_bsr_view *view)
{
    for (int64_t i = 1; i < view->grid_rows; i++)
        if (view->offsets[i + 1] - view->offsets[i] != view->offsets[1] - view->offsets[0])
            return false;
    return true;
}

static spk_status set_tiles(const spk_bound *bound, state *made)
{
    const int64_t rows = bound->view.grid_rows * made->shape.parts,
                  item_columns = (bound->problem.n + TUNED(&bound->params, BN) - 1) / TUNED(&bound->params, BN),
                  columns = item_columns * bound->problem.batch;
    const int slots = spk_sm90_processors(bound->device) * TUNED(&bound->params, CTAS);
    if ((double)rows * (double)columns > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld x %lld tiles of D: the limit is 2^31", (long long)rows, (long long)columns);
    made->tiles = (spk_tile_order){
        .row_tiles = (int)rows, .col_tiles = (int)columns, .tiles = (int)(rows * columns), .item_columns = (int)item_columns};
    made->blocks = made->tiles.tiles < slots ? made->tiles.tiles : slots;
    return SPK_OK;
}

/* Where rows begin, and who computes which. */
static spk_status order_rows(const spk_bound *bound, state *made)
{
    const spk_bsr_view *view = &bound->view;
    const int parts = made->shape.parts;
    if (bound->problem.pattern->device_only)
        return SPK_OK;
    const turns_lists rows = {.columns = view->columns, .stride = 1, .rows = view->grid_rows, .offsets = view->offsets};
    const int64_t row_tiles = view->grid_rows * parts;
    int *lengths = NULL;
    made->tiles.period = spk_turns_period(&rows);
    if (made->tiles.tiles == 0 || rows_alike(view))
        return SPK_OK;
    SPK_TRY(spk_alloc(&bound->device->mem, (size_t)row_tiles, sizeof *lengths, &lengths));
    for (int64_t i = 0; i < row_tiles; i++)
        lengths[i] = (int)(view->offsets[i / parts + 1] - view->offsets[i / parts]) * made->shape.chunks;
    const spk_status status = spk_schedule_upload(bound->device, lengths, row_tiles, made->tiles.col_tiles, made->blocks, &made->order);
    spk_free(&bound->device->mem, lengths);
    return status;
}

/* Clusters that run at once: a processor cluster that lacks a few multiprocessors holds fewer. */
static spk_status count_clusters(const spk_bound *bound, const state *made, int *clusters)
{
    const int size = TUNED(&bound->params, SPLIT), most = spk_sm90_processors(bound->device) * TUNED(&bound->params, CTAS) / size;
    spk_launch_attribute cluster = {.id = ATTRIBUTE_CLUSTER_DIMENSION, .value = {size, 1, 1}};
    const spk_launch_config config = {.grid_x = (unsigned)(most * size),
                                      .grid_y = 1,
                                      .grid_z = 1,
                                      .block_x = (unsigned)made->shape.threads,
                                      .block_y = 1,
                                      .block_z = 1,
                                      .shared_bytes = (unsigned)made->shape.shared_bytes,
                                      .attributes = &cluster,
                                      .attribute_count = 1};
    const CUresult result = spk_cuda_of(bound->device)->driver->active_clusters(clusters, made->function, &config);
    SPK_TRY(result == CUDA_SUCCESS_ ? SPK_OK : spk_cuda_check(bound->device, result, "cuOccupancyMaxActiveClusters"));
    if (*clusters < 1)
        return spk_fail(SPK_ERR_UNSUPPORTED, "no cluster of %d blocks with %d bytes of shared memory each fits into the device", size,
                        made->shape.shared_bytes);
    *clusters = *clusters < most ? *clusters : most;
    return SPK_OK;
}

static spk_status make_split(const spk_mem *mem, const split_task *task, bool cut, int **memory, int64_t *count)
{
    split_lists shared = {0};
    cut_lists halves = {0};
    SPK_TRY(cut ? spk_cut_make(mem, task, &halves) : spk_split_make(mem, task, &shared));
    *memory = cut ? halves.memory : shared.memory;
    *count = cut ? halves.count : shared.count;
    return SPK_OK;
}

static spk_status split_rows(const spk_bound *bound, state *made)
{
    const spk_mem *mem = &bound->device->mem;
    split_task task = {.view = &bound->view,
                       .parts = made->shape.parts,
                       .chunks = made->shape.chunks,
                       .col_tiles = made->tiles.col_tiles,
                       .size = TUNED(&bound->params, SPLIT),
                       .edge = bound->problem.k % made->constants.block_cols != 0};
    int *lists = NULL;
    int64_t count = 0;
    spk_status status;
    SPK_TRY(count_clusters(bound, made, &task.clusters));
    SPK_TRY(make_split(mem, &task, made->constants.cut, &lists, &count));
    made->blocks = task.clusters * task.size;
    const size_t bytes = (size_t)count * sizeof *lists;
    SPK_GOTO(bound->device->backend->allocate(bound->device, bytes, &made->order));
    SPK_GOTO(bound->device->backend->copy_in(bound->device, made->order, lists, bytes));
done:
    spk_free(mem, lists);
    return status;
}

static spk_status prepare(spk_bound *bound, state *made)
{
    spk_build program = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &made->function));
    SPK_TRY(spk_cuda_index_make(bound, &made->index));
    return TUNED(&bound->params, SPLIT) > 1 && made->tiles.tiles > 0 ? split_rows(bound, made) : order_rows(bound, made);
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->constants = constants_of(&bound->problem, &bound->params);
    made->shape = wgmma_shape_of(made->constants);
    spk_status status = set_tiles(bound, made);
    if (status == SPK_OK)
        status = prepare(bound, made);
    if (status != SPK_OK) {
        unbind(bound);
        return status;
    }
    made->tiles.order = made->order;
    made->tiles.across = made->order != NULL || TUNED(&bound->params, ACROSS);
    return SPK_OK;
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    CUtensorMap maps[3] = {{{0}}, {{0}}, {{0}}};
    spk_cuda_arguments arguments;
    spk_tile_order tiles = made->tiles;
    tiles.direct = spk_sm90_d_direct(&bound->problem, args->d);
    const spk_problem *p = &bound->problem;
    const spk_tensor_map_desc a =
        spk_sm90_map_items(p, spk_sm90_map_values(bound, args->a, made->shape.tile_m, made->shape.chunk), p->a.stride);
    const spk_tensor_map_desc b =
        spk_sm90_map_items(p, spk_sm90_map_b(p, args->b, TUNED(&bound->params, BN), made->shape.chunk), p->b.stride);
    const spk_tensor_map_desc d = spk_sm90_map_items(p, spk_sm90_map_d(p, args->d, 64, made->shape.staging_columns), p->d.stride);
    SPK_TRY(spk_sm90_maps(bound, args, &a, &b, &d, tiles.direct, maps));
    spk_cuda_arguments_fill(&made->index, args, &arguments);
    void *parameters[] = {&maps[0], &maps[1], &maps[2], &arguments, &tiles};
    return spk_cuda_launch_early(bound->device, made->function, (unsigned)made->blocks, (unsigned)made->shape.threads,
                                 made->shape.shared_bytes, stream, parameters);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->tiles.tiles == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

const spk_kernel_ops spmm_sm90_wgmma_ops = {.applicable = applicable,
                                            .predict_us = predict_us,
                                            .build = build,
                                            .bind = bind,
                                            .unbind = unbind,
                                            .accepts = spk_sm90_accepts,
                                            .run = run,
                                            .batched = true,
                                            .device_indices = true,
                                            .source_hash = SPK_SOURCE_HASH};
