/* The operators: their schemas, and the parameters of the functions that implement them. Made by scripts/python_operators.py. */
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "../state.h"

// clang-format off
/* Parameters that several functions have, and their names, to hand them on. */
#define SPARSE_PARAMETERS \
    const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense, \
    const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags
#define SPARSE_ARGUMENTS \
    values, row_offsets, col_indices, dense, bias, rows, cols, flags
#define SAMPLE_PARAMETERS \
    const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols, \
    int64_t block_rows, int64_t block_cols, int64_t flags
#define SAMPLE_ARGUMENTS \
    x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags
#define DENSE_PARAMETERS \
    const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual
#define DENSE_ARGUMENTS \
    a, b, bias, residual
#define SCALED_SPARSE_PARAMETERS \
    const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense, int64_t rows, int64_t cols, \
    int64_t flags
#define SCALED_SPARSE_ARGUMENTS \
    values, row_offsets, col_indices, dense, rows, cols, flags
#define SCALES_PARAMETERS \
    const std::optional<Tensor> &scale_a, const std::optional<Tensor> &scale_b, const std::optional<Tensor> &bias, \
    int64_t tile_a_rows, int64_t tile_a_cols, int64_t tile_b_rows, int64_t tile_b_cols, int64_t result
#define SCALES_ARGUMENTS \
    scale_a, scale_b, bias, tile_a_rows, tile_a_cols, tile_b_rows, tile_b_cols, result
#define QKV_PARAMETERS \
    const Tensor &q, const Tensor &k, const Tensor &v
#define QKV_ARGUMENTS \
    q, k, v
#define ATTENTION_OPTIONS_PARAMETERS \
    const std::optional<Tensor> &row_offsets, const std::optional<Tensor> &col_indices, int64_t block_rows, int64_t block_cols, \
    int64_t mask_heads, int64_t mask_items, int64_t window_left, int64_t window_right, int64_t sinks, std::optional<double> scale, \
    double softcap, int64_t flags, const std::optional<Tensor> &query_ends, const std::optional<Tensor> &key_ends, \
    const std::optional<Tensor> &page_table, const std::optional<Tensor> &tile_numbers, const std::optional<Tensor> &tile_bits
#define ATTENTION_OPTIONS_ARGUMENTS \
    row_offsets, col_indices, block_rows, block_cols, mask_heads, mask_items, window_left, window_right, sinks, scale, softcap, flags, \
    query_ends, key_ends, page_table, tile_numbers, tile_bits
#define RESULTS_PARAMETERS \
    const Tensor &grad_o, const std::optional<Tensor> &grad_lse, const Tensor &o, const Tensor &lse
#define RESULTS_ARGUMENTS \
    grad_o, grad_lse, o, lse
#define REPORT_PARAMETERS \
    int64_t action, int64_t rounds
#define REPORT_ARGUMENTS \
    action, rounds

