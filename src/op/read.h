/* What the operations share as a caller's description becomes a problem: checks whose messages name the caller's field, its value and the
 * limit. */
#ifndef SPK_OP_READ_H
#define SPK_OP_READ_H

#include "op/problem.h"

spk_status spk_read_enum(const char *name, int value, int last);

/* A size that is not a pattern's: 0 .. 2^40. */
spk_status spk_read_size(const char *name, int64_t value);

/* A dtype of factors and results alike: f32, f64, f16 or bf16; what is given as the default is `usual`. */
spk_status spk_read_dtype(const char *name, spk_dtype given, spk_dtype usual, spk_dtype *dtype);

/* The number of items of a batch: 0 counts as 1. */
spk_status spk_read_batch(int64_t given, spk_problem *problem);

/* The dtypes of a product as given, under these names, and their defaults: checked, and into problem->a, b, d and compute. */
typedef struct spk_given_dtypes {
    const char *name_a, *name_b;
    spk_dtype a, b, d, compute;
} spk_given_dtypes;
spk_status spk_read_dtypes(const spk_given_dtypes *given, spk_problem *problem);

/* Scale factors of A (which: 0) or B, as given under this name: checked, and into the problem, whose sizes, dtypes, batch and groups are
 * set. */
spk_status spk_read_scale(const char *name, int which, spk_scale given, spk_problem *problem);

/* The matrices in an item of an operand: 0 counts as 1. */
spk_status spk_read_heads(const char *name, int64_t given, spk_operand *operand);

/* The leading dimension and the stride of the batch as given: 0 is tight; SPK_STRIDE_SHARED is one for all items, of inputs. */
typedef struct spk_given_array {
    const char *ld_name, *stride_name;
    int64_t ld, stride;
    bool output; /* its lines must not overlap */
} spk_given_array;

/* Into an operand whose rows, columns, dtype and layout are set. The whole must stay below 2^62 bytes. */
spk_status spk_read_array(const spk_given_array *array, int64_t batch, spk_operand *operand);

/* The same of an operand whose heads are set, too. */
spk_status spk_read_array_of_heads(const spk_given_array *array, const char *head_stride_name, int64_t head_stride, int64_t batch,
                                   spk_operand *operand);

/* And back: the stride of an input as a caller gives it. An output's is what the operand has. */
int64_t spk_given_stride(const spk_problem *problem, const spk_operand *input);

/* The array of C, residual or preact, which lie like D: checked even where they take no part; then the operand stays as it is. */
spk_status spk_read_like_d(const spk_given_array *array, bool takes_part, const spk_problem *problem, spk_operand *operand);

#endif
