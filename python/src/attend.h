/* Attention, as the library takes it. */
#pragma once

#include <optional>

#include "generated/operators.h"
#include "operands.h"

namespace sparse_autotune {

struct AttendOptions : AttentionOptions {
    int64_t version;
    bool want_lse;
    bool rows_first_out = false; /* O is [batch, rows, heads, depth], whatever the operands are */
};

/* One attention: O (out) = softmax(scale q k^T) v. */
struct Attend {
    std::shared_ptr<Device> on;
    std::shared_ptr<Pattern> mask; /* nullptr: none */
    Tensor q, k, v;                /* keep the memory */
    std::optional<Tensor> query_ends, key_ends, page_table, tile_numbers, tile_bits;
    spk_attention problem = {};
    spk_attention_args args = {};
    std::vector<int64_t> out_sizes, lse_sizes;
    int32_t dtype = 0, lse_dtype = 0;
    int64_t row_dim = 2; /* of O: where its rows are */
    const std::shared_ptr<Device> &device() const { return on; }
    spk_pattern *handle() const { return mask ? mask->handle : nullptr; }
    std::shared_ptr<const void> kept() const { return mask ? std::shared_ptr<const void>(mask) : on; }
    const Tensor &like() const { return q; }
};

/* The gradients of one. */
struct AttendBackward {
    Attend attend;
    Tensor o, lse, grad_o; /* keep the memory */
    std::optional<Tensor> grad_lse;
    spk_attention_backward problem = {};
    spk_attention_backward_args args = {};
    const std::shared_ptr<Device> &device() const { return attend.on; }
    spk_pattern *handle() const { return attend.handle(); }
    std::shared_ptr<const void> kept() const { return attend.kept(); }
    const Tensor &like() const { return attend.q; }
};

AttendBackward backward_of(Attend attend, const Tensor &grad_o, const std::optional<Tensor> &grad_lse, const Tensor &o, const Tensor &lse);

Attend attend_of(const Tensor &q, const Tensor &k, const Tensor &v, const AttendOptions &options);

} // namespace sparse_autotune
