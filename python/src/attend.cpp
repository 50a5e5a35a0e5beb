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

void check_shapes(const Heads &q, const Heads &k, const Heads &v, bool paged)
{
    const std::string of_k = text_of(sizes_of(k.tensor));
    if ((k.batch != q.batch && !paged) || k.depth != q.depth)
        refuse("k: its shape is " + of_k + ", that of q " + text_of(sizes_of(q.tensor)) + ": they have the same " +
               (paged ? "depth" : "batch and depth"));
    if (v.batch != k.batch || v.heads != k.heads || v.rows != k.rows)
        refuse("v: its shape is " + text_of(sizes_of(v.tensor)) + ", that of k " + of_k + ": they have the same " +
               (paged ? "pages" : "batch") + ", heads and rows");
    if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
        refuse("k: has " + std::to_string(k.heads) + " heads, which do not divide the " + std::to_string(q.heads) + " of q");
}

/* Pages one behind the other are one item of all their rows. They are read where they lie: nobody wants a copy of a cache. */
void join_pages(const char *name, const Tensor &given, Heads *h)
{
    const std::string shape = text_of(sizes_of(given));
    if (h->batch == 0 || h->rows == 0)
        refuse(std::string(name) + ": its shape is " + shape + ": there is at least one page, of one row");
    const int64_t ld = h->rows > 1 ? h->ld : h->stride;
    if (given.numel() > 0 && (h->tensor.get() != given.get() || (h->batch > 1 && (h->stride != h->rows * ld || ld < h->depth))))
        refuse(std::string(name) +
               ": pages are read where they lie, and each must begin where the rows of the one before it end; its shape is " + shape +
               ", its strides " + strides_of(given));
    h->ld = ld;
    h->rows *= h->batch;
    h->batch = 1;
    h->stride = 0;
}

/* Of as many numbers as are wanted, or of as many rows of numbers. */
Tensor index_of(const char *name, const Tensor &t, const Tensor &q, int64_t dims, int64_t wanted, const char *of)
{
    static const int32_t i32 = aoti_torch_dtype_int32();
    check_device(name, t, q, "q");
    if (dtype_of(t) != i32)
        refuse(std::string(name) + ": its dtype must be int32, not " + dtype_name(dtype_of(t)));
    if (t.dim() != dims || (wanted >= 0 && t.size(0) != wanted))
        refuse(std::string(name) + ": its shape is " + text_of(sizes_of(t)) + "; it must be [" +
               (wanted >= 0 ? std::to_string(wanted) : of) + (dims > 1 ? ", pages of each]" : "]") +
               (wanted >= 0 ? std::string(": one for ") + of : ""));
    return torch::stable::contiguous(t);
}

/* Sequences, lengths, and pages. */
void read_packing(Attend *call, const Heads &q, const Heads &k, int64_t page_keys, const AttendOptions &o)
{
    spk_attention &p = call->problem;
    const bool packed = o.query_ends.has_value(), paged = o.page_table.has_value();
    if (packed && !o.key_ends)
        refuse("key_ends: is missing; query_ends has the ends of sequences, whose keys must end somewhere, too");
    if (packed && q.batch != 1)
        refuse("query_ends: sequences lie one behind the other in a batch of 1; the shape of q is " + text_of(sizes_of(q.tensor)));
    if (packed) {
        call->query_ends = index_of("query_ends", *o.query_ends, call->q, 1, -1, "sequences");
        p.sequences = call->query_ends->numel();
        call->args.query_ends = call->query_ends->const_data_ptr();
    }
    const int64_t lists = packed ? p.sequences : q.batch;
    const char *of = packed ? "each sequence" : "each item";
    if (o.key_ends) {
        call->key_ends = index_of("key_ends", *o.key_ends, call->q, 1, lists, of);
        p.key_lengths = !packed;
        call->args.key_ends = call->key_ends->const_data_ptr();
    }
    if (!paged)
        return;
    call->page_table = index_of("page_table", *o.page_table, call->q, 2, lists, of);
    p.page_keys = page_keys;
    p.pages = k.rows / page_keys;
    p.keys = call->page_table->size(1) * page_keys;
    call->args.page_table = call->page_table->const_data_ptr();
}