/* ROW(name, function, schema, (the function's parameters), what it returns) */
#define OPERATORS(ROW) \
    ROW(spmm, spmm, \
        "spmm(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, " \
        "int flags) -> Tensor", \
        (SPARSE_PARAMETERS), Tensor) \
    ROW(sddmm, sddmm, \
        "sddmm(Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols, " \
        "int flags) -> Tensor", \
        (SAMPLE_PARAMETERS), Tensor) \
    ROW(_spmm, raw_spmm, \
        "_spmm(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, int flags, " \
        "int version) -> Tensor", \
        (SPARSE_PARAMETERS, int64_t version), Tensor) \
    ROW(_spmm_out, raw_spmm_out, \
        "_spmm_out(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, " \
        "int flags, int version, Tensor(a!) out) -> ()", \
        (SPARSE_PARAMETERS, int64_t version, Tensor out), void) \
    ROW(_spmm_added, raw_spmm_added, \
        "_spmm_added(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, " \
        "int flags, int version, Tensor residual, Tensor(a!) out) -> ()", \
        (SPARSE_PARAMETERS, int64_t version, const Tensor &residual, Tensor out), void) \
    ROW(_sddmm, raw_sddmm, \
        "_sddmm(Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols, " \
        "int flags, int version) -> Tensor", \
        (SAMPLE_PARAMETERS, int64_t version), Tensor) \
    ROW(_sddmm_out, raw_sddmm_out, \
        "_sddmm_out(Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, " \
        "int block_cols, int flags, int version, Tensor(a!) out) -> ()", \
        (SAMPLE_PARAMETERS, int64_t version, Tensor out), void) \
    ROW(_spmm_gradients, raw_gradients, \
        "_spmm_gradients(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor gradient, int rows, " \
        "int cols, int flags, int version, int want) -> (Tensor?, Tensor?)", \
        (const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense, const Tensor &gradient, \
        int64_t rows, int64_t cols, int64_t flags, int64_t version, int64_t want), std::tuple<std::optional<Tensor>, \
        std::optional<Tensor>>) \
    ROW(gemm, gemm, \
        "gemm(Tensor a, Tensor b, Tensor? bias, Tensor? residual, Tensor? offs, int flags) -> Tensor", \
        (DENSE_PARAMETERS, const std::optional<Tensor> &offs, int64_t flags), Tensor) \
    ROW(_gemm, gemm, \
        "_gemm(Tensor a, Tensor b, Tensor? bias, Tensor? residual, Tensor? offs, int flags) -> Tensor", \
        (DENSE_PARAMETERS, const std::optional<Tensor> &offs, int64_t flags), Tensor) \
    ROW(_gemm_out, raw_gemm_out, \
        "_gemm_out(Tensor a, Tensor b, Tensor? bias, Tensor? residual, int flags, Tensor(a!) out) -> ()", \
        (DENSE_PARAMETERS, int64_t flags, Tensor out), void) \
    ROW(scaled_spmm, scaled_spmm, \
        "scaled_spmm(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, int rows, int cols, int flags, " \
        "Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, int tile_a_cols, int tile_b_rows, int tile_b_cols, " \
        "int result) -> Tensor", \
        (SCALED_SPARSE_PARAMETERS, SCALES_PARAMETERS), Tensor) \
    ROW(scaled_gemm, scaled_gemm, \
        "scaled_gemm(Tensor a, Tensor b, int flags, Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, " \
        "int tile_a_cols, int tile_b_rows, int tile_b_cols, int result) -> Tensor", \
        (const Tensor &a, const Tensor &b, int64_t flags, SCALES_PARAMETERS), Tensor) \
    ROW(_report_scaled_spmm, report_scaled_spmm, \
        "_report_scaled_spmm(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, int rows, int cols, int flags, " \
        "Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, int tile_a_cols, int tile_b_rows, int tile_b_cols, " \
        "int result, int action, int rounds) -> str", \
        (SCALED_SPARSE_PARAMETERS, SCALES_PARAMETERS, REPORT_PARAMETERS), std::string) \
    ROW(_report_scaled_gemm, report_scaled_gemm, \
        "_report_scaled_gemm(Tensor a, Tensor b, int flags, Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, " \
        "int tile_a_cols, int tile_b_rows, int tile_b_cols, int result, int action, int rounds) -> str", \
        (const Tensor &a, const Tensor &b, int64_t flags, SCALES_PARAMETERS, REPORT_PARAMETERS), std::string) \
    ROW(attention, attention, \
        "attention(Tensor q, Tensor k, Tensor v, Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, " \
        "int mask_heads, int mask_items, int window_left, int window_right, int sinks, float? scale, float softcap, int flags, " \
        "Tensor? query_ends=None, Tensor? key_ends=None, Tensor? page_table=None, Tensor? tile_numbers=None, " \
        "Tensor? tile_bits=None) -> Tensor", \
        (QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS), Tensor) \
    ROW(attention_lse, attention_lse, \
        "attention_lse(Tensor q, Tensor k, Tensor v, Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, " \
        "int mask_heads, int mask_items, int window_left, int window_right, int sinks, float? scale, float softcap, int flags, " \
        "Tensor? query_ends=None, Tensor? key_ends=None, Tensor? page_table=None, Tensor? tile_numbers=None, " \
        "Tensor? tile_bits=None) -> (Tensor, Tensor)", \
        (QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS), std::tuple<Tensor, Tensor>) \
    ROW(_attention, raw_attention, \
        "_attention(Tensor q, Tensor k, Tensor v, Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, " \
        "int mask_heads, int mask_items, int window_left, int window_right, int sinks, float? scale, float softcap, int flags, " \
        "Tensor? query_ends, Tensor? key_ends, Tensor? page_table, Tensor? tile_numbers, Tensor? tile_bits, " \
        "int version) -> Tensor", \
        (QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version), Tensor) \
    ROW(_attention_lse, raw_attention_lse, \
        "_attention_lse(Tensor q, Tensor k, Tensor v, Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, " \
        "int mask_heads, int mask_items, int window_left, int window_right, int sinks, float? scale, float softcap, int flags, " \
        "Tensor? query_ends, Tensor? key_ends, Tensor? page_table, Tensor? tile_numbers, Tensor? tile_bits, " \
        "int version) -> (Tensor, Tensor)", \
        (QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version), std::tuple<Tensor, Tensor>) \
    ROW(attention_backward, attention_backward, \
        "attention_backward(Tensor grad_o, Tensor? grad_lse, Tensor o, Tensor lse, Tensor q, Tensor k, Tensor v, " \
        "Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, int mask_heads, int mask_items, " \
        "int window_left, int window_right, int sinks, float? scale, float softcap, int flags, Tensor? query_ends=None, " \
        "Tensor? key_ends=None, Tensor? page_table=None, Tensor? tile_numbers=None, Tensor? tile_bits=None) -> (Tensor, Tensor, " \
        "Tensor)", \
        (RESULTS_PARAMETERS, QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS), std::tuple<Tensor, Tensor, Tensor>) \
    ROW(_attention_backward, raw_attention_backward, \
        "_attention_backward(Tensor grad_o, Tensor? grad_lse, Tensor o, Tensor lse, Tensor q, Tensor k, Tensor v, " \
        "Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, int mask_heads, int mask_items, " \
        "int window_left, int window_right, int sinks, float? scale, float softcap, int flags, Tensor? query_ends, " \
        "Tensor? key_ends, Tensor? page_table, Tensor? tile_numbers, Tensor? tile_bits, int version) -> (Tensor, Tensor, Tensor)", \
        (RESULTS_PARAMETERS, QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version), std::tuple<Tensor, Tensor, Tensor>) \
    ROW(_report_gemm, report_gemm, \
        "_report_gemm(Tensor a, Tensor b, Tensor? bias, Tensor? residual, Tensor? offs, int flags, int action, int rounds) -> str", \
        (DENSE_PARAMETERS, const std::optional<Tensor> &offs, int64_t flags, REPORT_PARAMETERS), std::string) \
    ROW(_report_spmm, report_spmm, \
        "_report_spmm(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, " \
        "int flags, int action, int rounds) -> str", \
        (SPARSE_PARAMETERS, REPORT_PARAMETERS), std::string) \
    ROW(_report_sddmm, report_sddmm, \
        "_report_sddmm(Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, " \
        "int block_cols, int flags, int action, int rounds) -> str", \
        (SAMPLE_PARAMETERS, REPORT_PARAMETERS), std::string) \
    ROW(_inspect, inspect, \
        "_inspect(Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols) -> str", \
        (const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols), \
        std::string)

