/* Seeded random patterns: first the length of every block row, then its columns, drawn without replacement and in order. */
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "matrix/generate.h"

/* A set of integers in [0, size): bits, with one bit above each 64 that says whether any is set. Drains in order in a time that
 * depends on what it holds and not on its size, so that short rows of a wide matrix are cheap. */
enum { SET_LEVELS = 5 }; /* 64^5 = SPK_GENERATE_GRID_LIMIT */

typedef struct number_set {
    int levels;
    size_t words;
    uint64_t *level[SET_LEVELS]; /* level[0] is the allocation */
} number_set;

static spk_status set_make(const spk_mem *mem, int64_t size, number_set *set)
{
    size_t start[SET_LEVELS] = {0};
    size_t words = 0;
    int levels = 0;
    do {
        size = (size + 63) / 64;
        start[levels++] = words;
        words += (size_t)size;
    } while (size > 1);
    uint64_t *bits;
    SPK_TRY(spk_calloc(mem, words, sizeof *bits, &bits));
    set->levels = levels;
    set->words = words;
    for (int i = 0; i < levels; i++)
        set->level[i] = bits + start[i];
    return SPK_OK;
}

static bool set_has(const number_set *set, int64_t number)
{
    return set->level[0][number >> 6] >> (number & 63) & 1;
}

static void set_add(const number_set *set, int64_t number)
{
    for (int i = 0; i < set->levels; i++) {
        uint64_t *word = &set->level[i][number >> 6];
        uint64_t before = *word;
        *word = before | UINT64_C(1) << (number & 63);
        if (before)
            return; /* the levels above know of this word already */
        number >>= 6;
    }
}

static void set_clear(const number_set *set)
{
    memset(set->level[0], 0, set->words * sizeof *set->level[0]);
}

/* Moves the numbers below one word of a level into out, in order; returns the end of what was written. */
static int64_t *set_drain(const number_set *set, int level, int64_t word, int64_t *out)
{
    uint64_t bits = set->level[level][word];
    set->level[level][word] = 0;
    for (; bits; bits &= bits - 1) {
        int64_t number = word * 64 + __builtin_ctzll(bits);
        if (level > 0)
            out = set_drain(set, level - 1, number, out);
        else
            *out++ = number;
    }
    return out;
}

/* Adds count numbers of [0, bound) to an empty set, every subset equally likely (Floyd's method: one draw each). */
static void set_sample(const number_set *set, spk_rng *rng, int64_t bound, int64_t count)
{
    for (int64_t top = bound - count; top < bound; top++) {
        int64_t number = (int64_t)spk_rng_below(rng, (uint64_t)top + 1);
        set_add(set, set_has(set, number) ? top : number);
    }
}

