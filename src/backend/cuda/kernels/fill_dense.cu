/* fill_dense: every stored block of op(A) copied to its place in a row-major M x K array, which holds zeros; the overhang of edge blocks is left out.
 * One thread block a block row. Bound: memory. */
#include "device/arguments.h"
#include "device/problem.cuh"

extern "C" __global__ void fill_dense(const __grid_constant__ spk_cuda_arguments a, element_a *out, long long lda)
{
    const int row_block = blockIdx.x;
    const element_a *values = (const element_a *)a.values;
    const int size = a.block_rows * a.block_cols;
    for (int p = a.offsets[row_block]; p < a.offsets[row_block + 1]; p++) {
#if HAS_POSITIONS
        const element_a *from = values + a.positions[p] * a.block_stride;
#else
        const element_a *from = values + p * a.block_stride;
#endif
        const long long row0 = (long long)row_block * a.block_rows, col0 = (long long)a.columns[p] * a.block_cols;
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            const int r = A_K_CONTIGUOUS ? i / a.block_cols : i % a.block_rows, c = A_K_CONTIGUOUS ? i % a.block_cols : i / a.block_rows;
            if (row0 + r < a.m && col0 + c < a.k)
                out[(row0 + r) * lda + col0 + c] = from[r * a.row_stride + c * a.col_stride];
        }
    }
}
