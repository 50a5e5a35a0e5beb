/* What the matrix products share: their operands, their epilogue, their place in the tuning key. */
#ifndef SPK_OP_PRODUCT_H
#define SPK_OP_PRODUCT_H

#include "op/key.h"
#include "op/scale.h"

// clang-format off: it takes the braces of a table's rows for blocks

/* Rows of the table of operands: the values that the epilogue takes and gives lie like D. */
#define SPK_PRODUCT_D(args, extents_, may_be_) \
    [SPK_D] = {.name = "d", .title = "D", .extents = extents_, .role = SPK_ROLE_OUT, .may_be = may_be_, .place = offsetof(args, d)}
#define SPK_PRODUCT_C(args, extents_) \
    [SPK_C] = {.name = "c", .title = "C", .extents = extents_, .role = SPK_ROLE_IN_SCALED, .scalar = 1, .place = offsetof(args, c)}

/* The scalars of all products: alpha, and beta where C takes part. */
#define SPK_PRODUCT_SCALARS(args)                        \
    {                                                    \
        {"alpha", offsetof(args, alpha), -1, 0.75, 1},   \
        {                                                \
            "beta", offsetof(args, beta), SPK_C, -0.5, 1 \
        }                                                \
    }

/* Their scale factors, from operand `first` on: the last ones. */
#define SPK_PRODUCT_SCALES(args, first, a, b)                                                                                             \
    [first] = {.name = "scale_" #a, .title = "scale_" #a, .extents = "factors", .role = SPK_ROLE_IN, .place = offsetof(args, scale_##a)}, \
    [(first) +                                                                                                                            \
        1] = {.name = "scale_" #b, .title = "scale_" #b, .extents = "factors", .role = SPK_ROLE_IN, .place = offsetof(args, scale_##b)}

/* Fields of the tuning key: those that all products begin with, and those that end the exact part and the other. */
#define SPK_PRODUCT_KEY_FIRST                                                                                                              \
    {.name = "a", .exact = spk_key_a}, {.name = "b", .exact = spk_key_b}, {.name = "d", .exact = spk_key_d},                               \
        {.name = "acc", .exact = spk_key_compute}, {.name = "t", .exact = spk_key_trans}, {.name = "lv", .exact = spk_key_block_layout},   \
        {.name = "lb", .exact = spk_key_layout_b, .token_group = 1}, {.name = "ld", .exact = spk_key_layout_d, .token_group = 1},          \
        {.name = "ab", .exact = spk_key_alignment_b, .token_group = 1}, {.name = "ad", .exact = spk_key_alignment_d, .token_group = 1},    \
        {.name = "ep", .exact = spk_key_epilogue}, {.name = "batch", .exact = spk_key_batch}, {.name = "finite", .exact = spk_key_finite}, \
        {.name = "static", .exact = spk_key_static}, {.name = "cache", .exact = spk_key_cache},                                            \
        {.name = "scale", .exact = spk_key_scales},                                                                                        \
    {                                                                                                                                      \
        .name = "ix", .exact = spk_key_indices                                                                                             \
    }
#define SPK_PRODUCT_KEY_BATCH                   \
    {.name = "sa", .exact = spk_key_stride_a},  \
    {                                           \
        .name = "sb", .exact = spk_key_stride_b \
    }
#define SPK_PRODUCT_KEY_BLOCKS                                                                                        \
    {.name = "br", .near = spk_key_block_rows, .weight = 4}, {.name = "bc", .near = spk_key_block_cols, .weight = 4}, \
    {                                                                                                                 \
        .name = "nz", .near = spk_key_blocks, .weight = 1                                                             \
    }
#define SPK_PRODUCT_KEY_LAST                                                                             \
    {.name = "rs", .near = spk_key_spread, .weight = 0.5, .is_class_number = true, .step_tolerance = 3}, \
        {.name = "ov", .near = spk_key_overlap, .weight = 0.5, .is_class_number = true},                 \
    {                                                                                                    \
        .name = "items", .near = spk_key_items, .weight = 1, .token_group = 4                            \
    }

// clang-format on

/* An array of a pattern's values, as a matrix with a row for each line of a block. */
void spk_values_fit(const spk_pattern *pattern, spk_layout block_layout, spk_operand *operand);

/* The extents of D and of what lies like it, where the problem has it; and of bias. */
void spk_product_fit(spk_problem *problem, int64_t rows, int64_t cols);

/* Whether D and all that lies like it goes on from item to item so. */
bool spk_product_goes_on(const spk_problem *problem, bool (*goes_on)(const spk_operand *operand, int64_t items));

/* As spk_op.device_defines. layout_d: of D, or of its blocks; a_along_k: A is contiguous along K. */
int spk_product_defines(const spk_problem *problem, spk_layout layout_d, bool a_along_k, char *text, size_t size);

/* 2 M K N. */
double spk_product_dense_flops(const spk_problem *problem);

/* Of D and of preact: from the largest number of terms in a sum, eps * (8 + 2 sqrt(terms)), and what rounding to tf32 and to the dtype of
 * D adds. */
double spk_product_tolerance(const spk_problem *problem, double terms);

/* "none", or e.g. "beta+bias_row+gelu_erf+residual+preact", "factor" for a residual that multiplies; a buffer of 96 bytes is enough. */
void spk_epilogue_text(const spk_epilogue *epilogue, char *buffer, size_t size);

/* activation in float64, for the oracle and for scalar tails. */
double spk_activate_f64(spk_activation activation, double x);

/* An element of an output, and its magnitude, which bounds what rounding the terms and the activation (slope below 1.13) can do. */
typedef struct spk_finished {
    double value, magnitude;
} spk_finished;

/* A sum through the epilogue, at element (i, j) of output SPK_D or SPK_PREACT. `size`: the sum of the terms' absolute values. */
spk_finished spk_product_finish(const spk_problem *problem, const spk_args *args, int output, int64_t i, int64_t j, long double sum,
                                long double size);

/* Their functions. */
bool spk_key_a(const spk_problem *problem, char *text, size_t size);
bool spk_key_b(const spk_problem *problem, char *text, size_t size);
bool spk_key_d(const spk_problem *problem, char *text, size_t size);
bool spk_key_compute(const spk_problem *problem, char *text, size_t size);
bool spk_key_trans(const spk_problem *problem, char *text, size_t size);
bool spk_key_block_layout(const spk_problem *problem, char *text, size_t size);
bool spk_key_layout_a(const spk_problem *problem, char *text, size_t size);
bool spk_key_layout_b(const spk_problem *problem, char *text, size_t size);
bool spk_key_layout_d(const spk_problem *problem, char *text, size_t size);
bool spk_key_alignment_a(const spk_problem *problem, char *text, size_t size);
bool spk_key_alignment_b(const spk_problem *problem, char *text, size_t size);
bool spk_key_alignment_d(const spk_problem *problem, char *text, size_t size);
bool spk_key_epilogue(const spk_problem *problem, char *text, size_t size);
bool spk_key_scales(const spk_problem *problem, char *text, size_t size);
bool spk_key_stride_a(const spk_problem *problem, char *text, size_t size);
bool spk_key_stride_b(const spk_problem *problem, char *text, size_t size);
bool spk_key_m(const spk_problem *problem, int64_t *value);
bool spk_key_n(const spk_problem *problem, int64_t *value);
bool spk_key_k(const spk_problem *problem, int64_t *value);
bool spk_key_m_class(const spk_problem *problem, int64_t *value);
bool spk_key_n_class(const spk_problem *problem, int64_t *value);
bool spk_key_k_class(const spk_problem *problem, int64_t *value);

#endif
