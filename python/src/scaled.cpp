#include "scaled.h"

namespace sparse_autotune {

void check_no_batch(const char *name, const Tensor &t, int64_t dims)
{
    if (t.dim() != dims)
        refuse(std::string(name) + ": must have " + (dims == 2 ? "two" : "three") +
               " dimensions, as products of eight bits have no batch; its shape is " + text_of(sizes_of(t)));
}

namespace {

int64_t tiles_along(int64_t size, int64_t tile)
{
    return tile == SPK_SCALE_ALL ? 1 : size / tile + (size % tile != 0);
}

std::string text_of_side(int64_t side)
{
    return side == SPK_SCALE_ALL ? "all" : std::to_string(side);
}

} // namespace

Tensor factors_of(const char *name, const Tensor &given, const Tensor &like, const char *like_name, spk_scale tile, int64_t rows,
                  int64_t cols, bool turned, int64_t stored)
{
    check_device(name, given, like, like_name);
    if (dtype_of(given) != aoti_torch_dtype_float32())
        refuse(std::string(name) + ": its dtype must be float32, not " + dtype_name(dtype_of(given)));
    if (stored >= 0 && tile.rows == SPK_SCALE_BLOCK && tile.cols == SPK_SCALE_BLOCK) {
        if (sizes_of(given) != std::vector<int64_t>{stored})
            refuse(std::string(name) + ": its shape is " + text_of(sizes_of(given)) + "; one factor for each stored block needs " +
                   text_of({stored}));
        return torch::stable::contiguous(given);
    }
    for (const int64_t side : {tile.rows, tile.cols})
        if (side < 1 && side != SPK_SCALE_ALL)
            refuse(std::string(name) + ": a factor covers tiles of 1 element or more, or all (-1) of an axis, not " + std::to_string(side));
    const std::vector<int64_t> wanted = {tiles_along(rows, tile.rows), tiles_along(cols, tile.cols)};
    if (sizes_of(given) != wanted)
        refuse(std::string(name) + ": its shape is " + text_of(sizes_of(given)) + "; factors of tiles of " + text_of_side(tile.rows) +
               " x " + text_of_side(tile.cols) + " need " + text_of(wanted));
    return torch::stable::contiguous(turned ? torch::stable::transpose(given, 0, 1) : given);
}

} // namespace sparse_autotune
