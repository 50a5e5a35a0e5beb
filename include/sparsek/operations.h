/* sparsek: the operations: what each computes, its problem and its arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_OPERATIONS_H
#define SPARSEK_OPERATIONS_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_SIZED_spk_spmm sizeof(spk_spmm), .operation = SPK_SPMM
#define SPK_SIZED_spk_spmm_args sizeof(spk_spmm_args), .operation = SPK_SPMM
#define SPK_SIZED_spk_sddmm sizeof(spk_sddmm), .operation = SPK_SDDMM
#define SPK_SIZED_spk_sddmm_args sizeof(spk_sddmm_args), .operation = SPK_SDDMM
#define SPK_SIZED_spk_gemm sizeof(spk_gemm), .operation = SPK_GEMM
#define SPK_SIZED_spk_gemm_args sizeof(spk_gemm_args), .operation = SPK_GEMM
#define SPK_SIZED_spk_attention sizeof(spk_attention), .operation = SPK_ATTENTION
#define SPK_SIZED_spk_attention_args sizeof(spk_attention_args), .operation = SPK_ATTENTION
#define SPK_SIZED_spk_attention_backward sizeof(spk_attention_backward), .operation = SPK_ATTENTION_BACKWARD
#define SPK_SIZED_spk_attention_backward_args sizeof(spk_attention_backward_args), .operation = SPK_ATTENTION_BACKWARD

/* ------------------------------------------------------------------------------------------------ SpMM */

/* The stride of an input of a batch that all items share. */
#define SPK_STRIDE_SHARED (-1)

/* Scale factors of a matrix of f8e4m3, f8e5m2 or i8: each of its elements stands for itself times the factor that covers it. Factors are
 * float32, one for each tile of rows x cols elements of the matrix (of op(A), not of A), contiguous, row by row of tiles; a tile that the
 * edge cuts has a factor of its own. {1, SPK_SCALE_ALL}: one a row; {SPK_SCALE_ALL, SPK_SCALE_ALL}: one for all; {0, 0}: none, all are 1;
 * of SpMM's A also {SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}: one for each stored block, in the order of col_indices. If each item of a batch, or
 * each group, has its own matrix, it has its own factors, too; they follow one another. */
typedef struct spk_scale {
    int64_t rows, cols;
} spk_scale;

/* A side of a tile: all that there are along this axis. */
#define SPK_SCALE_ALL (-1)
/* Both sides of a tile: a factor for each stored block of SpMM's A. */
#define SPK_SCALE_BLOCK (-2)

/* D[M,N] = act(alpha * op(A)[M,K] B[K,N] + beta * C[M,N] + bias) + residual[M,N], or times residual[M,N]
 * with A = rows x cols of the pattern; op N: M = rows, K = cols; op T: M = cols, K = rows. D may be C. All arrays live on the
 * context's device. Accumulation is in float32 (float64 for float64; whole numbers are summed without rounding). An absent block
 * contributes nothing, whatever B holds. Dtypes: A and B f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8 (one for both); D the same, or f32 for
 * f16 and bf16; f32, f16 or bf16 for those of 8 bits. */
typedef struct spk_spmm {
    size_t struct_size;
    spk_operation operation; /* SPK_SPMM */
    spk_trans trans_a;       /* op(A): A, or A transposed */
    int64_t n;               /* columns of B and D, >= 0 */
    spk_dtype dtype_a;       /* values; default: SPK_F32 */
    spk_dtype dtype_b;       /* default: dtype_a */
    spk_dtype dtype_d;       /* C, D, bias, residual, preact; default: dtype_b, f32 for 8 bits */
    spk_dtype compute; /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: A and B may be rounded to 10 bits behind the point */
    spk_layout block_layout;   /* inside a block of values */
    spk_layout layout_b;       /* B: row- or column-major */
    spk_layout layout_d;       /* D, C, residual and preact */
    int use_c;                 /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t ldb, ldc, ldd;     /* 0: tight (the row length if row-major, the column length if column-major) */
    int64_t ldr, ldp;          /* of residual and preact; 0: tight */
    spk_bias bias;             /* per row: M values; per column: N values */
    spk_activation activation; /* of the sum, bias included */
    spk_residual residual;     /* what args.residual does after the activation */
    int keep_preact;           /* 1: the value before the activation goes to args.preact */
    int64_t batch;             /* items: products of one pattern, each with arrays of its own; 0: 1 */
    int64_t stride_a;          /* values from one item to the next; 0: one A for all */
    /* elements from one item to the next; 0: tight (leading dimension x lines); B, C: SPK_STRIDE_SHARED */
    int64_t stride_b, stride_c, stride_d;
    /* of residual (or SPK_STRIDE_SHARED) and preact. Items of D or preact may lie side by side in each line, and must not overlap. Bias is
     * one for all */
    int64_t stride_r, stride_p;
    spk_scale scale_a, scale_b; /* of op(A) and of B */
    int assume_finite;          /* a promise: B holds no inf or NaN. Kernels that multiply filled-in zeros may win then */
    /* a promise: values change only through spk_plan_update_values, so that packing them once is free. With stride_a, all items' values */
    int static_values;
} spk_spmm;

