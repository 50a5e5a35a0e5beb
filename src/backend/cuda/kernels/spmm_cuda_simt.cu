/* spmm_cuda_simt: D = epilogue(A_bsr B) with ordinary multiply-adds: f32 (exact), f64, f16 and bf16 with f32 sums; any block, layout and
 * epilogue. A team of threads keeps TILE_M x TILE_N sums in registers, THREAD_M x THREAD_N each. Bound: shared memory and FMA at large
 * blocks, L2 at small. */
#include "backend/cuda/device/copy/gather.cuh"
#include "backend/cuda/device/schedule/tiles_simt.cuh"
#include "backend/cuda/kernels/spmm_cuda_simt.h"

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    spmm_cuda_simt(const __grid_constant__ spk_cuda_arguments arg, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, order, shared);
}

ADDING_ENTRY(spmm_cuda_simt_add)
