#include "tensors.h"

#include <algorithm>

/* PyTorch 2.13 and later have it. */
extern "C" __attribute__((weak)) const char *torch_exception_get_what_without_backtrace();

namespace sparse_autotune {

std::vector<int64_t> sizes_of(const Tensor &t)
{
    const auto sizes = t.sizes();
    return {sizes.begin(), sizes.end()};
}

int32_t dtype_of(const Tensor &t)
{
    int32_t dtype = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(t.get(), &dtype));
    return dtype;
}

void check_flags(int64_t flags, int64_t known)
{
    if ((flags & ~known) != 0)
        refuse("flags: " + std::to_string(flags) + " has bits that this operator does not know, " + std::to_string(flags & ~known) +
               "; it knows those of " + std::to_string(known));
}

/* "NAME: its dtype must be that of LIKE, float32, not int32" */
void check_dtype(const char *name, const Tensor &t, const char *like, int32_t dtype)
{
    if (dtype_of(t) != dtype)
        refuse(std::string(name) + ": its dtype must be that of " + like + ", " + dtype_name(dtype) + ", not " + dtype_name(dtype_of(t)));
}

namespace {

/* The type and the index of a tensor's device. */
std::pair<int32_t, int32_t> device_numbers(const Tensor &t)
{
    int32_t type = 0, index = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(t.get(), &type));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(t.get(), &index));
    return {type, index};
}

std::string device_name(const Tensor &t)
{
    const auto [type, index] = device_numbers(t);
    if (type == aoti_torch_device_type_cpu())
        return "cpu";
    if (type == aoti_torch_device_type_meta())
        return "meta";
    return (type == aoti_torch_device_type_cuda() ? "cuda:" : "another device, number ") + std::to_string(index);
}
} // namespace

void check_device(const char *name, const Tensor &t, const Tensor &like, const char *like_name)
{
    if (device_numbers(t) != device_numbers(like))
        refuse(std::string(name) + ": must be on the device of " + like_name + ", " + device_name(like) + ", not on " + device_name(t));
}

std::string strides_of(const Tensor &t)
{
    const auto strides = t.strides();
    return text_of({strides.begin(), strides.end()});
}

void check_line(const char *name, const Tensor &t)
{
    if (t.dim() != 1 || (t.numel() > 1 && t.stride(0) != 1))
        refuse(std::string(name) + ": must be a contiguous tensor of one dimension; its shape is " + text_of(sizes_of(t)) +
               ", its strides " + strides_of(t));
}

std::string text_of(const std::vector<int64_t> &sizes)
{
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); i++)
        text += (i ? ", " : "") + std::to_string(sizes[i]);
    return text + "]";
}

Matrix Matrix::transposed() const
{
    Matrix m = *this;
    std::swap(m.rows, m.cols);
    m.layout = layout == SPK_ROW_MAJOR ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
    return m;
}

Tensor empty_like(const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype)
{
    std::vector<int64_t> strides(sizes.size());
    int64_t tight = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = tight;
        tight *= std::max<int64_t>(sizes[i], 1);
    }
    int32_t type = 0, index = 0;
    AtenTensorHandle made = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &type));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &index));
    if (aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), dtype, type, index, &made) !=
        AOTI_TORCH_SUCCESS) {
        const char *why = torch_exception_get_what_without_backtrace != nullptr ? torch_exception_get_what_without_backtrace()
                                                                                : "PyTorch has said why on stderr";
        refuse("cannot make a tensor of shape " + text_of(sizes) +
               (type == aoti_torch_device_type_cuda() ? " on cuda:" + std::to_string(index) : "") + ": " + why);
    }
    return Tensor(made);
}

void check_out(const Tensor &out, const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype, const char *name)
{
    check_device(name, out, like, "the operands");
    check_dtype(name, out, dtype == dtype_of(like) ? "the operands" : "the result", dtype);
    if (sizes_of(out) != sizes)
        refuse(std::string(name) + ": its shape is " + text_of(sizes_of(out)) + ", the result's " + text_of(sizes));
    if (!out.is_contiguous())
        refuse(std::string(name) + ": must be contiguous; its strides are " + strides_of(out));
}
namespace {

/* False where the library cannot read the tensor in place. */
bool describe(const Tensor &t, Matrix *m)
{
    const int64_t d = t.dim();
    const auto sizes = t.sizes(), strides = t.strides();
    m->tensor = t;
    m->rows = sizes[d - 2];
    m->cols = sizes[d - 1];
    if (t.numel() == 0) { /* contiguous to PyTorch, whatever its strides are; nothing of it is read */
        m->layout = SPK_ROW_MAJOR;
        m->ld = std::max<int64_t>(m->cols, 1);
        m->stride = m->rows * m->ld;
        m->batch = 1;
        for (int64_t i = 0; i < d - 2; i++)
            m->batch *= sizes[i];
        return true;
    }
    const int64_t down = strides[d - 2], across = strides[d - 1];
    if ((across == 1 || m->cols <= 1) && (down >= std::max<int64_t>(m->cols, 1) || m->rows <= 1)) {
        m->layout = SPK_ROW_MAJOR;
        m->ld = m->rows <= 1 ? std::max<int64_t>(m->cols, 1) : down;
    } else if ((down == 1 || m->rows <= 1) && (across >= std::max<int64_t>(m->rows, 1) || m->cols <= 1)) {
        m->layout = SPK_COL_MAJOR;
        m->ld = m->cols <= 1 ? std::max<int64_t>(m->rows, 1) : across;
    } else {
        return false;
    }
    m->batch = 1;
    m->stride = 0;
    int64_t next = -1; /* the stride that the next outer dimension must have */
    for (int64_t i = d - 3; i >= 0; i--) {
        if (sizes[i] != 1) {
            if (next >= 0 && strides[i] != next)
                return false;
            if (next < 0)
                m->stride = strides[i];
            next = strides[i] * sizes[i];
        }
        m->batch *= sizes[i];
    }
    return true;
}
} // namespace

