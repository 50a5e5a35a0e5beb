#include "dense.h"

#include <algorithm>

namespace sparse_autotune {

namespace {

std::string shapes_of(const Tensor &a, const Tensor &b)
{
    return text_of(sizes_of(a)) + " and " + text_of(sizes_of(b));
}

/* Which axis the groups cut: the operand of which each has its own has three dimensions; where none has, it is the result. */
spk_group_axis axis_of(const Tensor &a, const Tensor &b, const Tensor &offsets)
{
    static const int32_t i32 = aoti_torch_dtype_int32();
    const int64_t of_a = a.dim(), of_b = b.dim(), groups = offsets.numel();
    check_device("offs", offsets, a, "a");
    if (dtype_of(offsets) != i32)
        refuse("offs: its dtype must be int32, not " + dtype_name(dtype_of(offsets)));
    check_line("offs", offsets);
    if (!(of_a == 2 && (of_b == 2 || of_b == 3)) && !(of_a == 3 && of_b == 2))
        refuse("offs: groups are of two matrices, or of a matrix and one for each group; the shapes of a and b are " + shapes_of(a, b));
    if (of_a == 3 && a.size(0) != groups)
        refuse("a: has " + std::to_string(a.size(0)) + " matrices, but offs " + std::to_string(groups) + " groups");
    if (of_b == 3 && b.size(0) != groups)
        refuse("b: has " + std::to_string(b.size(0)) + " matrices, but offs " + std::to_string(groups) + " groups");
    return of_b == 3 ? SPK_GROUP_ROWS : of_a == 3 ? SPK_GROUP_COLS : SPK_GROUP_DEPTH;
}

void read_shapes(Dense *call, const Tensor &a, const Tensor &b)
{
    spk_gemm &p = call->problem;
    call->a = matrix_of("a", a);
    call->b = matrix_of("b", b);
    const int64_t depth = a.size(a.dim() - 1), rows = a.size(a.dim() - 2), cols = b.size(b.dim() - 1);
    if (b.size(b.dim() - 2) != depth)
        refuse("b: its shape is " + text_of(sizes_of(b)) + "; the product needs " + std::to_string(depth) + " rows, as a has columns");
    if (call->offsets) {
        p.group_axis = axis_of(a, b, *call->offsets);
        p.groups = call->offsets->numel();
        call->cut = p.group_axis == SPK_GROUP_ROWS ? 0 : p.group_axis == SPK_GROUP_COLS ? 1 : -1;
        if (p.group_axis == SPK_GROUP_DEPTH)
            call->out_sizes.push_back(p.groups);
    } else {
        Batches batches = batches_of("a", a, 2, "b", b, 2);
        if (!batches.apart) {
            call->a = matrix_of("a", widened(a, batches.lead, 2));
            call->b = matrix_of("b", widened(b, batches.lead, 2));
        }
        call->out_sizes = std::move(batches.lead);
    }
    call->out_sizes.insert(call->out_sizes.end(), {rows, cols});
    p.m = rows;
    p.n = cols;
    p.k = depth;
}

void read_bias(Dense *call, const Tensor &like)
{
    const Tensor &bias = *call->bias;
    const bool each = call->problem.group_axis == SPK_GROUP_ROWS;
    std::vector<int64_t> wanted = {call->problem.n};
    if (each)
        wanted.insert(wanted.begin(), call->problem.groups);
    check_device("bias", bias, like, "a");
    check_dtype("bias", bias, "the result", call->dtype);
    if (sizes_of(bias) != wanted)
        refuse(std::string("bias: must have the shape ") + text_of(wanted) +
               (each ? ", a line for each group" : ", an entry for each column") + "; its shape is " + text_of(sizes_of(bias)));
    if (!bias.is_contiguous())
        call->bias = torch::stable::contiguous(bias);
    call->problem.bias = SPK_BIAS_PER_COL;
    call->args.bias = call->bias->const_data_ptr();
}

/* In the result's layout; a batch that all items share is not copied. */
void read_residual(Dense *call, const Tensor &given, const Tensor &like, int64_t flags)
{
    check_device("residual", given, like, "a");
    check_dtype("residual", given, "the result", call->dtype);
    if (sizes_of(given) != call->out_sizes)
        refuse("residual: its shape is " + text_of(sizes_of(given)) + ", the result's " + text_of(call->out_sizes));
    if (call->offsets && !(flags & FLAG_FACTOR))
        refuse("residual: nothing is added to a product in groups, which may only be multiplied");
    call->residual = matrix_of("residual", given);
    if (call->residual.layout != SPK_ROW_MAJOR)
        call->residual = matrix_of("residual", torch::stable::contiguous(given));
    spk_gemm &p = call->problem;
    p.residual = flags & FLAG_FACTOR ? SPK_RESIDUAL_MULTIPLY : SPK_RESIDUAL_ADD;
    p.ldr = call->residual.ld;
    call->args.residual = call->residual.data();
}

/* Of an operand that has so many items. */
int64_t stride_of(const Matrix &m)
{
    return m.batch > 1 ? shared_or(m.stride) : SPK_STRIDE_SHARED;
}

void fill_strides(Dense *call)
{
    spk_gemm &p = call->problem;
    if (p.groups > 0) {
        p.stride_a = p.group_axis == SPK_GROUP_COLS ? stride_of(call->a) : 0;
        p.stride_b = p.group_axis == SPK_GROUP_ROWS ? stride_of(call->b) : 0;
        p.stride_r = p.residual != SPK_RESIDUAL_NONE && p.group_axis == SPK_GROUP_DEPTH ? stride_of(call->residual) : 0;
        return;
    }
    p.batch = std::max(call->a.batch, call->b.batch);
    if (p.batch <= 1)
        return;
    p.stride_a = stride_of(call->a);
    p.stride_b = stride_of(call->b);
    p.stride_d = p.m * p.n;
    p.stride_r = p.residual != SPK_RESIDUAL_NONE ? stride_of(call->residual) : 0;
}

/* As given, factors are those of a and of b. */
void scale(Dense *call, const Tensor &a, const Tensor &b, const Scaling &scaling)
{
    spk_gemm &p = call->problem;
    if (scaling.a) {
        call->scale_a = factors_of("scale_a", *scaling.a, {a, "a", lead_of(a, 2), items_of(call->a), p.m, p.k}, scaling.tile_a, false);
        p.scale_a = scaling.tile_a;
        call->args.scale_a = call->scale_a->const_data_ptr();
    }
    if (scaling.b) {
        call->scale_b = factors_of("scale_b", *scaling.b, {a, "a", lead_of(b, 2), items_of(call->b), p.k, p.n}, scaling.tile_b, false);
        p.scale_b = scaling.tile_b;
        call->args.scale_b = call->scale_b->const_data_ptr();
    }
}

} // namespace

Dense dense_of(const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual,
               const std::optional<Tensor> &offsets, int64_t flags, const Scaling *scaling)
{
    check_flags(flags, FLAGS_OF_GEMM);
    Dense call;
    spk_gemm &p = call.problem;
    const int32_t dtype = dtype_of(a);
    p = spk_sized<spk_gemm>();
    call.args = spk_sized<spk_gemm_args>();
    p.dtype_a = p.dtype_b = scaling ? factor_dtype("a", dtype) : library_dtype("a", dtype);
    check_device("b", b, a, "a");
    check_dtype("b", b, "a", dtype);
    call.offsets = offsets;
    call.whole = flags & FLAG_WHOLE;
    call.dtype = scaling ? result_dtype(scaling->result) : wide_dtype(dtype, flags & FLAG_WIDE);
    read_shapes(&call, a, b);
    if (scaling) {
        part_items("a", &call.a, scaling->a, scaling->tile_a);
        part_items("b", &call.b, scaling->b, scaling->tile_b);
    }
    p.dtype_d = library_dtype("a", call.dtype);
    p.compute = compute_dtype(flags, p.dtype_a);
    p.assume_finite = (flags & FLAG_FINITE) != 0;
    p.activation = static_cast<spk_activation>(flags >> FLAG_ACTIVATION_SHIFT & FLAG_ACTIVATION_MASK);
    p.layout_a = call.a.layout;
    p.layout_b = call.b.layout;
    p.lda = call.a.ld;
    p.ldb = call.b.ld;
    p.ldd = std::max<int64_t>(p.n, 1);
    call.bias = bias;
    if (bias)
        read_bias(&call, a);
    if (residual)
        read_residual(&call, *residual, a, flags);
    fill_strides(&call);
    call.on = device_of(a);
    call.args.a = call.a.data();
    call.args.b = call.b.data();
    call.args.offsets = offsets ? offsets->const_data_ptr() : nullptr;
    call.args.alpha = 1;
    call.args.stream = call.on->stream();
    if (scaling)
        scale(&call, a, b, *scaling);
    return call;
}

} // namespace sparse_autotune
