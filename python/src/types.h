/* Element types as PyTorch numbers and names them: the library's table, src/type/types.def. */
#pragma once

#include <vector>

#include "state.h"
#include "type/type.h"

namespace sparse_autotune {

struct Type {
    spk_dtype dtype;
    const char *name; /* the library's */
    spk_type_use use;
    const char *use_name;                      /* "VALUES" */
    spk_dtype sums, results[SPK_MOST_RESULTS]; /* as struct spk_type has them */
    const char *npy;                           /* NumPy's name; nullptr: it has none */
    const char *torch;                         /* PyTorch's name */
    int32_t number;                            /* PyTorch's; -1: it has none */
};

const std::vector<Type> &types();

/* PyTorch's name of a number, one of its other types, too. */
std::string dtype_name(int32_t number);

/* "float32, float64, float16 or bfloat16": those of a use. */
std::string type_names(spk_type_use use);

/* PyTorch's names of what products of such elements may be. */
std::string result_names(const Type &type, const char *between);

/* The types that the library takes without scale factors, and with them; `name` is the argument's, to refuse others. */
spk_dtype library_dtype(const char *name, int32_t number);
spk_dtype factor_dtype(const char *name, int32_t number);

/* PyTorch's number of a type whose sums are wider where `wide` asks for those; else as it is. */
int32_t wide_dtype(int32_t number, bool wide);

/* Of the result of products of factors: by its place among the types that it may have. */
int32_t result_dtype(int64_t place);

/* Whether it is a type of values, which the library takes without scale factors. */
bool has_values(int32_t number);

/* How products are computed: rounded to TF32 where the caller allows it and the type has it. */
spk_dtype compute_dtype(int64_t flags, spk_dtype dtype);

} // namespace sparse_autotune
