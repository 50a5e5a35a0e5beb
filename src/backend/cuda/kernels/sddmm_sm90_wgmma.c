/* sddmm_sm90_wgmma: host side. */
#include <limits.h>

#include "backend/cuda/helpers/list_tiles.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "backend/cuda/kernels/sddmm_sm90_wgmma.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/remote/deferred.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/tiles/sddmm.h"
#include "backend/cuda/host/tiles/sddmm_tiles.h"

enum { LEAST_STEPS = 4, MOST_CELL = 64, MOST_LIST_BLOCKS = 1024, LIST_END_BYTES = 16 };

/* EXTRA: half windows that a tile's columns have beyond one window. */
#define TUNED(params, name) SPK_TUNED(sddmm_sm90_wgmma, params, name)

typedef struct state {
    spk_cuda_index index;
    sddmm_functions functions;
    void *memory;         /* of the tiles' words, on the device */
    size_t ordered_bytes; /* of memory, where it is ordered by the stream of remote indices; else 0 */
    sddmm_work work;
    sddmm_tiling tiling;
    sddmm_shape shape;
} state;

static int cell_of(int side)
{
    int cell = MOST_CELL;
    while (cell > 1 && side % cell != 0)
        cell /= 2;
    return cell;
}

static sddmm_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int rows = problem->pattern->block_rows, cols = problem->pattern->block_cols, cell_cols = cell_of(cols);
    return (sddmm_constants){.block_rows = rows,
                             .block_cols = cols,
                             .ragged = spk_sddmm_ragged(problem),
                             .cell_rows = cell_of(rows),
                             .cell_cols = cell_cols,
                             .height = TUNED(params, HEIGHT),
                             .width = TUNED(params, WIDTH),
                             .slots = TUNED(params, WIDTH) * (2 + TUNED(params, EXTRA)) / 2 / cell_cols,
                             .cluster = TUNED(params, CLUSTER),
                             .share = TUNED(params, SHARE)};
}

static sddmm_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    return sddmm_shape_of(constants_of(problem, params), problem->block_layout == SPK_ROW_MAJOR);
}

static sddmm_tiling tiling_of(const spk_problem *problem, const spk_params *params)
{
    const sddmm_constants c = constants_of(problem, params);
    const sddmm_shape s = shape_of(problem, params);
    return (sddmm_tiling){.cell_rows = c.cell_rows,
                          .cell_cols = c.cell_cols,
                          .rows = s.rows,
                          .tile_rows = s.tile_rows,
                          .tile_cols = s.tile_cols,
                          .slots = c.slots,
                          .multiple = c.share};
}

/* ---- the model */

/* The share of the columns that some of so many block rows have: blocks anywhere in their rows, and rows with similar columns put
 * together. */
static double united(double density, int rows)
{
    double none = 1, shrink = 1;
    for (int i = 0; i < rows; i++)
        none *= 1 - density;
    for (int i = 1; i < rows; i *= 2)
        shrink -= 0.04;
    return (1 - none) * shrink;
}

/* Tiles of a pattern, and the columns that one brings, on the mean. */
static void estimate(const spk_problem *problem, const spk_params *params, double *tiles, double *columns)
{
    const sddmm_tiling t = tiling_of(problem, params);
    const spk_pattern *pattern = problem->pattern;
    const double grid_rows = (double)((problem->m + pattern->block_rows - 1) / pattern->block_rows),
                 grid_cols = (double)((problem->n + pattern->block_cols - 1) / pattern->block_cols);
    const double cells = grid_cols * (pattern->block_cols / t.cell_cols),
                 density = grid_rows * grid_cols > 0 ? (double)pattern->nnzb / (grid_rows * grid_cols) : 0;
    const int window_rows = pattern->block_rows < 64 ? 64 / t.cell_rows : 1,
              rows = TUNED(params, HEIGHT) > pattern->block_rows ? TUNED(params, HEIGHT) / pattern->block_rows : 1;
    const double window = cells * united(density, window_rows) / (TUNED(params, HEIGHT) == 64 ? t.slots : t.tile_cols);
    const double all = cells * united(density, rows), slots = all / t.slots, most = window > slots ? window : slots;
    double each = most < 1 ? 1 : (double)(int64_t)(most + 0.7);
    each = (double)((int64_t)each + TUNED(params, SHARE) - 1 - ((int64_t)each + TUNED(params, SHARE) - 1) % TUNED(params, SHARE));
    *tiles = grid_rows * pattern->block_rows / TUNED(params, HEIGHT) * each;
    *columns = all / each * t.cell_cols;
}

