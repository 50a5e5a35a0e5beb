/* Products whose operands were checked before: as a rule the next one has the same sparse operand, the same options, and a dense operand
 * like the last one. What was found then is kept beside what the operands were, and holds as long as they are that again. A fixed number is
 * kept. By threads that hold the interpreter's lock. */
#pragma once

#include <Python.h>

#include <array>

#include "generated/operators.h"
#include "operands.h"

namespace sparse_autotune {

/* What a tensor is, as far as a product can tell. Its device apart: no two have memory at one address. */
struct Facts {
    const void *data = nullptr; /* NULL: of a kind that is not kept */
    intptr_t dtype = 0;         /* equal for equal ones */
    int64_t dim = 0;
    std::array<int64_t, 4> sizes = {};
    bool operator==(const Facts &other) const
    {
        return data == other.data && dtype == other.dtype && dim == other.dim && sizes == other.sizes;
    }
    int64_t numel() const;
};

/* A call of _spmm: plain tensors, contiguous, with memory, and without a batch of values. */
struct Sight {
    std::array<Facts, SPMM_TENSORS> facts;
    std::array<int64_t, SPMM_NUMBERS> numbers = {};
    intptr_t device = 0; /* of the dense operand; equal for equal ones */
};

/* A product as it goes to the library. Who holds it keeps the pattern. */
struct Known {
    std::shared_ptr<Pattern> pattern;
    spk_spmm problem = {};
    spk_spmm_args args = {};
    std::array<int64_t, 4> out_sizes = {};
    int64_t out_dim = 0;
};

/* False: not known, or not for sure. */
bool recall(const Sight &sight, Known *known);

/* While it lives, the thread's next product through raw_spmm is kept with the sight, where it can be. */
class Recording {
  public:
    explicit Recording(const Sight *sight); /* nullptr: nothing is kept */
    ~Recording();
    Recording(const Recording &) = delete;
};

/* By raw_spmm, of a product that ran. */
void record(const Multiply &call);

} // namespace sparse_autotune
