/* What the oracles of matrix products share: sums of one row of D, in float64 or, for float64 inputs, in long double (where that is wider),
 * so that their own rounding stays far below every tolerance. */
#ifndef SPK_OP_ORACLE_ROWS_H
#define SPK_OP_ORACLE_ROWS_H

#include "op/product.h"
#include "type/value.h"

typedef struct spk_row_oracle spk_row_oracle;

/* Adds the terms of columns col0 .. col0 + cols - 1 of a row to sum, and their absolute values to size: double, or long double for f64. */
typedef void (*spk_oracle_sums)(const spk_row_oracle *oracle, int64_t row, void *sum, void *size);

struct spk_row_oracle {
    const spk_problem *problem;
    const spk_args *args; /* of the item */
    const spk_bsr_view *view;
    int64_t col0, cols;
    const spk_oracle_sums *sums; /* by dtype (op/oracle_types.h) */
    bool is_scaled;
    spk_scales scales; /* of the item */
    /* Before a row of an item: finds what its elements have in common. May be NULL. */
    void (*begin_row)(spk_row_oracle *oracle, int64_t row);
    /* Whether an element of an output is one of the result. NULL: all are; the others are 0. */
    bool (*is_there)(const spk_row_oracle *oracle, int64_t row, int64_t col);
    int64_t row0, col_of_block; /* for begin_row */
};

/* Every row that is asked, through the sums and the epilogue. */
spk_status spk_oracle_rows(const spk_mem *mem, spk_row_oracle *oracle, const spk_args *args, const spk_oracle_ask *ask);

#endif
