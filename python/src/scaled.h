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

/* What has scale factors. lead: the items of its batch as given; items: those that the library reads, one behind the other (none: all items
 * of the product share one). stored: blocks of a sparse matrix, of which each may have a factor, SPK_SCALE_BLOCK; -1: it is dense. */
struct Scaled {
    const Tensor &like; /* on whose device they must be, and its name */
    const char *like_name;
    std::vector<int64_t> lead, items;
    int64_t rows, cols, stored = -1;
};

/* Its factors, checked, contiguous, those of each item one behind the other; turned: of the transpose. */
Tensor factors_of(const char *name, const Tensor &given, const Scaled &of, spk_scale tile, bool turned);

/* Writes out an operand whose items are one in memory, where each has factors of its own. */
void part_items(const char *name, Matrix *m, const std::optional<Tensor> &factors, spk_scale tile);
/* The items that the library reads one behind the other; none: all items of the product share one. */
std::vector<int64_t> items_of(const Matrix &m);

inline spk_scale turned_tile(spk_scale tile)
{
    return {tile.cols, tile.rows};
}

} // namespace sparse_autotune
