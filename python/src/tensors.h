/* Tensors as the library's operands: checked, and copied only where the library cannot read them as they lie. */
#pragma once

#include "generated/flags.h"
#include "state.h"
#include "types.h"

namespace sparse_autotune {

/* Refuses flags that the operator does not know. */
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
/* The dimensions before the last so many. */
std::vector<int64_t> lead_of(const Tensor &t, int64_t items);
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
