/* spmm_sm80_mma: D = epilogue(A_bsr B) with mma.sync and cp.async, in f16, bf16 or TF32 with f32 sums; any block, layout and epilogue, and
 * every device from compute capability 8.0 on. Bound: L2 at small blocks, instruction issue at large ones. */
#include "backend/cuda/device/copy/gather.cuh"
#include "backend/cuda/device/schedule/tiles_warp_mma.cuh"
#include "backend/cuda/kernels/spmm_sm80_mma.h"

static_assert(sizeof(element_a) == 2 ? DTYPE_A == DTYPE_B : COMPUTE == TF32, "the tensor instructions take these types only");

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    spmm_sm80_mma(const __grid_constant__ spk_cuda_arguments arg, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, order, shared);
}

ADDING_ENTRY(spmm_sm80_mma_add)