void read_tiles(Attend *call, const AttendOptions &o)
{
    if (o.tile_numbers.has_value() != o.tile_bits.has_value())
        refuse(std::string(o.tile_numbers ? "tile_bits" : "tile_numbers") + ": is missing");
    if (!o.tile_numbers)
        return;
    if (!o.row_offsets)
        refuse("tile_numbers: there is no mask whose blocks have tiles");
    const int64_t words = (o.block_cols + 31) / 32;
    call->tile_numbers = index_of("tile_numbers", *o.tile_numbers, call->q, 1, o.col_indices->numel(), "each block");
    check_device("tile_bits", *o.tile_bits, call->q, "q");
    check_dtype("tile_bits", *o.tile_bits, "tile_numbers", dtype_of(*o.tile_numbers));
    if (o.tile_bits->dim() != 3 || o.tile_bits->size(0) == 0 || o.tile_bits->size(1) != o.block_rows || o.tile_bits->size(2) != words)
        refuse("tile_bits: its shape is " + text_of(sizes_of(*o.tile_bits)) + "; it must be [tiles, " + std::to_string(o.block_rows) +
               ", " + std::to_string(words) + "]: at least one tile, a line for each query of a block, a bit for each of its keys");
    call->tile_bits = torch::stable::contiguous(*o.tile_bits);
    call->problem.tiles = o.tile_bits->size(0);
    call->args.tile_numbers = call->tile_numbers->const_data_ptr();
    call->args.tile_bits = call->tile_bits->const_data_ptr();
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
    Shape shape = {q.rows, call->problem.keys, o.block_rows, o.block_cols};
    int64_t lists = 0;
    bool over = __builtin_mul_overflow(o.mask_heads, o.mask_items, &lists);
    if (lists != 1 && o.block_rows > 0) { /* each is of whole blocks */
        const int64_t grid = q.rows / o.block_rows + (q.rows % o.block_rows != 0);
        over = over || __builtin_mul_overflow(grid, o.block_rows, &shape.rows) || __builtin_mul_overflow(shape.rows, lists, &shape.rows);
    }
    if (over)
        refuse("mask: has too many lists");
    check_indices(*o.row_offsets, *o.col_indices, call->q, "q", shape);
    call->mask = pattern_of(call->on, *o.row_offsets, *o.col_indices, shape, o.version, o.flags & FLAG_DYNAMIC);
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
    p->use_softcap = o.softcap != 0;
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
    if ((o.flags & FLAG_ROWS_FIRST) || o.rows_first_out) {
        p->ldo = q.heads * v.depth;
        p->head_stride_o = v.depth;
    }
}

} // namespace

Attend attend_of(const Tensor &q, const Tensor &k, const Tensor &v, const AttendOptions &o)
{
    check_flags(o.flags, FLAGS_OF_ATTENTION);
    if ((o.flags & FLAG_TOP_LEFT) && (o.flags & FLAG_BOTTOM_RIGHT))
        refuse("flags: " + std::to_string(o.flags) + " says top_left and bottom_right; one key stands beside a query");
    const bool rows_first = o.flags & FLAG_ROWS_FIRST;
    Attend call;
    call.dtype = dtype_of(q);
    call.lse_dtype = wide_dtype(call.dtype, true);
    const spk_dtype dtype = library_dtype("q", call.dtype);
    check_device("k", k, q, "q");
    check_device("v", v, q, "q");
    check_dtype("k", k, "q", call.dtype);
    check_dtype("v", v, "q", call.dtype);
    const Heads of_q = heads_of("q", q, rows_first);
    Heads of_k = heads_of("k", k, rows_first), of_v = heads_of("v", v, rows_first);
    check_shapes(of_q, of_k, of_v, o.page_table.has_value());
    const int64_t page_keys = of_k.rows;
    if (o.page_table) {
        join_pages("k", k, &of_k);
        join_pages("v", v, &of_v);
    }
    if (of_v.depth == 0 && of_q.depth != 0 && o.want_lse)
        refuse("v: has no columns, which return_lse wants");
    call.on = device_of(q);
    call.q = of_q.tensor;
    call.k = of_k.tensor;
    call.v = of_v.tensor;
    fill_problem(&call.problem, of_q, of_k, of_v, o);
    call.problem.dtype = dtype;
    call.args = spk_sized<spk_attention_args>();
    read_packing(&call, of_q, of_k, page_keys, o);
    read_mask(&call, of_q, of_k, o);
    read_tiles(&call, o);
    const bool rows_first_out = rows_first || o.rows_first_out;
    call.row_dim = rows_first_out ? 1 : 2;
    call.out_sizes = {of_q.batch, rows_first_out ? of_q.rows : of_q.heads, rows_first_out ? of_q.heads : of_q.rows, of_v.depth};
    call.lse_sizes = {of_q.batch, of_q.heads, of_q.rows};
    call.args.q = call.q.const_data_ptr();
    call.args.k = call.k.const_data_ptr();
    call.args.v = call.v.const_data_ptr();
    call.args.scale = o.scale ? *o.scale : of_q.depth > 0 ? 1 / std::sqrt(static_cast<double>(of_q.depth)) : 1;
    call.args.softcap = o.softcap;
    call.args.stream = call.on->stream();
    return call;
}

