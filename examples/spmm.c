/* Multiplies a block-sparse matrix by a dense one: five calls. Build: cc spmm.c $(pkg-config --cflags --libs sparsek) */
#include <sparsek/sparsek.h>
#include <stdio.h>

#define TRY(call)                                                  \
    if ((call) != SPK_OK) {                                        \
        fprintf(stderr, "sparsek: %s\n", spk_last_error(context)); \
        return 1;                                                  \
    }

int main(void)
{
    /* A is 4 x 6 in blocks of 2 x 3: block row 0 holds blocks 0 and 1, block row 1 holds block 1 only. */
    const int32_t offsets[] = {0, 2, 3}, columns[] = {0, 1, 1};
    const float values[] = {1, 2, 3, 4, 5, 6, /**/ 1, 0, 0, 0, 1, 0, /**/ 2, 0, 0, 0, 0, 2};
    float b[6 * 2] = {1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 6}, d[4 * 2];

    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    TRY(spk_context_create(NULL, &context));
    TRY(spk_pattern_create(context,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 6, .block_rows = 2, .block_cols = 3, .nnzb = 3,
                                              .row_offsets = offsets, .col_indices = columns},
                           &pattern));
    TRY(spk_plan_create_spmm(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 2, .activation = SPK_ACT_RELU}, NULL, &plan));
    TRY(spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1}, NULL));

    printf("%s\n", spk_plan_choice(plan));
    for (int i = 0; i < 4; i++)
        printf("%6.1f %6.1f\n", d[2 * i], d[2 * i + 1]);

    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    return 0;
}
