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
    memcpy(given->bytes, &a, sizeof(a));
}

/* Whether any query sees the key. */
static bool is_seen(const spk_attention *a, int64_t key)
{
    const int64_t shift = a->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? a->keys - a->queries : 0;
    for (int64_t i = 0; i < a->queries; i++) {
        const int64_t beside = i + shift, right = a->causal ? 1 : a->window_right;
        const bool before = right == 0 || key < beside + right;
        if (before && (a->window_left == 0 || key > beside - a->window_left || key < a->sinks))
            return true;
    }
    return false;
}

bool check_hide_attention(random_state *r, const check_case *c, int which, void *array)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const spk_array_info *a = &c->arrays[which];
    const char *name = c->op->operands[which].name;
    spk_attention given;
    bool any = false;
    memcpy(&given, c->given.bytes, sizeof(given));
    if (strcmp(name, "k") != 0 && strcmp(name, "v") != 0)
        return false;
    for (int64_t key = 0; key < a->rows; key++) {
        if (is_seen(&given, key))
            continue;
        any = true;
        for (int64_t matrix = 0; matrix < check_items(c, which) * a->heads; matrix++)
            for (int64_t j = 0; j < a->cols; j++)
                value_put(a->dtype, array, check_place(a, matrix / a->heads, matrix % a->heads * a->rows + key, j),
                          bad[random_between(r, 0, 2)]);
    }
    return any;
}
