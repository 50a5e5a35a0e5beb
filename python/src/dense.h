/* Products of two dense operands, as the library takes them. */
#pragma once

#include <optional>

#include "scaled.h"

namespace sparse_autotune {

/* One GEMM: D (out) = act(a b + bias), plus or times the residual. */
struct Dense {
    std::shared_ptr<Device> on;
    Matrix a, b, residual;
    std::optional<Tensor> bias, offsets, scale_a, scale_b;
    spk_gemm problem = {};
    spk_gemm_args args = {};
    std::vector<int64_t> out_sizes;
    int32_t dtype = 0;  /* of the result */
    int64_t cut = -1;   /* the dimension of the result that has something behind the last group; -1: none */
    bool whole = false; /* nothing lies behind it */
    const std::shared_ptr<Device> &device() const { return on; }
    spk_pattern *handle() const { return nullptr; }
    std::shared_ptr<const void> kept() const { return on; }
    const Tensor &like() const { return a.tensor; }
};

/* offsets: where each group ends; a and b are then matrices both (groups along the depth), or that of the groups has three dimensions. */
Dense dense_of(const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual,
               const std::optional<Tensor> &offsets, int64_t flags, const Scaling *scaling = nullptr);

} // namespace sparse_autotune
