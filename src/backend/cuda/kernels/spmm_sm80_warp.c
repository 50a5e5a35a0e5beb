/* spmm_sm80_warp: host side. */
#include "backend/cuda/kernels/spmm_sm80_warp.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/gather.h"
#include "backend/cuda/host/tiles/sm90.h"

enum { MOST_SUMS = 64 }; /* of a thread, in 4 bytes */

#define TUNED(params, name) SPK_TUNED(spmm_sm80_warp, params, name)

/* The depth of a step: whole instructions, and whole blocks or a part of one. */
static int step_depth(int bytes, int cols)
{
    if (bytes == 2)
        return cols % 32 == 0 || cols == 8 ? 32 : 16;
    return bytes == 4 && (cols % 16 == 0 || cols <= 8) ? 16 : 8;
}

static warp_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int cols = spk_gather_block_cols(problem), split = TUNED(params, SPLIT), bytes = (int)spk_dtype_bytes(problem->b.dtype),
              piece = 16 / bytes;
    return (warp_constants){.block_rows = spk_gather_block_rows(problem),
                            .block_cols = cols,
                            .ragged_k = problem->k % cols != 0,
                            .cut_pieces = problem->k % piece != 0 || (problem->b.layout == SPK_ROW_MAJOR && problem->n % piece != 0),
                            .bytes_each = bytes,
                            .tiles = TUNED(params, TILES),
                            .tile_n = TUNED(params, TILE_N),
                            .tile_k = step_depth(bytes, cols),
                            .stages = TUNED(params, STAGES),
                            .split = split,
                            .units = split >= 4 ? 1 : 4 / split};
}

/* Types, leading dimensions and sizes. */
static void fits(const spk_problem *problem, const char **why)
{
    const spk_dtype dtype = problem->a.dtype;
    const int64_t piece = 16 / (int64_t)spk_dtype_bytes(problem->b.dtype), high = INT32_MAX - 256;
    if (dtype == SPK_F16 || dtype == SPK_BF16) {
        spk_sm90_applicable(problem, why);
        return;
    }
    if (problem->b.dtype != dtype || problem->compute != (dtype == SPK_F64 ? SPK_F64 : SPK_TF32))
        *why = "it is for f16, bf16, f64, and f32 with TF32 products";
    else if (problem->b.ld % piece != 0 || problem->a.stride % piece != 0 || problem->b.stride % piece != 0)
        *why = "16 bytes of a line of B, or of an item of the batch, are not aligned";
    else if (problem->m > high || problem->n > high || problem->k > high || problem->pattern->nnzb > high)
        *why = "it counts rows with 31 bits";
}

/* Whether copies stay inside of lines of a block. */
static void pieces_fit(const spk_problem *problem, warp_constants c, const char **why)
{
    const int piece = 16 / c.bytes_each, cols = c.block_cols;
    const bool along_k = spk_gather_a_along_k(problem) && cols > 1;
    if (cols % c.tile_k != 0 && c.tile_k % cols != 0)
        *why = "the columns of a block neither fill steps nor share one evenly";
    else if (along_k && cols % piece != 0 && (piece % cols != 0 || cols * c.bytes_each < 4))
        *why = "a row of a block cannot be copied in whole pieces";
    else if (!along_k && c.block_rows % piece != 0)
        *why = "a column of a block cannot be copied in whole pieces";
    else if (problem->b.layout == SPK_COL_MAJOR && cols % piece != 0)
        *why = "with a column-major B, a row of a block must have whole pieces of 16 bytes";
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
    const int sums = c.tiles * c.tile_n * (c.bytes_each == 8 ? 2 : 1);
    fits(problem, why);
    if (*why == NULL)
        pieces_fit(problem, c, why);
    if (*why != NULL)
        return false;
    if (c.tiles > 1 && s.rows >= 2 * c.block_rows)
        *why = "fewer rows cover the block";
    else if (sums > 2 * MOST_SUMS)
        *why = "a warp would keep too many sums";
    else if (c.tile_n > 16 && problem->n <= c.tile_n / 2)
        *why = "a narrower tile holds all columns";
    else if (shared_bytes(c) > spk_gather_shared_limit(device))
        *why = "its rings need more shared memory than the device has";
    else if ((double)problem->m * s.parts * (double)columns > INT32_MAX)
        *why = "D has more than 2^31 tiles";
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
    const double bytes = blocks * c.block_cols * c.bytes_each * s.parts * columns *
                         ((c.block_rows < s.rows ? c.block_rows : s.rows) + c.tile_n);                         /* from L2 */
    const double steps = grid_rows > 0 ? blocks / grid_rows * c.block_cols / (c.tile_k * (double)c.split) : 0; /* of a warp */
    const int by_memory = (int)(220 * 1024 / (s.warps * s.warp_bytes + 1024)) * s.warps,
              sums = c.tiles * c.tile_n * (c.bytes_each == 8 ? 2 : 1), by_registers = sums > 64 ? 16 : 24;
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
                                           .accepts = spk_sm90_accepts,
                                           .run = spk_gather_run,
                                           .device_indices = true,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
