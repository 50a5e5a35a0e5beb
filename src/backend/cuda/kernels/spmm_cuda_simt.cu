/* spmm_cuda_simt: D = epilogue(A_bsr B) with ordinary multiply-adds: f32 (exact), f64, f16 and bf16 with f32 sums; any block, layout and
 * epilogue. A team of threads keeps TILE_M x TILE_N sums in registers, THREAD_M x THREAD_N each. Bound: shared memory and FMA at large
 * blocks, L2 at small. */
#include "backend/cuda/device/gather.cuh"
#include "backend/cuda/device/simt.cuh"
#include "backend/cuda/kernels/spmm_cuda_simt.h"

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    spmm_cuda_simt(const __grid_constant__ spk_cuda_arguments arg, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const simt_place at = simt_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, order, team, job))
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

ADDING_ENTRY(spmm_cuda_simt_add)
