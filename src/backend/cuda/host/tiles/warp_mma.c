/* Tiles for mma.sync, and what of them fits a problem. */
#include "backend/cuda/host/tiles/warp_mma.h"

enum { WARP_MMA_MOST_WARPS = 8, WARP_MMA_LEAST_SUMS = 1024 };

warp_mma_shape spk_warp_mma_tile(int rows, warp_mma_tunables tuned, int sums)
{
    const int most = tuned.height, tile_n = tuned.tile_n;
    const int step = tuned.swap ? 8 : 16, parts = (rows + most - 1) / most, height = spk_gather_round((rows + parts - 1) / parts, step);
    warp_mma_shape shape = {.c = {.swap = tuned.swap, .warps_m = 1, .warps_n = 1}};
    while (shape.c.warps_n < WARP_MMA_MOST_WARPS && tile_n / shape.c.warps_n >= 64 && height * (tile_n / shape.c.warps_n) > sums)
        shape.c.warps_n *= 2; /* a warp is at least 32 columns wide */
    while (shape.c.warps_m * shape.c.warps_n < WARP_MMA_MOST_WARPS && height / shape.c.warps_m % (2 * step) == 0 &&
           height / shape.c.warps_m * (tile_n / shape.c.warps_n) > sums)
        shape.c.warps_m *= 2;
    /* Warps that are long strips load more than square ones. */
    while (height / shape.c.warps_m >= 64 && height / shape.c.warps_m % (2 * step) == 0 && tile_n / shape.c.warps_n <= 32 &&
           shape.c.warps_n > 1) {
        shape.c.warps_n /= 2;
        shape.c.warps_m *= 2;
    }
    shape.team.c = (team_constants){.tile_m = height,
                                    .tile_n = tile_n,
                                    .tile_k = tuned.tile_k,
                                    .stages = tuned.stages,
                                    .threads = warp_mma_threads(shape.c.warps_m, shape.c.warps_n)};
    return shape;
}

warp_mma_shape spk_warp_mma_square(int height, int width, int sums)
{
    const int swap = height < 16, step_m = swap ? 8 : 16, step_n = swap ? 16 : 8;
    warp_mma_shape shape = {.c = {.swap = swap, .warps_m = 1, .warps_n = 1}};
    for (;;) {
        const int m = height / shape.c.warps_m, n = width / shape.c.warps_n, warps = shape.c.warps_m * shape.c.warps_n;
        const bool down = m % (2 * step_m) == 0, across = n % (2 * step_n) == 0;
        if (warps == WARP_MMA_MOST_WARPS || (!down && !across) || (m * n <= sums && (warps >= 4 || m * n <= WARP_MMA_LEAST_SUMS)))
            break;
        *(down && (m >= n || !across) ? &shape.c.warps_m : &shape.c.warps_n) *= 2;
    }
    shape.team.c = (team_constants){.tile_m = height, .tile_n = width, .threads = warp_mma_threads(shape.c.warps_m, shape.c.warps_n)};
    return shape;
}

bool spk_warp_mma_fills(const warp_mma_shape *shape, int sums)
{
    const int m = shape->team.c.tile_m / shape->c.warps_m, n = shape->team.c.tile_n / shape->c.warps_n;
    return m % (shape->c.swap ? 8 : 16) == 0 && n % (shape->c.swap ? 16 : 8) == 0 && m * n <= sums;
}

double spk_warp_mma_busy(const warp_mma_shape *shape, double load)
{
    const double m = shape->team.c.tile_m / shape->c.warps_m, n = shape->team.c.tile_n / shape->c.warps_n;
    return m * n / (m * n + load * (m + n));
}

warp_mma_shape spk_warp_mma_shape_of(const spk_problem *problem, warp_mma_tunables tuned, int sums, const char *adding)
{
    warp_mma_shape shape = spk_warp_mma_tile(spk_gather_block_rows(problem), tuned, sums);
    shape.team.adding = tuned.split ? adding : NULL;
    spk_gather_complete(problem, &shape.team);
    return shape;
}

bool spk_warp_mma_applicable(const spk_problem *problem, const spk_device *device, warp_mma_tunables tuned, int sums, const char *adding,
                             const char **why)
{
    const int rows = spk_gather_block_rows(problem), cols = spk_gather_block_cols(problem), swap = tuned.swap, most = tuned.height;
    const int least = sums / 32; /* HEIGHT: what the table offers at least */
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, tuned, sums, adding);
    if (swap && spk_gather_round(rows, 16) == spk_gather_round(rows, 8))
        *why = "blocks of so many rows fill the side of 16";
    else if (!swap && rows <= 8)
        *why = "blocks of so few rows fill the side of 8 only";
    else if (most > least && spk_gather_round(rows, swap ? 8 : 16) <= most / 2)
        *why = "a lower tile holds the block's rows";
    else if (tuned.tile_n > 64 && tuned.tile_n / 2 >= problem->n)
        *why = "a narrower tile holds all columns";
    else if (tuned.tile_k > 32 && cols % tuned.tile_k != 0)
        *why = "a step so deep must lie inside a block";
    else if (shape.team.c.tile_m / shape.c.warps_m * (shape.team.c.tile_n / shape.c.warps_n) > 2 * sums)
        *why = "a warp would keep too many sums";
    else
        spk_gather_applicable(problem, device, &shape.team, why);
    return *why == NULL;
}

void spk_warp_mma_define(warp_mma_constants constants, spk_build *build)
{
    WARP_MMA_CONSTANTS(SPK_BUILD_DEFINE)
}

void spk_warp_mma_build(const spk_problem *problem, warp_mma_tunables tuned, int sums, const char *file, const char *entry,
                        const char *adding, spk_build *build)
{
    const warp_mma_shape shape = spk_warp_mma_shape_of(problem, tuned, sums, adding);
    spk_gather_build(problem, &shape.team, file, entry, build);
    spk_warp_mma_define(shape.c, build);
}
