/* Tries the one period that rows which follow one another would have. */
#include "backend/cuda/host/schedule/row_period.h"

#include <limits.h>

#include "backend/cuda/device/schedule/tile_order.h"

int64_t spk_turns_start(int column, int64_t count, int period)
{
    const int start = period > 0 ? turn_start(column, period) : 0;
    return start < count ? start : 0;
}

int64_t spk_turns_agreement(const turns_lists *l, int period)
{
    int64_t same = 0, before = 0, start_before = 0;
    for (int64_t i = 0; i < l->rows; i++) {
        const int *row = l->columns + l->offsets[i] * l->stride, *row_before = row - before * l->stride;
        const int64_t count = l->offsets[i + 1] - l->offsets[i], start = count > 0 ? spk_turns_start(*row, count, period) : 0,
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

int spk_turns_period(const turns_lists *l)
{
    const int64_t all = l->rows > 0 ? l->offsets[l->rows] - l->offsets[0] : 0, mean = l->rows > 0 ? (all + l->rows / 2) / l->rows : 0;
    if (mean < 2 || mean > INT_MAX)
        return 0;
    return spk_turns_agreement(l, (int)mean) - spk_turns_agreement(l, 0) > all / 4 ? (int)mean : 0;
}
