#include "operands.h"

#include <algorithm>

/* PyTorch 2.13 and later have it. */
extern "C" __attribute__((weak)) const char *torch_exception_get_what_without_backtrace();

namespace sparse_autotune {

namespace {

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

std::string dtype_name(int32_t dtype)
{
    const std::pair<int32_t, const char *> names[] = {{aoti_torch_dtype_float32(), "float32"},
                                                      {aoti_torch_dtype_float64(), "float64"},
                                                      {aoti_torch_dtype_float16(), "float16"},
                                                      {aoti_torch_dtype_bfloat16(), "bfloat16"},
                                                      {aoti_torch_dtype_int8(), "int8"},
                                                      {aoti_torch_dtype_uint8(), "uint8"},
                                                      {aoti_torch_dtype_int16(), "int16"},
                                                      {aoti_torch_dtype_uint16(), "uint16"},
                                                      {aoti_torch_dtype_int32(), "int32"},
                                                      {aoti_torch_dtype_uint32(), "uint32"},
                                                      {aoti_torch_dtype_int64(), "int64"},
                                                      {aoti_torch_dtype_uint64(), "uint64"},
                                                      {aoti_torch_dtype_bool(), "bool"},
                                                      {aoti_torch_dtype_complex32(), "complex32"},
                                                      {aoti_torch_dtype_complex64(), "complex64"},
                                                      {aoti_torch_dtype_complex128(), "complex128"},
                                                      {aoti_torch_dtype_float8_e5m2(), "float8_e5m2"},
                                                      {aoti_torch_dtype_float8_e4m3fn(), "float8_e4m3fn"},
                                                      {aoti_torch_dtype_float8_e5m2fnuz(), "float8_e5m2fnuz"},
                                                      {aoti_torch_dtype_float8_e4m3fnuz(), "float8_e4m3fnuz"}};
    for (const auto &[number, name] : names)
        if (number == dtype)
            return name;
    static const char *const quantized[] = {"qint8", "quint8", "qint32"}; /* no function tells their numbers, 12 to 14 in every release */
    if (dtype >= 12 && dtype <= 14)
        return quantized[dtype - 12];
    return "number " + std::to_string(dtype) + " of PyTorch";
}

/* "NAME: its dtype must be that of LIKE, float32, not int32" */
void check_dtype(const char *name, const Tensor &t, const char *like, int32_t dtype)
{
    if (dtype_of(t) != dtype)
        refuse(std::string(name) + ": its dtype must be that of " + like + ", " + dtype_name(dtype) + ", not " + dtype_name(dtype_of(t)));
}

spk_dtype library_dtype(const char *name, int32_t dtype)
{
    static const int32_t f32 = aoti_torch_dtype_float32(), f64 = aoti_torch_dtype_float64(), f16 = aoti_torch_dtype_float16(),
                         bf16 = aoti_torch_dtype_bfloat16();
    if (dtype == f32)
        return SPK_F32;
    if (dtype == f64)
        return SPK_F64;
    if (dtype == f16)
        return SPK_F16;
    if (dtype == bf16)
        return SPK_BF16;
    refuse(std::string(name) + ": its dtype must be float32, float64, float16 or bfloat16, not " + dtype_name(dtype));
}

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

} // namespace

void check_indices(const Tensor &row_offsets, const Tensor &col_indices, const Tensor &like, const char *like_name, const Shape &shape)
{
    static const int32_t i32 = aoti_torch_dtype_int32(), i64 = aoti_torch_dtype_int64();
    check_device("row_offsets", row_offsets, like, like_name);
    check_device("col_indices", col_indices, like, like_name);
    const int32_t dtype = dtype_of(row_offsets);
    if (dtype != i32 && dtype != i64)
        refuse("row_offsets: its dtype must be int32 or int64, not " + dtype_name(dtype));
    check_dtype("col_indices", col_indices, "row_offsets", dtype);
    check_line("row_offsets", row_offsets);
    check_line("col_indices", col_indices);
    if (shape.rows < 0 || shape.cols < 0)
        refuse("shape: sizes must not be negative, but are " + text_of({shape.rows, shape.cols}));
    if (shape.block_rows < 1 || shape.block_rows > 256 || shape.block_cols < 1 || shape.block_cols > 256)
        refuse("values: blocks must be 1 to 256 high and wide, not " + text_of({shape.block_rows, shape.block_cols}));
    const int64_t grid = shape.rows / shape.block_rows + (shape.rows % shape.block_rows != 0); /* no sum that could overflow */
    if (row_offsets.numel() != grid + 1)
        refuse("row_offsets: has " + std::to_string(row_offsets.numel()) + " entries; a matrix of " + std::to_string(shape.rows) +
               " rows in blocks of " + std::to_string(shape.block_rows) + " needs " + std::to_string(grid + 1));
}

namespace {

Values values_of(const Tensor &given)
{
    Values v;
    const int64_t d = given.dim();
    if (d < 3)
        refuse("values: must have the dimensions [..., blocks, block rows, block columns], not " + text_of(sizes_of(given)));
    const std::vector<int64_t> sizes = sizes_of(given);
    v.nnzb = sizes[d - 3];
    v.block_rows = sizes[d - 2];
    v.block_cols = sizes[d - 1];
    for (int64_t i = 0; i < d - 3; i++)
        v.batch *= sizes[i];
    v.tensor = given;
    if (given.is_contiguous())
        return v;
    /* Blocks stored by columns are read in place, as a transposed view has them. */
    std::vector<int64_t> by_columns(d);
    int64_t tight = v.block_rows * v.block_cols;
    by_columns[d - 1] = v.block_rows;
    by_columns[d - 2] = 1;
    for (int64_t i = d - 3; i >= 0; i--) {
        by_columns[i] = tight;
        tight *= sizes[i];
    }
    const auto strides = given.strides();
    bool same = true;
    for (int64_t i = 0; i < d; i++)
        same = same && (sizes[i] == 1 || strides[i] == by_columns[i]);
    if (same)
        v.layout = SPK_COL_MAJOR;
    else
        v.tensor = torch::stable::contiguous(given);
    return v;
}

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

/* The dimensions before the last so many, without those of size 1 that stand first. */
std::vector<int64_t> batch_of(const Tensor &t, int64_t last)
{
    std::vector<int64_t> sizes = sizes_of(t);
    sizes.resize(sizes.size() - static_cast<size_t>(last));
    sizes.erase(sizes.begin(), std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; }));
    return sizes;
}

