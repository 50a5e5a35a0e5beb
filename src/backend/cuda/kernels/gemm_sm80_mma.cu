/* gemm_sm80_mma: D = epilogue(A B) in f16, bf16 or TF32 with f32 sums, with mma.sync and cp.async; any size, leading
 * dimension, layout and epilogue, and every device from compute capability 8.0 on. Bound: instruction issue, and L2 where tiles are small.
 */
#include "backend/cuda/device/copy/dense.cuh"
#include "backend/cuda/device/schedule/tiles_warp_mma.cuh"
#include "backend/cuda/kernels/gemm_sm80_mma.h"

static_assert(sizeof(element_a) == 2 ? DTYPE_A == DTYPE_B : COMPUTE == TF32, "the tensor instructions take these types only");

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    gemm_sm80_mma(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ dense_work work)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, work, shared);
}

ADDING_ENTRY(gemm_sm80_mma_add)
