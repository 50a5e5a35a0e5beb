/* Tiles for ordinary multiply-adds, and their rate. */
#include "backend/cuda/host/tiles/simt.h"

enum { SIMT_MOST_ROWS = 64, SIMT_MOST_THREAD_ROWS = 8, SIMT_MOST_THREADS = 256 };

simt_shape spk_simt_tile(int rows, simt_tunables tuned)
{
    const int parts = (rows + SIMT_MOST_ROWS - 1) / SIMT_MOST_ROWS;
    return spk_simt_tile_of((rows + parts - 1) / parts, tuned);
}

simt_shape spk_simt_tile_of(int height, simt_tunables tuned)
{
    int down = 1; /* threads */
    while (down * SIMT_MOST_THREAD_ROWS < height)
        down *= 2;
    simt_shape shape = {.c = {.thread_m = (height + down - 1) / down, .thread_n = tuned.thread_n}, .down = down};
    shape.team.c = (team_constants){.tile_m = shape.c.thread_m * down,
                                    .tile_n = tuned.tile_n,
                                    .tile_k = tuned.tile_k,
                                    .stages = tuned.stages,
                                    .threads = simt_threads(down, tuned.tile_n, tuned.thread_n)};
    return shape;
}

bool spk_simt_tile_fits(const spk_problem *problem, const simt_shape *shape, const char **why)
{
    const int most_sums = problem->compute == SPK_F64 ? 32 : 64;
    if (problem->compute != SPK_F32 && problem->compute != SPK_F64)
        *why = "it keeps its sums in f32 or f64";
    else if (shape->team.c.threads % 32 != 0 || shape->team.c.threads > SIMT_MOST_THREADS)
        *why = "this tile is not a whole number of warps, or more than 8";
    else if (shape->c.thread_m * shape->c.thread_n > most_sums)
        *why = "a thread would keep too many sums";
    else if (shape->c.thread_n == 1 && shape->down * shape->team.c.tile_n / 2 % 32 == 0)
        *why = "threads of two columns fill the warps";
    return *why == NULL;
}

void spk_simt_define(simt_constants constants, spk_build *build)
{
    SIMT_CONSTANTS(SPK_BUILD_DEFINE)
}

double spk_simt_tflops(const spk_problem *problem, const spk_device *device, const simt_shape *shape)
{
    const double peak = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 / 1e3 : 40, m = shape->c.thread_m, n = shape->c.thread_n;
    const double busy = m * n / (m * n + 2 * (m + n)); /* multiply-adds among loads of operands */
    return peak * (problem->compute == SPK_F64 ? 0.5 : 1) * 0.9 * busy;
}
