/* Tensors as the library's operands: checked, and copied only where the library cannot read them as they lie. */
#pragma once

#include "state.h"
#include "types.h"

namespace sparse_autotune {

/* FLAG_FACTOR: the result is multiplied with what `out` holds; of dense products, with the residual. FLAG_WIDE: sums of float16 and
 * bfloat16 are not rounded: the result is float32. FLAG_WHOLE: nothing lies behind the last group. Of attention: FLAG_ROWS_FIRST: tensors
 * are [batch, rows, heads, depth]; FLAG_TOP_LEFT and FLAG_BOTTOM_RIGHT say which key stands beside which query; FLAG_DYNAMIC: the mask is
 * new at nearly every call, and nobody waits for it. Only of direct_attention: FLAG_AS_QUERY: where the heads of each row of q lie side by
 * side, so do those of the result. */
enum : int64_t {
    FLAG_TRANS = 1,
    FLAG_RIGHT = 2,
    FLAG_FINITE = 4,
    FLAG_TF32 = 8,
    FLAG_ACTIVATION_SHIFT = 4,
    FLAG_ACTIVATION_MASK = 7,
    FLAG_FACTOR = 128,
    FLAG_WIDE = 256,
    FLAG_WHOLE = 512,
    FLAG_ROWS_FIRST = 1024,
    FLAG_CAUSAL = 2048,
    FLAG_TOP_LEFT = 4096,
    FLAG_BOTTOM_RIGHT = 8192,
    FLAG_AS_QUERY = 16384,
    FLAG_DYNAMIC = 32768
};

/* Those that an operator knows. */
enum : int64_t {
    FLAGS_OF_SDDMM = FLAG_FINITE | FLAG_TF32,
    FLAGS_OF_SPMM = FLAGS_OF_SDDMM | FLAG_TRANS | FLAG_RIGHT | FLAG_ACTIVATION_MASK << FLAG_ACTIVATION_SHIFT | FLAG_FACTOR,
    FLAGS_OF_GEMM = FLAGS_OF_SDDMM | FLAG_ACTIVATION_MASK << FLAG_ACTIVATION_SHIFT | FLAG_FACTOR | FLAG_WIDE | FLAG_WHOLE,
    FLAGS_OF_ATTENTION = FLAG_ROWS_FIRST | FLAG_CAUSAL | FLAG_TOP_LEFT | FLAG_BOTTOM_RIGHT | FLAG_DYNAMIC
};
/* Refuses others. */
void check_flags(int64_t flags, int64_t known);

/* The last two dimensions of a tensor as a matrix; the dimensions before them as a batch. */
struct Matrix {
    Tensor tensor; /* keeps the memory */
    spk_layout layout = SPK_ROW_MAJOR;
    int64_t rows = 0, cols = 0, ld = 0;
    int64_t batch = 1, stride = 0; /* stride 0: every item is the same */
    const void *data() const { return tensor.const_data_ptr(); }
    Matrix transposed() const;
};

/* The tensor is copied where the library cannot read it in place. */
Matrix matrix_of(const char *name, const Tensor &t);
/* A tensor [..., rows, columns] as one matrix whose rows are those of all items; copied where they do not lie so. */
Matrix rows_of(const char *name, const Tensor &t);
/* Items one below the other are one matrix with more rows, where they lie so; else false. */
bool fold(Matrix *m);

/* What broadcasting makes of the batches of two operands, whose items have so many dimensions, as PyTorch does it. */
struct Batches {
    std::vector<int64_t> lead;
    bool apart = true; /* they are the same, or one is of a single item: the library reads both as they lie */
};

Batches batches_of(const char *name, const Tensor &x, int64_t items_x, const char *other, const Tensor &y, int64_t items_y);
/* A view with the dimensions of a batch before its last so many. */
Tensor widened(Tensor t, const std::vector<int64_t> &lead, int64_t items);
/* A stride of a batch, as the library takes that of an input. */
int64_t shared_or(int64_t stride);

std::vector<int64_t> sizes_of(const Tensor &t);
int32_t dtype_of(const Tensor &t);
std::string text_of(const std::vector<int64_t> &sizes);
std::string strides_of(const Tensor &t);

/* "NAME: its dtype must be that of LIKE, float32, not int32" */
void check_dtype(const char *name, const Tensor &t, const char *like, int32_t dtype);
void check_device(const char *name, const Tensor &t, const Tensor &like, const char *like_name);
/* A contiguous tensor of one dimension. */
void check_line(const char *name, const Tensor &t);
/* A contiguous tensor in the result's shape and dtype. */
void check_out(const Tensor &out, const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype, const char *name = "out");

/* An uninitialised contiguous tensor like another one. */
Tensor empty_like(const Tensor &like, const std::vector<int64_t> &sizes, int32_t dtype);

} // namespace sparse_autotune
