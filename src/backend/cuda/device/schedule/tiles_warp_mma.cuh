/* Tiles of a product with the warps' tensor instructions (warp_mma.cuh). Who includes it has a `task`, and find_task, walk and leave_tile
 * for it: gather.cuh, dense.cuh. */
#ifndef SPK_CUDA_TILES_WARP_MMA_CUH
#define SPK_CUDA_TILES_WARP_MMA_CUH

#include "backend/cuda/device/epilogue/tile_store.cuh"
#include "backend/cuda/device/mma/warp_mma.cuh"

/* The whole of a kernel. list: what find_task finds it in. */
template <class L> inline void multiply_tiles(const spk_cuda_arguments &arg, const L &list, char *shared)
{
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const warp_place at = warp_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, list, team, job))
        return;
    item_view one = item_arguments(arg, job.item);
    real sum[SIXTEENS][EIGHTS][4] = {};
    walk(memory, one, job, thread, [&](const element_a *a, const element_b *b) { warp_multiply(sum, a, b, at); });
    real *sums = (real *)memory;
    warp_sums(sum, at, [&](int row, int column, real value) { sums[sum_place(row, column)] = value; });
    team_sync();
    leave_tile(sums, one, job, thread);
}

#endif