/* Of one multiprocessor, measured on an H200 with this row: neighbours that read the same rows of X at the same time are answered together,
 * so that L2 gives more than to the rows of SpMM. A line of a box costs TMA the same time whatever its length. */
static const double FLOPS_US = 5.4e6, L2_BYTES_US = 72e3, LINE_US = 1.04e-3;

/* A stage's microseconds: the longest of the tensor cores, L2, TMA's lines and issuing. */
static double stage_us(const spk_problem *problem, const spk_params *params, const sddmm_shape *s, double columns)
{
    const int cell_cols = cell_of(problem->pattern->block_cols);
    const double x_lines = problem->a.layout == SPK_ROW_MAJOR ? TUNED(params, HEIGHT) : SDDMM_CHUNK * s->rows;
    const double y_lines = problem->b.layout == SPK_COL_MAJOR ? columns : SDDMM_CHUNK * columns / cell_cols;
    const double parts[] = {2.0 * 128 * TUNED(params, WIDTH) * SDDMM_CHUNK * (TUNED(params, WIDTH) >= 256 ? 1 : 1.08) / FLOPS_US,
                            2.0 * SDDMM_CHUNK * (TUNED(params, HEIGHT) / TUNED(params, SHARE) + columns) / L2_BYTES_US,
                            LINE_US * (x_lines / TUNED(params, SHARE) + y_lines),
                            (0.10 + 0.05 * (s->rows + columns / cell_cols)) / (s->stages < 4 ? 1.7 : 2.5)};
    double us = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        us = parts[i] > us ? parts[i] : us;
    return us * (s->stages > 4 ? 1 : s->stages == 4 ? 1.05 : 1.15); /* few stages hide less of a load */
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const sddmm_shape s = shape_of(problem, params);
    double tiles, columns;
    estimate(problem, params, &tiles, &columns);
    const double slots = spk_sm90_processors(device) / (TUNED(params, CLUSTER) > 2 ? TUNED(params, CLUSTER) + 1 : TUNED(params, CLUSTER)),
                 units = tiles * TUNED(params, SPLIT) * (double)problem->batch;
    const double steps = (double)((problem->k + SDDMM_CHUNK - 1) / SDDMM_CHUNK) / TUNED(params, SPLIT) / TUNED(params, CLUSTER),
                 waves = (double)(int64_t)((units + slots - 1) / slots);
    const double exchange = TUNED(params, CLUSTER) > 1 ? 2 : 0;
    const double us = 2 + waves * (steps * stage_us(problem, params, &s, columns) + 1.5 + TUNED(params, WIDTH) / 256.0 + exchange) +
                      spk_sddmm_split_us(problem, TUNED(params, SPLIT));
    const double operands = 2.0 * (double)problem->k * (double)(problem->m + problem->n) * (double)problem->batch / SM90_HBM_BYTES_US;
    return operands > us ? operands : us;
}

/* ---- what it takes */

static bool dtypes_fit(const spk_problem *problem, const char **why)
{
    if ((problem->a.dtype != SPK_F16 && problem->a.dtype != SPK_BF16) || problem->b.dtype != problem->a.dtype)
        *why = "it is for f16 and bf16";
    else if (problem->d.dtype != SPK_F32 && problem->d.dtype != SPK_F16 && problem->d.dtype != SPK_BF16)
        *why = "D must be f16, bf16 or f32";
    else if (problem->compute != SPK_F32)
        *why = "it keeps its sums in f32";
    return *why == NULL;
}

