/* Products of sparse operands, as the library takes them. */
#pragma once

#include <optional>

#include "scaled.h"

namespace sparse_autotune {

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
    std::optional<Tensor> bias, scale_a, scale_b;
    spk_spmm problem = {};
    spk_spmm_args args = {};
    std::vector<int64_t> out_sizes;
    int32_t dtype = 0;                     /* of the result */
    spk_dtype factors = SPK_DTYPE_DEFAULT; /* of values and dense */
    const std::shared_ptr<Device> &device() const { return pattern->device; }
    spk_pattern *handle() const { return pattern->handle; }
    std::shared_ptr<const void> kept() const { return pattern; } /* what `problem` is of */
    const Tensor &like() const { return dense.tensor; }
};

/* One SDDMM: the blocks of x y. */
struct Sample {
    std::shared_ptr<Pattern> pattern;
    Matrix x, y;
    spk_sddmm problem = {};
    spk_sddmm_args args = {};
    std::vector<int64_t> out_sizes;
    int32_t dtype = 0;
    const std::shared_ptr<Device> &device() const { return pattern->device; }
    spk_pattern *handle() const { return pattern->handle; }
    std::shared_ptr<const void> kept() const { return pattern; }
    const Tensor &like() const { return x.tensor; }
};

Multiply multiply_of(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                     const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version,
                     const Scaling *scaling = nullptr);
Sample sample_of(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                 int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version);
/* The same of matrices; lead: the dimensions of the result before the blocks. */
Sample sample_of(const Matrix &x, const Matrix &y, std::vector<int64_t> lead, const Tensor &row_offsets, const Tensor &col_indices,
                 const Shape &shape, int64_t flags, int64_t version);

/* What every product asks of index tensors: device, dtype, layout and number. nnzb is the number of col_indices. */
void check_indices(const Tensor &row_offsets, const Tensor &col_indices, const Tensor &like, const char *like_name, const Shape &shape);

} // namespace sparse_autotune
