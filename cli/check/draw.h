/* How a case of `check` is drawn. Each starts as a product of a block-sparse and a dense matrix, whatever the operation: sizes, types,
 * layouts and epilogue are taken from there by who has them. */
#ifndef SPARSEK_CLI_CHECK_DRAW_H
#define SPARSEK_CLI_CHECK_DRAW_H

#include "cli/check/check.h"

/* The product, on its way. */
typedef struct check_draft {
    int64_t rows, cols, block_rows, block_cols; /* of A */
    int64_t m, k, n;                            /* of the product */
    spk_spmm spmm;
    double alpha, beta;
    bool alias_c, alias_residual;
    /* of an operation whose pattern is optional: whether there is one, of block_rows x block_cols; whose lists it has (1: all heads' alike)
     */
    bool masked;
    int64_t mask_heads;
    random_state *sizes; /* for what the cases of a family do not share, though the rest of their description they do */
} check_draft;

/* t: what a family of cases shares, r: the rest. tensor: for tensor cores and TMA. */
void check_draw_shape(random_state *r, bool gpu, bool tensor, check_draft *draft);
void check_redraw_sizes(random_state *r, check_draft *draft);
void check_draw_epilogue(random_state *t, random_state *r, spk_residual residual, check_draft *draft);
void check_draw_layouts(random_state *t, random_state *r, check_draft *draft);
void check_align_lds(random_state *t, random_state *r, check_draft *draft);

/* Tiles of scale factors, of a type that has them: often as large as these blocks. */
spk_scale check_draw_scale(random_state *r, spk_dtype dtype, int64_t rows, int64_t cols);

/* The description of an operation (and what of the draft differs for it), from a draft. */
void check_draw_spmm(random_state *r, bool gpu, check_draft *draft, operation_struct *given);
void check_draw_sddmm(random_state *r, bool gpu, check_draft *draft, operation_struct *given);
void check_draw_attention(random_state *r, bool gpu, check_draft *draft, operation_struct *given);
void check_draw_attention_backward(random_state *r, bool gpu, check_draft *draft, operation_struct *given);

/* Of attention and its gradients (attention.c, attention_scores.c): see check_own. */
void check_enlarge_scores(random_state *r, check_case *c);
void check_fill_scores(random_state *r, const check_case *c, int which, void *array);
void check_spoil_pages(random_state *r, const check_data *d);
spk_status check_attend(const check_data *d);
bool check_hide_attention(random_state *r, const check_data *d, int which, void *array);
bool check_hide_attention_backward(random_state *r, const check_data *d, int which, void *array);

/* Of any other: fields that the product has too have its values, the others are drawn by their kind. Leading dimensions come later. */
void check_draw_any(random_state *r, const operation *op, const check_draft *draft, operation_struct *given);

#endif
