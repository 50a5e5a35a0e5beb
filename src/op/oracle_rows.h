/* What the oracles of matrix products share: sums of one row of D, in float64 or, for float64 inputs, in long double (where that is wider),
 * so that their own rounding stays far below every tolerance. */
#ifndef SPK_OP_ORACLE_ROWS_H
#define SPK_OP_ORACLE_ROWS_H

#include "type/f8.h"
#include "op/product.h"

typedef struct spk_row_oracle spk_row_oracle;

/* Adds the terms of columns col0 .. col0 + cols - 1 of a row to sum, and their absolute values to size: double, or long double for f64. */
typedef void (*spk_oracle_sums)(const spk_row_oracle *oracle, int64_t row, void *sum, void *size);

struct spk_row_oracle {
    const spk_problem *problem;
    const spk_args *args; /* of the item */
    const spk_bsr_view *view;
    int64_t col0, cols;
    const spk_oracle_sums *sums; /* SPK_ORACLE_SUMS */
    bool is_scaled;
    spk_scales scales; /* of the item */
    /* Before a row of an item: finds what its elements have in common. May be NULL. */
    void (*begin_row)(spk_row_oracle *oracle, int64_t row);
    /* Whether an element of an output is one of the result. NULL: all are; the others are 0. */
    bool (*is_there)(const spk_row_oracle *oracle, int64_t row, int64_t col);
    int64_t row0, col_of_block; /* for begin_row */
};

/* What sums are made for, of each type that products take: FUNCTION(name, element, type of the sum, conversion). And their table, by dtype,
 * of functions NAME. */
#define SPK_ORACLE_EACH(FUNCTION)                               \
    FUNCTION(sums_f32, float, double, )                         \
    FUNCTION(sums_f64, double, long double, )                   \
    FUNCTION(sums_f16, uint16_t, double, spk_f16_to_float)      \
    FUNCTION(sums_bf16, uint16_t, double, spk_bf16_to_float)    \
    FUNCTION(sums_f8e4m3, uint8_t, double, spk_f8e4m3_to_float) \
    FUNCTION(sums_f8e5m2, uint8_t, double, spk_f8e5m2_to_float) \
    FUNCTION(sums_i8, int8_t, double, )
#define SPK_ORACLE_SUMS                                                                                                       \
    {                                                                                                                         \
        [SPK_F32] = sums_f32, [SPK_F64] = sums_f64, [SPK_F16] = sums_f16, [SPK_BF16] = sums_bf16, [SPK_F8E4M3] = sums_f8e4m3, \
        [SPK_F8E5M2] = sums_f8e5m2, [SPK_INT8] = sums_i8                                                                      \
    }

/* Every row that is asked, through the sums and the epilogue. */
spk_status spk_oracle_rows(const spk_mem *mem, spk_row_oracle *oracle, const spk_args *args, const spk_oracle_ask *ask);

#endif