namespace sparse_autotune {

/* Where the arguments of _spmm stand: tensors, then whole numbers. */
enum { VALUES, ROW_OFFSETS, COL_INDICES, DENSE, BIAS, SPMM_TENSORS };
enum { ROWS, COLS, FLAGS, VERSION, SPMM_NUMBERS };
/* So many has _spmm_gradients. */
enum { GRADIENTS_TENSORS = 5, GRADIENTS_NUMBERS = 5 };
/* Where those of direct_attention stand. */
struct DirectAttention {
    enum { Q, K, V, LEFT, RIGHT, FIRST, SCALE, SOFTCAP, FLAGS, MAY_SHARE_HEADS, ARGUMENTS };
};

/* What an operator of attention gets beside q, k and v. */
struct AttentionOptions {
    std::optional<Tensor> row_offsets; /* with col_indices: a mask of blocks */
    std::optional<Tensor> col_indices;
    int64_t block_rows;
    int64_t block_cols;
    int64_t mask_heads;
    int64_t mask_items;
    int64_t window_left;
    int64_t window_right;
    int64_t sinks;
    std::optional<double> scale; /* none: 1 / sqrt(depth) */
    double softcap;
    int64_t flags;
    std::optional<Tensor> query_ends; /* packed sequences; key_ends, too */
    std::optional<Tensor> key_ends; /* without query_ends, or with pages: how many keys there are of each item or sequence */
    std::optional<Tensor> page_table;
    std::optional<Tensor> tile_numbers; /* with tile_bits, and a mask */
    std::optional<Tensor> tile_bits;
};

} // namespace sparse_autotune
