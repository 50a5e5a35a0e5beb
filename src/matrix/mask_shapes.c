/* The shapes of masks, a function and a row each (docs/adding-a-mask-shape.md). Integers only: the same bits on every machine. */
#include <inttypes.h>

#include "matrix/generate.h"
#include "matrix/mask.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void see_causal(spk_mask_row *row)
{
    spk_mask_see(row, 0, row->options->cols - 1);
}

static void see_window(spk_mask_row *row)
{
    const spk_generate *o = row->options;
    spk_mask_see_near(row, o->window - 1, o->window_right > 0 ? o->window_right - 1 : o->window - 1);
}

static void see_sinks(spk_mask_row *row)
{
    see_window(row);
    spk_mask_see(row, 0, row->options->sinks - 1);
}

static void see_prefix(spk_mask_row *row)
{
    spk_mask_see(row, 0, row->options->prefix - 1);
    spk_mask_see_near(row, row->options->cols + row->options->rows, 0);
}

/* The queries of a sequence stand beside its own keys. */
static void see_document(spk_mask_row *row, int64_t begin, int64_t end)
{
    spk_mask_see_some(row, begin - row->shift, end - 1 - row->shift, begin, end - 1);
}

/* The sequences of the list, from the first on, until one begins behind the queries. */
static void see_documents(spk_mask_row *row)
{
    const spk_generate *o = row->options;
    const int64_t last = row->last_query + row->shift;
    spk_rng rng = spk_mask_numbers_of_list(row);
    int64_t begin = 0;
    for (int64_t i = 0; i < o->length_count && begin <= last; begin += o->lengths[i++])
        see_document(row, begin, begin + o->lengths[i]);
    while (o->lengths == NULL && begin < o->cols && begin <= last) {
        const int64_t length = o->tokens_least + (int64_t)spk_rng_below(&rng, (uint64_t)(o->tokens_most - o->tokens_least) + 1),
                      end = length < o->cols - begin ? begin + length : o->cols;
        see_document(row, begin, end);
        begin = end;
    }
}

static spk_status check_documents(spk_generate *o)
{
    int64_t sum = 0;
    if (o->lengths != NULL && o->tokens_most > 0)
        return spk_fail(SPK_ERR_ARGUMENT, "tokens = %" PRId64 "-%" PRId64 ": lengths are given, too: only one of both", o->tokens_least,
                        o->tokens_most);
    if (o->lengths == NULL && o->tokens_most == 0) {
        o->tokens_least = o->cols / 32 + 1;
        o->tokens_most = o->cols / 4 + 1;
    }
    for (int64_t i = 0; o->lengths != NULL && i < o->length_count && sum <= o->cols; i++)
        sum += o->lengths[i];
    if (o->lengths != NULL && sum != o->cols)
        return spk_fail(SPK_ERR_ARGUMENT, "lengths: their sum is %s%" PRId64 ", but there are %" PRId64 " keys",
                        sum > o->cols ? "at least " : "", sum, o->cols);
    return SPK_OK;
}

static void see_strided(spk_mask_row *row)
{
    const spk_generate *o = row->options;
    const int64_t last = least(o->cols - 1, row->last_query + row->shift + row->ahead);
    see_window(row);
    for (int64_t key = o->stride - 1; key <= last; key += o->stride)
        spk_mask_see(row, key, key);
}

/* Blocks of keys of which any query of the row may see a key: from the first on, so many. */
static int64_t visible_blocks(const spk_mask_row *row)
{
    const int64_t last = least(row->options->cols - 1, row->last_query + row->shift + row->ahead);
    return last < 0 ? 0 : last / row->options->block_cols + 1;
}

/* So many of the blocks that may be seen and are not marked yet, every choice equally likely (Knuth's selection sampling). */
static void choose(spk_mask_row *row, int64_t wanted)
{
    const int64_t visible = visible_blocks(row), wide = row->options->block_cols;
    spk_rng rng = spk_mask_numbers(row);
    int64_t left = 0;
    for (int64_t j = 0; j < visible; j++)
        left += !row->marks[j];
    wanted = least(wanted, left);
    for (int64_t j = 0; j < visible && wanted > 0; j++) {
        if (row->marks[j])
            continue;
        if ((int64_t)spk_rng_below(&rng, (uint64_t)left--) < wanted) {
            spk_mask_see(row, j * wide, (j + 1) * wide - 1);
            wanted--;
        }
    }
}

/* round(share * blocks), halves upwards; one at least, of a share of 0 none. */
static int64_t share_of(double share, int64_t blocks)
{
    const double exact = share * (double)blocks;
    const int64_t whole = (int64_t)exact;
    const int64_t rounded = whole + (exact - (double)whole >= 0.5);
    return rounded > 0 || share == 0 ? rounded : 1;
}

static void see_random(spk_mask_row *row)
{
    choose(row, share_of(row->options->density, visible_blocks(row)));
}

static void see_selected(spk_mask_row *row)
{
    choose(row, row->options->selected);
}

static void see_nsa(spk_mask_row *row)
{
    see_sinks(row);
    choose(row, row->options->selected);
}

/* First of `reach` places about `at`, of `all`: the window is shifted inwards at the ends, so that all have equally many. */
static int64_t start_of(int64_t at, int64_t reach, int64_t all)
{
    return most(0, least(at - reach / 2, all - reach));
}

