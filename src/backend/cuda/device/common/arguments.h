/* The arguments of a product, as the host fills them and device code reads them: seen by the C compiler and by NVRTC, so plain types
 * only. */
#ifndef SPK_CUDA_ARGUMENTS_H
#define SPK_CUDA_ARGUMENTS_H

typedef struct spk_cuda_arguments {
    /* op(A): M x K in blocks of block_rows x block_cols. Block p of block row i, offsets[i] <= p < offsets[i+1], has block column
     * columns[p] and begins at values + (positions ? positions[p] : p) * block_stride; its element (r, c) is r * row_stride + c *
     * col_stride further. */
    long long m, n, k;
    int block_rows, block_cols;
    int grid_rows, grid_cols;
    long long nnzb;
    const int *offsets;   /* grid_rows + 1 */
    const int *columns;   /* nnzb */
    const int *positions; /* nnzb, or null: p */
    long long row_stride, col_stride, block_stride;
    /* operands; leading dimensions in elements */
    const void *values, *b, *c;
    void *d;
    const void *bias, *residual;
    void *preact;
    long long ldb, ldc, ldd, ldr, ldp;
    double alpha, beta; /* beta = 0: c is not read */
    void *workspace;
    /* SDDMM: M x N is the pattern's size, `values` is X, b is Y, d and c are arrays of values with the strides above. GEMM: `values` is A,
     * and there are no blocks */
    long long lda; /* of X, or A */
    /* a batch: elements from one item's array to the next's, 0: one for all */
    int items;
    int item_blocks; /* thread blocks of an item, where a program gives each its own */
    long long stride_a, stride_b, stride_c, stride_d, stride_r, stride_p, stride_bias;
    const int
        *ends; /* of groups: where each ends on the axis that is cut; items of them. The strides are those of what each has of its own */
} spk_cuda_arguments;

#endif
