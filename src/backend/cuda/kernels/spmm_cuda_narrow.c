/* spmm_cuda_narrow: host side. */
#include <stdio.h>

#include "backend/cuda/plan/gather.h"

enum { ROWS, SPLIT, AHEAD };
enum { MOST_PLAIN = 8, MOST_TENSOR = 64, MOST_SHARED = 48 * 1024 };

typedef struct narrow_shape {
    bool tensor, b_along_k;
    int chunk, lane_rows, depth_lanes, unit_rows, units, vector_b;
} narrow_shape;

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

static narrow_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), split = params->v[SPLIT];
    narrow_shape s = {.tensor = problem->n > MOST_PLAIN,
                      .b_along_k = problem->b.layout == SPK_COL_MAJOR || (problem->n == 1 && problem->b.ld == 1)};
    s.units = split >= 4 ? 1 : 4 / split;
    if (s.tensor) {
        s.chunk = 8;
        s.lane_rows = params->v[ROWS];
        s.depth_lanes = 4;
        s.unit_rows = 16 * s.lane_rows;
    } else if (spk_gather_a_along_k(problem)) {
        s.chunk = spk_gather_vector(problem->a.dtype, cols, cols, cols);
        s.depth_lanes = rows >= 4 ? 8 : rows >= 2 ? 16 : 32;
        s.lane_rows = params->v[ROWS];
        s.unit_rows = 32 / s.depth_lanes * s.lane_rows;
    } else {
        s.chunk = 1;
        s.lane_rows = spk_gather_vector(problem->a.dtype, rows, rows, rows);
        s.depth_lanes = 32 / power_up_to(8, rows / s.lane_rows);
        s.unit_rows = 32 / s.depth_lanes * s.lane_rows;
    }
    s.vector_b = s.b_along_k && (problem->n == 1 || problem->b.ld % s.chunk == 0) ? s.chunk : 1;
    return s;
}

static int shared_bytes(const spk_problem *problem, const narrow_shape *s, int split)
{
    return s->units * split * s->unit_rows * (int)problem->n * (problem->compute == SPK_F64 ? 8 : 4);
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
        const narrow_shape s = shape_of(problem, params);
        if (params->v[ROWS] > 1 && ((!s.tensor && !spk_gather_a_along_k(problem)) || s.unit_rows >= 2 * rows))
            *why = "fewer rows of a lane cover the block";
        else if (params->v[AHEAD] < (s.tensor ? 2 : 1) * s.lane_rows && spk_gather_a_along_k(problem))
            *why = "a chunk takes more loads";
        else if (s.tensor && params->v[ROWS] * problem->n > 128)
            *why = "a warp would keep too many sums";
        else if (shared_bytes(problem, &s, params->v[SPLIT]) > MOST_SHARED)
            *why = "the sums of its warps need more than 48 KB of shared memory";
    }
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const narrow_shape s = shape_of(problem, params);
    const spk_cuda *cuda = spk_cuda_of(device);
    const double processors = cuda != NULL && cuda->processors > 0 ? cuda->processors : 100;
    const double rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), blocks = (double)problem->pattern->nnzb,
                 split = params->v[SPLIT];
    const double grid_rows = (double)spk_gather_ceil(problem->m, (int64_t)rows), bytes = (double)spk_dtype_bytes(problem->a.dtype);
    const double units = grid_rows * (double)spk_gather_ceil((int64_t)rows, s.unit_rows) * (double)problem->batch, warps = units * split;
    /* A warp's chain of loads, and what it reads of B beside its values. */
    const double group = 4.0 * (s.tensor ? 2.0 * s.lane_rows : s.lane_rows),
                 groups = (grid_rows > 0 ? blocks / grid_rows : 0) * cols / (s.chunk * s.depth_lanes * split);
    /* Measured on an H200: more loads ahead take registers, so that fewer warps are resident; each warp costs its start and its share of
     * the sum. */
    const bool deep = params->v[AHEAD] > 4;
    const double resident = !deep ? 32 : s.tensor ? 10 : 20, ahead = deep ? 5 : params->v[AHEAD], waves = warps / (processors * resident);
    const double chain =
        (waves > 1 ? waves : 1) * (1 + 0.9 * (1 + groups * group / (4.0 * ahead))) + (s.tensor ? 0.12 : 0.05) * warps / processors;
    const double b_bytes = (double)problem->batch * blocks * cols * (double)problem->n * bytes *
                           (double)spk_gather_ceil((int64_t)rows, s.unit_rows) * (s.b_along_k ? 1 : 4);
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3, cached = b_bytes / 8e6;
    const double work = memory > cached ? memory : cached;
    return 0.5 + (work > chain ? work + 0.3 * chain : chain + 0.3 * work);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const narrow_shape s = shape_of(problem, params);
    build->file = "spmm_cuda_narrow.cu";
    build->entry = "spmm_cuda_narrow";
    build->shared_bytes = 0;
    const int used = spk_problem_device_defines(problem, build->options, sizeof build->options);
    snprintf(build->options + used, sizeof build->options - (size_t)used,
             " -DBLOCK_ROWS=%d -DBLOCK_COLS=%d -DCOLUMNS=%d -DRAGGED_K=%d -DB_ALONG_K=%d -DCUT_CHUNKS=%d -DVECTOR_B=%d -DTENSOR=%d "
             "-DCHUNK=%d -DLANE_ROWS=%d "
             "-DDEPTH_LANES=%d -DUNIT_ROWS=%d -DUNITS=%d -DSPLIT=%d -DAHEAD=%d",
             spk_gather_block_rows(problem), spk_gather_block_cols(problem), (int)problem->n,
             problem->k % spk_gather_block_cols(problem) != 0, s.b_along_k, problem->k % s.chunk != 0, s.vector_b, s.tensor, s.chunk,
             s.lane_rows, s.depth_lanes, s.unit_rows, s.units, params->v[SPLIT], params->v[AHEAD]);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const narrow_shape s = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    const gather_shape launch = {
        .tile_m = s.unit_rows, .tile_n = (int)bound->problem.n, .threads = 32 * bound->params.v[SPLIT], .teams = s.units};
    return spk_gather_bind(bound, &launch, &made);
}

const spk_kernel_ops spmm_cuda_narrow_ops = {.applicable = applicable,
                                             .predict_us = predict_us,
                                             .build = build,
                                             .bind = bind,
                                             .unbind = spk_gather_unbind,
                                             .run = spk_gather_run,
                                             .direct = true,
                                             .batched = true,
                                             .source_hash = SPK_SOURCE_HASH};
