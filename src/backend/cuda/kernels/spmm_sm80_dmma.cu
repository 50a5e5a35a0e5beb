/* spmm_sm80_dmma: D = epilogue(A_bsr B) in f64 with the tensor instructions (16x8x8 on compute capability 9.0, else 8x8x4); any block,
 * layout and epilogue. Bound: tensor instructions and loads from shared memory. */
#include "backend/cuda/device/copy/gather.cuh"
#include "backend/cuda/device/schedule/tiles_warp_mma.cuh"
#include "backend/cuda/kernels/spmm_sm80_dmma.h"

static_assert(DTYPE_A == F64 && DTYPE_B == F64 && COMPUTE == F64, "it computes in f64 only");

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    spmm_sm80_dmma(const __grid_constant__ spk_cuda_arguments arg, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, order, shared);
}

ADDING_ENTRY(spmm_sm80_dmma_add)
