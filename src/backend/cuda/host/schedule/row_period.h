/* Rows whose columns follow one another (banded patterns, windows) begin where neighbours that run at the same time want the same columns
 * at the same time: memory answers such requests once, and the first ones do not want all of B at once. */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_ROW_PERIOD_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_ROW_PERIOD_H

#include <stdint.h>

/* Lists of block columns: those of row i are columns[at * stride] for offsets[i] <= at < offsets[i + 1]. */
typedef struct turns_lists {
    const int *columns;
    int64_t stride, rows;
    const int64_t *offsets;
} turns_lists;

/* The entry that a list of `count` ascending columns from `column` on begins with: turn_start, 0 where the period is 0 or the list ends
 * before. */
int64_t spk_turns_start(int column, int64_t count, int period);

/* How often a row and the one before it want the same column at the same step. */
int64_t spk_turns_agreement(const turns_lists *l, int period);

/* The period with which rows agree much more often than with none, 0: there is none. Only the mean length is tried. */
int spk_turns_period(const turns_lists *l);

#endif
