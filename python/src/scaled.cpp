#include "scaled.h"

namespace sparse_autotune {

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

void part_items(const char *name, Matrix *m, const std::optional<Tensor> &factors, spk_scale tile)
{
    const bool has_items = factors && factors->dim() > (tile.rows == SPK_SCALE_BLOCK ? 1 : 2);
    if (has_items && m->batch > 1 && m->stride == 0)
        *m = matrix_of(name, torch::stable::contiguous(m->tensor));
}

std::vector<int64_t> items_of(const Matrix &m)
{
    return m.batch > 1 && m.stride != 0 ? lead_of(m.tensor, 2) : std::vector<int64_t>();
}

Tensor factors_of(const char *name, const Tensor &given, const Scaled &of, spk_scale tile, bool turned)
{
    check_device(name, given, of.like, of.like_name);
    if (dtype_of(given) != aoti_torch_dtype_float32())
        refuse(std::string(name) + ": its dtype must be float32, not " + dtype_name(dtype_of(given)));
    const bool of_blocks = of.stored >= 0 && tile.rows == SPK_SCALE_BLOCK && tile.cols == SPK_SCALE_BLOCK;
    for (const int64_t side : {tile.rows, tile.cols})
        if (!of_blocks && side < 1 && side != SPK_SCALE_ALL)
            refuse(std::string(name) + ": a factor covers tiles of 1 element or more, or all (-1) of an axis, not " + std::to_string(side));
    std::vector<int64_t> one = {of.stored}, wanted = of.lead;
    if (!of_blocks)
        one = {tiles_along(of.rows, tile.rows), tiles_along(of.cols, tile.cols)};
    wanted.insert(wanted.end(), one.begin(), one.end());
    if (sizes_of(given) != one && sizes_of(given) != wanted)
        refuse(std::string(name) + ": its shape is " + text_of(sizes_of(given)) + "; " +
               (of_blocks ? std::string("one factor for each stored block needs ")
                          : "factors of tiles of " + text_of_side(tile.rows) + " x " + text_of_side(tile.cols) + " need ") +
               text_of(one) + (of.lead.empty() ? "" : ", or " + text_of(wanted) + ", for each item of the batch"));
    const int64_t dims = given.dim();
    const Tensor turn = turned && !of_blocks ? torch::stable::transpose(given, dims - 2, dims - 1) : given;
    return torch::stable::contiguous(of.items.empty() ? turn : widened(turn, of.items, of_blocks ? 1 : 2));
}

} // namespace sparse_autotune
