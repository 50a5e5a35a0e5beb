/* gemm_sm80_dmma: D = epilogue(A B) in f64 with the tensor instructions (16x8x8 on compute capability 9.0, else 8x8x4); any size, leading
 * dimension, layout and epilogue, and every device from compute capability 8.0 on. Bound: tensor instructions and loads from shared memory.
 */
#include "backend/cuda/device/copy/dense.cuh"
#include "backend/cuda/device/schedule/tiles_warp_mma.cuh"
#include "backend/cuda/kernels/gemm_sm80_dmma.h"

static_assert(DTYPE_A == F64 && DTYPE_B == F64 && COMPUTE == F64, "it computes in f64 only");

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    gemm_sm80_dmma(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ dense_work work)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, work, shared);
}

ADDING_ENTRY(gemm_sm80_dmma_add)
