/* spmm_sm80_direct: host side. */
#include <math.h>

#include "backend/cuda/kernels/spmm_sm80_direct.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/gather.h"
#include "backend/cuda/host/tiles/sm90.h"

enum { MOST_SUMS = 128, MOST_WIDE = 8 }; /* columns times tiles of a warp; warps of a thread block where they are more than half of it */

#define TUNED(params, name) SPK_TUNED(spmm_sm80_direct, params, name)

static direct_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int split = TUNED(params, SPLIT);
    return (direct_constants){.block_rows = spk_gather_block_rows(problem),
                              .block_cols = spk_gather_block_cols(problem),
                              .tiles = TUNED(params, TILES),
                              .tile_n = TUNED(params, TILE_N),
                              .split = split,
                              .units = TUNED(params, WARPS) / split};
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const direct_constants c = constants_of(problem, params);
    const direct_shape s = direct_shape_of(c);
    const int64_t columns = spk_gather_ceil(problem->n, c.tile_n) * problem->batch;
    (void)device;
    if ((c.block_rows != 8 && c.block_rows % 16 != 0) || (c.block_cols != 8 && c.block_cols % 16 != 0))
        *why = "the sides of a block are neither 8 nor multiples of 16";
    else if (problem->k % c.block_cols != 0)
        *why = "K is not a multiple of the block";
    else if (!spk_gather_a_along_k(problem))
        *why = "a row of a block must lie together";
    else if (problem->b.layout != SPK_ROW_MAJOR || problem->n % 8 != 0)
        *why = "B must be row-major, its columns a multiple of 8";
    else if (c.block_rows % s.rows != 0 && (c.block_rows != 8 || c.tiles > 1))
        *why = "its rows do not fill the block";
    else if (c.tiles * c.tile_n > MOST_SUMS || (c.tiles * c.tile_n > MOST_SUMS / 2 && s.warps > MOST_WIDE))
        *why = "its warps would keep too many sums";
    else if (problem->n <= c.tile_n / 2)
        *why = "a narrower tile holds all columns";
    else if ((double)problem->m * s.parts * (double)columns > INT32_MAX)
        *why = "D has more than 2^31 tiles";
    else
        spk_sm90_applicable(problem, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const direct_constants c = constants_of(problem, params);
    const direct_shape s = direct_shape_of(c);
    const double processors = spk_gather_processors(device), blocks = (double)problem->pattern->nnzb * (double)problem->batch,
                 grid_rows = (double)spk_gather_ceil(problem->m, c.block_rows) * (double)problem->batch,
                 columns = (double)spk_gather_ceil(problem->n, c.tile_n);
    const double warps = grid_rows * s.parts * columns * c.split, resident = c.tiles * c.tile_n <= 64 ? 16 : s.warps == 8 ? 8 : 12;
    /* Of B from L2: what the block rows of a thread block have in common comes once, where they keep step. */
    const double grid_cols = (double)spk_gather_ceil(problem->k, c.block_cols), share = grid_rows > 0 ? blocks / grid_rows / grid_cols : 0,
                 apart = share > 0 ? (1 - pow(1 - share, c.units)) / (c.units * share) : 1;
    const double through = blocks * c.block_cols * 2.0 * s.parts * columns,
                 bytes = through * (c.block_rows < s.rows ? c.block_rows : s.rows) + through * c.tile_n * (0.3 + 0.7 * apart);
    const double steps = grid_rows > 0 ? blocks / grid_rows * c.block_cols / (16.0 * c.split) : 0, waves = warps / (processors * resident);
    const double chain = (waves > 1 ? waves : 1) * (1.5 + steps * (0.25 + 0.0023 * c.tile_n)), l2 = bytes / 8.5e6;
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3,
                 work = l2 > memory ? l2 : memory;
    return 2 + (work > chain ? work + 0.1 * chain : chain + 0.1 * work);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const direct_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_sm80_direct.cu", "spmm_sm80_direct", problem);
    build->shared_bytes = direct_shape_of(constants).shared_bytes;
    DIRECT_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const direct_constants c = constants_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    const gather_shape launch = {.c = {.tile_m = direct_shape_of(c).rows, .tile_n = c.tile_n, .threads = 32 * c.split, .teams = c.units}};
    return spk_gather_bind(bound, &launch, &made);
}

const spk_kernel_ops spmm_sm80_direct_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .build = build,
                                             .bind = bind,
                                             .unbind = spk_gather_unbind,
                                             .accepts = spk_sm90_accepts,
                                             .run = spk_gather_run,
                                             .device_indices = true,
                                             .batched = true,
                                             .source_hash = SPK_SOURCE_HASH};
