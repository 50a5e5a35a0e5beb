/* reference_cuda_sddmm: values from the definition, one thread an element of D. Takes every problem; the yardstick on a device, and always
 * valid. Threads of a warp are neighbours in D. */
#include "backend/cuda/device/common/reference.cuh"
#include "backend/cuda/kernels/reference_cuda_sddmm.h"

/* The block row that block p is in. */
inline int block_row_of(const spk_cuda_arguments &arg, long long p)
{
    int low = 0, high = arg.grid_rows; /* offsets[low] <= p < offsets[high] */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (arg.offsets[middle] <= p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(REFERENCE_THREADS) reference_cuda_sddmm(const __grid_constant__ spk_cuda_arguments batch)
{
    const long long elements = batch.nnzb * batch.block_stride;
    for (long long place = blockIdx.x * (long long)REFERENCE_THREADS + threadIdx.x; place < batch.items * elements;
         place += gridDim.x * (long long)REFERENCE_THREADS) {
        item_view arg = item_arguments(batch, place / elements);
        const long long at = place % elements, p = at / arg.block_stride, in = at % arg.block_stride;
        const int length = LAYOUT_D == ROW_MAJOR ? arg.block_cols : arg.block_rows, line = (int)(in / length), along = (int)(in % length);
        const long long i = (long long)block_row_of(arg, p) * arg.block_rows + (LAYOUT_D == ROW_MAJOR ? line : along);
        const long long j = (long long)arg.columns[p] * arg.block_cols + (LAYOUT_D == ROW_MAJOR ? along : line);
        real value = 0; /* what hangs over */
        if (i < arg.m && j < arg.n) {
            value = (real)arg.alpha * dot(arg, i, j);
#if USE_C
            if (arg.beta != 0)
                value += (real)arg.beta * as<real>(((const element_d *)arg.c)[at]);
#endif
        }
        ((element_d *)arg.d)[at] = to<element_d>(value);
    }
}
