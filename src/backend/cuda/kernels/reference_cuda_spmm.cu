/* reference_cuda_spmm: D from the definition, one thread an element. Takes every problem; the yardstick on a device, and always valid. */
#include "backend/cuda/device/common/reference.cuh"
#include "backend/cuda/kernels/reference_cuda_spmm.h"

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

extern "C" __global__ void __launch_bounds__(REFERENCE_THREADS) reference_cuda_spmm(const __grid_constant__ spk_cuda_arguments batch)
{
    store_all(batch, [](const spk_cuda_arguments &arg, long long i, long long j) { return sum_of(arg, i, j); });
}
