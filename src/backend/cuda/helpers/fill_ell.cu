/* fill_ell: the stored blocks as Blocked-ELL wants them: a row-major array of M rows with `slots` blocks side by side. One thread block a
 * block row. */
#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/problem.cuh"

extern "C" __global__ void fill_ell(const __grid_constant__ spk_cuda_arguments a, element_a *out, long long slots)
{
    const int row_block = blockIdx.x, first = a.offsets[row_block];
    const element_a *values = (const element_a *)a.values;
    const int size = a.block_rows * a.block_cols;
    const long long ld = slots * a.block_cols;
    for (int p = first; p < a.offsets[row_block + 1]; p++) {
        const element_a *from = values + p * a.block_stride;
        element_a *to = out + (long long)row_block * a.block_rows * ld + (long long)(p - first) * a.block_cols;
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            const int r = i / a.block_cols, c = i % a.block_cols;
            to[r * ld + c] = from[r * a.row_stride + c * a.col_stride];
        }
    }
}
