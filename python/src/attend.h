/* Attention, as the library takes it. */
#pragma once

#include <optional>

#include "operands.h"

namespace sparse_autotune {

/* What an operator of attention gets beside q, k and v. */
struct AttendOptions {
    std::optional<Tensor> row_offsets, col_indices; /* both: a mask of blocks */
    int64_t block_rows, block_cols, mask_heads, mask_items;
    int64_t window_left, window_right, sinks;
    std::optional<double> scale; /* none: 1 / sqrt(depth) */
    double softcap;
    int64_t flags, version;
    bool want_lse;
};

/* One attention: O (out) = softmax(scale q k^T) v. */
struct Attend {
    std::shared_ptr<Device> on;
    std::shared_ptr<Pattern> mask; /* nullptr: none */
    Tensor q, k, v;                /* keep the memory */
    spk_attention problem = {};
    spk_attention_args args = {};
    std::vector<int64_t> out_sizes, lse_sizes;
    int32_t dtype = 0, lse_dtype = 0;
    bool assume_finite = false;
    const std::shared_ptr<Device> &device() const { return on; }
    spk_pattern *handle() const { return mask ? mask->handle : nullptr; }
    std::shared_ptr<const void> kept() const { return mask ? std::shared_ptr<const void>(mask) : on; }
    const Tensor &like() const { return q; }
};

Attend attend_of(const Tensor &q, const Tensor &k, const Tensor &v, const AttendOptions &options);

} // namespace sparse_autotune
