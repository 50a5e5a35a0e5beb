/* Packing of some rows of a matrix as register tiles read them. */
#include "backend/cpu/kernels/vectors/vector.h"

#ifndef TILE_VALUES_H
#define TILE_VALUES_H

/* A few of the `height` rows of a tile, which lie column after column. */
static void T(pack_some_rows)(const REAL *from, int64_t row_stride, int64_t col_stride, int64_t depth, int rows, int64_t height, REAL *to)
{
    for (int64_t k = 0; k < depth; k++)
        for (int r = 0; r < rows; r++)
            to[k * height + r] = from[r * row_stride + k * col_stride];
}

/* Four rows of contiguous elements, turned four columns at a time. */
static void T(pack_four_rows)(const REAL *from, int64_t row_stride, int64_t depth, int64_t height, REAL *to)
{
    typedef REAL four __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const four a = *(const four *)(from + k), b = *(const four *)(from + row_stride + k),
                   c = *(const four *)(from + 2 * row_stride + k), d = *(const four *)(from + 3 * row_stride + k);
        const four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac2 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
        const four bd = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd2 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
        *(four *)(to + k * height) = __builtin_shufflevector(ac, bd, 0, 4, 1, 5);
        *(four *)(to + (k + 1) * height) = __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
        *(four *)(to + (k + 2) * height) = __builtin_shufflevector(ac2, bd2, 0, 4, 1, 5);
        *(four *)(to + (k + 3) * height) = __builtin_shufflevector(ac2, bd2, 2, 6, 3, 7);
    }
    T(pack_some_rows)(from + k, row_stride, 1, depth - k, 4, height, to + k * height);
}

/* `height` rows of a block: its columns one after another. */
static void T(pack_tile)(const REAL *from, int64_t row_stride, int64_t col_stride, int64_t depth, int height, REAL *to)
{
    int row = 0;
    if (col_stride == 1)
        for (; row + 4 <= height; row += 4)
            T(pack_four_rows)(from + row * row_stride, row_stride, depth, height, to + row);
    T(pack_some_rows)(from + row * row_stride, row_stride, col_stride, depth, height - row, height, to + row);
}

#endif
