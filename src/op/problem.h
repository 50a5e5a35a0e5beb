/* The problem: what to compute, normalised. One struct for every operation, so that the key, the table and the tuner have one shape. */
#ifndef SPK_OP_PROBLEM_H
#define SPK_OP_PROBLEM_H

#include <stdbool.h>

#include "base/dtype.h"
#include "matrix/pattern.h"

typedef struct spk_epilogue {
    bool use_c, keep_preact;
    spk_residual residual;
    spk_bias bias;
    spk_activation activation;
} spk_epilogue;

/* SpMM:  D[M,N] = epilogue(alpha op(A)[M,K] B[K,N] + beta C): A is the values of the pattern, M and K its rows and columns after op.
 * SDDMM: D = alpha (X[M,K] Y[K,N] at the stored blocks) + beta C: A is X, B is Y, M and N are the pattern's rows and columns; D and C are
 * arrays of values in the pattern's order. What of an edge block lies beyond M or N is zero in D, and C is not read there. */
typedef struct spk_problem {
    spk_operation operation;
    spk_pattern *pattern;                         /* borrowed here; a plan shares it */
    int64_t m, n, k;                              /* of the product */
    spk_trans trans_a;                            /* SpMM */
    spk_dtype dtype_a, dtype_b, dtype_d, compute; /* never SPK_DTYPE_DEFAULT */
    spk_layout block_layout;                      /* of an array of values */
    spk_layout layout_a;                          /* of X */
    spk_layout layout_b, layout_d;
    /* never 0 where the array has elements; lda: of X; ldc and ldd of SDDMM: the length of a line of a block */
    int64_t lda, ldb, ldc, ldd, ldr, ldp;
    spk_epilogue epilogue;
    int64_t batch; /* >= 1 */
    /* Elements from one item of the batch to the next; 0: one array for all. Bias is one for all. */
    int64_t stride_a, stride_b, stride_c, stride_d, stride_r, stride_p;
    /* promises of the caller (spk_tune_options) */
    bool assume_finite, static_values;
    spk_cache_mode cache;
} spk_problem;

/* What a run works on, for every operation. */
typedef struct spk_args {
    const void *a, *b, *c;
    void *d;
    const void *bias, *residual;
    void *preact;
    double alpha, beta;
    void *workspace;
    size_t workspace_bytes;
} spk_args;

/* Checks a caller's description and makes it a problem (op/spmm.c, op/sddmm.c). options may be NULL. */
spk_status spk_problem_from_spmm(spk_pattern *pattern, const spk_spmm *spmm, const spk_tune_options *options, spk_problem *problem);
spk_status spk_problem_from_sddmm(spk_pattern *pattern, const spk_sddmm *sddmm, const spk_tune_options *options, spk_problem *problem);

/* A batch of one A whose items of B and D lie as the columns of one array: becomes that one product, which every kernel can compute. */
void spk_problem_fold(spk_problem *problem);

/* Checks the arguments of a run against the problem: NULL, alignment to the element, overlap of d with inputs, workspace. */
spk_status spk_problem_check_args(const spk_problem *problem, const spk_args *args);

/* The inputs alone: for who writes elsewhere. */
spk_status spk_problem_check_inputs(const spk_problem *problem, const spk_args *args);

/* D of an item as a matrix: M x N, or nnzb * block_rows rows of block_cols values (column-major blocks: nnzb * block_cols rows of
 * block_rows). */
int64_t spk_problem_d_rows(const spk_problem *problem);
int64_t spk_problem_d_cols(const spk_problem *problem);
bool spk_problem_is_empty(const spk_problem *problem); /* D has no element */

/* Stored-block FLOPs: 2 * nnzb * block_rows * block_cols * N (SDDMM: K). Dense FLOPs: 2 M K N. Each for the whole batch. */
double spk_problem_flops(const spk_problem *problem);
double spk_problem_dense_flops(const spk_problem *problem);

typedef enum spk_operand {
    SPK_OPERAND_A,
    SPK_OPERAND_B,
    SPK_OPERAND_C,
    SPK_OPERAND_D,
    SPK_OPERAND_BIAS,
    SPK_OPERAND_RESIDUAL,
    SPK_OPERAND_PREACT,
    SPK_OPERAND_COUNT
} spk_operand;

void *spk_args_get(const spk_args *args, spk_operand operand);
void spk_args_set(spk_args *args, spk_operand operand, void *pointer);
const char *spk_problem_operand_name(const spk_problem *problem, spk_operand operand); /* as the caller's arguments call it */
spk_dtype spk_problem_operand_dtype(const spk_problem *problem, spk_operand operand);
int64_t spk_problem_operand_stride(const spk_problem *problem, spk_operand operand);

/* How an item of an operand lies in memory: `lines` times `length` elements, `ld` apart. lines = 0: it has no elements. */
typedef struct spk_lines {
    int64_t lines, length, ld;
} spk_lines;

spk_lines spk_problem_operand_lines(const spk_problem *problem, spk_operand operand);

/* Elements from the first to the last that an operand occupies, (leading dimension) * (count - 1) + row length in an item; 0 for an empty
 * one. */
int64_t spk_problem_item_elements(const spk_problem *problem, spk_operand operand);
int64_t spk_problem_operand_elements(const spk_problem *problem, spk_operand operand); /* of the whole batch */

/* Bytes of an operand that a run must read or write once: of a dense input no more than the stored blocks ask for. And of all operands. */
double spk_problem_touched_bytes(const spk_problem *problem, spk_operand operand);
double spk_problem_bytes(const spk_problem *problem);

/* One item of a batch: the problem with batch = 1, and its arguments. */
spk_problem spk_problem_item(const spk_problem *problem);
spk_args spk_args_item(const spk_problem *problem, const spk_args *args, int64_t item);

/* "spmm", "sddmm"; NULL for an unknown one. */
const char *spk_operation_name(spk_operation operation);

/* "none", or e.g. "beta+bias_row+gelu_erf+residual+preact", "factor" for a residual that multiplies; buffer of 96 bytes is enough. */
void spk_epilogue_text(const spk_epilogue *epilogue, char *buffer, size_t size);

/* The tolerance from the largest number of terms in a sum, eps * (8 + 2 sqrt(terms)), and what rounding to tf32 and to the dtype of D
 * adds. */
double spk_problem_tolerance(const spk_problem *problem);

/* Oracle (op/oracle.c); same contract as spk_oracle_spmm. Rows are those of D (spk_problem_d_rows), of item i from i * rows on. */
spk_status spk_oracle_run(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const int64_t *rows, int64_t row_count,
                          double *out, double *preact, double *magnitude);

/* activation in float64 (op/activation.c), for the oracle and for scalar tails. */
double spk_activate_f64(spk_activation activation, double x);

#endif
