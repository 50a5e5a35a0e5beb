/* spmm_cuda_rows: host side. */
#include "backend/cuda/kernels/spmm_cuda_rows.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/gather.h"

enum {
    MOST_BLOCK_ROWS = 32,
    MOST_ROWS = 8,
    MOST_CHUNK = 4,
    MOST_SUMS = 64,
    MOST_HELD = 400,
    MOST_AHEAD = 368,
    WARPS = 8,
    MOST_SHARED = 48 * 1024
}; /* MOST_HELD, MOST_AHEAD: bytes of a lane, without and with loads ahead of those that are multiplied */

#define TUNED(params, name) SPK_TUNED(spmm_cuda_rows, params, name)

/* As many neighbours along K as divide a block's, four at most; all of a narrow block. */
static int chunk_of(int cols)
{
    int chunk = cols <= 7 && cols % 2 != 0 && cols % 3 != 0 ? cols : MOST_CHUNK;
    while (cols % chunk != 0)
        chunk--;
    return chunk;
}

/* Rows of a unit: as even as can be. */
static int rows_of(int block_rows)
{
    const int parts = (int)spk_gather_ceil(block_rows, MOST_ROWS);
    return (int)spk_gather_ceil(block_rows, parts);
}

/* Values that a load brings. */
static int values_of(const spk_problem *problem, const rows_constants *c)
{
    const bool along_k = spk_gather_a_along_k(problem) && c->block_cols > 1;
    const int line = along_k ? c->block_cols : c->block_rows, part = along_k ? c->chunk : c->rows, block = c->block_rows * c->block_cols;
    return rows_shape_of(*c).flat ? spk_gather_vector(problem->a.dtype, block, problem->a.stride, block)
                                  : spk_gather_vector(problem->a.dtype, line, problem->a.stride, part);
}

/* Bytes of a lane for so many chunks. A register for each load of values, however little it brings. */
static int loads_of(const rows_constants *c, int chunks, int bytes_a, int bytes_b)
{
    const int word = c->values * bytes_a > 4 ? c->values * bytes_a : 4;
    return chunks * c->chunk * (c->rows * word / c->values + c->vector * bytes_b);
}