/* The arrays of one run of SpMM, and its scalars. */
typedef struct spk_spmm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_SPMM */
    int reserved;            /* 0 */
    const void *values; /* nnzb * block_rows * block_cols elements, in the order of col_indices; the overhang of edge blocks is ignored */
    const void *b;
    const void *c;                 /* with use_c; may equal d (then ldc must equal ldd) */
    void *d;                       /* shares no element with an input but c and residual, nor with preact. See below */
    const void *bias;              /* with bias */
    const void *residual;          /* with residual; may equal d (then ldr must equal ldd) */
    void *preact;                  /* with keep_preact */
    const void *scale_a, *scale_b; /* with scale_a, scale_b of the problem: float32 */
    double alpha;                  /* finite. 1 is not the default of a zeroed struct: spk_spmm_args_make sets it */
    double beta;                   /* finite with use_c; 0 never reads c */
    /* NULL: the plan's own. On the CPU for one thread at a time, a second one meanwhile allocates; on a GPU one for each stream. The bytes
     * of it that the plan needs are shared with no array of the run */
    void *workspace;
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_spmm_args;

/* Arrays that share no element may interleave, such as B and D as columns 0..1 and 2..3 of one row-major array. It is known of arrays with
 * equal leading dimensions in bytes and equal strides (one item and contiguous arrays fit any), and of items that lie apart as a whole;
 * others whose first and last elements enclose some of the other's are refused. */

/* ------------------------------------------------------------------------------------------------ SDDMM */

/* D = alpha * (X[M,K] Y[K,N] at the stored blocks) + beta * C
 * with M = rows, N = cols of the pattern; D and C are arrays of values: nnzb * block_rows * block_cols elements in the order of
 * col_indices. What of an edge block lies beyond M or N is written as zero, and not read from C. The gradient of SpMM by its values: X =
 * dL/dD, Y = B^T. Dtypes as of SpMM, X and Y for A and B. Accumulation is in float32 (float64 for float64; whole numbers are summed
 * exactly). */
typedef struct spk_sddmm {
    size_t struct_size;
    spk_operation operation; /* SPK_SDDMM */
    int assume_finite;       /* a promise: X and Y hold no inf or NaN; see spk_spmm */
    int64_t k;               /* columns of X and rows of Y, >= 0 */
    spk_dtype dtype_x;       /* default: SPK_F32 */
    spk_dtype dtype_y;       /* default: dtype_x */
    spk_dtype dtype_d;       /* C and D; default: dtype_y, f32 for 8 bits */
    spk_dtype compute; /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: X and Y may be rounded to 10 bits behind the point */
    spk_layout block_layout;                        /* inside a block of C and D */
    spk_layout layout_x, layout_y;                  /* row- or column-major */
    int use_c;                                      /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t ldx, ldy;                               /* 0: tight */
    int64_t batch;                                  /* items: products of one pattern, each with arrays of its own; 0: 1 */
    int64_t stride_x, stride_y, stride_c, stride_d; /* elements from one item to the next; 0: tight; X, Y, C: SPK_STRIDE_SHARED */
    spk_scale scale_x, scale_y;                     /* of X and Y */
} spk_sddmm;

/* The arrays of one run of SDDMM, and its scalars. */
typedef struct spk_sddmm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_SDDMM */
    int reserved;            /* 0 */
    const void *x;
    const void *y;
    const void *c;                 /* with use_c; may equal d */
    void *d;                       /* shares no element with an input but c; see spk_spmm_args */
    const void *scale_x, *scale_y; /* with scale_x, scale_y of the problem: float32 */
    double alpha;                  /* finite. 1 is not the default of a zeroed struct: spk_sddmm_args_make sets it */
    double beta;                   /* finite with use_c; 0 never reads c */
    void *workspace;               /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_sddmm_args;

