/* The operators, on component tensors. Those that begin with an underscore know nothing of gradients: the Python front calls them where
 * none is wanted. */
#include <cmath>

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

} // namespace

Tensor raw_spmm(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version)
{
    check_flags(flags, FLAGS_OF_SPMM);
    if (flags & FLAG_FACTOR)
        refuse("flags: a factor is what out holds: there is none");
    const Multiply call = multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version);
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

void raw_spmm_out(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                  const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version, Tensor out)
{
    const Multiply call = multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version);
    check_out(out, dense, call.out_sizes, call.dtype);
    run(call, out);
}

void raw_spmm_added(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                    const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t version, const Tensor &residual,
                    Tensor out)
{
    if (flags & FLAG_FACTOR)
        refuse("flags: a product to which a residual is added takes no factor");
    Multiply call = multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version);
    check_out(out, dense, call.out_sizes, call.dtype);
    check_out(residual, dense, call.out_sizes, call.dtype, "residual");
    call.problem.residual = SPK_RESIDUAL_ADD;
    call.problem.ldr = call.problem.ldd;
    call.problem.stride_r = call.problem.batch > 1 ? call.problem.stride_d : 0;
    run(call, out, &residual);
}

Tensor spmm(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
            const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags)
{
    return raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN);
}

