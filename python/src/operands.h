/* Tensors as the library's operands: checked, and copied only where the library cannot read them as they lie. */
#pragma once

#include <optional>

#include "state.h"

namespace sparse_autotune {

/* FLAG_FACTOR: the result is multiplied with what `out` holds. */
enum : int64_t {
    FLAG_TRANS = 1,
    FLAG_RIGHT = 2,
    FLAG_FINITE = 4,
    FLAG_TF32 = 8,
    FLAG_ACTIVATION_SHIFT = 4,
    FLAG_ACTIVATION_MASK = 7,
    FLAG_FACTOR = 128
};

/* The last two dimensions of a tensor as a matrix; the dimensions before them as a batch. */
struct Matrix {
    Tensor tensor; /* keeps the memory */
    spk_layout layout = SPK_ROW_MAJOR;
    int64_t rows = 0, cols = 0, ld = 0;
    int64_t batch = 1, stride = 0; /* stride 0: every item is the same */
    const void *data() const { return tensor.const_data_ptr(); }
    Matrix transposed() const;
};

/* Blocks of values: [*, nnzb, block_rows, block_cols]. */
struct Values {
    Tensor tensor;
    spk_layout layout = SPK_ROW_MAJOR; /* inside a block */
    int64_t batch = 1, nnzb = 0, block_rows = 0, block_cols = 0;
};

/* One SpMM: D (out) = op(A) dense, or dense op(A) with FLAG_RIGHT. */
struct Multiply {
    std::shared_ptr<Pattern> pattern;
    Values values;
    Matrix dense;
    std::optional<Tensor> bias;
    spk_spmm problem = {};
    spk_spmm_args args = {};
    std::vector<int64_t> out_sizes;
    int32_t dtype = 0;
    bool assume_finite = false;
};

/* One SDDMM: the blocks of x y. */
struct Sample {
    std::shared_ptr<Pattern> pattern;
    Matrix x, y;
    spk_sddmm problem = {};
    spk_sddmm_args args = {};
    std::vector<int64_t> out_sizes;
    int32_t dtype = 0;
    bool assume_finite = false;
};

Multiply multiply_of(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                     const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version);
Sample sample_of(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                 int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version);
/* The same of matrices; lead: the dimensions of the result before the blocks. */
Sample sample_of(const Matrix &x, const Matrix &y, std::vector<int64_t> lead, const Tensor &row_offsets, const Tensor &col_indices,
                 const Shape &shape, int64_t flags, int64_t version);

/* What every product asks of index tensors: device, dtype, layout and number. nnzb is the number of col_indices. */
void check_indices(const Tensor &row_offsets, const Tensor &col_indices, const Tensor &like, const char *like_name, const Shape &shape);

/* A tensor [..., rows, columns] as one matrix whose rows are those of all items; copied where they do not lie so. */
Matrix rows_of(const char *name, const Tensor &t);

/* An uninitialised contiguous tensor like another one. */
Tensor empty_like(const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype);
void check_out(const Tensor &out, const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype);
std::string text_of(const std::vector<int64_t> &sizes);

} // namespace sparse_autotune