/* Columns of a block row at and below the diagonal from corner to corner: those it touches are included. */
static int64_t causal_columns(int64_t row, int64_t grid_rows, int64_t grid_cols)
{
    return ((row + 1) * grid_cols + grid_rows - 1) / grid_rows;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t filled_rows(int64_t grid_rows)
{
    return grid_rows - grid_rows / 2;
}

int64_t spk_pattern_room(spk_generator generator, int64_t grid_rows, int64_t grid_cols)
{
    if (generator == SPK_GEN_EMPTY_ROWS)
        return filled_rows(grid_rows) * grid_cols;
    if (generator != SPK_GEN_CAUSAL)
        return grid_rows * grid_cols;
    /* The sum of causal_columns over the rows: the whole points below a line through whole points. */
    int64_t divisor = common_divisor(grid_rows, grid_cols);
    return ((grid_rows - 1) * (grid_cols - 1) + divisor - 1) / 2 + grid_rows + grid_cols - divisor;
}

/* Every row of a random subset gets the same length or one more; the other rows are empty. */
static void draw_level_lengths(const number_set *set, spk_rng *rng, int64_t filled, const spk_placement *to, int64_t *lengths)
{
    if (filled < to->grid_rows)
        set_sample(set, rng, to->grid_rows, filled);
    for (int64_t row = 0; row < to->grid_rows; row++)
        lengths[row] = filled == to->grid_rows || set_has(set, row);
    set_clear(set);

    set_sample(set, rng, filled, to->count % filled);
    int64_t nth = 0;
    for (int64_t row = 0; row < to->grid_rows; row++)
        if (lengths[row]) {
            lengths[row] = to->count / filled + set_has(set, nth);
            nth++;
        }
    set_clear(set);
}

/* Lengths as a uniform sample of the room's blocks has them. A block is drawn from a row with the probability of the row's share
 * of the blocks not drawn yet, which the comparison with `column` gives without knowing which ones those are. Above half full, the
 * blocks to leave out are drawn instead. */
static void draw_sample_lengths(spk_generator generator, spk_rng *rng, const spk_placement *to, int64_t *lengths)
{
    int64_t room = spk_pattern_room(generator, to->grid_rows, to->grid_cols);
    bool leave_out = to->count > room / 2;
    bool causal = generator == SPK_GEN_CAUSAL;
    memset(lengths, 0, (size_t)to->grid_rows * sizeof *lengths);
    for (int64_t left = leave_out ? room - to->count : to->count; left > 0;) {
        int64_t row = (int64_t)spk_rng_below(rng, (uint64_t)to->grid_rows);
        int64_t column = (int64_t)spk_rng_below(rng, (uint64_t)to->grid_cols);
        if (column < lengths[row] || (causal && column >= causal_columns(row, to->grid_rows, to->grid_cols)))
            continue;
        lengths[row]++;
        left--;
    }
    for (int64_t row = 0; leave_out && row < to->grid_rows; row++)
        lengths[row] = (causal ? causal_columns(row, to->grid_rows, to->grid_cols) : to->grid_cols) - lengths[row];
}

/* Ranks whose share scale / sqrt(rank) rounds to `length` or more: (scale / (length - 1/2))^2 of them. */
static int64_t ranks_with(double scale, int64_t length, int64_t grid_rows)
{
    double root = scale / ((double)length - 0.5);
    double ranks = root * root;
    return ranks < (double)grid_rows ? (int64_t)ranks : grid_rows;
}

/* Blocks of all ranks at a scale; stops counting above `enough`. */
static int64_t blocks_at(double scale, const spk_placement *to, int64_t enough)
{
    int64_t blocks = 0;
    for (int64_t length = 1; length <= to->grid_cols && blocks <= enough; length++) {
        int64_t ranks = ranks_with(scale, length, to->grid_rows);
        if (ranks == 0)
            break;
        blocks += ranks;
    }
    return blocks;
}

/* Rank r gets min(grid_cols, round(scale / sqrt(r))) blocks, with the scale that gives the exact total; where two ranks tie at
 * the last block, the shorter row takes it. Then the ranks are shuffled. */
static void draw_power_law_lengths(spk_rng *rng, const spk_placement *to, int64_t *lengths)
{
    double low = 0.25, high = (double)to->grid_rows * (double)to->grid_cols; /* no block at low, all at high */
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        int64_t blocks = blocks_at(middle, to, to->count);
        if (blocks < to->count)
            low = middle;
        else
            high = middle;
        if (blocks == to->count)
            break;
    }
    int64_t spare = to->count - blocks_at(low, to, to->count);
    memset(lengths, 0, (size_t)to->grid_rows * sizeof *lengths);
    int64_t ranks = to->grid_rows; /* with the length before */
    for (int64_t length = 1; length <= to->grid_cols; length++) {
        int64_t sure = ranks_with(low, length, to->grid_rows);
        int64_t more = ranks_with(high, length, to->grid_rows) - sure;
        more = more < spare ? more : spare;
        spare -= more;
        for (int64_t rank = sure + more; rank < ranks; rank++)
            lengths[rank] = length - 1;
        ranks = sure + more;
        if (ranks == 0)
            break;
    }
    for (int64_t rank = 0; rank < ranks; rank++)
        lengths[rank] = to->grid_cols;
    for (int64_t last = to->grid_rows - 1; last > 0; last--) {
        int64_t other = (int64_t)spk_rng_below(rng, (uint64_t)last + 1);
        int64_t length = lengths[last];
        lengths[last] = lengths[other];
        lengths[other] = length;
    }
}

static void draw_columns(spk_generator generator, const number_set *set, spk_rng *rng, const spk_placement *to)
{
    int64_t *end = to->columns;
    for (int64_t row = 0; row < to->grid_rows; row++) {
        int64_t bound = generator == SPK_GEN_CAUSAL ? causal_columns(row, to->grid_rows, to->grid_cols) : to->grid_cols;
        int64_t length = to->offsets[row + 1];
        if (length == bound) {
            for (int64_t column = 0; column < bound; column++)
                *end++ = column;
        } else if (length > 0) {
            set_sample(set, rng, bound, length);
            end = set_drain(set, set->levels - 1, 0, end);
        }
        to->offsets[row + 1] = end - to->columns;
    }
}

spk_status spk_place_random(const spk_mem *mem, spk_generator generator, uint64_t seed, const spk_placement *to)
{
    number_set set;
    SPK_TRY(set_make(mem, to->grid_rows > to->grid_cols ? to->grid_rows : to->grid_cols, &set));
    spk_rng rng;
    spk_rng_seed(&rng, seed);

    int64_t *lengths = to->offsets + 1; /* become offsets as the columns are drawn */
    to->offsets[0] = 0;
    switch (generator) {
    case SPK_GEN_BERNOULLI:
    case SPK_GEN_CAUSAL:
        draw_sample_lengths(generator, &rng, to, lengths);
        break;
    case SPK_GEN_POWER_LAW:
        draw_power_law_lengths(&rng, to, lengths);
        break;
    default:
        draw_level_lengths(&set, &rng, generator == SPK_GEN_EMPTY_ROWS ? filled_rows(to->grid_rows) : to->grid_rows, to, lengths);
    }
    draw_columns(generator, &set, &rng, to);
    spk_free(mem, set.level[0]);
    return SPK_OK;
}