namespace {

void check_shape(const char *name, const Tensor &t, const std::vector<int64_t> &wanted, const char *like)
{
    if (sizes_of(t) != wanted)
        refuse(std::string(name) + ": its shape is " + text_of(sizes_of(t)) + "; it must be " + text_of(wanted) + ", that of " + like);
}

/* A contiguous one: attention makes no others. */
Tensor result_of(const char *name, const Tensor &t, const Attend &attend, const std::vector<int64_t> &sizes, int32_t dtype,
                 const char *like)
{
    check_device(name, t, attend.q, "q");
    check_dtype(name, t, like, dtype);
    check_shape(name, t, sizes, like);
    return torch::stable::contiguous(t);
}

} // namespace

AttendBackward backward_of(Attend attend, const Tensor &grad_o, const std::optional<Tensor> &grad_lse, const Tensor &o, const Tensor &lse)
{
    AttendBackward call;
    if (attend.page_table)
        refuse("page_table: pages of a cache have no gradient");
    call.o = result_of("o", o, attend, attend.out_sizes, attend.dtype, "attention's result");
    call.lse = result_of("lse", lse, attend, attend.lse_sizes, attend.lse_dtype, "the logarithms of attention's sums");
    check_device("grad_o", grad_o, attend.q, "q");
    check_dtype("grad_o", grad_o, "o", attend.dtype);
    check_shape("grad_o", grad_o, attend.out_sizes, "o");
    const bool rows_first = attend.row_dim == 1;
    const Heads of_grad = heads_of("grad_o", grad_o, rows_first);
    call.grad_o = of_grad.tensor;
    if (grad_lse)
        call.grad_lse = result_of("grad_lse", *grad_lse, attend, attend.lse_sizes, attend.lse_dtype, "lse");
    const spk_attention &a = attend.problem;
    spk_attention_backward &p = call.problem = spk_sized<spk_attention_backward>();
    spk_attention_backward_args &args = call.args = spk_sized<spk_attention_backward_args>();
#define TAKE(member) p.member = a.member
    TAKE(dtype), TAKE(queries), TAKE(keys), TAKE(depth), TAKE(depth_v), TAKE(batch), TAKE(heads), TAKE(heads_kv), TAKE(diagonal),
        TAKE(causal), TAKE(window_left), TAKE(window_right), TAKE(sinks), TAKE(use_softcap), TAKE(mask_heads), TAKE(mask_items), TAKE(ldq),
        TAKE(ldk), TAKE(ldv), TAKE(ldo), TAKE(head_stride_q), TAKE(head_stride_k), TAKE(head_stride_v), TAKE(head_stride_o), TAKE(stride_q),
        TAKE(stride_k), TAKE(stride_v), TAKE(sequences), TAKE(key_lengths), TAKE(tiles);
#undef TAKE
    p.use_grad_lse = call.grad_lse.has_value();
    p.ld_grad_o = of_grad.ld;
    p.head_stride_grad_o = of_grad.head_stride;
    p.stride_grad_o = of_grad.stride;
    if (rows_first) {
        p.ld_grad_q = a.heads * a.depth;
        p.ld_grad_k = a.heads_kv * a.depth;
        p.ld_grad_v = a.heads_kv * a.depth_v;
        p.head_stride_grad_q = p.head_stride_grad_k = a.depth;
        p.head_stride_grad_v = a.depth_v;
    }
#define TAKE(member) args.member = attend.args.member
    TAKE(q), TAKE(k), TAKE(v), TAKE(scale), TAKE(softcap), TAKE(stream), TAKE(query_ends), TAKE(key_ends), TAKE(tile_numbers),
        TAKE(tile_bits);
#undef TAKE
    args.o = call.o.const_data_ptr();
    args.lse = call.lse.const_data_ptr();
    args.grad_o = call.grad_o.const_data_ptr();
    args.grad_lse = call.grad_lse ? call.grad_lse->const_data_ptr() : nullptr;
    call.attend = std::move(attend);
    return call;
}

} // namespace sparse_autotune
