/* sddmm_cuda_simt: D = alpha (X Y) at the stored blocks + beta C with ordinary multiply-adds: f32 (exact), f64, f16 and bf16 with f32 sums;
 * any block, layout and alignment. Bound: shared memory and FMA at large blocks, copies of a few rows at small ones. */
#include "backend/cuda/device/copy/sddmm_gather.cuh"
#include "backend/cuda/device/mma/simt.cuh"
#include "backend/cuda/kernels/sddmm_cuda_simt.h"

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    sddmm_cuda_simt(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ sddmm_work work)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const simt_place at = simt_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, work, team, job))
        return;
    real sum[THREAD_M][THREAD_N] = {};
    walk(memory, arg, job, thread, [&](const element_a *a, const element_b *b) { simt_multiply(sum, a, b, at); });
    real *sums = (real *)memory;
#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int j = 0; j < THREAD_N; j++)
            sums[sum_place(at.row + i, column_of(at.column, j))] = sum[i][j];
    team_sync();
    store_tile(sums, arg, work, job, thread);
}
