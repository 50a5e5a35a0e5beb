/* Checks that the descriptions of all operations share, as a caller's struct becomes a problem. */
#ifndef SPK_OP_DESC_H
#define SPK_OP_DESC_H

#include "op/problem.h"

spk_status spk_desc_enum(const char *name, int value, int last);

/* The dtypes given, under these names, and their defaults: into problem->dtype_a, dtype_b, dtype_d and compute. */
typedef struct spk_desc_dtypes {
    const char *name_a, *name_b;
    spk_dtype a, b, d, compute;
} spk_desc_dtypes;
spk_status spk_desc_dtypes_read(const spk_desc_dtypes *given, spk_problem *problem);

/* A size that is not a pattern's: 0 .. 2^40. */
spk_status spk_desc_size(const char *name, int64_t value);

/* The number of items of a batch: 0 counts as 1. */
spk_status spk_desc_batch(int64_t given, spk_problem *problem);

/* One array of a description: a rows x cols array of an item, and the step to the next item. */
typedef struct spk_desc_array {
    const char *ld_name, *stride_name;
    int64_t ld, stride; /* given */
    spk_layout layout;
    int64_t rows, cols;
    spk_dtype dtype;
    bool output; /* its items must not overlap */
} spk_desc_array;

/* The leading dimension (given, or tight) and the stride of the batch (given, tight, or 0 where one array is for all or there is one item).
 * The whole must stay below 2^62 bytes. */
spk_status spk_desc_array_read(const spk_desc_array *array, int64_t batch, int64_t *ld, int64_t *stride);

/* What of the options belongs to the problem; options may be NULL. */
void spk_desc_options(const spk_tune_options *options, spk_problem *problem);

#endif
