/* Tiles of a product with ordinary multiply-adds (simt.cuh). Who includes it has a `task`, and find_task, walk and leave_tile for it:
 * gather.cuh, dense.cuh. */
#ifndef SPK_CUDA_TILES_SIMT_CUH
#define SPK_CUDA_TILES_SIMT_CUH

#include "backend/cuda/device/mma/simt.cuh"
#include "backend/cuda/device/epilogue/tile_store.cuh"

/* The whole of a kernel. list: what find_task finds it in. */
template <class L> inline void multiply_tiles(const spk_cuda_arguments &arg, const L &list, char *shared)
{
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const simt_place at = simt_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, list, team, job))
        return;
    item_view one = item_arguments(arg, job.item);
    real sum[THREAD_M][THREAD_N] = {};
    walk(memory, one, job, thread, [&](const element_a *a, const element_b *b) { simt_multiply(sum, a, b, at); });
    real *sums = (real *)memory;
#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int j = 0; j < THREAD_N; j++)
            sums[sum_place(at.row + i, column_of(at.column, j))] = sum[i][j];
    team_sync();
    leave_tile(sums, one, job, thread);
}

#endif
