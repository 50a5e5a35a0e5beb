/* Dense products through cuBLASLt. The library thinks in columns: a row-major array is its transpose. */
#ifndef SPK_BACKEND_CUDA_VENDOR_CUBLASLT_H
#define SPK_BACKEND_CUDA_VENDOR_CUBLASLT_H

#include "backend/cuda/cuda.h"

/* An array as it lies in memory, column by column. */
typedef struct spk_lt_operand {
    uint64_t rows, cols;
    int64_t ld;
    bool turned; /* the product takes its transpose; not of the result */
} spk_lt_operand;

/* d = alpha first second + beta c */
typedef struct spk_lt_spec {
    int type, out_type, compute; /* spk_cuda_data_type of the operands, of c and d; spk_lt_compute */
    spk_lt_operand first, second, d;
    int64_t ldc;
    int element_bytes; /* of the operands: their least alignment */
    bool may_align;    /* every leading dimension is whole 16 bytes: arrays that begin at 16 bytes get an algorithm of their own */
    int rank;          /* the library's recommendation: 0 the first */
} spk_lt_spec;

typedef struct spk_lt_algo {
    uint64_t data[8];
} spk_lt_algo;

typedef struct spk_lt_product {
    void *handle, *desc, *layouts[4]; /* of first, second, c, d */
    spk_lt_algo aligned, unaligned;   /* for arrays at 16 bytes, and at their elements */
    size_t workspace_bytes;
    bool wide; /* sums, alpha and beta in f64 */
} spk_lt_product;

/* Inside spk_cuda_enter, like the others; on failure *product is untouched. */
spk_status spk_lt_make(const spk_device *device, const spk_lt_spec *spec, spk_lt_product *product);
void spk_lt_release(spk_lt_product *product); /* accepts a zeroed one */
spk_status spk_lt_run(const spk_lt_product *product, double alpha, const void *first, const void *second, double beta, const void *c,
                      void *d, void *workspace, CUstream stream);

int spk_lt_compute(const spk_problem *problem);

#endif
