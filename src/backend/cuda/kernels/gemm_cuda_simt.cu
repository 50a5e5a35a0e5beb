/* gemm_cuda_simt: D = epilogue(A B) with ordinary multiply-adds: f32 (exact), f64, f16 and bf16 with f32 sums; any size, leading dimension,
 * layout and epilogue. A team of threads keeps TILE_M x TILE_N sums in registers, THREAD_M x THREAD_N each. Bound: FMA, and loads from
 * shared memory. */
#include "backend/cuda/device/copy/dense.cuh"
#include "backend/cuda/device/schedule/tiles_simt.cuh"
#include "backend/cuda/kernels/gemm_cuda_simt.h"

extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)
    gemm_cuda_simt(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ dense_work work)
{
    extern __shared__ __align__(128) char shared[];
    next_launch_may_start();
    previous_launch_done();
    multiply_tiles(arg, work, shared);
}

ADDING_ENTRY(gemm_cuda_simt_add)