static bool sizes_fit(const spk_problem *problem, const char **why)
{
    const int64_t high = INT_MAX - 256;
    if (problem->pattern->block_rows % 16 != 0 || problem->pattern->block_cols % 16 != 0)
        *why = "the sides of a block are not multiples of 16";
    else if (problem->a.ld % 8 != 0 || problem->b.ld % 8 != 0)
        *why = "the leading dimension of X or Y is not a multiple of 8";
    else if (problem->batch > 1 && (problem->a.stride % 8 != 0 || problem->b.stride % 8 != 0))
        *why = "the stride of X or Y in the batch is not a multiple of 8";
    else if (problem->m > high || problem->n > high || problem->k > high || problem->pattern->nnzb > high / 64 || problem->batch > 65535)
        *why = "it counts with 31 bits";
    return *why == NULL;
}

/* K in parts, for a cluster or for a second launch. */
static bool parts_fit(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const int cluster = TUNED(params, CLUSTER), split = TUNED(params, SPLIT);
    const sddmm_shape s = shape_of(problem, params);
    double tiles, columns;
    estimate(problem, params, &tiles, &columns);
    tiles *= (double)problem->batch;
    if (cluster > 1 && split > 1)
        *why = "a cluster or parts, not both";
    else if (cluster > 1 && TUNED(params, SHARE) > 1)
        *why = "a cluster has one purpose";
    else if (cluster > 1 && problem->k < (int64_t)SDDMM_CHUNK * LEAST_STEPS * cluster)
        *why = "K is too short for so large a cluster";
    else if (cluster > 1 && tiles * cluster / 2 > 1.1 * spk_sm90_processors(device))
        *why = "smaller clusters fill the device";
    else if (cluster > 1 && s.exchanged_bytes > s.stages * s.stage_bytes)
        *why = "a cluster's sums do not fit into the ring";
    else
        spk_sddmm_split_fits(problem, device, split, SDDMM_CHUNK * LEAST_STEPS, tiles, why);
    return *why == NULL;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    if (!dtypes_fit(problem, why) || !sizes_fit(problem, why))
        return false;
    const bool beside = TUNED(params, HEIGHT) == 64;
    if (beside != (TUNED(params, EXTRA) == 2) && beside)
        *why = "windows side by side fill two windows' columns";
    else if (!beside && TUNED(params, EXTRA) > 0 && problem->pattern->block_rows % 128 == 0)
        *why = "both windows have the same columns";
    else if (problem->pattern->device_only &&
             (problem->pattern->block_rows % 128 != 0 || TUNED(params, HEIGHT) != 128 || TUNED(params, SHARE) > 1))
        *why = "without the indices on the host it takes tiles of 128 rows of one block row, each for itself";
    else if (TUNED(params, WIDTH) > 128 && problem->n <= 128)
        *why = "a narrower window holds all columns";
    else if (TUNED(params, WIDTH) * (2 + TUNED(params, EXTRA)) / 2 % cell_of(problem->pattern->block_cols) != 0 ||
             TUNED(params, WIDTH) < cell_of(problem->pattern->block_cols))
        *why = "its columns are no whole number of cells";
    else if (TUNED(params, SHARE) > 1 && TUNED(params, HEIGHT) / cell_of(problem->pattern->block_rows) < 2)
        *why = "one cell's rows do not fall into halves";
    else if (shape_of(problem, params).stages < 3)
        *why = "fewer than three stages fit into shared memory";
    else
        parts_fit(problem, device, params, why);
    return *why == NULL;
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const sddmm_constants constants = constants_of(problem, params);
    spk_build_begin(build, "sddmm_sm90_wgmma.cu", "sddmm_sm90_wgmma", problem);
    build->shared_bytes = shape_of(problem, params).shared_bytes;
    SDDMM_CONSTANTS(SPK_BUILD_DEFINE)
}

/* ---- binding and running */

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    if (made->ordered_bytes > 0)
        spk_cuda_deferred_give(bound->problem.pattern, made->ordered_bytes, made->memory);
    else if (made->memory != NULL)
        bound->device->backend->release(bound->device, made->memory);
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

