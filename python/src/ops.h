/* The operators that know nothing of gradients. */
#pragma once

#include <tuple>

#include "attend.h"
#include "memo.h"

namespace sparse_autotune {

Tensor raw_spmm(SPARSE_PARAMETERS, int64_t version);
/* D, from operands that were checked. */
void run_known(const Known &known, void *d);
/* Both gradients of D = op(A) dense, or dense op(A), in one call: the product with op turned round, and the blocks of A's gradient. No
 * batch of values. want: WANT_DENSE, WANT_VALUES. */
std::tuple<std::optional<Tensor>, std::optional<Tensor>> raw_gradients(const Tensor &values, const Tensor &row_offsets,
                                                                       const Tensor &col_indices, const Tensor &dense,
                                                                       const Tensor &gradient, int64_t rows, int64_t cols, int64_t flags,
                                                                       int64_t version, int64_t want);

/* O. */
Tensor attended(const Attend &call);

} // namespace sparse_autotune
