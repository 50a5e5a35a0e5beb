/* sddmm_sm80_mma: D = alpha (X Y) at the stored blocks + beta C with mma.sync and cp.async: f16, bf16 and TF32 with f32 sums, f64; any
 * block, layout and alignment, and every device from compute capability 8.0 on. Bound: loads from shared memory at large blocks, copies of
 * a few rows at small ones. */
#include "backend/cuda/device/copy/sddmm_gather.cuh"
#include "backend/cuda/device/mma/warp_mma.cuh"
#include "backend/cuda/kernels/sddmm_sm80_mma.h"

static_assert(DTYPE_A == F64 ? COMPUTE == F64 : sizeof(element_a) == 2 || COMPUTE == TF32, "the tensor instructions take these types only");

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    sddmm_sm80_mma(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ sddmm_work work)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    const int team = (int)threadIdx.x / TEAM_THREADS, thread = (int)threadIdx.x % TEAM_THREADS;
    const warp_place at = warp_place_of(thread);
    char *memory = shared + team * TEAM_BYTES;
    task job;
    if (!find_task(arg, work, team, job))
        return;
    real sum[SIXTEENS][EIGHTS][4] = {};
    walk(memory, arg, job, thread, [&](const element_a *a, const element_b *b) { warp_multiply(sum, a, b, at); });
    real *sums = (real *)memory;
    warp_sums(sum, at, [&](int row, int column, real value) { sums[sum_place(row, column)] = value; });
    team_sync();
    store_tile(sums, arg, work, job, thread);
}
