/* Scale factors of products: tensors of float32, and the tiles of an operand that they cover. */
#pragma once

#include <optional>

#include "tensors.h"

namespace sparse_autotune {

/* As an operator is given them; the result's dtype is said, as the operands' cannot be it. */
struct Scaling {
    const std::optional<Tensor> &a, &b;
    spk_scale tile_a, tile_b;
    int64_t result; /* result_dtype */
};

/* Factors of a matrix of rows x cols, checked and contiguous; turned: those of its transpose. stored: blocks of a sparse one, of which each
 * may have a factor, SPK_SCALE_BLOCK; -1: of a dense one. */
Tensor factors_of(const char *name, const Tensor &given, const Tensor &like, const char *like_name, spk_scale tile, int64_t rows,
                  int64_t cols, bool turned, int64_t stored = -1);

/* An operand of so many dimensions, two or three. */
void check_no_batch(const char *name, const Tensor &t, int64_t dims);

inline spk_scale turned_tile(spk_scale tile)
{
    return {tile.cols, tile.rows};
}

} // namespace sparse_autotune