/* ------------------------------------------------------------------------------------------------ GEMM */

/* D[M,N] = act(alpha * op(A)[M,K] op(B)[K,N] + beta * C[M,N] + bias) + residual[M,N], or times residual[M,N].
 * All matrices are dense: there is no pattern, and the calls that take one get NULL. D may be C. Accumulation is in float32 (float64 for
 * float64; whole numbers are summed without rounding). Dtypes as of SpMM. With K = 0 the product is 0. */
typedef struct spk_gemm {
    size_t struct_size;
    spk_operation operation;   /* SPK_GEMM */
    spk_group_axis group_axis; /* with groups */
    int64_t m, n, k;           /* >= 0 */
    spk_dtype dtype_a;         /* default: SPK_F32 */
    spk_dtype dtype_b;         /* default: dtype_a */
    spk_dtype dtype_d;         /* C, D, bias, residual, preact; default: dtype_b, f32 for 8 bits */
    spk_dtype compute;   /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: A and B may be rounded to 10 bits behind the point */
    spk_trans trans_a;   /* T: the array of A is K x M */
    spk_trans trans_b;   /* T: the array of B is N x K */
    spk_layout layout_a; /* of the array, as it is before op */
    spk_layout layout_b; /* likewise */
    spk_layout layout_d; /* D, C, residual and preact */
    int use_c;           /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t lda, ldb;    /* 0: tight (the row length of the array if row-major, its column length if column-major) */
    int64_t ldc, ldd;    /* 0: tight */
    int64_t ldr, ldp;    /* of residual and preact; 0: tight */
    spk_bias bias;       /* per row: M values; per column: N values */
    spk_activation activation; /* of the sum, bias included */
    spk_residual residual;     /* what args.residual does after the activation */
    int keep_preact;           /* 1: the value before the activation goes to args.preact */
    int64_t batch;             /* items: products with arrays of their own; 0: 1 */
    /* elements from one item to the next; 0: tight (leading dimension x lines); A, B, C: SPK_STRIDE_SHARED */
    int64_t stride_a, stride_b, stride_c, stride_d;
    /* of residual (or SPK_STRIDE_SHARED) and preact. Items of D or preact may lie side by side in each line, and must not overlap. Bias is
     * one for all */
    int64_t stride_r, stride_p;
    int64_t groups;             /* pieces that the product is cut into along group_axis; 0: none. See below */
    spk_scale scale_a, scale_b; /* of op(A) and op(B). Along the axis that groups cut a factor is of one element, or of all */
    int assume_finite;          /* a promise: A, B and bias hold no inf or NaN; see spk_spmm */
    int reserved;               /* 0 */
} spk_gemm;

/* Groups: the product is cut along an axis at args.offsets, `groups` int32 (on the context's device, like all arrays): where each group
 * ends, ascending; the first begins at 0, and a group may be empty. m, n and k are those of the whole. batch is 1.
 * - SPK_GROUP_ROWS: rows of A and of D; each group has a B of its own (a mixture of experts: tokens sorted by expert). A bias per column is
 *   groups x N, a line for each group.
 * - SPK_GROUP_COLS: columns of B and of D; each group has an A of its own. A bias per row is groups x M.
 * - SPK_GROUP_DEPTH: columns of A and rows of B; each group has a D of its own, with C, residual and preact (the gradient of the experts'
 *   weights). Bias is one for all.
 * Arrays that each group has for itself lie stride_a, stride_b, or stride_c, stride_d, stride_r, stride_p apart; the other strides must be
 * 0. Rows, columns or depth behind the last end take no part: nothing of D there is written. On the CPU wrong offsets are refused; on a GPU
 * they must be right.
 */

/* The arrays of one run of a dense product, and its scalars. */
typedef struct spk_gemm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_GEMM */
    int reserved;            /* 0 */
    const void *a;
    const void *b;
    const void *c;                 /* with use_c; may equal d (then ldc must equal ldd) */
    void *d;                       /* shares no element with an input but c and residual, nor with preact; see spk_spmm_args */
    const void *bias;              /* with bias */
    const void *residual;          /* with residual; may equal d (then ldr must equal ldd) */
    void *preact;                  /* with keep_preact */
    const void *offsets;           /* with groups */
    const void *scale_a, *scale_b; /* with scale_a, scale_b of the problem: float32 */
    double alpha;                  /* finite. 1 is not the default of a zeroed struct: spk_gemm_args_make sets it */
    double beta;                   /* finite with use_c; 0 never reads c */
    void *workspace;               /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_gemm_args;

