/* spmm_sm80_warp: host side. */
#include "backend/cuda/kernels/spmm_sm80_warp.h"
#include "backend/cuda/plan/gather.h"
#include "backend/cuda/plan/sm90.h"

enum { MOST_SUMS = 64 }; /* of a thread */

#define TUNED(params, name) SPK_TUNED(spmm_sm80_warp, params, name)

static warp_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int cols = spk_gather_block_cols(problem), split = TUNED(params, SPLIT);
    return (warp_constants){.block_rows = spk_gather_block_rows(problem),
                            .block_cols = cols,
                            .ragged_k = problem->k % cols != 0,
                            .cut_eights = problem->k % 8 != 0 || (problem->b.layout == SPK_ROW_MAJOR && problem->n % 8 != 0),
                            .tiles = TUNED(params, TILES),
                            .tile_n = TUNED(params, TILE_N),
                            .tile_k = cols % 32 == 0 || cols == 8 ? 32 : 16,
                            .stages = TUNED(params, STAGES),
                            .split = split,
                            .units = split >= 4 ? 1 : 4 / split};
}

static int shared_bytes(warp_constants c)
{
    const warp_shape s = warp_shape_of(c);
    return s.warps * s.warp_bytes;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const warp_constants c = constants_of(problem, params);
    const warp_shape s = warp_shape_of(c);
    const int64_t columns = spk_gather_ceil(problem->n, c.tile_n) * problem->batch;
    if (c.block_cols % 16 != 0 && c.block_cols != 8)
        *why = "the columns of a block are neither 8 nor a multiple of 16";
    else if (c.block_rows % 8 != 0)
        *why = "the rows of a block are not a multiple of 8";
    else if (c.tiles > 1 && s.rows >= 2 * c.block_rows)
        *why = "fewer rows cover the block";
    else if (c.tiles * c.tile_n > 2 * MOST_SUMS)
        *why = "a warp would keep too many sums";
    else if (c.tile_n > 16 && problem->n <= c.tile_n / 2)
        *why = "a narrower tile holds all columns";
    else if (shared_bytes(c) > spk_gather_shared_limit(device))
        *why = "its rings need more shared memory than the device has";
    else if ((double)problem->m * s.parts * (double)columns > INT32_MAX)
        *why = "D has more than 2^31 tiles";
    else
        spk_sm90_applicable(problem, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const warp_constants c = constants_of(problem, params);
    const warp_shape s = warp_shape_of(c);
    const double processors = spk_gather_processors(device), blocks = (double)problem->pattern->nnzb * (double)problem->batch,
                 grid_rows = (double)spk_gather_ceil(problem->m, c.block_rows) * (double)problem->batch,
                 columns = (double)spk_gather_ceil(problem->n, c.tile_n);
    const double units = grid_rows * s.parts * columns, warps = units * c.split;
    const double bytes = blocks * c.block_cols * 2.0 * s.parts * columns * (s.rows + c.tile_n);                /* from L2 */
    const double steps = grid_rows > 0 ? blocks / grid_rows * c.block_cols / (c.tile_k * (double)c.split) : 0; /* of a warp */
    const int by_memory = (int)(220 * 1024 / (s.warps * s.warp_bytes + 1024)) * s.warps, by_registers = c.tiles * c.tile_n > 64 ? 16 : 24;
    const double resident = by_memory < by_registers ? by_memory : by_registers, waves = warps / (processors * resident);
    const double chain = (waves > 1 ? waves : 1) * (1.8 + steps * (0.25 + 1.0 / c.stages)) + 0.1 * c.split;
    const double l2 = bytes / 8.5e6, memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3;
    double work = l2 > memory ? l2 : memory;
    return 1.5 + (work > chain ? work + 0.3 * chain : chain + 0.3 * work);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const warp_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_sm80_warp.cu", "spmm_sm80_warp", problem);
    build->shared_bytes = shared_bytes(constants);
    WARP_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const warp_constants c = constants_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    const gather_shape launch = {.c = {.tile_m = warp_shape_of(c).rows, .tile_n = c.tile_n, .threads = 32 * c.split, .teams = c.units}};
    return spk_gather_bind(bound, &launch, &made);
}

const spk_kernel_ops spmm_sm80_warp_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_gather_unbind,
                                           .takes = spk_sm90_takes,
                                           .run = spk_gather_run,
                                           .direct = true,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
