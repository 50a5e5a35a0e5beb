/* reference_cuda: D from the definition, one thread an element. Takes every problem; the yardstick on a device, and always valid. Threads
 * of a warp are neighbours along D's contiguous dimension. */
#include "backend/cuda/device/epilogue.cuh"
#include "backend/cuda/kernels/reference_cuda.h"

inline real sum_of(const spk_cuda_arguments &arg, long long i, long long j)
{
    const long long down = LAYOUT_B == ROW_MAJOR ? arg.ldb : 1, across = LAYOUT_B == ROW_MAJOR ? 1 : arg.ldb;
    const int block_row = (int)(i / arg.block_rows);
    const int end = arg.offsets[block_row + 1];
    real sum = 0;
    for (int p = arg.offsets[block_row]; p < end; p++) {
        const long long k0 = (long long)arg.columns[p] * arg.block_cols, left = arg.k - k0;
        const int count = left < arg.block_cols ? (int)left : arg.block_cols;
        const element_a *a = block_values(arg, p) + i % arg.block_rows * arg.row_stride;
        const element_b *b = (const element_b *)arg.b + k0 * down + j * across;
        for (int k = 0; k < count; k++)
            sum += as<real>(a[k * arg.col_stride]) * as<real>(b[k * down]);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(REFERENCE_THREADS) reference_cuda(const __grid_constant__ spk_cuda_arguments batch)
{
    const long long lines = LAYOUT_D == ROW_MAJOR ? batch.m : batch.n, along = LAYOUT_D == ROW_MAJOR ? batch.n : batch.m;
    for (long long place = blockIdx.x * (long long)REFERENCE_THREADS + threadIdx.x; place < batch.items * lines * along;
         place += gridDim.x * (long long)REFERENCE_THREADS) {
        item_view arg = item_arguments(batch, place / (lines * along));
        const long long at = place % (lines * along);
        const long long line = at / along, place_in_line = at % along;
        const long long i = LAYOUT_D == ROW_MAJOR ? line : place_in_line, j = LAYOUT_D == ROW_MAJOR ? place_in_line : line;
        store_one(arg, i, j, sum_of(arg, i, j));
    }
}