Matrix matrix_of(const char *name, const Tensor &t)
{
    Matrix m;
    if (t.dim() < 2)
        refuse(std::string(name) + ": must have two dimensions or more; its shape is " + text_of(sizes_of(t)));
    if (!describe(t, &m) && !describe(torch::stable::contiguous(t), &m))
        refuse(std::string(name) + ": strides that cannot be read, " + strides_of(t));
    return m;
}

/* Items one below the other are one matrix with more rows, where they lie so. */
bool fold(Matrix *m)
{
    if (m->batch == 1)
        return true;
    if (m->layout != SPK_ROW_MAJOR || m->stride != m->rows * m->ld)
        return false;
    m->rows *= m->batch;
    m->batch = 1;
    m->stride = 0;
    return true;
}

namespace {

/* The dimensions before the last so many, without those of size 1 that stand first. */
std::vector<int64_t> batch_of(const Tensor &t, int64_t last)
{
    std::vector<int64_t> sizes = sizes_of(t);
    sizes.resize(sizes.size() - static_cast<size_t>(last));
    sizes.erase(sizes.begin(), std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; }));
    return sizes;
}
} // namespace

Batches batches_of(const char *name, const Tensor &x, int64_t items_x, const char *other, const Tensor &y, int64_t items_y)
{
    const int64_t leads_x = x.dim() - items_x, leads_y = y.dim() - items_y, dims = std::max(leads_x, leads_y);
    Batches made;
    made.lead.resize(static_cast<size_t>(dims));
    for (int64_t i = 1; i <= dims; i++) { /* from the last on */
        const int64_t of_x = i <= leads_x ? x.size(leads_x - i) : 1, of_y = i <= leads_y ? y.size(leads_y - i) : 1;
        if (of_x != of_y && of_x != 1 && of_y != 1)
            refuse(std::string(name) + ": its shape is " + text_of(sizes_of(x)) + ", that of " + other + " " + text_of(sizes_of(y)) +
                   ": the dimensions of the batch differ");
        made.lead[static_cast<size_t>(dims - i)] = of_x == 1 ? of_y : of_x;
    }
    const std::vector<int64_t> one = batch_of(x, items_x), two = batch_of(y, items_y);
    const auto alone = [](const std::vector<int64_t> &sizes) {
        return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 1; });
    };
    made.apart = one == two || alone(one) || alone(two);
    return made;
}

std::vector<int64_t> lead_of(const Tensor &t, int64_t items)
{
    const std::vector<int64_t> sizes = sizes_of(t);
    return {sizes.begin(), sizes.end() - items};
}

/* A view with the dimensions of a batch before its last so many. */
Tensor widened(Tensor t, const std::vector<int64_t> &lead, int64_t items)
{
    while (t.dim() < static_cast<int64_t>(lead.size()) + items)
        t = torch::stable::unsqueeze(t, 0);
    std::vector<int64_t> sizes = sizes_of(t), strides(sizes.size());
    for (size_t i = 0; i < sizes.size(); i++) {
        const bool repeats = i < lead.size() && sizes[i] != lead[i];
        strides[i] = repeats ? 0 : t.stride(static_cast<int64_t>(i));
        sizes[i] = repeats ? lead[i] : sizes[i];
    }
    AtenTensorHandle made = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_as_strided(t.get(), sizes.data(), strides.data(), &made)); /* of as many dimensions */
    return Tensor(made);
}

int64_t shared_or(int64_t stride)
{
    return stride == 0 ? SPK_STRIDE_SHARED : stride;
}
Matrix rows_of(const char *name, const Tensor &t)
{
    Matrix m = matrix_of(name, t);
    if (fold(&m))
        return m;
    m = matrix_of(name, torch::stable::contiguous(t));
    fold(&m);
    return m;
}
} // namespace sparse_autotune