/* What broadcasting makes of the batches of two operands, whose items have so many dimensions, as PyTorch does it. */
struct Batches {
    std::vector<int64_t> lead;
    bool apart = true; /* they are the same, or one is of a single item: the library reads both as they lie */
};

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

/* op(A) dense; a product from the right is that of the transposes, whose arrays lie as they are. */
void fill_problem(Multiply *call, int64_t flags, int64_t m)
{
    const bool right = flags & FLAG_RIGHT;
    const Matrix b = right ? call->dense.transposed() : call->dense;
    spk_spmm &p = call->problem;
    p = spk_sized<spk_spmm>();
    p.n = b.cols;
    p.dtype_a = p.dtype_b = p.dtype_d = library_dtype("values", call->dtype);
    p.compute = (flags & FLAG_TF32) && p.dtype_a == SPK_F32 ? SPK_TF32 : SPK_DTYPE_DEFAULT;
    p.trans_a = ((flags & FLAG_TRANS) != 0) != right ? SPK_TRANS : SPK_NO_TRANS;
    p.block_layout = call->values.layout;
    p.layout_b = b.layout;
    p.layout_d = right ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
    p.ldb = b.ld;
    p.ldd = std::max<int64_t>(right ? m : b.cols, 1);
    p.bias = !call->bias ? SPK_BIAS_NONE : right ? SPK_BIAS_PER_ROW : SPK_BIAS_PER_COL;
    p.activation = static_cast<spk_activation>(flags >> FLAG_ACTIVATION_SHIFT & FLAG_ACTIVATION_MASK);
    p.residual = flags & FLAG_FACTOR ? SPK_RESIDUAL_MULTIPLY : SPK_RESIDUAL_NONE;
    p.ldr = p.residual != SPK_RESIDUAL_NONE ? p.ldd : 0;
    const int64_t batch = std::max(call->values.batch, b.batch);
    if (batch > 1) {
        p.batch = batch;
        p.stride_a = call->values.batch > 1 ? call->values.nnzb * call->values.block_rows * call->values.block_cols : 0;
        p.stride_b = b.batch > 1 ? shared_or(b.stride) : SPK_STRIDE_SHARED;
        p.stride_d = m * b.cols;
        p.stride_r = p.residual != SPK_RESIDUAL_NONE ? p.stride_d : 0;
    }
    spk_spmm_args &a = call->args;
    a = spk_sized<spk_spmm_args>();
    a.values = call->values.tensor.const_data_ptr();
    a.b = b.data();
    a.bias = call->bias ? call->bias->const_data_ptr() : nullptr;
    a.alpha = 1;
    a.stream = call->pattern->device->stream();
}

void fill_problem(Sample *call, int64_t flags, int64_t stored)
{
    spk_sddmm &p = call->problem;
    p = spk_sized<spk_sddmm>();
    p.k = call->x.cols;
    p.dtype_x = p.dtype_y = p.dtype_d = library_dtype("x", call->dtype);
    p.compute = (flags & FLAG_TF32) && p.dtype_x == SPK_F32 ? SPK_TF32 : SPK_DTYPE_DEFAULT;
    p.layout_x = call->x.layout;
    p.layout_y = call->y.layout;
    p.ldx = call->x.ld;
    p.ldy = call->y.ld;
    const int64_t batch = std::max(call->x.batch, call->y.batch);
    if (batch > 1) {
        p.batch = batch;
        p.stride_x = call->x.batch > 1 ? shared_or(call->x.stride) : SPK_STRIDE_SHARED;
        p.stride_y = call->y.batch > 1 ? shared_or(call->y.stride) : SPK_STRIDE_SHARED;
        p.stride_d = stored;
    }
    spk_sddmm_args &a = call->args;
    a = spk_sized<spk_sddmm_args>();
    a.x = call->x.data();
    a.y = call->y.data();
    a.alpha = 1;
    a.stream = call->pattern->device->stream();
}

