/* Checks that patterns and matrices share: sizes, offsets, single indices. Each message names the argument, the index, the value and the
 * limit. */
#ifndef SPK_MATRIX_CHECK_H
#define SPK_MATRIX_CHECK_H

#include <stdbool.h>

#include "base/mem.h"

enum { SPK_BLOCK_LIMIT = 256 };

/* Sizes that sums and products with a block size cannot overflow. */
#define SPK_SIZE_LIMIT (INT64_C(1) << 48)

static inline int64_t spk_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ceil(size / block), for size >= 0. */
static inline int64_t spk_ceil_div(int64_t size, int64_t block)
{
    return size / block + (size % block != 0);
}

/* Index i of an array of either type. */
static inline int64_t spk_index_at(const void *indices, spk_index_type type, int64_t i)
{
    return type == SPK_INDEX_I32 ? ((const int32_t *)indices)[i] : ((const int64_t *)indices)[i];
}

/* a * b * c bytes (a, b, c >= 0) are at most INT64_MAX. */
bool spk_product_fits(int64_t a, int64_t b, int64_t c, int64_t bytes);

/* 0 <= rows, cols <= SPK_SIZE_LIMIT. */
spk_status spk_check_size(int64_t rows, int64_t cols);
/* 1 <= block_rows, block_cols <= SPK_BLOCK_LIMIT. */
spk_status spk_check_block(int64_t block_rows, int64_t block_cols);
spk_status spk_check_index_type(spk_index_type type);

/* Refuses a NULL or misaligned array of count indices; NULL passes where count is 0. */
spk_status spk_check_index_array(const void *indices, spk_index_type type, int64_t count, const char *name);

/* Copies rows + 1 offsets into out and checks the copy: the first 0, never falling, the last `count` (called count_name). NULL stands for
 * {0} where rows and count are 0. */
spk_status spk_check_offsets(const void *offsets, spk_index_type type, int64_t rows, int64_t count, const char *count_name, int64_t *out);

/* Copies count indices into out and checks that each is in [0, limit); `what` is what they count ("columns"). */
spk_status spk_check_indices(const void *indices, spk_index_type type, int64_t count, int64_t limit, const char *name, const char *what,
                             int64_t *out);

/* The failure of one index that is out of [0, limit). */
spk_status spk_fail_index(const char *name, int64_t i, int64_t value, const char *what, int64_t limit);

#endif
