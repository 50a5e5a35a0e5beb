/* spmm_cuda_narrow: host side. */
#include "backend/cuda/kernels/spmm_cuda_narrow.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/gather.h"

enum { MOST_PLAIN = 8, MOST_TENSOR = 64, MOST_SHARED = 48 * 1024 };

#define TUNED(params, name) SPK_TUNED(spmm_cuda_narrow, params, name)

static int power_up_to(int most, int value)
{
    int power = 1;
    while (power < most && power < value)
        power *= 2;
    return power;
}

static bool fits_tensor(const spk_problem *problem)
{
    return (problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16) && spk_gather_a_along_k(problem) &&
           problem->b.layout == SPK_COL_MAJOR && spk_gather_block_cols(problem) % 8 == 0;
}

static narrow_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), split = TUNED(params, SPLIT);
    narrow_constants c = {.block_rows = rows,
                          .block_cols = cols,
                          .columns = (int)problem->n,
                          .ragged_k = problem->k % cols != 0,
                          .b_along_k = problem->b.layout == SPK_COL_MAJOR || (problem->n == 1 && problem->b.ld == 1),
                          .tensor = problem->n > MOST_PLAIN,
                          .units = split >= 4 ? 1 : 4 / split,
                          .split = split,
                          .ahead = TUNED(params, AHEAD)};
    if (c.tensor) {
        c.chunk = 8;
        c.lane_rows = TUNED(params, ROWS);
        c.depth_lanes = 4;
    } else if (spk_gather_a_along_k(problem)) {
        c.chunk = spk_gather_vector(problem->a.dtype, cols, cols, cols);
        c.depth_lanes = rows >= 4 ? 8 : rows >= 2 ? 16 : 32;
        c.lane_rows = TUNED(params, ROWS);
    } else {
        c.chunk = 1;
        c.lane_rows = spk_gather_vector(problem->a.dtype, rows, rows, rows);
        c.depth_lanes = 32 / power_up_to(8, rows / c.lane_rows);
    }
    c.cut_chunks = problem->k % c.chunk != 0;
    c.vector_b = c.b_along_k && (problem->n == 1 || problem->b.ld % c.chunk == 0) ? c.chunk : 1;
    return c;
}

static int shared_bytes(const spk_problem *problem, narrow_constants c)
{
    return narrow_warps(c) * narrow_sums(c) * (problem->compute == SPK_F64 ? 8 : 4);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    const int rows = spk_gather_block_rows(problem);
    if (problem->n < 1 || problem->n > MOST_TENSOR)
        *why = "it is for 1 to 64 columns";
    else if (problem->n > MOST_PLAIN && !fits_tensor(problem))
        *why = "more than 8 columns need f16 or bf16, A and B contiguous along K, and blocks of 8 columns or a multiple";
    else if (problem->a.dtype != problem->b.dtype || (problem->compute != SPK_F32 && problem->compute != SPK_F64))
        *why = "A and B must have the same type, and sums f32 or f64";
    else if (problem->m > INT32_MAX / 2 || problem->k > INT32_MAX / 2)
        *why = "M and K must be less than 2^30";
    else if ((double)problem->m * (double)problem->batch > INT32_MAX)
        *why = "the items of the batch have more than 2^31 rows";
    else {
        const narrow_constants c = constants_of(problem, params);
        if (TUNED(params, ROWS) > 1 && ((!c.tensor && !spk_gather_a_along_k(problem)) || narrow_unit_rows(c) >= 2 * rows))
            *why = "fewer rows of a lane cover the block";
        else if (TUNED(params, AHEAD) < (c.tensor ? 2 : 1) * c.lane_rows && spk_gather_a_along_k(problem))
            *why = "a chunk takes more loads";
        else if (c.tensor && TUNED(params, ROWS) * problem->n > 128)
            *why = "a warp would keep too many sums";
        else if (shared_bytes(problem, c) > MOST_SHARED)
            *why = "the sums of its warps need more than 48 KB of shared memory";
    }
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const narrow_constants c = constants_of(problem, params);
    const spk_cuda *cuda = spk_cuda_of(device);
    const double processors = cuda != NULL && cuda->processors > 0 ? cuda->processors : 100;
    const double rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), blocks = (double)problem->pattern->nnzb,
                 split = TUNED(params, SPLIT);
    const double grid_rows = (double)spk_gather_ceil(problem->m, (int64_t)rows), bytes = (double)spk_dtype_bytes(problem->a.dtype);
    const double units = grid_rows * (double)spk_gather_ceil((int64_t)rows, narrow_unit_rows(c)) * (double)problem->batch,
                 warps = units * split;
    /* A warp's chain of loads, and what it reads of B beside its values. */
    const double group = 4.0 * (c.tensor ? 2.0 * c.lane_rows : c.lane_rows),
                 groups = (grid_rows > 0 ? blocks / grid_rows : 0) * cols / (c.chunk * c.depth_lanes * split);
    /* Measured on an H200: more loads ahead take registers, so that fewer warps are resident; each warp costs its start and its share of
     * the sum. */
    const bool deep = TUNED(params, AHEAD) > 4;
    const double resident = !deep      ? 32
                            : c.tensor ? 10
                                       : 20,
                 ahead = deep ? 5 : TUNED(params, AHEAD), waves = warps / (processors * resident);
    const double chain =
        (waves > 1 ? waves : 1) * (1 + 0.9 * (1 + groups * group / (4.0 * ahead))) + (c.tensor ? 0.12 : 0.05) * warps / processors;
    const double b_bytes = (double)problem->batch * blocks * cols * (double)problem->n * bytes *
                           (double)spk_gather_ceil((int64_t)rows, narrow_unit_rows(c)) * (c.b_along_k ? 1 : 4);
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3, cached = b_bytes / 8e6;
    const double work = memory > cached ? memory : cached;
    return 0.5 + (work > chain ? work + 0.3 * chain : chain + 0.3 * work);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const narrow_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_cuda_narrow.cu", "spmm_cuda_narrow", problem);
    NARROW_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const narrow_constants c = constants_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    const gather_shape launch = {.c = {.tile_m = narrow_unit_rows(c), .tile_n = c.columns, .threads = 32 * c.split, .teams = c.units}};
    return spk_gather_bind(bound, &launch, &made);
}

const spk_kernel_ops spmm_cuda_narrow_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .build = build,
                                             .bind = bind,
                                             .unbind = spk_gather_unbind,
                                             .run = spk_gather_run,
                                             .device_indices = true,
                                             .batched = true,
                                             .source_hash = SPK_SOURCE_HASH};