/* The box about each query. */
static void see_video(spk_mask_row *row)
{
    const spk_generate *o = row->options;
    const int64_t frames = least(o->window_x, o->cells_x), lines = least(o->window_y, o->cells_y), width = least(o->window_z, o->cells_z);
    for (int64_t query = row->query; query <= row->last_query; query++) {
        const int64_t line = query / o->cells_z, frame = start_of(line / o->cells_y, frames, o->cells_x),
                      first = start_of(line % o->cells_y, lines, o->cells_y), left = start_of(query % o->cells_z, width, o->cells_z);
        for (int64_t f = frame; f < frame + frames; f++)
            for (int64_t l = first; l < first + lines; l++) {
                const int64_t key = (f * o->cells_y + l) * o->cells_z + left;
                spk_mask_see_some(row, query, query, key, key + width - 1);
            }
    }
}

static spk_status take_width(const char *name, int64_t *width, int64_t cells)
{
    if (*width < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": must be at least 0", name, *width);
    *width = *width > 0 ? *width : (cells + 2) / 3;
    return SPK_OK;
}

static spk_status check_video(spk_generate *o)
{
    if (o->cells_x < 1 || o->cells_y < 1 || o->cells_z < 1 || o->cells_x > SPK_GENERATE_GRID_LIMIT ||
        o->cells_y > SPK_GENERATE_GRID_LIMIT || o->cells_z > SPK_GENERATE_GRID_LIMIT || o->cells_x * o->cells_y > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "cells = %" PRId64 " x %" PRId64 " x %" PRId64 ": each from 1, the first two together to %" PRId64, o->cells_x,
                        o->cells_y, o->cells_z, SPK_GENERATE_GRID_LIMIT);
    const int64_t tokens = o->cells_x * o->cells_y * o->cells_z;
    if (o->rows != tokens || o->cols != tokens)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "cells = %" PRId64 " x %" PRId64 " x %" PRId64 ": are %" PRId64 " queries and as many keys, but rows = %" PRId64
                        ", cols = %" PRId64,
                        o->cells_x, o->cells_y, o->cells_z, tokens, o->rows, o->cols);
    SPK_TRY(take_width("window_x", &o->window_x, o->cells_x));
    SPK_TRY(take_width("window_y", &o->window_y, o->cells_y));
    return take_width("window_z", &o->window_z, o->cells_z);
}

/* In the order of their numbers: a new one comes last. */
#define TAKES(ID) SPK_MASK_TAKES_##ID
static const spk_mask_shape_row shapes[] = {
    {.name = "causal", .help = "all keys so far", .words = {TAKES(HEADS), TAKES(ALL_KEYS), TAKES(TOP_LEFT)}, .see = see_causal},
    {.name = "window",
     .help = "the last --window keys so far",
     .words = {TAKES(HEADS), TAKES(WINDOW), TAKES(WINDOW_RIGHT), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_window},
    {.name = "sinks",
     .help = "a window, and the first --sinks keys",
     .words = {TAKES(HEADS), TAKES(WINDOW), TAKES(WINDOW_RIGHT), TAKES(SINKS), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_sinks},
    {.name = "documents",
     .help = "packed sequences of random lengths, or of given ones, each of which sees itself so far",
     .is_random = true,
     .words = {TAKES(HEADS), TAKES(TOKENS), TAKES(LENGTHS), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_documents,
     .check = check_documents},
    {.name = "strided",
     .help = "a window, and the last key of each --stride (Child et al. 2019, arXiv:1904.10509)",
     .words = {TAKES(HEADS), TAKES(WINDOW), TAKES(STRIDE), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_strided},
    {.name = "random",
     .help = "of each block row the share --density of the blocks so far, at random: one at least, none if it is 0",
     .is_random = true,
     .words = {TAKES(HEADS), TAKES(DENSITY), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_random},
    {.name = "selected",
     .help = "of each block row --selected blocks so far, at random, as if a model had chosen the best",
     .is_random = true,
     .words = {TAKES(HEADS), TAKES(SELECTED), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_selected},
    {.name = "video",
     .help = "tokens are --cells frames of lines: those in a box of --window about each, shifted inwards at the ends",
     .is_free = true,
     .words = {TAKES(HEADS), TAKES(CELLS), TAKES(BOX)},
     .see = see_video,
     .check = check_video},
    {.name = "nsa",
     .help = "sinks, a window, and --selected blocks of the rest (native sparse attention, mixture of block attention)",
     .is_random = true,
     .words = {TAKES(HEADS), TAKES(WINDOW), TAKES(SINKS), TAKES(SELECTED), TAKES(ALL_KEYS), TAKES(TOP_LEFT)},
     .see = see_nsa},
    {.name = "prefix",
     .help = "the first --prefix keys, which all queries see, and all keys so far",
     .is_free = true,
     .words = {TAKES(HEADS), TAKES(PREFIX), TAKES(TOP_LEFT)},
     .see = see_prefix},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

const spk_mask_shape_row *spk_mask_shape_of(spk_mask_shape shape)
{
    const int number = (int)shape;
    return number > 0 && number <= SHAPES ? &shapes[number - 1] : NULL;
}