static rows_constants constants_of(const spk_problem *problem, const spk_params *params)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem),
              bytes = (int)spk_dtype_bytes(problem->compute == SPK_F64 ? SPK_F64 : SPK_F32);
    rows_constants c = {.block_rows = rows,
                        .block_cols = cols,
                        .ragged_k = problem->k % cols != 0,
                        .rows = rows_of(rows),
                        .chunk = chunk_of(cols),
                        .vector = spk_gather_vector(problem->b.dtype, problem->n, problem->b.ld, problem->b.stride),
                        .across = TUNED(params, ACROSS),
                        .ahead = TUNED(params, AHEAD),
                        .split = TUNED(params, SPLIT),
                        .units = WARPS / TUNED(params, SPLIT)};
    while (c.vector > 1 && (c.rows * c.vector * bytes > MOST_SUMS * 4 || c.vector >= 2 * problem->n))
        c.vector /= 2;
    c.values = values_of(problem, &c);
    while (c.chunk > 1 &&
           c.rows * c.vector * bytes + loads_of(&c, 1, (int)spk_dtype_bytes(problem->a.dtype), (int)spk_dtype_bytes(problem->b.dtype)) >
               MOST_HELD) {
        do
            c.chunk--;
        while (cols % c.chunk != 0);
        c.values = values_of(problem, &c);
    }
    return c;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const rows_constants c = constants_of(problem, params);
    const rows_shape s = rows_shape_of(c);
    const int bytes_a = (int)spk_dtype_bytes(problem->a.dtype), bytes_b = (int)spk_dtype_bytes(problem->b.dtype),
              bytes_sum = problem->compute == SPK_F64 ? 8 : 4;
    (void)device;
    if (problem->b.layout != SPK_ROW_MAJOR)
        *why = "it reads rows of B: B must be row-major";
    else if (problem->compute != SPK_F32 && problem->compute != SPK_F64)
        *why = "it multiplies in f32 or f64";
    else if (c.block_rows > MOST_BLOCK_ROWS)
        *why = "blocks of more than 32 rows fill larger tiles";
    else if (c.across > 4 && s.tile_n >= 2 * problem->n)
        *why = "fewer lanes hold all columns";
    else if (c.ahead > 1 &&
             c.rows * c.vector * bytes_sum * 5 / 4 + loads_of(&c, c.ahead, bytes_a, bytes_b) > MOST_AHEAD) /* and an epilogue */
        *why = "sums and loads in flight need too many registers";
    else if (c.split > 1 && WARPS * s.sums * bytes_sum > MOST_SHARED)
        *why = "the sums of its warps need more than 48 KB of shared memory";
    else if (problem->m > INT32_MAX / 2 || problem->k > INT32_MAX / 2)
        *why = "M and K must be less than 2^30";
    else if ((double)problem->m * (double)spk_gather_ceil(problem->n, s.tile_n) * (double)problem->batch > INT32_MAX)
        *why = "D has more than 2^31 tiles";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const rows_constants c = constants_of(problem, params);
    const rows_shape s = rows_shape_of(c);
    const double processors = spk_gather_processors(device), blocks = (double)problem->pattern->nnzb * (double)problem->batch,
                 grid_rows = (double)spk_gather_ceil(problem->m, c.block_rows) * (double)problem->batch,
                 columns = (double)spk_gather_ceil(problem->n, s.tile_n), chunks = blocks * c.block_cols / c.chunk * s.parts * columns;
    const double bytes_a = (double)spk_dtype_bytes(problem->a.dtype), bytes_b = (double)spk_dtype_bytes(problem->b.dtype);
    const double l2 = chunks * c.chunk * (c.rows * bytes_a + s.tile_n * bytes_b) / 7e6;
    /* Instructions of a warp for its groups' chunks: loads and what makes their addresses, conversions, multiply-adds. */
    const double widened = bytes_b == 2 ? c.chunk * (c.vector + c.rows) : 0,
                 words = 16 + 3.0 * c.chunk + c.rows * c.chunk / (double)c.values + widened +
                         (double)c.rows * c.chunk * c.vector * (problem->compute == SPK_F64 ? 2 : 1),
                 issue = chunks / s.depth * words / (processors * 3.2 * 1700);
    const double warps = grid_rows * s.parts * columns * c.split, waves = warps / (processors * 16),
                 steps = warps > 0 ? chunks / (warps * s.depth * c.ahead) : 0, chain = (waves > 1 ? waves : 1) * (1.5 + 0.8 * steps);
    const double memory = spk_problem_bytes(problem) / (device->stream_gbs > 0 ? device->stream_gbs : 2000) / 1e3;
    double work = l2 > issue ? l2 : issue;
    work = work > memory ? work : memory;
    return 2 + (work > chain ? work + 0.2 * chain : chain + 0.2 * work);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const rows_constants constants = constants_of(problem, params);
    spk_build_begin(build, "spmm_cuda_rows.cu", "spmm_cuda_rows", problem);
    ROWS_CONSTANTS(SPK_BUILD_DEFINE)
}

/* They are read in pieces of up to 16 bytes. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    return bound->problem.pattern->nnzb == 0 || (((uintptr_t)args->a | (uintptr_t)args->b) & 15) == 0;
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const rows_constants c = constants_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    const gather_shape launch = {.c = {.tile_m = c.rows, .tile_n = rows_shape_of(c).tile_n, .threads = 32 * c.split, .teams = c.units}};
    return spk_gather_bind(bound, &launch, &made);
}

const spk_kernel_ops spmm_cuda_rows_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_gather_unbind,
                                           .accepts = accepts,
                                           .run = spk_gather_run,
                                           .device_indices = true,
                                           .batched = true,
                                           .source_hash = SPK_SOURCE_HASH};
