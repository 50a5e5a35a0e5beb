/* Patterns about the diagonal that runs from the first block to the last one, whatever the aspect: the same for every seed, in
 * integers only. */
#include "matrix/generate.h"

__extension__ typedef unsigned __int128 wide;

/* Spreads `chosen` picks evenly over `of` things: how many of them fall on thing `index` (0 or 1 where chosen <= of). */
static int64_t share(int64_t index, int64_t chosen, int64_t of)
{
    return (int64_t)((wide)(index + 1) * (wide)chosen / (wide)of - (wide)index * (wide)chosen / (wide)of);
}

/* First column of a window of `length` columns whose middle is nearest the middle of the row's place on the diagonal. */
static int64_t window_start(int64_t row, int64_t rows, int64_t cols, int64_t length)
{
    int64_t numerator = (2 * row + 1) * cols - (length - 1) * rows;
    int64_t start = numerator > 0 ? numerator / (2 * rows) : 0;
    return start + length <= cols ? start : cols - length;
}

static void place_window(const spk_placement *to)
{
    int64_t *end = to->columns;
    for (int64_t row = 0; row < to->grid_rows; row++) {
        int64_t length = to->count / to->grid_rows + share(row, to->count % to->grid_rows, to->grid_rows);
        int64_t start = window_start(row, to->grid_rows, to->grid_cols, length);
        for (int64_t i = 0; i < length; i++)
            *end++ = start + i;
        to->offsets[row + 1] = end - to->columns;
    }
}

/* ------------------------------------------------------------------------------------------------ diagonal groups */

/* Blocks in `groups` groups as even as can be: the first rows % groups of them have one block row more, likewise the columns. */
static int64_t grouped_blocks(int64_t groups, int64_t rows, int64_t cols)
{
    int64_t height = rows / groups, width = cols / groups;
    int64_t taller = rows % groups, wider = cols % groups;
    return groups * height * width + taller * width + wider * height + (taller < wider ? taller : wider);
}

/* As many groups as still hold the count; the excess (less than one more group would save) is left out evenly over the blocks,
 * in each row at the end farther from the diagonal. */
static void place_groups(const spk_placement *to)
{
    int64_t most = to->grid_rows < to->grid_cols ? to->grid_rows : to->grid_cols;
    int64_t groups = to->grid_rows * to->grid_cols / to->count; /* hold rows * cols / groups blocks or more */
    groups = groups < most ? groups : most;
    while (groups < most && grouped_blocks(groups + 1, to->grid_rows, to->grid_cols) >= to->count)
        groups++;
    int64_t full = grouped_blocks(groups, to->grid_rows, to->grid_cols);

    int64_t *end = to->columns;
    int64_t row = 0, first_col = 0, seen = 0;
    for (int64_t group = 0; group < groups; group++) {
        int64_t height = to->grid_rows / groups + (group < to->grid_rows % groups);
        int64_t width = to->grid_cols / groups + (group < to->grid_cols % groups);
        for (int64_t i = 0; i < height; i++, row++, seen += width) {
            int64_t length = (int64_t)((wide)(seen + width) * (wide)to->count / (wide)full - (wide)seen * (wide)to->count / (wide)full);
            int64_t start = first_col + window_start(i, height, width, length);
            for (int64_t k = 0; k < length; k++)
                *end++ = start + k;
            to->offsets[row + 1] = end - to->columns;
        }
        first_col += width;
    }
}

/* ------------------------------------------------------------------------------------------------ banded */

/* Distance of a block's middle from the diagonal, in units of 1 / (2 rows cols) of the matrix's height. */
static int64_t distance(int64_t row, int64_t col, const spk_placement *to)
{
    int64_t apart = (2 * row + 1) * to->grid_cols - (2 * col + 1) * to->grid_rows;
    return apart < 0 ? -apart : apart;
}

/* Columns of a row within a distance: [*first, *end), empty where end <= first. */
static void columns_within(int64_t row, int64_t limit, const spk_placement *to, int64_t *first, int64_t *end)
{
    int64_t step = 2 * to->grid_rows;
    int64_t middle = (2 * row + 1) * to->grid_cols - to->grid_rows;
    int64_t low = middle - limit, high = middle + limit;
    *first = low > 0 ? (low + step - 1) / step : 0;
    *end = high >= 0 ? high / step + 1 : 0;
    if (*end > to->grid_cols)
        *end = to->grid_cols;
}

static int64_t blocks_within(int64_t limit, const spk_placement *to)
{
    int64_t blocks = 0;
    for (int64_t row = 0; row < to->grid_rows; row++) {
        int64_t first, end;
        columns_within(row, limit, to, &first, &end);
        blocks += end > first ? end - first : 0;
    }
    return blocks;
}

/* The least distance within which there are count blocks. A row has at most limit / grid_rows + 1 blocks within a limit, which
 * bounds it from below; the search doubles its step from there and then halves. */
static int64_t band_limit(const spk_placement *to)
{
    int64_t low = to->count > to->grid_rows ? to->count - to->grid_rows - 1 : -1; /* too few within */
    int64_t step = to->grid_rows, high = low + step;
    while (blocks_within(high, to) < to->count) {
        low = high;
        step *= 2;
        high = low + step;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (blocks_within(middle, to) < to->count)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Of the blocks that tie at the limit, an even spread is taken. */
static void place_band(const spk_placement *to)
{
    int64_t limit = band_limit(to);
    int64_t inner = blocks_within(limit - 1, to);
    int64_t ties = blocks_within(limit, to) - inner;
    int64_t tie = 0;
    int64_t *end_of_columns = to->columns;
    for (int64_t row = 0; row < to->grid_rows; row++) {
        int64_t first, end;
        columns_within(row, limit, to, &first, &end);
        for (int64_t col = first; col < end; col++)
            if (distance(row, col, to) < limit || share(tie++, to->count - inner, ties))
                *end_of_columns++ = col;
        to->offsets[row + 1] = end_of_columns - to->columns;
    }
}

void spk_place_near_diagonal(spk_generator generator, const spk_placement *to)
{
    to->offsets[0] = 0;
    if (generator == SPK_GEN_BANDED)
        place_band(to);
    else if (generator == SPK_GEN_WINDOW)
        place_window(to);
    else
        place_groups(to);
}
