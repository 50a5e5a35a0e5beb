/* spmm_cuda_simt: host side. A team covers up to 64 rows of a block row with threads of up to 8 rows. */
#include "backend/cuda/kernels/gather.h"

enum { TILE_N, THREAD_N, TILE_K, STAGES, SPLIT };
enum { MOST_ROWS = 64, MOST_THREAD_ROWS = 8, MOST_THREADS = 256 };

typedef struct simt_shape {
    gather_shape team;
    int thread_m, down; /* threads of a column */
} simt_shape;

static simt_shape shape_of(const spk_problem *problem, const spk_params *params)
{
    const int rows = gather_block_rows(problem), parts = (rows + MOST_ROWS - 1) / MOST_ROWS, height = (rows + parts - 1) / parts;
    int down = 1; /* threads */
    while (down * MOST_THREAD_ROWS < height)
        down *= 2;
    simt_shape shape = {.thread_m = (height + down - 1) / down, .down = down};
    shape.team = (gather_shape){.tile_m = shape.thread_m * down, .tile_n = params->v[TILE_N], .tile_k = params->v[TILE_K], .stages = params->v[STAGES],
                                .threads = down * params->v[TILE_N] / params->v[THREAD_N], .adding = params->v[SPLIT] ? "spmm_cuda_simt_add" : NULL};
    if (shape.team.threads >= 32)
        gather_complete(problem, &shape.team);
    return shape;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    const simt_shape shape = shape_of(problem, params);
    const int most_sums = problem->compute == SPK_F64 ? 32 : 64;
    if (problem->compute != SPK_F32 && problem->compute != SPK_F64)
        *why = "it keeps its sums in f32 or f64";
    else if (shape.team.threads % 32 != 0 || shape.team.threads > MOST_THREADS)
        *why = "this tile is not a whole number of warps, or more than 8";
    else if (shape.thread_m * params->v[THREAD_N] > most_sums)
        *why = "a thread would keep too many sums";
    else if (params->v[TILE_N] > 32 && params->v[TILE_N] / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (params->v[TILE_N] == 32 && problem->n > 64)
        *why = "so many columns fill wider tiles";
    else if (params->v[THREAD_N] == 1 && shape.down * params->v[TILE_N] / 2 % 32 == 0)
        *why = "threads of two columns fill the warps";
    else
        gather_applicable(problem, device, &shape.team, why);
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const simt_shape shape = shape_of(problem, params);
    const double peak = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 40, m = shape.thread_m, n = params->v[THREAD_N];
    const double busy = m * n / (m * n + 2 * (m + n)); /* multiply-adds among loads of operands */
    return gather_predict(problem, device, &shape.team, peak * (problem->compute == SPK_F64 ? 0.5 : 1) * 0.9 * busy);
}

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    char more[64];
    const simt_shape shape = shape_of(problem, params);
    snprintf(more, sizeof more, "-DTHREAD_M=%d -DTHREAD_N=%d", shape.thread_m, params->v[THREAD_N]);
    gather_build(problem, &shape.team, "spmm_cuda_simt.cu", "spmm_cuda_simt", more, build);
}

static spk_status bind(spk_bound *bound)
{
    spk_build made = {0};
    const simt_shape shape = shape_of(&bound->problem, &bound->params);
    build(&bound->problem, bound->device, &bound->params, &made);
    return gather_bind(bound, &shape.team, &made);
}

const spk_kernel_ops spmm_cuda_simt_ops = {.applicable = applicable, .predict_us = predict_us, .build = build, .bind = bind, .unbind = gather_unbind,
                                           .run = gather_run, .source_hash = SPK_SOURCE_HASH};
