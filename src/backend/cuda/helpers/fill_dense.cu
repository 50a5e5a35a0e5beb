/* fill_dense: every stored block of op(A) copied to its place in a row-major M x K array, which holds zeros; the overhang of edge blocks is
 * left out. A block row has gridDim.x / grid_rows thread blocks, which take its blocks in turns. Lines of 16 bytes where the block's rows
 * and the places allow. Bound: memory. */
#include "backend/cuda/device/common/problem.cuh"
#include "backend/cuda/helpers/fill_dense.h"

inline void copy_elements(const spk_cuda_arguments &a, const element_a *from, element_a *out, long long lda, long long row0, long long col0)
{
    const int size = a.block_rows * a.block_cols;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const int r = A_K_CONTIGUOUS ? i / a.block_cols : i % a.block_rows, c = A_K_CONTIGUOUS ? i % a.block_cols : i / a.block_rows;
        if (row0 + r < a.m && col0 + c < a.k)
            out[(row0 + r) * lda + col0 + c] = from[r * a.row_stride + c * a.col_stride];
    }
}

/* Rows of whole 16-byte pieces; the caller has made sure that they fit and are aligned. */
inline void copy_lines(const spk_cuda_arguments &a, const element_a *from, element_a *out, long long lda, long long row0, long long col0)
{
    const int piece = 16 / sizeof(element_a), pieces = a.block_cols / piece, count = a.block_rows * pieces;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const int r = i / pieces, c = i % pieces * piece;
        if (row0 + r < a.m)
            *(uint4 *)(out + (row0 + r) * lda + col0 + c) = *(const uint4 *)(from + r * a.row_stride + c);
    }
}

extern "C" __global__ void __launch_bounds__(FILL_DENSE_THREADS)
    fill_dense(const __grid_constant__ spk_cuda_arguments a, element_a *out, long long lda)
{
    const int row_block = blockIdx.x % a.grid_rows, turn = blockIdx.x / a.grid_rows, turns = gridDim.x / a.grid_rows,
              piece = 16 / sizeof(element_a);
    const bool lines = A_K_CONTIGUOUS && a.block_cols % piece == 0 && a.row_stride % piece == 0 && a.block_stride % piece == 0 &&
                       lda % piece == 0 && ((unsigned long long)a.values & 15) == 0;
    const long long row0 = (long long)row_block * a.block_rows;
    for (int p = a.offsets[row_block] + turn; p < a.offsets[row_block + 1]; p += turns) {
        const long long col0 = (long long)a.columns[p] * a.block_cols;
        if (lines && col0 + a.block_cols <= a.k)
            copy_lines(a, block_values(a, p), out, lda, row0, col0);
        else
            copy_elements(a, block_values(a, p), out, lda, row0, col0);
    }
}
