/* The three products of a linear layer y = x W^T with a block-sparse W: forward, gradient of x, gradient of W.
 * docs/training.md says how they map.
 *
 * Build: cc training.c $(pkg-config --cflags --libs sparsek) */
#include <sparsek/sparsek.h>
#include <stdio.h>

#define TRY(call)                                                  \
    if ((call) != SPK_OK) {                                        \
        fprintf(stderr, "sparsek: %s\n", spk_last_error(context)); \
        return 1;                                                  \
    }

enum { TOKENS = 3, IN = 6, OUT = 4, BLOCKS = 3, ROWS = 2, COLS = 3 };

static void print(const char *name, const float *matrix, int rows, int cols)
{
    printf("%s\n", name);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            printf("%7.1f%s", matrix[i * cols + j], j + 1 < cols ? "" : "\n");
}

int main(void)
{
    /* W is OUT x IN in blocks of ROWS x COLS: block row 0 holds blocks 0 and 1, block row 1 holds block 1 only. */
    const int32_t offsets[] = {0, 2, 3}, columns[] = {0, 1, 1};
    const float w[BLOCKS * ROWS * COLS] = {1, 2, 3, 4, 5, 6, /**/ 1, 0, 0, 0, 1, 0, /**/ 2, 0, 0, 0, 0, 2};
    /* Activations and their gradients have a row for each token, so they are x^T and y^T by columns. */
    const float x[TOKENS * IN] = {1, 1, 1, 1, 1, 1, /**/ 1, 2, 3, 4, 5, 6, /**/ 0, 0, 1, 0, 0, -1};
    const float dy[TOKENS * OUT] = {1, 0, 0, 0, /**/ 0, 1, 2, 0, /**/ -1, 0, 0, 1};
    float y[TOKENS * OUT], dx[TOKENS * IN], dw[BLOCKS * ROWS * COLS] = {0};

    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *forward = NULL, *grad_x = NULL, *grad_w = NULL;
    TRY(spk_context_create(NULL, &context));
    TRY(spk_pattern_create(context,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = OUT, .cols = IN, .block_rows = ROWS, .block_cols = COLS,
                                              .nnzb = BLOCKS, .row_offsets = offsets, .col_indices = columns},
                           &pattern));

    /* y^T = W x^T */
    spk_spmm product = {SPK_SIZED(spk_spmm), .n = TOKENS, .layout_b = SPK_COL_MAJOR, .layout_d = SPK_COL_MAJOR};
    TRY(spk_plan_create_spmm(context, pattern, &product, NULL, &forward));
    /* dx^T = W^T dy^T: the same values, read in place */
    product.trans_a = SPK_TRANS;
    TRY(spk_plan_create_spmm(context, pattern, &product, NULL, &grad_x));
    /* dW += dy^T x at W's blocks; dW has the order of W's values */
    TRY(spk_plan_create_sddmm(context, pattern, &(spk_sddmm){SPK_SIZED(spk_sddmm), .k = TOKENS, .layout_x = SPK_COL_MAJOR, .use_c = 1},
                              NULL, &grad_w));

    TRY(spk_plan_run_spmm(forward, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = w, .b = x, .d = y, .alpha = 1}, NULL));
    TRY(spk_plan_run_spmm(grad_x, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = w, .b = dy, .d = dx, .alpha = 1}, NULL));
    TRY(spk_plan_run_sddmm(grad_w, &(spk_sddmm_args){SPK_SIZED(spk_sddmm_args), .x = dy, .y = x, .c = dw, .d = dw, .alpha = 1, .beta = 1},
                           NULL));

    print("y", y, TOKENS, OUT);
    print("dx", dx, TOKENS, IN);
    print("dW, a block a line", dw, BLOCKS, ROWS * COLS);

    spk_plan_destroy(&grad_w);
    spk_plan_destroy(&grad_x);
    spk_plan_destroy(&forward);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    return 0;
}
