#include "operands.h"

#include <algorithm>

namespace sparse_autotune {

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

/* op(A) dense; a product from the right is that of the transposes, whose arrays lie as they are. */
void fill_problem(Multiply *call, int64_t flags, int64_t m)
{
    const bool right = flags & FLAG_RIGHT;
    const Matrix b = right ? call->dense.transposed() : call->dense;
    spk_spmm &p = call->problem;
    p = spk_sized<spk_spmm>();
    p.n = b.cols;
    p.assume_finite = (flags & FLAG_FINITE) != 0;
    p.dtype_a = p.dtype_b = call->factors;
    p.dtype_d = library_dtype("values", call->dtype);
    p.compute = compute_dtype(flags, p.dtype_a);
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
    p.assume_finite = (flags & FLAG_FINITE) != 0;
    p.dtype_x = p.dtype_y = p.dtype_d = library_dtype("x", call->dtype);
    p.compute = compute_dtype(flags, p.dtype_x);
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

/* As given, factors are those of op(A) and of the dense operand. A product from the right is that of the transposes. */
void scale(Multiply *call, const Tensor &values, const Tensor &dense, const Scaling &scaling, const Shape &shape, int64_t flags)
{
    const bool right = flags & FLAG_RIGHT, trans = flags & FLAG_TRANS;
    const int64_t rows = trans ? shape.cols : shape.rows, cols = trans ? shape.rows : shape.cols;
    const std::optional<Tensor> &of_sparse = right ? scaling.b : scaling.a, &of_dense = right ? scaling.a : scaling.b;
    const spk_scale sparse_tile = right ? scaling.tile_b : scaling.tile_a, dense_tile = right ? scaling.tile_a : scaling.tile_b;
    if (of_sparse) {
        const std::vector<int64_t> items = call->values.batch > 1 ? lead_of(call->values.tensor, 3) : std::vector<int64_t>();
        const Scaled of = {values, "values", lead_of(values, 3), items, rows, cols, call->values.nnzb};
        call->scale_a = factors_of(right ? "scale_b" : "scale_a", *of_sparse, of, sparse_tile, right);
        call->problem.scale_a = right ? turned_tile(sparse_tile) : sparse_tile;
        call->args.scale_a = call->scale_a->const_data_ptr();
    }
    if (of_dense) {
        const Matrix &m = call->dense;
        const Scaled of = {values, "values", lead_of(dense, 2), items_of(m), m.rows, m.cols};
        call->scale_b = factors_of(right ? "scale_a" : "scale_b", *of_dense, of, dense_tile, right);
        call->problem.scale_b = right ? turned_tile(dense_tile) : dense_tile;
        call->args.scale_b = call->scale_b->const_data_ptr();
    }
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

Multiply multiply_of(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                     const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version, const Scaling *scaling)
{
    check_flags(flags, FLAGS_OF_SPMM);
    Multiply call;
    const bool right = flags & FLAG_RIGHT, trans = flags & FLAG_TRANS;
    call.values = values_of(values);
    const int32_t dtype = dtype_of(values);
    call.dtype = scaling ? result_dtype(scaling->result) : dtype;
    const Shape shape = {rows, cols, call.values.block_rows, call.values.block_cols};
    check_indices(row_offsets, col_indices, values, "values", shape);
    if (call.values.nnzb != col_indices.numel())
        refuse("values: has " + std::to_string(call.values.nnzb) + " blocks, but col_indices " + std::to_string(col_indices.numel()) +
               " entries");
    check_device("dense", dense, values, "values");
    call.factors = scaling ? factor_dtype("values", dtype) : library_dtype("values", dtype);
    check_dtype("dense", dense, "values", dtype);
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
    if (scaling)
        part_items("dense", &call.dense, right ? scaling->a : scaling->b, right ? scaling->tile_a : scaling->tile_b);
    else if (right && call.values.batch == 1)
        fold(&call.dense);
    call.bias = bias;
    if (bias) {
        check_bias(call, values, call.out_sizes.back());
        if (bias->numel() > 1 && bias->stride(0) != 1)
            call.bias = torch::stable::contiguous(*bias);
    }
    call.pattern = pattern_of(device_of(values), row_offsets, col_indices, shape, version);
    fill_problem(&call, flags, m);
    if (scaling)
        scale(&call, values, dense, *scaling, shape, flags);
    return call;
}

Sample sample_of(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                 int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version)
{
    check_flags(flags, FLAGS_OF_SDDMM);
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
    fill_problem(&call, flags, col_indices.numel() * shape.block_rows * shape.block_cols);
    return call;
}

} // namespace sparse_autotune
