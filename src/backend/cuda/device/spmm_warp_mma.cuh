/* SpMM with the warps' tensor instructions: tiles of both operands gathered along the stored blocks (gather.cuh), products of
 * warp_mma.cuh. */
#ifndef SPK_CUDA_SPMM_WARP_MMA_CUH
#define SPK_CUDA_SPMM_WARP_MMA_CUH

#include "backend/cuda/device/gather.cuh"
#include "backend/cuda/device/warp_mma.cuh"

/* The whole of a kernel. */
inline void multiply_tiles(const spk_cuda_arguments &arg, const int *order, char *shared)
{
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const warp_place at = warp_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, order, team, job))
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