void spk_cuda_list_tiles_build(int block_rows, int block_cols, int width, spk_build *build)
{
    const int cell_rows = cell_of(block_rows), cell_cols = cell_of(block_cols);
    const list_tiles_constants constants = {.down = block_rows / cell_rows,
                                            .across = block_cols / cell_cols,
                                            .rows = 128 / cell_rows,
                                            .tile_rows = 64 / cell_rows,
                                            .slots = width / cell_cols};
    *build = (spk_build){.file = "list_tiles.cu", .entry = "list_tiles"};
    LIST_TILES_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status launch_list(const spk_bound *bound, const state *made)
{
    const spk_pattern *pattern = bound->problem.pattern;
    spk_build program;
    CUfunction function = NULL;
    tile_list list = {.offsets = made->index.arguments.offsets,
                      .columns = made->index.arguments.columns,
                      .grid_rows = (int)bound->view.grid_rows,
                      .words = made->memory};
    void *parameters[] = {&list};
    const unsigned warps = LIST_TILES_THREADS / 32, blocks = ((unsigned)bound->view.grid_rows + warps - 1) / warps;
    spk_cuda_list_tiles_build(pattern->block_rows, pattern->block_cols, TUNED(&bound->params, WIDTH), &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &function));
    CUstream stream = spk_cuda_deferred_stream(pattern);
    SPK_TRY(spk_cuda_launch(bound->device, function, blocks < MOST_LIST_BLOCKS ? blocks : MOST_LIST_BLOCKS, LIST_TILES_THREADS, 0, stream,
                            parameters));
    /* The next launch may begin before the list can be seen, but not before what comes after the list is done. */
    const CUdeviceptr end = (CUdeviceptr)(uintptr_t)made->memory + made->ordered_bytes - LIST_END_BYTES;
    return spk_cuda_check(bound->device, spk_cuda_of(bound->device)->driver->fill_bytes(end, 0, LIST_END_BYTES, stream), "cuMemsetD8Async");
}

/* The tiles of indices that the host does not have, made by the device. *count: as many as there may be. */
static spk_status list_on_device(const spk_bound *bound, state *made, int64_t *count)
{
    const sddmm_tiling *t = &made->tiling;
    const int64_t across = bound->view.block_cols / t->cell_cols, parts = bound->view.block_rows / 128;
    if (bound->view.nnzb == 0)
        return SPK_OK;
    *count = (bound->view.nnzb * across / t->slots + bound->view.grid_rows) * parts;
    const size_t bytes = (size_t)*count * (size_t)spk_sddmm_tile_words(t) * sizeof(int) + LIST_END_BYTES;
    SPK_TRY(spk_cuda_deferred_take(bound->problem.pattern, bytes, &made->memory));
    made->ordered_bytes = bytes;
    return launch_list(bound, made);
}

static spk_status prepare(spk_bound *bound, state *made)
{
    const spk_problem *p = &bound->problem;
    const spk_mem *mem = &bound->device->mem;
    const bool on_host = bound->view.offsets != NULL;
    sddmm_tiles tiles = {0};
    spk_build program = {0};
    spk_status status;
    build(p, bound->device, &bound->params, &program);
    SPK_GOTO(spk_sddmm_load(bound, &program, TUNED(&bound->params, SPLIT), &made->functions));
    SPK_GOTO(spk_cuda_index_make(bound, &made->index));
    if (on_host)
        SPK_GOTO(spk_sddmm_tiles_make(mem, &bound->view, &made->tiling, &tiles));
    else
        SPK_GOTO(list_on_device(bound, made, &tiles.count));
    if (tiles.count * TUNED(&bound->params, SPLIT) * p->batch > INT_MAX)
        SPK_GOTO(spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles in %d parts for %lld items: the limit is 2^31", (long long)tiles.count,
                          TUNED(&bound->params, SPLIT), (long long)p->batch));
    const size_t bytes = (size_t)tiles.count * (size_t)spk_sddmm_tile_words(&made->tiling) * sizeof(int);
    if (on_host && bytes > 0) {
        SPK_GOTO(bound->device->backend->allocate(bound->device, bytes, &made->memory));
        SPK_GOTO(bound->device->backend->copy_in(bound->device, made->memory, tiles.words, bytes));
    }
    made->work = (sddmm_work){.words = made->memory,
                              .tiles = (int)tiles.count,
                              .parts = TUNED(&bound->params, SPLIT),
                              .steps = (int)((p->k + SDDMM_CHUNK - 1) / SDDMM_CHUNK),
                              .elements = bound->view.nnzb * bound->view.block_stride};
    bound->workspace_bytes = spk_sddmm_workspace(bound, made->work.parts);