/* ------------------------------------------------------------------------------------------------ attention */

/* O = softmax(scale Q K^T over the keys that each query sees) V, for each head of each item.
 * Q is queries x depth, K keys x depth, V keys x depth_v, O queries x depth_v, row by row. Arrays are on the context's device. Each row
 * is contiguous; rows, heads and items have strides of their own (item, head, row, column; or item, row, head, column).
 * Query i stands beside key i (SPK_DIAGONAL_TOP_LEFT, and where there are as many queries as keys), or beside key i + keys - queries
 * (SPK_DIAGONAL_BOTTOM_RIGHT). It sees the keys that neither causal nor a window excludes. Keys that it does not see have no influence,
 * whatever stands in their rows of K and V. A query that sees none has O = 0 and LSE = -infinity. Sums are in float32 (float64 for
 * float64). Dtypes: f32, f64, f16 or bf16, one for all four.
 * A pattern, where one is given (NULL: none), is a mask of blocks, of queries and of keys: a query sees only keys in the blocks that its
 * block row stores, and of those what causal and windows leave. Blocks may have any size; the pattern has `keys` columns. One list of
 * blocks may serve all heads, or mask_heads and mask_items say that there are more: for each of their heads, for each item. Lists stand one
 * below the other, each of ceil(queries / block_rows) block rows: list l of item i, of `mask_heads` lists, begins at block row
 * (i * mask_heads + l) * ceil(queries / block_rows). A single list has `queries` rows.
 *
 * What may change from run to run without a new plan is read where the arrays are, as int32 (on a GPU by its kernels, without a wait):
 * - sequences: Q, K, V and O hold so many sequences, one behind the other: `queries` and `keys` are those of all, and batch is 1. Sequence
 *   s has the queries [args.query_ends[s - 1], args.query_ends[s]) and the keys [args.key_ends[s - 1], args.key_ends[s]); the first begins
 *   at 0. (Of the usual offsets, which begin with 0, pass all but the first.) Queries see keys of their own sequence, whose first ones
 *   stand beside each other (top left), or whose last ones; sinks are its first keys. Behind the last end nothing is read or written. A
 *   pattern is over all queries and all keys.
 * - key_lengths: item i has its first args.key_ends[i] keys only, at most `keys`.
 * - page_keys: keys lie in pages of so many rows. K and V are `pages` pages, one behind the other, which all items share: row r of page p
 *   is row p * page_keys + r, and stride_k and stride_v are 0. args.page_table has ceil(keys / page_keys) numbers of pages for each item
 *   (or sequence): its keys 0 to page_keys - 1, and so on. With sequences `keys` is the most that one has, and args.key_ends their numbers.
 *   Numbers of pages behind an item's last key, and rows behind it in its last page, have no influence.
 * - tiles: a block of the pattern keeps all of its pairs, or those that a tile of bits says. args.tile_numbers has a number for each stored
 *   block, in the pattern's order: -1: all; t: tile t of the `tiles` in args.tile_bits. A tile is block_rows lines of
 *   ceil(block_cols / 32) words: bit j % 32 of word j / 32 is key j of the block, 1: kept.
 * On the CPU wrong numbers are refused; on a GPU they must be right. */
