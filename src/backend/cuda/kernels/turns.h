/* Rows whose columns follow one another (banded patterns, windows) begin where neighbours that run at the same time want the same columns
 * at the same time: memory answers such requests once, and the first ones do not want all of B at once. */
#ifndef SPK_BACKEND_CUDA_KERNELS_TURNS_H
#define SPK_BACKEND_CUDA_KERNELS_TURNS_H

#include <limits.h>
#include <stdint.h>

/* Lists of block columns: those of row i are columns[at * stride] for offsets[i] <= at < offsets[i + 1]. */
typedef struct turns_lists {
    const int *columns;
    int64_t stride, rows;
    const int64_t *offsets;
} turns_lists;

/* The entry that a list of `count` ascending columns from `column` on begins with, if they follow one another: that of the first multiple
 * of `period` (0: column itself). As in spmm_sm90_wgmma.cu. */
static inline int64_t turns_start(int column, int64_t count, int period)
{
    const int start = period > 0 ? (period - column % period) % period : 0;
    return start < count ? start : 0;
}

/* How often a row and the one before it want the same column at the same step. */
static inline int64_t turns_agreement(const turns_lists *l, int period)
{
    int64_t same = 0, before = 0, start_before = 0;
    for (int64_t i = 0; i < l->rows; i++) {
        const int *row = l->columns + l->offsets[i] * l->stride, *row_before = row - before * l->stride;
        const int64_t count = l->offsets[i + 1] - l->offsets[i], start = count > 0 ? turns_start(*row, count, period) : 0,
                      steps = count < before ? count : before;
        for (int64_t step = 0, at = start, at_before = start_before; step < steps; step++) {
            same += row[at * l->stride] == row_before[at_before * l->stride];
            at = at + 1 < count ? at + 1 : 0;
            at_before = at_before + 1 < before ? at_before + 1 : 0;
        }
        before = count;
        start_before = start;
    }
    return same;
}

/* The period with which rows agree much more often than with none, 0: there is none. Only the mean length is tried. */
static inline int turns_period(const turns_lists *l)
{
    const int64_t all = l->rows > 0 ? l->offsets[l->rows] - l->offsets[0] : 0, mean = l->rows > 0 ? (all + l->rows / 2) / l->rows : 0;
    if (mean < 2 || mean > INT_MAX)
        return 0;
    return turns_agreement(l, (int)mean) - turns_agreement(l, 0) > all / 4 ? (int)mean : 0;
}

#endif