done:
    spk_free(mem, tiles.words);
    return status;
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->shape = shape_of(&bound->problem, &bound->params);
    made->tiling = tiling_of(&bound->problem, &bound->params);
    const spk_status status = prepare(bound, made);
    if (status != SPK_OK)
        unbind(bound);
    return status;
}

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    return bound->problem.k == 0 || bound->view.nnzb == 0 || (((uintptr_t)args->a | (uintptr_t)args->b) & 15) == 0;
}

/* An array whose lines of `length` run along K or across it; a box of `cell` lines (of K) or elements by SDDMM_CHUNK of K. */
static spk_tensor_map_desc map_of(const void *array, spk_dtype dtype, bool along_k, int64_t k, int64_t count, int64_t ld, int cell,
                                  int64_t batch, int64_t stride)
{
    spk_tensor_map_desc map = {.dtype = dtype,
                               .rank = 3,
                               .swizzle_bytes = along_k ? SDDMM_CHUNK * 2 : cell * 2,
                               .address = array,
                               .sizes = {along_k ? k : count, along_k ? count : k, stride != 0 ? batch : 1},
                               .strides = {0, ld, stride != 0 ? stride : ld},
                               .box = {along_k ? SDDMM_CHUNK : cell, along_k ? cell : SDDMM_CHUNK, 1}};
    return map;
}

static spk_status make_maps(const spk_bound *bound, const state *made, const spk_args *args, CUtensorMap maps[2])
{
    const spk_problem *p = &bound->problem;
    const spk_cuda_driver *driver = spk_cuda_of(bound->device)->driver;
    if (p->k == 0)
        return SPK_OK;
    const spk_tensor_map_desc x =
        map_of(args->a, p->a.dtype, p->a.layout == SPK_ROW_MAJOR, p->k, p->m, p->a.ld, made->tiling.cell_rows, p->batch, p->a.stride);
    const spk_tensor_map_desc y =
        map_of(args->b, p->b.dtype, p->b.layout == SPK_COL_MAJOR, p->k, p->n, p->b.ld, made->tiling.cell_cols, p->batch, p->b.stride);
    SPK_TRY(spk_cuda_tensor_map(driver, &x, &maps[0]));
    return spk_cuda_tensor_map(driver, &y, &maps[1]);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    CUtensorMap maps[2] = {{{0}}, {{0}}};
    spk_cuda_arguments arguments;
    sddmm_work work = made->work;
    SPK_TRY(make_maps(bound, made, args, maps));
    spk_cuda_arguments_fill(&made->index, args, &arguments);
    void *parameters[] = {&maps[0], &maps[1], &arguments, &work};
    const int cluster = TUNED(&bound->params, CLUSTER), share = TUNED(&bound->params, SHARE),
              units = work.tiles * work.parts * (int)bound->problem.batch;
    const int slots = spk_sm90_processors(bound->device) / (cluster * share) * share;
    const int resident = units < slots || cluster > 2
                             ? units
                             : slots; /* of large clusters fewer find their place at once: none waits with a share of the tiles */
    SPK_TRY(spk_cuda_launch_early(bound->device, made->functions.multiply, (unsigned)(resident * cluster), SDDMM_THREADS,
                                  made->shape.shared_bytes, stream, parameters));
    return work.parts > 1 ? spk_sddmm_launch_reduce(bound, &made->functions, &arguments, work.parts, stream) : SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->work.tiles == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

const spk_kernel_ops sddmm_sm90_wgmma_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .build = build,
                                             .bind = bind,
                                             .unbind = unbind,
                                             .accepts = accepts,
                                             .run = run,
                                             .batched = true,
                                             .device_indices = true,
                                             .source_hash = SPK_SOURCE_HASH};
