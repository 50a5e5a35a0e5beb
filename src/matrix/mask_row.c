/* From what a block row's queries see to marks of blocks and to bits of pairs. */
#include <string.h>

#include "matrix/mask.h"

/* Queries from .. to see keys first .. last; the ends move by `step` (0 or 1) keys from one query to the next, counted from the row's
 * first. With what is too far ahead left out, what is left of neighbouring queries touches, and neither end ever moves back. */
typedef struct band {
    int64_t from, to, first, last, step;
} band;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t first_of(const spk_mask_row *row, const band *b, int64_t query)
{
    return most(0, b->first + b->step * (query - row->query));
}

static int64_t last_of(const spk_mask_row *row, const band *b, int64_t query)
{
    return least(least(b->last + b->step * (query - row->query), query + row->shift + row->ahead), row->options->cols - 1);
}

static bool is_empty(const spk_mask_row *row, const band *b, int64_t query)
{
    return first_of(row, b, query) > last_of(row, b, query);
}

/* Bits begin .. end - 1 of a line of a tile. */
static void set_bits(uint32_t *line, int64_t begin, int64_t end)
{
    while (begin < end) {
        const int64_t bit = begin % 32, count = least(32 - bit, end - begin);
        line[begin / 32] |= (uint32_t)(((UINT64_C(1) << count) - 1) << bit);
        begin += count;
    }
}

static void set_pairs(const spk_mask_row *row, int64_t query, int64_t first, int64_t last)
{
    const int64_t wide = row->options->block_cols, tile = row->options->block_rows * row->words;
    for (int64_t key = first; key <= last;) {
        const int64_t block = key / wide, end = least((block + 1) * wide, last + 1);
        uint32_t *bits = row->bits + block * tile;
        if (row->marks[block] == 0) {
            memset(bits, 0, (size_t)tile * sizeof *bits);
            row->marks[block] = SPK_MASK_SOME;
        }
        if (row->marks[block] == SPK_MASK_SOME)
            set_bits(bits + (query - row->query) * row->words, key - block * wide, end - block * wide);
        key = end;
    }
}

/* Blocks that this alone makes whole are marked at once; of the others each query's pairs are set. */
static void mark_pairs(const spk_mask_row *row, const band *b)
{
    const int64_t wide = row->options->block_cols, keys = row->options->cols;
    int64_t begin = 0, end = 0; /* the whole blocks */
    if (b->from == row->query && b->to == row->last_query) {
        const int64_t behind = last_of(row, b, b->from) + 1;
        begin = (first_of(row, b, b->to) + wide - 1) / wide;
        end = behind == keys ? row->grid_cols : behind / wide;
    }
    const bool some_whole = begin < end;
    if (some_whole)
        memset(row->marks + begin, SPK_MASK_WHOLE, (size_t)(end - begin));
    for (int64_t query = b->from; query <= b->to; query++) {
        const int64_t first = first_of(row, b, query), last = last_of(row, b, query);
        set_pairs(row, query, first, some_whole ? least(last, begin * wide - 1) : last);
        if (some_whole)
            set_pairs(row, query, most(first, end * wide), last);
    }
}

static void mark(spk_mask_row *row, band b)
{
    b.from = most(b.from, row->query);
    b.to = least(b.to, row->last_query);
    while (b.from <= b.to && is_empty(row, &b, b.from))
        b.from++;
    while (b.from <= b.to && is_empty(row, &b, b.to))
        b.to--;
    if (b.from > b.to)
        return;
    const int64_t wide = row->options->block_cols, begin = first_of(row, &b, b.from) / wide, end = last_of(row, &b, b.to) / wide + 1;
    row->first = least(row->first, begin);
    row->end = most(row->end, end);
    if (row->bits != NULL)
        mark_pairs(row, &b);
    else
        memset(row->marks + begin, SPK_MASK_SOME, (size_t)(end - begin));
}

void spk_mask_see(spk_mask_row *row, int64_t first, int64_t last)
{
    mark(row, (band){row->query, row->last_query, first, last, 0});
}

void spk_mask_see_some(spk_mask_row *row, int64_t from, int64_t to, int64_t first, int64_t last)
{
    mark(row, (band){from, to, first, last, 0});
}

void spk_mask_see_near(spk_mask_row *row, int64_t left, int64_t right)
{
    const int64_t beside = row->query + row->shift;
    mark(row, (band){row->query, row->last_query, beside - left, beside + right, 1});
}

static spk_rng numbers_of(const spk_mask_row *row, int64_t index)
{
    spk_rng rng;
    spk_rng_seed(&rng, row->options->seed ^ ((uint64_t)row->list << 40) ^ (uint64_t)(index + 1));
    return rng;
}

spk_rng spk_mask_numbers(const spk_mask_row *row)
{
    return numbers_of(row, row->index);
}

spk_rng spk_mask_numbers_of_list(const spk_mask_row *row)
{
    return numbers_of(row, -1);
}
