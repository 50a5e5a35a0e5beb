/* Features of a pattern, one pass over the blocks: the same numbers on every machine, since they go into the tuning key. */
#include <math.h>

#include "matrix/pattern_parts.h"

/* What is known of a block column. A grid far wider than its blocks are many is hashed, so that memory stays O(nnzb). */
typedef struct column {
    int32_t key;   /* column + 1 where hashed; 0: free */
    int32_t stamp; /* the last row that held it, + 1 */
    int32_t count;
} column;

typedef struct columns {
    column *slots;
    int64_t slot_count;
    unsigned shift; /* 0: slot = column */
} columns;

static spk_status columns_make(const spk_mem *mem, int64_t grid_cols, int64_t nnzb, columns *out)
{
    columns made = {.slot_count = grid_cols};
    if (grid_cols > 65536 && grid_cols / 8 > nnzb) {
        unsigned bits = 4;
        while ((INT64_C(1) << bits) < 2 * nnzb)
            bits++;
        made.slot_count = INT64_C(1) << bits;
        made.shift = 64 - bits;
    }
    SPK_TRY(spk_calloc(mem, (size_t)made.slot_count, sizeof *made.slots, &made.slots));
    *out = made;
    return SPK_OK;
}

static column *columns_find(const columns *table, int32_t which)
{
    if (table->shift == 0)
        return &table->slots[which];
    uint64_t at = (uint64_t)(which + 1) * UINT64_C(0x9e3779b97f4a7c15) >> table->shift; /* Fibonacci hashing */
    while (table->slots[at].key != 0 && table->slots[at].key != which + 1)
        at = (at + 1) & (uint64_t)(table->slot_count - 1);
    table->slots[at].key = which + 1;
    return &table->slots[at];
}

/* Standard deviation over mean of `count` numbers from their sum and sum of squares. */
static double spread(double sum, double squares, int64_t count)
{
    if (sum == 0)
        return 0;
    double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    return variance > 0 ? sqrt(variance) / mean : 0;
}

spk_status spk_pattern_measure(spk_pattern *pattern)
{
    const spk_index *index = &pattern->index;
    spk_features *features = &pattern->features;
    *features = (spk_features){.empty_rows = index->grid_rows};
    if (pattern->nnzb == 0)
        return SPK_OK;
    columns table;
    SPK_TRY(columns_make(&pattern->mem, index->grid_cols, pattern->nnzb, &table));
    double row_squares = 0, col_squares = 0, overlap = 0, distance = 0;
    int64_t before = 0, pairs = 0;
    double row_step = 1.0 / (double)index->grid_rows, col_step = 1.0 / (double)index->grid_cols;
    features->empty_rows = 0;
    for (int64_t row = 0; row < index->grid_rows; row++) {
        int64_t length = index->offsets[row + 1] - index->offsets[row], shared = 0, repeats = 0;
        double place = ((double)row + 0.5) * row_step, row_distance = 0;
        for (int64_t p = index->offsets[row]; p < index->offsets[row + 1]; p++) {
            column *seen = columns_find(&table, index->columns[p]);
            shared += seen->stamp == (int32_t)row;
            seen->stamp = (int32_t)row + 1;
            repeats += 2 * (int64_t)seen->count + 1; /* (c + 1)^2 - c^2 */
            seen->count++;
            row_distance += fabs(place - ((double)index->columns[p] + 0.5) * col_step);
        }
        distance += row_distance;
        col_squares += (double)repeats;
        row_squares += (double)length * (double)length;
        features->empty_rows += length == 0;
        features->longest_row = length > features->longest_row ? length : features->longest_row;
        if (row > 0 && before > 0) {
            overlap += (double)shared / (double)before;
            pairs++;
        }
        before = length;
    }
    spk_free(&pattern->mem, table.slots);
    features->row_spread = spread((double)pattern->nnzb, row_squares, index->grid_rows);
    features->col_spread = spread((double)pattern->nnzb, col_squares, index->grid_cols);
    features->row_overlap = pairs > 0 ? overlap / (double)pairs : 0;
    features->bandwidth = distance / (double)pattern->nnzb;
    return SPK_OK;
}
