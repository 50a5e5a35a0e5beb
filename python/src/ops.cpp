/* The operators, on component tensors. Those that begin with an underscore know nothing of gradients: the Python front calls them where
 * none is wanted. */
#include <cmath>
#include <type_traits>

#include "attend.h"
#include "capture.h"
#include "ops.h"
#include "report.h"

namespace sparse_autotune {

namespace {

/* Calls with the options of the moment. Where a signal (Ctrl-C) has stopped the tuning, the product is done with what is known or
 * estimated, without measuring: the call ends well, and Python raises what the signal's handler raised as soon as it runs again. */
template <typename Call> void call_library(const Device &device, const Call &call)
{
    const auto options = current_options();
    spk_tune_options tune = tune_options(*options);
    spk_status status = call(&tune);
    if (status == SPK_ERR_INTERRUPTED) {
        spk_context_resume(device.context);
        tune.tuning = SPK_TUNING_NEVER;
        status = call(&tune);
    }
    device.check(status);
}

template <typename Call> void run_with(const Call &call, const decltype(Call::args) &args)
{
    const Device &device = *call.device();
    if (is_capturing(device))
        return run_captured(call, args);
    call_library(device,
                 [&](const spk_tune_options *tune) { return spk_compute(device.context, call.handle(), &call.problem, &args, tune); });
}

/* residual: nullptr: what out holds, where one takes part. */
void run(const Multiply &call, const Tensor &out, const Tensor *residual = nullptr)
{
    if (out.numel() == 0)
        return;
    spk_spmm_args args = call.args;
    args.d = out.mutable_data_ptr();
    if (call.problem.residual != SPK_RESIDUAL_NONE)
        args.residual = residual ? residual->const_data_ptr() : args.d;
    run_with(call, args);
}

void run(const Sample &call, const Tensor &out)
{
    if (out.numel() == 0)
        return;
    spk_sddmm_args args = call.args;
    args.d = out.mutable_data_ptr();
    run_with(call, args);
}

/* What lies behind the last group is zero: on the CPU that is known; on CUDA nobody waits to ask. */
void run(const Dense &call, Tensor out)
{
    if (out.numel() == 0)
        return;
    spk_gemm_args args = call.args;
    args.d = out.mutable_data_ptr();
    if (call.cut < 0)
        return run_with(call, args);
    const bool known = !call.device()->is_cuda();
    if (call.problem.groups == 0 || (!known && !call.whole))
        torch::stable::zero_(out);
    if (call.problem.groups == 0)
        return;
    run_with(call, args);
    if (!known)
        return;
    const int64_t size = out.size(call.cut), end = static_cast<const int32_t *>(args.offsets)[call.problem.groups - 1];
    if (end == size)
        return;
    Tensor rest = torch::stable::narrow(out, call.cut, end, size - end);
    torch::stable::zero_(rest);
}

/* Of products that make their result. */
void check_flags_of_new(int64_t flags)
{
    check_flags(flags, FLAGS_OF_SPMM);
    if (flags & FLAG_FACTOR)
        refuse("flags: a factor is what out holds: there is none");
}

} // namespace

Tensor raw_spmm(SPARSE_PARAMETERS, int64_t version)
{
    check_flags_of_new(flags);
    const Multiply call = multiply_of(SPARSE_ARGUMENTS, version);
    Tensor out = empty_like(dense, call.out_sizes, call.dtype);
    run(call, out);
    record(call);
    return out;
}

void run_known(const Known &known, void *d)
{
    spk_spmm_args args = known.args;
    args.d = d;
    see_mark(known.pattern->mark);
    const Pattern &pattern = *known.pattern;
    call_library(*pattern.device, [&](const spk_tune_options *tune) {
        return spk_compute_spmm(pattern.device->context, pattern.handle, &known.problem, &args, tune);
    });
}

namespace {

void raw_spmm_out(SPARSE_PARAMETERS, int64_t version, Tensor out)
{
    const Multiply call = multiply_of(SPARSE_ARGUMENTS, version);
    check_out(out, dense, call.out_sizes, call.dtype);
    run(call, out);
}

void raw_spmm_added(SPARSE_PARAMETERS, int64_t version, const Tensor &residual, Tensor out)
{
    if (flags & FLAG_FACTOR)
        refuse("flags: a product to which a residual is added takes no factor");
    Multiply call = multiply_of(SPARSE_ARGUMENTS, version);
    check_out(out, dense, call.out_sizes, call.dtype);
    check_out(residual, dense, call.out_sizes, call.dtype, "residual");
    call.problem.residual = SPK_RESIDUAL_ADD;
    call.problem.ldr = call.problem.ldd;
    call.problem.stride_r = call.problem.batch > 1 ? call.problem.stride_d : 0;
    run(call, out, &residual);
}

Tensor spmm(SPARSE_PARAMETERS)
{
    return raw_spmm(SPARSE_ARGUMENTS, VERSION_UNKNOWN);
}

Tensor raw_sddmm(SAMPLE_PARAMETERS, int64_t version)
{
    const Sample call = sample_of(SAMPLE_ARGUMENTS, version);
    Tensor out = empty_like(x, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

void raw_sddmm_out(SAMPLE_PARAMETERS, int64_t version, Tensor out)
{
    const Sample call = sample_of(SAMPLE_ARGUMENTS, version);
    check_out(out, x, call.out_sizes, call.dtype);
    run(call, out);
}

Tensor sddmm(SAMPLE_PARAMETERS)
{
    return raw_sddmm(SAMPLE_ARGUMENTS, VERSION_UNKNOWN);
}

} // namespace

std::tuple<std::optional<Tensor>, std::optional<Tensor>> raw_gradients(const Tensor &values, const Tensor &row_offsets,
                                                                       const Tensor &col_indices, const Tensor &dense,
                                                                       const Tensor &gradient, int64_t rows, int64_t cols, int64_t flags,
                                                                       int64_t version, int64_t want)
{
    check_flags(flags, FLAGS_OF_SPMM);
    if (values.dim() != 3 || (!(flags & FLAG_RIGHT) && dense.dim() != 2))
        refuse("values: the gradients in one call are for products without a batch");
    const bool right = flags & FLAG_RIGHT, trans = flags & FLAG_TRANS;
    const int64_t plain = flags & (FLAG_RIGHT | FLAG_TRANS | FLAG_FINITE | FLAG_TF32);
    std::tuple<std::optional<Tensor>, std::optional<Tensor>> made;
    const Matrix grad = rows_of("gradient", gradient);
    if (want & WANT_DENSE) {
        const Multiply call =
            multiply_of(values, row_offsets, col_indices, grad.tensor, std::nullopt, rows, cols, plain ^ FLAG_TRANS, version);
        Tensor out = empty_like(dense, call.out_sizes, call.dtype);
        run(call, out);
        std::get<0>(made) = std::move(out);
    }
    if (want & WANT_VALUES) {
        const Matrix given = rows_of("dense", dense);
        const Matrix &x = right == trans ? grad : given, &y = right == trans ? given : grad;
        const Shape shape = {rows, cols, values.size(1), values.size(2)};
        const Sample call =
            sample_of(right ? x.transposed() : x, right ? y : y.transposed(), {}, row_offsets, col_indices, shape, plain, version);
        Tensor out = empty_like(dense, call.out_sizes, call.dtype);
        run(call, out);
        std::get<1>(made) = std::move(out);
    }
    return made;
}

namespace {

Tensor gemm(DENSE_PARAMETERS, const std::optional<Tensor> &offs, int64_t flags)
{
    const Dense call = dense_of(DENSE_ARGUMENTS, offs, flags);
    Tensor out = empty_like(a, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

void raw_gemm_out(DENSE_PARAMETERS, int64_t flags, Tensor out)
{
    const Dense call = dense_of(DENSE_ARGUMENTS, std::nullopt, flags);
    check_out(out, a, call.out_sizes, call.dtype);
    run(call, out);
}

#define SCALING_OF_PARAMETERS                                                            \
    {                                                                                    \
        scale_a, scale_b, {tile_a_rows, tile_a_cols}, {tile_b_rows, tile_b_cols}, result \
    }

Multiply scaled_multiply_of(SCALED_SPARSE_PARAMETERS, SCALES_PARAMETERS)
{
    check_flags_of_new(flags);
    const Scaling scaling = SCALING_OF_PARAMETERS;
    return multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN, &scaling);
}

Tensor scaled_spmm(SCALED_SPARSE_PARAMETERS, SCALES_PARAMETERS)
{
    const Multiply call = scaled_multiply_of(SCALED_SPARSE_ARGUMENTS, SCALES_ARGUMENTS);
    Tensor out = empty_like(dense, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

Tensor scaled_gemm(const Tensor &a, const Tensor &b, int64_t flags, SCALES_PARAMETERS)
{
    const Scaling scaling = SCALING_OF_PARAMETERS;
    const Dense call = dense_of(a, b, bias, std::nullopt, std::nullopt, flags, &scaling);
    Tensor out = empty_like(a, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

/* Rows from `begin` on of sequences that are packed are in none of them: as rows of queries that see no key. */
void clear_rows(const Attend &call, const Tensor &out, const Tensor *lse, int64_t begin)
{
    const int64_t left = call.problem.queries - begin;
    if (left <= 0)
        return;
    Tensor rest = torch::stable::narrow(const_cast<Tensor &>(out), call.row_dim, begin, left);
    torch::stable::zero_(rest);
    if (lse != nullptr)
        torch::stable::fill_(torch::stable::narrow(const_cast<Tensor &>(*lse), 2, begin, left), -HUGE_VAL);
}

/* What lies behind the last sequence is known on the CPU; on CUDA nobody waits to ask. */
void run(const Attend &call, const Tensor &out, const Tensor *lse)
{
    if (out.numel() == 0 && (lse == nullptr || lse->numel() == 0))
        return;
    spk_attention_args args = call.args;
    args.o = out.mutable_data_ptr();
    args.lse = lse != nullptr ? lse->mutable_data_ptr() : nullptr;
    if (!call.query_ends)
        return run_with(call, args);
    const int64_t sequences = call.problem.sequences;
    if (call.device()->is_cuda() || sequences == 0)
        clear_rows(call, out, lse, 0);
    if (sequences == 0)
        return;
    run_with(call, args);
    if (!call.device()->is_cuda())
        clear_rows(call, out, lse, static_cast<const int32_t *>(args.query_ends)[sequences - 1]);
}

/* From row `begin` on: in no sequence. */
void clear_from(const Tensor &t, int64_t dim, int64_t begin)
{
    Tensor rest = torch::stable::narrow(const_cast<Tensor &>(t), dim, begin, t.size(dim) - begin);
    torch::stable::zero_(rest);
}

/* As above: what no sequence has gets no gradient. */
void run(const AttendBackward &call, const Tensor &grad_q, const Tensor &grad_k, const Tensor &grad_v)
{
    if (grad_q.numel() == 0 && grad_k.numel() == 0 && grad_v.numel() == 0)
        return;
    if (call.lse.numel() == 0) { /* no queries, or no heads of them */
        for (const Tensor *t : {&grad_q, &grad_k, &grad_v})
            clear_from(*t, 0, 0);
        return;
    }
    spk_attention_backward_args args = call.args;
    args.grad_q = grad_q.mutable_data_ptr();
    args.grad_k = grad_k.mutable_data_ptr();
    args.grad_v = grad_v.mutable_data_ptr();
    if (!call.attend.query_ends)
        return run_with(call, args);
    const int64_t sequences = call.problem.sequences, dim = call.attend.row_dim;
    const bool known = !call.device()->is_cuda();
    if (!known || sequences == 0)
        for (const Tensor *t : {&grad_q, &grad_k, &grad_v})
            clear_from(*t, dim, 0);
    if (sequences == 0)
        return;
    run_with(call, args);
    if (!known)
        return;
    const int64_t keys = static_cast<const int32_t *>(args.key_ends)[sequences - 1];
    clear_from(grad_q, dim, static_cast<const int32_t *>(args.query_ends)[sequences - 1]);
    clear_from(grad_k, dim, keys);
    clear_from(grad_v, dim, keys);
}

} // namespace

Tensor attended(const Attend &call)
{
    Tensor out = empty_like(call.q, call.out_sizes, call.dtype);
    run(call, out, nullptr);
    return out;
}

namespace {

Tensor raw_attention(QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version)
{
    return attended(attend_of(QKV_ARGUMENTS, {{ATTENTION_OPTIONS_ARGUMENTS}, version, false}));
}

std::tuple<Tensor, Tensor> raw_attention_lse(QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version)
{
    const Attend call = attend_of(QKV_ARGUMENTS, {{ATTENTION_OPTIONS_ARGUMENTS}, version, true});
    Tensor out = empty_like(q, call.out_sizes, call.dtype), lse = empty_like(q, call.lse_sizes, call.lse_dtype);
    run(call, out, &lse);
    return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor> raw_attention_backward(RESULTS_PARAMETERS, QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS, int64_t version)
{
    AttendOptions options = {{ATTENTION_OPTIONS_ARGUMENTS}, version, true};
    options.flags &= ~FLAG_DYNAMIC; /* the faster kernel of gradients wants a mask that the host knows */
    const AttendBackward call = backward_of(attend_of(QKV_ARGUMENTS, options), RESULTS_ARGUMENTS);
    const Attend &attend = call.attend;
    std::tuple<Tensor, Tensor, Tensor> made = {empty_like(q, sizes_of(q), attend.dtype), empty_like(k, sizes_of(k), attend.dtype),
                                               empty_like(v, sizes_of(v), attend.dtype)};
    run(call, std::get<0>(made), std::get<1>(made), std::get<2>(made));
    return made;
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(RESULTS_PARAMETERS, QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS)
{
    return raw_attention_backward(RESULTS_ARGUMENTS, QKV_ARGUMENTS, ATTENTION_OPTIONS_ARGUMENTS, VERSION_UNKNOWN);
}

Tensor attention(QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS)
{
    return raw_attention(QKV_ARGUMENTS, ATTENTION_OPTIONS_ARGUMENTS, VERSION_UNKNOWN);
}

std::tuple<Tensor, Tensor> attention_lse(QKV_PARAMETERS, ATTENTION_OPTIONS_PARAMETERS)
{
    return raw_attention_lse(QKV_ARGUMENTS, ATTENTION_OPTIONS_ARGUMENTS, VERSION_UNKNOWN);
}

std::string report_gemm(DENSE_PARAMETERS, const std::optional<Tensor> &offs, int64_t flags, REPORT_PARAMETERS)
{
    return report_of(dense_of(DENSE_ARGUMENTS, offs, flags), action, rounds);
}

std::string report_scaled_gemm(const Tensor &a, const Tensor &b, int64_t flags, SCALES_PARAMETERS, REPORT_PARAMETERS)
{
    const Scaling scaling = SCALING_OF_PARAMETERS;
    return report_of(dense_of(a, b, bias, std::nullopt, std::nullopt, flags, &scaling), action, rounds);
}

std::string report_scaled_spmm(SCALED_SPARSE_PARAMETERS, SCALES_PARAMETERS, REPORT_PARAMETERS)
{
    return report_of(scaled_multiply_of(SCALED_SPARSE_ARGUMENTS, SCALES_ARGUMENTS), action, rounds);
}

std::string report_spmm(SPARSE_PARAMETERS, REPORT_PARAMETERS)
{
    return report_of(multiply_of(SPARSE_ARGUMENTS, VERSION_UNKNOWN), action, rounds);
}

std::string report_sddmm(SAMPLE_PARAMETERS, REPORT_PARAMETERS)
{
    return report_of(sample_of(SAMPLE_ARGUMENTS, VERSION_UNKNOWN), action, rounds);
}

std::string inspect(const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols, int64_t block_rows,
                    int64_t block_cols)
{
    const Shape shape = {rows, cols, block_rows, block_cols};
    check_indices(row_offsets, col_indices, row_offsets, "row_offsets", shape);
    return inspect_of(pattern_of(device_of(row_offsets), row_offsets, col_indices, shape, VERSION_UNKNOWN));
}

/* Each function takes and returns what its schema says. */
#define IMPLEMENT(name, function, schema, parameters, ...)                                                        \
    static_assert(std::is_same_v<decltype(function), __VA_ARGS__ parameters>, #function " is not as its schema"); \
    library.impl(#name, TORCH_BOX(&function));

template <typename Library> void implement(Library &library)
{
    OPERATORS(IMPLEMENT)
}

} // namespace

} // namespace sparse_autotune

#define DEFINE(name, function, schema, ...) library.def(schema);

STABLE_TORCH_LIBRARY(sparse_autotune, library){OPERATORS(DEFINE)}

STABLE_TORCH_LIBRARY_IMPL(sparse_autotune, CPU, library)
{
    sparse_autotune::implement(library);
}

STABLE_TORCH_LIBRARY_IMPL(sparse_autotune, CUDA, library)
{
    sparse_autotune::implement(library);
}
