/* Flags and numbers that the operators are given. Made by scripts/python_operators.py. */
#pragma once

#include <cstdint>

// clang-format off
namespace sparse_autotune {

enum : int64_t {
    FLAG_TRANS = 1, /* the sparse operand is transposed */
    FLAG_RIGHT = 2, /* the sparse operand stands on the right */
    FLAG_FINITE = 4, /* a promise: dense operands hold no inf or NaN */
    FLAG_TF32 = 8, /* float32 may be rounded to TF32 */
    FLAG_ACTIVATION_SHIFT = 4, /* a number of ACTIVATIONS */
    FLAG_ACTIVATION_MASK = 7,
    FLAG_FACTOR = 128, /* the product is multiplied with what `out` holds; of dense operands, with the residual */
    FLAG_WIDE = 256, /* sums of float16 and bfloat16 are not rounded: the result is float32 */
    FLAG_WHOLE = 512, /* no row or column lies behind the last group */
    FLAG_ROWS_FIRST = 1024, /* tensors are [batch, rows, heads, depth] */
    FLAG_CAUSAL = 2048, /* a query sees no key behind the one beside it */
    FLAG_TOP_LEFT = 4096, /* the first query stands beside the first key */
    FLAG_BOTTOM_RIGHT = 8192, /* the last query stands beside the last key */
    FLAG_AS_QUERY = 16384, /* of direct_attention: the heads of a row of the result lie side by side where those of q do */
    FLAG_DYNAMIC = 32768, /* the mask is new at nearly every call: on CUDA nobody waits for it */
};

/* Those that an operator knows. */
enum : int64_t {
    FLAGS_OF_SPMM = FLAG_TRANS | FLAG_RIGHT | FLAG_FINITE | FLAG_TF32 | FLAG_ACTIVATION_MASK << FLAG_ACTIVATION_SHIFT | FLAG_FACTOR,
    FLAGS_OF_SDDMM = FLAG_FINITE | FLAG_TF32,
    FLAGS_OF_GEMM = FLAG_FINITE | FLAG_TF32 | FLAG_ACTIVATION_MASK << FLAG_ACTIVATION_SHIFT | FLAG_FACTOR | FLAG_WIDE | FLAG_WHOLE,
    FLAGS_OF_ATTENTION = FLAG_ROWS_FIRST | FLAG_CAUSAL | FLAG_TOP_LEFT | FLAG_BOTTOM_RIGHT | FLAG_DYNAMIC,
};

enum : int64_t { WANT_DENSE = 1, WANT_VALUES = 2 };
enum : int64_t { REPORT_TUNE = 0, REPORT_EXPLAIN = 1, REPORT_LIST = 2, REPORT_RACE = 3, REPORT_TUNE_FRESH = 4 };

} // namespace sparse_autotune