Tensor raw_sddmm(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                 int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version)
{
    const Sample call = sample_of(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version);
    Tensor out = empty_like(x, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

void raw_sddmm_out(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                   int64_t block_rows, int64_t block_cols, int64_t flags, int64_t version, Tensor out)
{
    const Sample call = sample_of(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version);
    check_out(out, x, call.out_sizes, call.dtype);
    run(call, out);
}

Tensor sddmm(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
             int64_t block_rows, int64_t block_cols, int64_t flags)
{
    return raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, VERSION_UNKNOWN);
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
    if (want & 1) {
        const Multiply call =
            multiply_of(values, row_offsets, col_indices, grad.tensor, std::nullopt, rows, cols, plain ^ FLAG_TRANS, version);
        Tensor out = empty_like(dense, call.out_sizes, call.dtype);
        run(call, out);
        std::get<0>(made) = std::move(out);
    }
    if (want & 2) {
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

Tensor gemm(const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual,
            const std::optional<Tensor> &offsets, int64_t flags)
{
    const Dense call = dense_of(a, b, bias, residual, offsets, flags);
    Tensor out = empty_like(a, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

void raw_gemm_out(const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual, int64_t flags,
                  Tensor out)
{
    const Dense call = dense_of(a, b, bias, residual, std::nullopt, flags);
    check_out(out, a, call.out_sizes, call.dtype);
    run(call, out);
}

/* What a scaled product takes beside its operands. */
#define SCALE_PARAMETERS                                                                                                                \
    const std::optional<Tensor> &scale_a, const std::optional<Tensor> &scale_b, const std::optional<Tensor> &bias, int64_t tile_a_rows, \
        int64_t tile_a_cols, int64_t tile_b_rows, int64_t tile_b_cols, int64_t result
#define SCALING_OF_PARAMETERS                                                            \
    {                                                                                    \
        scale_a, scale_b, {tile_a_rows, tile_a_cols}, {tile_b_rows, tile_b_cols}, result \
    }

Multiply scaled_multiply_of(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense, int64_t rows,
                            int64_t cols, int64_t flags, SCALE_PARAMETERS)
{
    const Scaling scaling = SCALING_OF_PARAMETERS;
    return multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN, &scaling);
}

Tensor scaled_spmm(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense, int64_t rows,
                   int64_t cols, int64_t flags, SCALE_PARAMETERS)
{
    const Multiply call = scaled_multiply_of(values, row_offsets, col_indices, dense, rows, cols, flags, scale_a, scale_b, bias,
                                             tile_a_rows, tile_a_cols, tile_b_rows, tile_b_cols, result);
    Tensor out = empty_like(dense, call.out_sizes, call.dtype);
    run(call, out);
    return out;
}

Tensor scaled_gemm(const Tensor &a, const Tensor &b, int64_t flags, SCALE_PARAMETERS)
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

/* The operators of attention take so much that it stands here once. */
#define ATTENTION_PARAMETERS                                                                                                               \
    const Tensor &q, const Tensor &k, const Tensor &v, const std::optional<Tensor> &row_offsets, const std::optional<Tensor> &col_indices, \
        int64_t block_rows, int64_t block_cols, int64_t mask_heads, int64_t mask_items, int64_t window_left, int64_t window_right,         \
        int64_t sinks, std::optional<double> scale, double softcap, int64_t flags, const std::optional<Tensor> &query_ends,                \
        const std::optional<Tensor> &key_ends, const std::optional<Tensor> &page_table, const std::optional<Tensor> &tile_numbers,         \
        const std::optional<Tensor> &tile_bits
#define ATTENTION_OPTIONS                                                                                                              \
    row_offsets, col_indices, block_rows, block_cols, mask_heads, mask_items, window_left, window_right, sinks, scale, softcap, flags, \
        query_ends, key_ends, page_table, tile_numbers, tile_bits

Tensor raw_attention(ATTENTION_PARAMETERS, int64_t version)
{
    return attended(attend_of(q, k, v, {ATTENTION_OPTIONS, version, false}));
}

std::tuple<Tensor, Tensor> raw_attention_lse(ATTENTION_PARAMETERS, int64_t version)
{
    const Attend call = attend_of(q, k, v, {ATTENTION_OPTIONS, version, true});
    Tensor out = empty_like(q, call.out_sizes, call.dtype), lse = empty_like(q, call.lse_sizes, call.lse_dtype);
    run(call, out, &lse);
    return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor> raw_attention_backward(const Tensor &grad_o, const std::optional<Tensor> &grad_lse, const Tensor &o,
                                                          const Tensor &lse, ATTENTION_PARAMETERS, int64_t version)
{
    AttendOptions options = {ATTENTION_OPTIONS, version, true};
    options.flags &= ~FLAG_DYNAMIC; /* the faster kernel of gradients wants a mask that the host knows */
    const AttendBackward call = backward_of(attend_of(q, k, v, options), grad_o, grad_lse, o, lse);
    const Attend &attend = call.attend;
    std::tuple<Tensor, Tensor, Tensor> made = {empty_like(q, sizes_of(q), attend.dtype), empty_like(k, sizes_of(k), attend.dtype),
                                               empty_like(v, sizes_of(v), attend.dtype)};
    run(call, std::get<0>(made), std::get<1>(made), std::get<2>(made));
    return made;
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor &grad_o, const std::optional<Tensor> &grad_lse, const Tensor &o,
                                                      const Tensor &lse, ATTENTION_PARAMETERS)
{
    return raw_attention_backward(grad_o, grad_lse, o, lse, q, k, v, ATTENTION_OPTIONS, VERSION_UNKNOWN);
}

Tensor attention(ATTENTION_PARAMETERS)
{
    return raw_attention(q, k, v, ATTENTION_OPTIONS, VERSION_UNKNOWN);
}

std::tuple<Tensor, Tensor> attention_lse(ATTENTION_PARAMETERS)
{
    return raw_attention_lse(q, k, v, ATTENTION_OPTIONS, VERSION_UNKNOWN);
}

std::string report_gemm(const Tensor &a, const Tensor &b, const std::optional<Tensor> &bias, const std::optional<Tensor> &residual,
                        const std::optional<Tensor> &offsets, int64_t flags, int64_t action, int64_t rounds)
{
    return report_of(dense_of(a, b, bias, residual, offsets, flags), action, rounds);
}

std::string report_scaled_gemm(const Tensor &a, const Tensor &b, int64_t flags, SCALE_PARAMETERS, int64_t action, int64_t rounds)
{
    const Scaling scaling = SCALING_OF_PARAMETERS;
    return report_of(dense_of(a, b, bias, std::nullopt, std::nullopt, flags, &scaling), action, rounds);
}

std::string report_scaled_spmm(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                               int64_t rows, int64_t cols, int64_t flags, SCALE_PARAMETERS, int64_t action, int64_t rounds)
{
    return report_of(scaled_multiply_of(values, row_offsets, col_indices, dense, rows, cols, flags, scale_a, scale_b, bias, tile_a_rows,
                                        tile_a_cols, tile_b_rows, tile_b_cols, result),
                     action, rounds);
}

std::string report_spmm(const Tensor &values, const Tensor &row_offsets, const Tensor &col_indices, const Tensor &dense,
                        const std::optional<Tensor> &bias, int64_t rows, int64_t cols, int64_t flags, int64_t action, int64_t rounds)
{
    return report_of(multiply_of(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN), action, rounds);
}

std::string report_sddmm(const Tensor &x, const Tensor &y, const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols,
                         int64_t block_rows, int64_t block_cols, int64_t flags, int64_t action, int64_t rounds)
{
    return report_of(sample_of(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, VERSION_UNKNOWN), action, rounds);
}

std::string inspect(const Tensor &row_offsets, const Tensor &col_indices, int64_t rows, int64_t cols, int64_t block_rows,
                    int64_t block_cols)
{
    const Shape shape = {rows, cols, block_rows, block_cols};
    check_indices(row_offsets, col_indices, row_offsets, "row_offsets", shape);
    return inspect_of(pattern_of(device_of(row_offsets), row_offsets, col_indices, shape, VERSION_UNKNOWN));
}

} // namespace

} // namespace sparse_autotune

#define SPARSE_OPERANDS "Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, int flags"
#define SAMPLE_OPERANDS \
    "Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols, int flags"
#define DENSE_OPERANDS "Tensor a, Tensor b, Tensor? bias, Tensor? residual"
#define SCALED_SPARSE_OPERANDS "Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, int rows, int cols, int flags"
#define SCALES \
    "Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, int tile_a_cols, int tile_b_rows, int tile_b_cols, int result"
#define ATTENTION_OPERANDS                                                                                                         \
    "Tensor q, Tensor k, Tensor v, Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, int mask_heads, int " \
    "mask_items, "                                                                                                                 \
    "int window_left, int window_right, int sinks, float? scale, float softcap, int flags"
#define ATTENTION_RESULTS "Tensor grad_o, Tensor? grad_lse, Tensor o, Tensor lse"
#define ATTENTION_ARRAYS(unless)                                                                                            \
    ", Tensor? query_ends" unless ", Tensor? key_ends" unless ", Tensor? page_table" unless ", Tensor? tile_numbers" unless \
    ", Tensor? tile_bits" unless

STABLE_TORCH_LIBRARY(sparse_autotune, library)
{
    library.def("spmm(" SPARSE_OPERANDS ") -> Tensor");
    library.def("sddmm(" SAMPLE_OPERANDS ") -> Tensor");
    library.def("_spmm(" SPARSE_OPERANDS ", int version) -> Tensor");
    library.def("_spmm_out(" SPARSE_OPERANDS ", int version, Tensor(a!) out) -> ()");
    library.def("_spmm_added(" SPARSE_OPERANDS ", int version, Tensor residual, Tensor(a!) out) -> ()");
    library.def("_sddmm(" SAMPLE_OPERANDS ", int version) -> Tensor");
    library.def("_sddmm_out(" SAMPLE_OPERANDS ", int version, Tensor(a!) out) -> ()");
    library.def("_spmm_gradients(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor gradient, int rows, int cols, "
                "int flags, "
                "int version, int want) -> (Tensor?, Tensor?)");
    library.def("gemm(" DENSE_OPERANDS ", Tensor? offs, int flags) -> Tensor");
    library.def("_gemm(" DENSE_OPERANDS ", Tensor? offs, int flags) -> Tensor");
    library.def("_gemm_out(" DENSE_OPERANDS ", int flags, Tensor(a!) out) -> ()");
    library.def("scaled_spmm(" SCALED_SPARSE_OPERANDS ", " SCALES ") -> Tensor");
    library.def("scaled_gemm(Tensor a, Tensor b, int flags, " SCALES ") -> Tensor");
    library.def("_report_scaled_spmm(" SCALED_SPARSE_OPERANDS ", " SCALES ", int action, int rounds) -> str");
    library.def("_report_scaled_gemm(Tensor a, Tensor b, int flags, " SCALES ", int action, int rounds) -> str");
    library.def("attention(" ATTENTION_OPERANDS ATTENTION_ARRAYS("=None") ") -> Tensor");
    library.def("attention_lse(" ATTENTION_OPERANDS ATTENTION_ARRAYS("=None") ") -> (Tensor, Tensor)");
    library.def("_attention(" ATTENTION_OPERANDS ATTENTION_ARRAYS("") ", int version) -> Tensor");
    library.def("_attention_lse(" ATTENTION_OPERANDS ATTENTION_ARRAYS("") ", int version) -> (Tensor, Tensor)");
    library.def("attention_backward(" ATTENTION_RESULTS ", " ATTENTION_OPERANDS ATTENTION_ARRAYS("=None") ") -> (Tensor, Tensor, Tensor)");
    library.def("_attention_backward(" ATTENTION_RESULTS
                ", " ATTENTION_OPERANDS ATTENTION_ARRAYS("") ", int version) -> (Tensor, Tensor, Tensor)");
    library.def("_report_gemm(" DENSE_OPERANDS ", Tensor? offs, int flags, int action, int rounds) -> str");
    library.def("_report_spmm(" SPARSE_OPERANDS ", int action, int rounds) -> str");
    library.def("_report_sddmm(" SAMPLE_OPERANDS ", int action, int rounds) -> str");
    library.def("_inspect(Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols) -> str");
}

#define IMPLEMENT_ALL(library)                                                                \
    library.impl("spmm", TORCH_BOX(&sparse_autotune::spmm));                                  \
    library.impl("sddmm", TORCH_BOX(&sparse_autotune::sddmm));                                \
    library.impl("_spmm", TORCH_BOX(&sparse_autotune::raw_spmm));                             \
    library.impl("_spmm_out", TORCH_BOX(&sparse_autotune::raw_spmm_out));                     \
    library.impl("_spmm_added", TORCH_BOX(&sparse_autotune::raw_spmm_added));                 \
    library.impl("_sddmm", TORCH_BOX(&sparse_autotune::raw_sddmm));                           \
    library.impl("_sddmm_out", TORCH_BOX(&sparse_autotune::raw_sddmm_out));                   \
    library.impl("_spmm_gradients", TORCH_BOX(&sparse_autotune::raw_gradients));              \
    library.impl("gemm", TORCH_BOX(&sparse_autotune::gemm));                                  \
    library.impl("_gemm", TORCH_BOX(&sparse_autotune::gemm));                                 \
    library.impl("_gemm_out", TORCH_BOX(&sparse_autotune::raw_gemm_out));                     \
    library.impl("scaled_spmm", TORCH_BOX(&sparse_autotune::scaled_spmm));                    \
    library.impl("scaled_gemm", TORCH_BOX(&sparse_autotune::scaled_gemm));                    \
    library.impl("_report_scaled_spmm", TORCH_BOX(&sparse_autotune::report_scaled_spmm));     \
    library.impl("_report_scaled_gemm", TORCH_BOX(&sparse_autotune::report_scaled_gemm));     \
    library.impl("attention", TORCH_BOX(&sparse_autotune::attention));                        \
    library.impl("attention_lse", TORCH_BOX(&sparse_autotune::attention_lse));                \
    library.impl("_attention", TORCH_BOX(&sparse_autotune::raw_attention));                   \
    library.impl("_attention_lse", TORCH_BOX(&sparse_autotune::raw_attention_lse));           \
    library.impl("attention_backward", TORCH_BOX(&sparse_autotune::attention_backward));      \
    library.impl("_attention_backward", TORCH_BOX(&sparse_autotune::raw_attention_backward)); \
    library.impl("_report_gemm", TORCH_BOX(&sparse_autotune::report_gemm));                   \
    library.impl("_report_spmm", TORCH_BOX(&sparse_autotune::report_spmm));                   \
    library.impl("_report_sddmm", TORCH_BOX(&sparse_autotune::report_sddmm));                 \
    library.impl("_inspect", TORCH_BOX(&sparse_autotune::inspect))

STABLE_TORCH_LIBRARY_IMPL(sparse_autotune, CPU, library)
{
    IMPLEMENT_ALL(library);
}

STABLE_TORCH_LIBRARY_IMPL(sparse_autotune, CUDA, library)
{
    IMPLEMENT_ALL(library);
}