typedef struct spk_attention {
    size_t struct_size;
    spk_operation operation;    /* SPK_ATTENTION */
    spk_dtype dtype;            /* of Q, K, V and O; default: SPK_F32 */
    int64_t queries, keys;      /* of an item, >= 0 */
    int64_t depth;              /* columns of Q and K, >= 0 */
    int64_t depth_v;            /* columns of V and O; 0: as depth */
    int64_t batch;              /* items; 0: 1 */
    int64_t heads;              /* of Q and O; 0: 1 */
    int64_t heads_kv;           /* of K and V, divides heads: head h of Q goes with head h / (heads / heads_kv); 0: as heads */
    spk_diagonal diagonal;      /* with causal or a window where queries and keys differ: there is no default */
    int causal;                 /* 1: a query sees no key behind the one beside it */
    int64_t window_left;        /* a query sees so many keys up to the one beside it, which counts; 0: no limit */
    int64_t window_right;       /* so many from the one beside it on, which counts; 0: no limit. With causal: 0 */
    int64_t sinks;              /* with window_left: the first keys are seen whatever it says; causal and window_right hold for them, too */
    int use_softcap;            /* 1: a score s becomes softcap tanh(s / softcap) */
    int want_lse;               /* 1: args.lse gets the natural log of the sum of the exponentials of the scores */
    int64_t mask_heads;         /* with a pattern: lists of blocks in an item: 1, heads_kv or heads; 0: 1 */
    int64_t mask_items;         /* with a pattern: batch: each item has lists of its own; 0 or 1: all items have the same */
    int64_t ldq, ldk, ldv, ldo; /* from row to row; 0: tight */
    int64_t head_stride_q, head_stride_k, head_stride_v, head_stride_o, head_stride_lse; /* 0: tight (leading dimension x rows) */
    /* from item to item; 0: tight. Q, K, V: SPK_STRIDE_SHARED. Rows of O and of LSE must not overlap */
    int64_t stride_q, stride_k, stride_v, stride_o, stride_lse;
    int64_t sequences;        /* packed one behind the other; 0: none */
    int key_lengths;          /* 1: args.key_ends says how many keys each item has; sequences have them anyhow */
    int assume_finite;        /* a promise: V holds no inf or NaN, not even in rows that no query sees */
    int64_t page_keys, pages; /* rows of a page of K and V, pages in all; 0: K and V are no pages */
    int64_t tiles;            /* of bits, for some of the pattern's blocks; 0: none */
} spk_attention;

