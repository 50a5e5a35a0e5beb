/* Tiles for ordinary multiply-adds, and their rate. */
#include "backend/cuda/plan/simt.h"

enum { SIMT_MOST_ROWS = 64, SIMT_MOST_THREAD_ROWS = 8, SIMT_MOST_THREADS = 256 };

simt_shape spk_simt_tile(int rows, const spk_params *params)
{
    const int parts = (rows + SIMT_MOST_ROWS - 1) / SIMT_MOST_ROWS, height = (rows + parts - 1) / parts;
    int down = 1; /* threads */
    while (down * SIMT_MOST_THREAD_ROWS < height)
        down *= 2;
    simt_shape shape = {.thread_m = (height + down - 1) / down, .down = down};
    shape.team = (gather_shape){.tile_m = shape.thread_m * down,
                                .tile_n = params->v[SIMT_TILE_N],
                                .tile_k = params->v[SIMT_TILE_K],
                                .stages = params->v[SIMT_STAGES],
                                .threads = down * params->v[SIMT_TILE_N] / params->v[SIMT_THREAD_N]};
    return shape;
}

bool spk_simt_tile_fits(const spk_problem *problem, const spk_params *params, const simt_shape *shape, const char **why)
{
    const int most_sums = problem->compute == SPK_F64 ? 32 : 64;
    if (problem->compute != SPK_F32 && problem->compute != SPK_F64)
        *why = "it keeps its sums in f32 or f64";
    else if (shape->team.threads % 32 != 0 || shape->team.threads > SIMT_MOST_THREADS)
        *why = "this tile is not a whole number of warps, or more than 8";
    else if (shape->thread_m * params->v[SIMT_THREAD_N] > most_sums)
        *why = "a thread would keep too many sums";
    else if (params->v[SIMT_THREAD_N] == 1 && shape->down * params->v[SIMT_TILE_N] / 2 % 32 == 0)
        *why = "threads of two columns fill the warps";
    return *why == NULL;
}

double spk_simt_tflops(const spk_problem *problem, const spk_device *device, const spk_params *params, const simt_shape *shape)
{
    const double peak = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 40, m = shape->thread_m, n = params->v[SIMT_THREAD_N];
    const double busy = m * n / (m * n + 2 * (m + n)); /* multiply-adds among loads of operands */
    return peak * (problem->compute == SPK_F64 ? 0.5 : 1) * 0.9 * busy;
}
