/* Moving elements about: strided copies (dense transposition) and the transposed compressed index. */
#include <string.h>

#include "matrix/check.h"
#include "matrix/entries.h"

enum { TILE = 32 }; /* two tiles of doubles fit the first cache */

static void copy_tile(char *to, int64_t to_rs, int64_t to_cs, const char *from, int64_t from_rs, int64_t from_cs, int64_t rows,
                      int64_t cols, size_t bytes)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            int64_t target = i * to_rs + j * to_cs, source = i * from_rs + j * from_cs;
            if (bytes == 1)
                to[target] = from[source];
            else if (bytes == sizeof(uint32_t))
                ((uint32_t *)to)[target] = ((const uint32_t *)from)[source];
            else if (bytes == sizeof(uint16_t))
                ((uint16_t *)to)[target] = ((const uint16_t *)from)[source];
            else
                ((uint64_t *)to)[target] = ((const uint64_t *)from)[source];
        }
}

void spk_copy_strided(void *to, int64_t to_row_stride, int64_t to_col_stride, const void *from, int64_t from_row_stride,
                      int64_t from_col_stride, int64_t rows, int64_t cols, size_t bytes)
{
    int64_t size = (int64_t)bytes;
    if (to_col_stride == 1 && from_col_stride == 1) {
        for (int64_t i = 0; i < rows && cols > 0; i++)
            memcpy((char *)to + i * to_row_stride * size, (const char *)from + i * from_row_stride * size, (size_t)(cols * size));
        return;
    }
    if (to_row_stride == 1 && from_row_stride == 1) { /* seen from the other side, rows are contiguous */
        spk_copy_strided(to, to_col_stride, 1, from, from_col_stride, 1, cols, rows, bytes);
        return;
    }
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < cols; j += TILE)
            copy_tile((char *)to + (i * to_row_stride + j * to_col_stride) * size, to_row_stride, to_col_stride,
                      (const char *)from + (i * from_row_stride + j * from_col_stride) * size, from_row_stride, from_col_stride,
                      spk_min_i64(TILE, rows - i), spk_min_i64(TILE, cols - j), bytes);
}

void spk_transpose_index(int64_t rows, int64_t cols, const int64_t *offsets, const int64_t *indices, int64_t *new_offsets,
                         int64_t *new_indices, int64_t *positions)
{
    int64_t *next = new_offsets, start = 0; /* next place of a new row; at the end, where the next one begins */
    memset(next, 0, ((size_t)cols + 1) * sizeof *next);
    for (int64_t p = 0; p < offsets[rows]; p++)
        next[indices[p]]++;
    for (int64_t col = 0; col <= cols; col++) {
        int64_t count = next[col];
        next[col] = start;
        start += count;
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t p = offsets[row]; p < offsets[row + 1]; p++) {
            int64_t at = next[indices[p]]++;
            new_indices[at] = row;
            positions[at] = p;
        }
    memmove(next + 1, next, (size_t)cols * sizeof *next);
    next[0] = 0;
}
