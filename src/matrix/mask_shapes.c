/* The shapes of masks: from a block row's queries to the block columns that it keeps. Integers only: the same bits on every machine. */
#include "base/rng.h"
#include "matrix/mask.h"

/* A block row on its way: the keys beside its first and last query, and the last key that any of them may see. */
typedef struct shape {
    spk_mask_row *row;
    const spk_generate *o;
    int64_t list, query, last_query, beside, last_beside, limit;
} shape;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static spk_rng numbers_of(const shape *s, int64_t index)
{
    spk_rng rng;
    spk_rng_seed(&rng, s->o->seed ^ ((uint64_t)s->list << 40) ^ (uint64_t)(index + 1));
    return rng;
}

/* Keys first .. last, as far as there are such that may be seen. */
static void mark(const shape *s, int64_t first, int64_t last)
{
    spk_mask_row *row = s->row;
    first = most(first, 0);
    last = least(last, s->limit);
    if (first > last)
        return;
    const int64_t from = first / s->o->block_cols, to = last / s->o->block_cols + 1;
    for (int64_t j = from; j < to; j++)
        row->marks[j] = 1;
    row->first = least(row->first, from);
    row->end = most(row->end, to);
}

static void window(const shape *s)
{
    const int64_t reach = least(s->o->window, s->o->cols + s->o->rows) - 1;
    mark(s, s->beside - reach, s->last_beside + reach);
}

/* The sequences of the list, from the first on, until one begins behind the queries. */
static void documents(const shape *s)
{
    const spk_generate *o = s->o;
    spk_rng rng = numbers_of(s, -1);
    for (int64_t begin = 0; begin < o->cols && begin <= s->last_beside;) {
        const int64_t length = o->tokens_least + (int64_t)spk_rng_below(&rng, (uint64_t)(o->tokens_most - o->tokens_least) + 1),
                      end = length < o->cols - begin ? begin + length : o->cols;
        if (end > s->beside)
            mark(s, begin, end - 1);
        begin = end;
    }
}

static void strided(const shape *s)
{
    for (int64_t key = s->o->stride - 1; key <= s->limit; key += s->o->stride)
        mark(s, key, key);
}

/* So many of the blocks that may be seen and are not marked yet, every choice equally likely (Knuth's selection sampling). */
static void choose(const shape *s, int64_t wanted, spk_rng *rng)
{
    const int64_t visible = s->limit >= 0 ? s->limit / s->o->block_cols + 1 : 0;
    int64_t left = 0;
    for (int64_t j = 0; j < visible; j++)
        left += !s->row->marks[j];
    wanted = least(wanted, left);
    for (int64_t j = 0; j < visible && wanted > 0; j++) {
        if (s->row->marks[j])
            continue;
        if ((int64_t)spk_rng_below(rng, (uint64_t)left--) < wanted) {
            mark(s, j * s->o->block_cols, j * s->o->block_cols);
            wanted--;
        }
    }
}

/* round(share * blocks), halves upwards; one at least. */
static int64_t share_of(double share, int64_t blocks)
{
    const double exact = share * (double)blocks;
    const int64_t whole = (int64_t)exact;
    const int64_t rounded = whole + (exact - (double)whole >= 0.5);
    return rounded > 0 || share == 0 ? rounded : 1;
}

/* First of `reach` places about `at`, of `all`: the window is shifted inwards at the ends, so that all have equally many. */
static int64_t start_of(int64_t at, int64_t reach, int64_t all)
{
    return most(0, least(at - reach / 2, all - reach));
}

/* The box about each query; the queries of a line share it in frames and lines. */
static void video(const shape *s)
{
    const spk_generate *o = s->o;
    const int64_t frames = least(o->window_x, o->cells_x), lines = least(o->window_y, o->cells_y), width = least(o->window_z, o->cells_z);
    for (int64_t query = s->query; query <= s->last_query;) {
        const int64_t line = query / o->cells_z, end = least((line + 1) * o->cells_z, s->last_query + 1),
                      frame = start_of(line / o->cells_y, frames, o->cells_x), first = start_of(line % o->cells_y, lines, o->cells_y),
                      left = start_of(query % o->cells_z, width, o->cells_z),
                      right = start_of((end - 1) % o->cells_z, width, o->cells_z) + width - 1;
        for (int64_t f = frame; f < frame + frames; f++)
            for (int64_t l = first; l < first + lines; l++)
                mark(s, (f * o->cells_y + l) * o->cells_z + left, (f * o->cells_y + l) * o->cells_z + right);
        query = end;
    }
}

void spk_mask_mark(spk_mask_row *row, int64_t list, int64_t index)
{
    const spk_generate *o = row->options;
    const int64_t query = index * o->block_rows, last = least(query + o->block_rows, o->rows) - 1, shift = o->cols - o->rows;
    const bool all = o->all_keys || o->mask == SPK_MASK_VIDEO;
    const shape s = {.row = row,
                     .o = o,
                     .list = list,
                     .query = query,
                     .last_query = last,
                     .beside = query + shift,
                     .last_beside = last + shift,
                     .limit = all ? o->cols - 1 : least(last + shift, o->cols - 1)};
    spk_rng rng = numbers_of(&s, index);
    row->first = row->grid_cols;
    row->end = 0;
    if (o->mask == SPK_MASK_WINDOW || o->mask == SPK_MASK_SINKS || o->mask == SPK_MASK_STRIDED || o->mask == SPK_MASK_NSA)
        window(&s);
    if (o->mask == SPK_MASK_SINKS || o->mask == SPK_MASK_NSA)
        mark(&s, 0, o->sinks - 1);
    switch (o->mask) {
    case SPK_MASK_CAUSAL:
        mark(&s, 0, s.limit);
        break;
    case SPK_MASK_DOCUMENTS:
        documents(&s);
        break;
    case SPK_MASK_STRIDED:
        strided(&s);
        break;
    case SPK_MASK_RANDOM:
        choose(&s, share_of(o->density, s.limit >= 0 ? s.limit / o->block_cols + 1 : 0), &rng);
        break;
    case SPK_MASK_SELECTED:
    case SPK_MASK_NSA:
        choose(&s, o->selected, &rng);
        break;
    case SPK_MASK_VIDEO:
        video(&s);
        break;
    default:
        break;
    }
}