void check_bias(const Multiply &call, const Tensor &like, int64_t length)
{
    const Tensor &bias = *call.bias;
    check_device("bias", bias, like, "values");
    check_dtype("bias", bias, "values", call.dtype);
    if (bias.dim() != 1 || bias.numel() != length)
        refuse("bias: must have one dimension with " + std::to_string(length) + " entries; its shape is " + text_of(sizes_of(bias)));
}

} // namespace

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

void check_out(const Tensor &out, const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype)
{
    check_device("out", out, like, "the operands");
    check_dtype("out", out, "the operands", dtype);
    if (sizes_of(out) != sizes)
        refuse("out: its shape is " + text_of(sizes_of(out)) + ", the result's " + text_of(sizes));
    if (!out.is_contiguous())
        refuse("out: must be contiguous; its strides are " + strides_of(out));
}

Multiply multiply_of(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                     const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version)
{
    Multiply call;
    const bool right = flags & FLAG_RIGHT, trans = flags & FLAG_TRANS;
    call.values = values_of(values);
    call.dtype = dtype_of(values);
    call.assume_finite = flags & FLAG_FINITE;
    const Shape shape = {rows, cols, call.values.block_rows, call.values.block_cols};
    check_indices(row_offsets, col_indices, values, "values", shape);
    if (call.values.nnzb != col_indices.numel())
        refuse("values: has " + std::to_string(call.values.nnzb) + " blocks, but col_indices " + std::to_string(col_indices.numel()) +
               " entries");
    check_device("dense", dense, values, "values");
    library_dtype("values", call.dtype);
    check_dtype("dense", dense, "values", call.dtype);
    call.dense = matrix_of("dense", dense);
    const Batches batches = batches_of("values", values, 3, "dense", dense, 2);
    if (!batches.apart) {
        call.values = values_of(widened(values, batches.lead, 3));
        call.dense = matrix_of("dense", widened(dense, batches.lead, 2));
    }
    const int64_t inner = trans != right ? rows : cols, m = trans != right ? cols : rows, given = right ? call.dense.cols : call.dense.rows;
    if (given != inner)
        refuse("dense: its shape is " + text_of(sizes_of(dense)) + "; the product needs " + std::to_string(inner) +
               (right ? " columns" : " rows"));
    call.out_sizes = batches.lead;
    call.out_sizes.push_back(right ? dense.size(dense.dim() - 2) : m);
    call.out_sizes.push_back(right ? m : dense.size(dense.dim() - 1));
    if (right && call.values.batch == 1)
        fold(&call.dense);
    call.bias = bias;
    if (bias) {
        check_bias(call, values, call.out_sizes.back());
        if (bias->numel() > 1 && bias->stride(0) != 1)
            call.bias = torch::stable::contiguous(*bias);
    }
    call.pattern = pattern_of(device_of(values), row_offsets, col_indices, shape, version);
    fill_problem(&call, flags, m);
    return call;
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

Sample sample_of(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                 int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version)
{
    const Shape shape = {rows, cols, block_rows, block_cols};
    Matrix left = matrix_of("x", x), right = matrix_of("y", y);
    Batches batches = batches_of("x", x, 2, "y", y, 2);
    if (!batches.apart) {
        left = matrix_of("x", widened(x, batches.lead, 2));
        right = matrix_of("y", widened(y, batches.lead, 2));
    }
    return sample_of(left, right, std::move(batches.lead), row_offsets, col_indices, shape, flags, version);
}

Sample sample_of(const Matrix &x, const Matrix &y, std::vector<int64_t> lead, const Tensor &row_offsets, const Tensor &col_indices,
                 const Shape &shape, int64_t flags, int64_t version)
{
    Sample call;
    check_indices(row_offsets, col_indices, x.tensor, "x", shape);
    check_device("y", y.tensor, x.tensor, "x");
    call.dtype = dtype_of(x.tensor);
    library_dtype("x", call.dtype);
    check_dtype("y", y.tensor, "x", call.dtype);
    call.x = x;
    call.y = y;
    if (x.rows != shape.rows)
        refuse("x: its shape is " + text_of(sizes_of(x.tensor)) + "; the pattern has " + std::to_string(shape.rows) + " rows");
    if (y.cols != shape.cols)
        refuse("y: its shape is " + text_of(sizes_of(y.tensor)) + "; the pattern has " + std::to_string(shape.cols) + " columns");
    if (x.cols != y.rows)
        refuse("y: has " + std::to_string(y.rows) + " rows, but x " + std::to_string(x.cols) + " columns");
    call.out_sizes = std::move(lead);
    call.out_sizes.insert(call.out_sizes.end(), {col_indices.numel(), shape.block_rows, shape.block_cols});
    call.pattern = pattern_of(device_of(x.tensor), row_offsets, col_indices, shape, version);
    call.assume_finite = flags & FLAG_FINITE;
    fill_problem(&call, flags, col_indices.numel() * shape.block_rows * shape.block_cols);
    return call;
}

} // namespace sparse_autotune