/* The arrays of one run of attention, and its scalars. */
typedef struct spk_attention_args {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION */
    int reserved;            /* 0 */
    const void *q;
    const void *k;
    const void *v;
    void *o;   /* shares no element with an input, nor with lse */
    void *lse; /* with want_lse: queries numbers for each head, f32 (f64 for f64) */
    /* int32, see spk_attention */
    const void *query_ends;   /* with sequences */
    const void *key_ends;     /* with sequences or key_lengths */
    const void *page_table;   /* with page_keys */
    const void *tile_numbers; /* with tiles */
    const void *tile_bits;    /* with tiles */
    double scale;    /* finite; usually 1 / sqrt(depth), which is not the default of a zeroed struct: see spk_attention_args_make */
    double softcap;  /* finite; with use_softcap. 0: none */
    void *workspace; /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_attention_args;

/* Gradients of attention: from O, LSE and the gradient of a loss with respect to O, those with respect to Q, K and V. With the scores
 * S = scale Q K^T, which a soft cap may bend to T = softcap tanh(S / softcap), over the pairs that are kept:
 *     P = exp(T - LSE), D = rows' sums of grad_O O, minus grad_LSE
 *     grad_S = P (grad_O V^T - D), times 1 - (T / softcap)^2 with a soft cap
 *     grad_Q = scale grad_S K, grad_K = scale grad_S^T Q, grad_V = P^T grad_O
 * where grad_K and grad_V are sums over the heads of Q that share a head of K and V (Dao et al. 2022, arXiv:2205.14135, appendix B). O and
 * LSE must be what attention gave for these Q, K and V: they are not computed again. A query whose LSE is -infinity has no gradient: its P
 * is 0. What a pair that is not kept has in Q, K, V, O, grad_O and LSE has no influence on it. Sums are in float32 (float64 for float64),
 * in an order that is the same on every run, with the same number of threads. Members as in spk_attention, which describes the mask, the
 * sequences, the lengths and the tiles; there are no pages. Behind the last end of sequences nothing is read or written. Where key_lengths
 * ends an item's keys, the rows of grad_K and grad_V behind them are 0. */
typedef struct spk_attention_backward {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION_BACKWARD */
    spk_dtype dtype;         /* of Q, K, V, O and their gradients; default: SPK_F32 */
    int64_t queries, keys, depth, depth_v, batch, heads, heads_kv;
    spk_diagonal diagonal;
    int causal;
    int64_t window_left, window_right, sinks;
    int use_softcap;
    int use_grad_lse; /* 1: the loss depends on LSE, too: args.grad_lse is read */
    /* lists of a mask; of the arrays of attention from row to row, from head to head, from item to item: as in spk_attention */
    int64_t mask_heads, mask_items;
    int64_t ldq, ldk, ldv, ldo;
    int64_t head_stride_q, head_stride_k, head_stride_v, head_stride_o, head_stride_lse;
    int64_t stride_q, stride_k, stride_v, stride_o, stride_lse;
    /* of the gradients, each of the shape of what it belongs to; 0: tight. Rows of grad_q, grad_k and grad_v must not overlap;
     * stride_grad_o and stride_grad_lse may be SPK_STRIDE_SHARED */
    int64_t ld_grad_o, ld_grad_q, ld_grad_k, ld_grad_v;
    int64_t head_stride_grad_o, head_stride_grad_lse, head_stride_grad_q, head_stride_grad_k, head_stride_grad_v;
    int64_t stride_grad_o, stride_grad_lse, stride_grad_q, stride_grad_k, stride_grad_v;
    int64_t sequences;
    int key_lengths;
    int assume_finite; /* a promise: no array that is read holds inf or NaN, not even in rows that take no part (LSE may be -infinity) */
    int64_t tiles;
} spk_attention_backward;

/* The arrays of one run of the gradients of attention, and its scalars. */
typedef struct spk_attention_backward_args {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION_BACKWARD */
    int reserved;            /* 0 */
    const void *q;
    const void *k;
    const void *v;
    const void *o;
    const void *lse; /* queries numbers for each head, f32 (f64 for f64). Of these scores: a weight exp(score - lse) above 1 counts as 1 */
    const void *grad_o;
    const void *grad_lse; /* with use_grad_lse: as lse */
    void *grad_q;         /* the three share no element with an input, nor with one another */
    void *grad_k;
    void *grad_v;
    /* int32, see spk_attention */
    const void *query_ends;   /* with sequences */
    const void *key_ends;     /* with sequences or key_lengths */
    const void *tile_numbers; /* with tiles */
    const void *tile_bits;    /* with tiles */
    double scale;             /* as attention had it */
    double softcap;           /* likewise; with use_softcap */
    void *workspace;          /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_attention_backward_args;

/* ------------------------------------------------------------------------------------------------ arguments to begin with */

/* Arguments of a run of SpMM with alpha = 1, beta = 0 and no arrays yet. */
static inline spk_spmm_args spk_spmm_args_make(void)
{
    spk_spmm_args args = SPK_ZERO;
    args.struct_size = sizeof args;
    args.operation = SPK_SPMM;
    args.alpha = 1;
    return args;
}

/* The same of SDDMM. */
static inline spk_sddmm_args spk_sddmm_args_make(void)
{
    spk_sddmm_args args = SPK_ZERO;
    args.struct_size = sizeof args;
    args.operation = SPK_SDDMM;
    args.alpha = 1;
    return args;
}

/* The same of a dense product. */
static inline spk_gemm_args spk_gemm_args_make(void)
{
    spk_gemm_args args = SPK_ZERO;
    args.struct_size = sizeof args;
    args.operation = SPK_GEMM;
    args.alpha = 1;
    return args;
}

/* Arguments of a run of attention with this scale of the scores, usually 1 / sqrt(depth). */
static inline spk_attention_args spk_attention_args_make(double scale)
{
    spk_attention_args args = SPK_ZERO;
    args.struct_size = sizeof args;
    args.operation = SPK_ATTENTION;
    args.scale = scale;
    return args;
}

/* The same of the gradients of attention. */
static inline spk_attention_backward_args spk_attention_backward_args_make(double scale)
{
    spk_attention_backward_args args = SPK_ZERO;
    args.struct_size = sizeof args;
    args.operation = SPK_ATTENTION_BACKWARD;
    args.scale = scale;
    return args;
}

#ifdef __cplusplus
}

extern "C++" {
template <> inline void spk_set_operation(spk_spmm &made)
{
    made.operation = SPK_SPMM;
}
template <> inline void spk_set_operation(spk_spmm_args &made)
{
    made.operation = SPK_SPMM;
}
template <> inline void spk_set_operation(spk_sddmm &made)
{
    made.operation = SPK_SDDMM;
}
template <> inline void spk_set_operation(spk_sddmm_args &made)
{
    made.operation = SPK_SDDMM;
}
template <> inline void spk_set_operation(spk_gemm &made)
{
    made.operation = SPK_GEMM;
}
template <> inline void spk_set_operation(spk_gemm_args &made)
{
    made.operation = SPK_GEMM;
}
template <> inline void spk_set_operation(spk_attention &made)
{
    made.operation = SPK_ATTENTION;
}
template <> inline void spk_set_operation(spk_attention_args &made)
{
    made.operation = SPK_ATTENTION;
}
template <> inline void spk_set_operation(spk_attention_backward &made)
{
    made.operation = SPK_ATTENTION_BACKWARD;
}
template <> inline void spk_set_operation(spk_attention_backward_args &made)
{
    made.operation = SPK_ATTENTION_BACKWARD;
}
}
#endif
#endif /* SPARSEK_OPERATIONS_H */
