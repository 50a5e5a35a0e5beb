/* finish: the epilogue over sums that a library left in an array with D's layout and leading dimension acc_ld. Bound: memory. */
#include "backend/cuda/device/epilogue.cuh"
#include "backend/cuda/helpers/finish.h"

extern "C" __global__ void __launch_bounds__(FINISH_THREADS)
    finish_product(const __grid_constant__ spk_cuda_arguments arg, const real *acc, long long acc_ld)
{
    const long long lines = LAYOUT_D == ROW_MAJOR ? arg.m : arg.n, along = LAYOUT_D == ROW_MAJOR ? arg.n : arg.m;
    for (long long at = blockIdx.x * (long long)FINISH_THREADS + threadIdx.x; at < lines * along;
         at += gridDim.x * (long long)FINISH_THREADS) {
        const long long line = at / along, in_line = at % along;
        const long long i = LAYOUT_D == ROW_MAJOR ? line : in_line, j = LAYOUT_D == ROW_MAJOR ? in_line : line;
        store_one(arg, i, j, acc[place(i, j, acc_ld)]);
    }
}
