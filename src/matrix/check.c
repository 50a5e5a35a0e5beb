/* Checks of sizes and index arrays, in one pass over a private copy; the source is read again only to word a message. */
#include "matrix/check.h"

#include <inttypes.h>
#include <string.h>

bool spk_product_fits(int64_t a, int64_t b, int64_t c, int64_t bytes)
{
    int64_t product = 0;
    if (a == 0 || b == 0 || c == 0)
        return true;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
           !__builtin_mul_overflow(product, bytes, &product);
}

spk_status spk_check_size(int64_t rows, int64_t cols)
{
    if (rows < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "rows = %" PRId64 " is negative", rows);
    if (cols < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "cols = %" PRId64 " is negative", cols);
    if (rows > SPK_SIZE_LIMIT)
        return spk_fail(SPK_ERR_UNSUPPORTED, "rows = %" PRId64 " exceeds the limit of %" PRId64, rows, SPK_SIZE_LIMIT);
    if (cols > SPK_SIZE_LIMIT)
        return spk_fail(SPK_ERR_UNSUPPORTED, "cols = %" PRId64 " exceeds the limit of %" PRId64, cols, SPK_SIZE_LIMIT);
    return SPK_OK;
}

spk_status spk_check_block(int64_t block_rows, int64_t block_cols)
{
    if (block_rows < 1 || block_rows > SPK_BLOCK_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT, "block_rows = %" PRId64 " is not in 1..%d", block_rows, SPK_BLOCK_LIMIT);
    if (block_cols < 1 || block_cols > SPK_BLOCK_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT, "block_cols = %" PRId64 " is not in 1..%d", block_cols, SPK_BLOCK_LIMIT);
    return SPK_OK;
}

spk_status spk_check_index_type(spk_index_type type)
{
    if (type != SPK_INDEX_I32 && type != SPK_INDEX_I64)
        return spk_fail(SPK_ERR_ARGUMENT, "index_type = %d is neither SPK_INDEX_I32 (%d) nor SPK_INDEX_I64 (%d)", (int)type, SPK_INDEX_I32,
                        SPK_INDEX_I64);
    return SPK_OK;
}

spk_status spk_check_index_array(const void *indices, spk_index_type type, int64_t count, const char *name)
{
    size_t bytes = type == SPK_INDEX_I32 ? sizeof(int32_t) : sizeof(int64_t);
    if (count == 0)
        return SPK_OK;
    if (indices == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "%s is NULL: it must hold %" PRId64 " indices", name, count);
    if ((uintptr_t)indices % bytes != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %p is not aligned to its indices of %zu bytes", name, indices, bytes);
    return SPK_OK;
}

static void copy_indices(const void *indices, spk_index_type type, int64_t count, int64_t *out)
{
    if (type == SPK_INDEX_I64) {
        if (count > 0)
            memcpy(out, indices, (size_t)count * sizeof *out);
        return;
    }
    const int32_t *narrow = indices;
    for (int64_t i = 0; i < count; i++)
        out[i] = narrow[i];
}

spk_status spk_check_offsets(const void *offsets, spk_index_type type, int64_t rows, int64_t count, const char *count_name, int64_t *out)
{
    if (offsets == NULL && rows == 0 && count == 0) {
        out[0] = 0;
        return SPK_OK;
    }
    SPK_TRY(spk_check_index_array(offsets, type, rows + 1, "row_offsets"));
    copy_indices(offsets, type, rows + 1, out);
    if (out[0] != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[0] = %" PRId64 ": the first offset must be 0", out[0]);
    bool falls = false;
    for (int64_t i = 0; i < rows; i++)
        falls |= out[i + 1] < out[i];
    for (int64_t i = 0; falls && i < rows; i++)
        if (out[i + 1] < out[i])
            return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[%" PRId64 "] = %" PRId64 " is less than row_offsets[%" PRId64 "] = %" PRId64,
                            i + 1, out[i + 1], i, out[i]);
    if (out[rows] != count)
        return spk_fail(SPK_ERR_ARGUMENT, "row_offsets[%" PRId64 "] = %" PRId64 ": the last offset must be %s = %" PRId64, rows, out[rows],
                        count_name, count);
    return SPK_OK;
}

spk_status spk_fail_index(const char *name, int64_t i, int64_t value, const char *what, int64_t limit)
{
    if (limit == 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s[%" PRId64 "] = %" PRId64 ": there are no %s", name, i, value, what);
    return spk_fail(SPK_ERR_ARGUMENT, "%s[%" PRId64 "] = %" PRId64 ": %s are 0..%" PRId64, name, i, value, what, limit - 1);
}

spk_status spk_check_indices(const void *indices, spk_index_type type, int64_t count, int64_t limit, const char *name, const char *what,
                             int64_t *out)
{
    SPK_TRY(spk_check_index_array(indices, type, count, name));
    copy_indices(indices, type, count, out);
    bool outside = false;
    for (int64_t i = 0; i < count; i++)
        outside |= out[i] < 0 || out[i] >= limit;
    for (int64_t i = 0; outside && i < count; i++)
        if (out[i] < 0 || out[i] >= limit)
            return spk_fail_index(name, i, out[i], what, limit);
    return SPK_OK;
}
