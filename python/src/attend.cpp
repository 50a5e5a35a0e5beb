#include "attend.h"

#include <algorithm>
#include <cmath>

namespace sparse_autotune {

namespace {

/* A tensor as matrices of rows, one for each head of each item. */
struct Heads {
    Tensor tensor;
    int64_t batch = 0, heads = 0, rows = 0, depth = 0;
    int64_t ld = 0, head_stride = 0, stride = 0; /* as the library takes them; 0: tight */
};

/* False where the library cannot read the tensor in place. */
bool describe(const Tensor &t, bool rows_first, Heads *h)
{
    const auto sizes = t.sizes(), strides = t.strides();
    const size_t head = rows_first ? 2 : 1, row = rows_first ? 1 : 2;
    h->tensor = t;
    h->batch = sizes[0];
    h->heads = sizes[head];
    h->rows = sizes[row];
    h->depth = sizes[3];
    if (t.numel() == 0) /* nothing of it is read, whatever its strides are */
        return true;
    if ((h->depth > 1 && strides[3] != 1) || (h->rows > 1 && strides[row] < h->depth) || (h->heads > 1 && strides[head] == 0))
        return false;
    h->ld = h->rows > 1 ? strides[row] : 0;
    h->head_stride = h->heads > 1 ? strides[head] : 0;
    h->stride = h->batch > 1 ? shared_or(strides[0]) : 0;
    return true;
}

Heads heads_of(const char *name, const Tensor &t, bool rows_first)
{
    Heads made;
    if (t.dim() != 4)
        refuse(std::string(name) + ": must have four dimensions, " +
               (rows_first ? "[batch, rows, heads, depth]" : "[batch, heads, rows, depth]") + "; its shape is " + text_of(sizes_of(t)));
    if (!describe(t, rows_first, &made))
        describe(torch::stable::contiguous(t), rows_first, &made);
    return made;
}

void check_shapes(const Heads &q, const Heads &k, const Heads &v)
{
    const std::string of_k = text_of(sizes_of(k.tensor));
    if (k.batch != q.batch || k.depth != q.depth)
        refuse("k: its shape is " + of_k + ", that of q " + text_of(sizes_of(q.tensor)) + ": they have the same batch and depth");
    if (v.batch != k.batch || v.heads != k.heads || v.rows != k.rows)
        refuse("v: its shape is " + text_of(sizes_of(v.tensor)) + ", that of k " + of_k + ": they have the same batch, heads and rows");
    if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
        refuse("k: has " + std::to_string(k.heads) + " heads, which do not divide the " + std::to_string(q.heads) + " of q");
}

/* Of as many heads and items as the operands have, or one. */
void check_lists(const Heads &q, const Heads &k, const AttendOptions &o)
{
    if (o.mask_heads != 1 && o.mask_heads != k.heads && o.mask_heads != q.heads)
        refuse("mask: has lists for " + std::to_string(o.mask_heads) + " heads; it is 1, or the " + std::to_string(k.heads) +
               " of k or the " + std::to_string(q.heads) + " of q");
    if (o.mask_items != 1 && o.mask_items != q.batch)
        refuse("mask: has lists for " + std::to_string(o.mask_items) + " items; it is 1, or the " + std::to_string(q.batch) +
               " of the batch");
}

void read_mask(Attend *call, const Heads &q, const Heads &k, const AttendOptions &o)
{
    if (o.row_offsets.has_value() != o.col_indices.has_value())
        refuse(std::string(o.row_offsets ? "col_indices" : "row_offsets") + ": is missing");
    if (!o.row_offsets)
        return;
    check_lists(q, k, o);
    Shape shape = {q.rows, k.rows, o.block_rows, o.block_cols};
    int64_t lists = 0;
    bool over = __builtin_mul_overflow(o.mask_heads, o.mask_items, &lists);
    if (lists != 1 && o.block_rows > 0) { /* each is of whole blocks */
        const int64_t grid = q.rows / o.block_rows + (q.rows % o.block_rows != 0);
        over = over || __builtin_mul_overflow(grid, o.block_rows, &shape.rows) || __builtin_mul_overflow(shape.rows, lists, &shape.rows);
    }
    if (over)
        refuse("mask: has too many lists");
    check_indices(*o.row_offsets, *o.col_indices, call->q, "q", shape);
    call->mask = pattern_of(call->on, *o.row_offsets, *o.col_indices, shape, o.version);
    call->problem.mask_heads = o.mask_heads;
    call->problem.mask_items = o.mask_items;
}

void fill_problem(spk_attention *p, const Heads &q, const Heads &k, const Heads &v, const AttendOptions &o)
{
    constexpr int64_t most = int64_t(1) << 40; /* of what the library takes: no tensor has so many keys */
    *p = spk_sized<spk_attention>();
    p->queries = q.rows;
    p->keys = k.rows;
    p->depth = q.depth;
    p->depth_v = v.depth;
    p->batch = q.batch;
    p->heads = q.heads;
    p->heads_kv = k.heads;
    p->diagonal = o.flags & FLAG_BOTTOM_RIGHT ? SPK_DIAGONAL_BOTTOM_RIGHT
                  : o.flags & FLAG_TOP_LEFT   ? SPK_DIAGONAL_TOP_LEFT
                                              : SPK_DIAGONAL_NONE;
    p->causal = (o.flags & FLAG_CAUSAL) != 0;
    p->window_left = std::min(o.window_left, most);
    p->window_right = std::min(o.window_right, most);
    p->sinks = std::min(o.sinks, most);
    p->soft_cap = o.softcap != 0;
    p->want_lse = o.want_lse;
    p->ldq = q.ld;
    p->ldk = k.ld;
    p->ldv = v.ld;
    p->head_stride_q = q.head_stride;
    p->head_stride_k = k.head_stride;
    p->head_stride_v = v.head_stride;
    p->stride_q = q.stride;
    p->stride_k = k.stride;
    p->stride_v = v.stride;
    if (o.flags & FLAG_ROWS_FIRST) {
        p->ldo = q.heads * v.depth;
        p->head_stride_o = v.depth;
    }
}

} // namespace

Attend attend_of(const Tensor &q, const Tensor &k, const Tensor &v, const AttendOptions &o)
{
    static const int32_t f32 = aoti_torch_dtype_float32(), f64 = aoti_torch_dtype_float64();
    const bool rows_first = o.flags & FLAG_ROWS_FIRST;
    Attend call;
    call.dtype = dtype_of(q);
    call.lse_dtype = call.dtype == f64 ? f64 : f32;
    const spk_dtype dtype = library_dtype("q", call.dtype);
    check_device("k", k, q, "q");
    check_device("v", v, q, "q");
    check_dtype("k", k, "q", call.dtype);
    check_dtype("v", v, "q", call.dtype);
    const Heads of_q = heads_of("q", q, rows_first), of_k = heads_of("k", k, rows_first), of_v = heads_of("v", v, rows_first);
    check_shapes(of_q, of_k, of_v);
    if (of_v.depth == 0 && of_q.depth != 0 && o.want_lse)
        refuse("v: has no columns, which return_lse wants");
    call.on = device_of(q);
    call.q = of_q.tensor;
    call.k = of_k.tensor;
    call.v = of_v.tensor;
    fill_problem(&call.problem, of_q, of_k, of_v, o);
    call.problem.dtype = dtype;
    read_mask(&call, of_q, of_k, o);
    call.out_sizes = {of_q.batch, rows_first ? of_q.rows : of_q.heads, rows_first ? of_q.heads : of_q.rows, of_v.depth};
    call.lse_sizes = {of_q.batch, of_q.heads, of_q.rows};
    call.args = spk_sized<spk_attention_args>();
    call.args.q = call.q.const_data_ptr();
    call.args.k = call.k.const_data_ptr();
    call.args.v = call.v.const_data_ptr();
    call.args.scale = o.scale ? *o.scale : of_q.depth > 0 ? 1 / std::sqrt(static_cast<double>(of_q.depth)) : 1;
    call.args.softcap = o.softcap;
    call.args.stream = call.on->stream();
    return call;
}

} // namespace sparse_autotune
