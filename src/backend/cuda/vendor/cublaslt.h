/* Dense products through cuBLASLt. */
#ifndef SPK_BACKEND_CUDA_VENDOR_CUBLASLT_H
#define SPK_BACKEND_CUDA_VENDOR_CUBLASLT_H

#include "backend/cuda/host/frame/rows.h"

enum { SPK_LT_ALGORITHMS = 16 };             /* recommendations that are asked for */
static const double spk_lt_rank_cost = 0.04; /* what one recommendation is expected to be slower than that before it, roughly */

/* d = act(alpha a b + beta c + bias) of `items` matrices each, as far as the library takes it. c: its leading dimension, stride and dtype
 * are looked at; no dtype: it is as d. */
typedef struct spk_lt_spec {
    spk_operand a, b, c, d;
    spk_dtype compute;
    int64_t items;
    bool bias;                 /* along d's lines, of d's dtype */
    spk_activation activation; /* none, ReLU, or GELU by tanh */
    int rank;                  /* the library's recommendation: 0 the first */
} spk_lt_spec;

typedef struct spk_lt_algo {
    uint64_t data[8];
} spk_lt_algo;

typedef struct spk_lt_product {
    void *handle, *desc, *layouts[4]; /* of the library's first and second operand, of c and d */
    spk_lt_algo aligned, unaligned;   /* for arrays at 16 bytes, and at their elements */
    size_t workspace_bytes;
    bool wide;    /* sums, alpha and beta in f64 */
    bool swapped; /* b is the first operand */
    bool bias;
} spk_lt_product;

/* Inside spk_cuda_enter, like the others; on failure *product is untouched. SPK_ERR_UNSUPPORTED: the library recommends nothing, or less
 * than that rank. */
spk_status spk_lt_make(const spk_device *device, const spk_lt_spec *spec, spk_lt_product *product);
void spk_lt_release(spk_lt_product *product); /* accepts a zeroed one */

typedef struct spk_lt_arrays {
    const void *a, *b, *c, *bias; /* c: d where there is none */
    void *d;
} spk_lt_arrays;
spk_status spk_lt_run(const spk_lt_product *product, double alpha, double beta, const spk_lt_arrays *arrays, void *workspace,
                      CUstream stream);

#endif
