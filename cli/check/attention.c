/* What `check` draws of attention, and what of its inputs no result may see. */
#include <math.h>
#include <string.h>

#include "check/draw.h"
#include "values.h"

/* Lengths beside multiples of a tile's height among them. */
static int64_t draw_length(random_state *r)
{
    static const int64_t usual[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
    return random_chance(r, 0.6) ? usual[random_between(r, 0, 12)] : random_between(r, 1, 150);
}

static int64_t draw_depth(random_state *r, bool gpu)
{
    if (random_chance(r, gpu ? 0.9 : 0.5))
        return 8 * random_between(r, 2, gpu ? 32 : 12);
    return random_between(r, 1, 70);
}

static void draw_band(random_state *r, spk_attention *a)
{
    if (random_chance(r, 0.3))
        return;
    a->diagonal = (spk_diagonal)random_between(r, SPK_DIAGONAL_TOP_LEFT, SPK_DIAGONAL_BOTTOM_RIGHT);
    a->causal = random_chance(r, 0.5);
    a->window_left = random_chance(r, 0.5) ? random_between(r, 1, random_chance(r, 0.5) ? 8 : 100) : 0;
    a->window_right = !a->causal && random_chance(r, 0.5) ? random_between(r, 1, 60) : 0;
    a->sinks = a->window_left && random_chance(r, 0.4) ? random_between(r, 1, 20) : 0;
}

/* Half have a mask: whose blocks, and whose lists. */
static void draw_lists(random_state *r, const spk_attention *a, check_draft *draft)
{
    static const int64_t usual[] = {16, 32, 48, 64, 96, 128, 256};
    const int64_t heads_kv = a->heads_kv ? a->heads_kv : a->heads, lists[] = {1, heads_kv, a->heads};
    draft->masked = random_chance(r, 0.5);
    draft->mask_heads = lists[random_between(r, 0, 2)];
    draft->block_rows = random_chance(r, 0.7) ? usual[random_between(r, 0, 6)] : random_between(r, 3, 100);
    draft->block_cols = random_chance(r, 0.5)   ? draft->block_rows
                        : random_chance(r, 0.7) ? usual[random_between(r, 0, 6)]
                                                : random_between(r, 3, 100);
}

void check_draw_attention(random_state *r, bool gpu, check_draft *draft, operation_struct *given)
{
    static const int64_t sharings[] = {1, 1, 2, 3, 4, 8};
    spk_attention a = {SPK_SIZED(spk_attention), .dtype = draft->spmm.dtype_a};
    a.queries = draw_length(r);
    a.keys = random_chance(r, 0.4) ? a.queries : draw_length(r);
    a.depth = draw_depth(r, gpu);
    a.depth_v = random_chance(r, 0.7) ? 0 : draw_depth(r, gpu);
    a.heads_kv = random_between(r, 1, 3);
    a.heads = a.heads_kv * sharings[random_between(r, 0, 5)];
    a.heads_kv = a.heads == a.heads_kv && random_chance(r, 0.5) ? 0 : a.heads_kv;
    draw_band(r, &a);
    a.soft_cap = random_chance(r, 0.2);
    a.want_lse = random_chance(r, 0.5);
    /* scores up to some 90 in size, where exponentials end */
    draft->alpha = random_chance(r, 0.15) ? 90 / sqrt((double)a.depth + 1) : random_normal(r) / sqrt((double)a.depth + 1);
    draft->beta = random_chance(r, 0.1) ? 0 : 5 * random_normal(r);
    draft->alias_c = draft->alias_residual = false;
    draft->m = a.queries;
    draft->n = a.keys;
    draft->k = a.depth;
    draw_lists(r, &a, draft);
    memcpy(given->bytes, &a, sizeof(a));
}

/* Whether the block row has the block column. */
static bool is_stored(const check_case *c, int64_t row, int64_t column)
{
    for (int64_t e = c->offsets[row]; e < c->offsets[row + 1]; e++)
        if (c->columns[e] == column)
            return true;
    return false;
}

static bool in_band(const spk_attention *a, int64_t query, int64_t key)
{
    const int64_t shift = a->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? a->keys - a->queries : 0, beside = query + shift,
                  right = a->causal ? 1 : a->window_right;
    return (right == 0 || key < beside + right) && (a->window_left == 0 || key > beside - a->window_left || key < a->sinks);
}

/* Whether any query of a list of blocks sees the key; without a mask there is one list. */
static bool is_seen_in(const check_case *c, const spk_attention *a, int64_t list, int64_t key)
{
    const int64_t height = c->has_pattern ? c->block_rows : a->queries, rows = height ? (a->queries + height - 1) / height : 0;
    for (int64_t row = 0; row < rows; row++) {
        if (c->has_pattern && !is_stored(c, list * rows + row, key / c->block_cols))
            continue;
        for (int64_t i = row * height; i < (row + 1) * height && i < a->queries; i++)
            if (in_band(a, i, key))
                return true;
    }
    return false;
}

/* Whether any query of the heads that share a matrix of keys, of an item (-1: of any), sees the key. */
static bool is_seen(const check_case *c, const spk_attention *a, int64_t item, int64_t head_kv, int64_t key)
{
    const int64_t of_item = a->mask_heads > 0 ? a->mask_heads : 1, items = a->mask_items > 1 ? a->mask_items : 1,
                  heads_kv = a->heads_kv ? a->heads_kv : a->heads, first = head_kv * of_item / heads_kv,
                  end = of_item < heads_kv ? first + 1 : (head_kv + 1) * of_item / heads_kv;
    for (int64_t i = 0; i < items; i++)
        for (int64_t list = first; list < end && (item < 0 || items == 1 || i == item); list++)
            if (is_seen_in(c, a, i * of_item + list, key))
                return true;
    return false;
}

bool check_hide_attention(random_state *r, const check_case *c, int which, void *array)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const spk_array_info *a = &c->arrays[which];
    const char *name = c->op->operands[which].name;
    const int64_t items = check_items(c, which);
    spk_attention given;
    bool any = false;
    memcpy(&given, c->given.bytes, sizeof(given));
    given.heads = given.heads > 0 ? given.heads : 1;
    if (strcmp(name, "k") != 0 && strcmp(name, "v") != 0)
        return false;
    for (int64_t matrix = 0; matrix < items * a->heads; matrix++)
        for (int64_t key = 0; key < a->rows; key++) {
            if (is_seen(c, &given, items > 1 ? matrix / a->heads : -1, matrix % a->heads, key))
                continue;
            any = true;
            for (int64_t j = 0; j < a->cols; j++)
                value_put(a->dtype, array, check_place(a, matrix / a->heads, matrix % a->heads * a->rows + key, j),
                          bad[random_between(r, 0, 2)]);
        }
    return any;
}
