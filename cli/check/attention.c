/* What `check` draws of attention and of its gradients, and what of their inputs no result may see. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"
#include "cli/base/values.h"
#include "cli/check/draw.h"
#include "type/type.h"

/* Lengths beside multiples of a tile's height among them. A few problems have many more keys, so that lists of blocks are longer than what
 * a kernel looks up at once. */
static int64_t draw_length(random_state *r)
{
    static const int64_t usual[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
    return random_chance(r, 0.6) ? usual[random_between(r, 0, 12)] : random_between(r, 1, 150);
}

static int64_t draw_depth(random_state *r, bool gpu)
{
    if (random_chance(r, 0.01))
        return 0; /* of Q and K: all scores are 0. Of V: as deep as K, or nothing at all */
    if (random_chance(r, gpu ? 0.9 : 0.5))
        return 8 * random_between(r, 2, gpu ? 32 : 12);
    return random_between(r, 1, 70);
}

static void draw_band(random_state *r, random_state *sizes, spk_attention *a)
{
    if (random_chance(r, 0.3))
        return;
    a->diagonal = (spk_diagonal)random_between(r, SPK_DIAGONAL_TOP_LEFT, SPK_DIAGONAL_BOTTOM_RIGHT);
    a->causal = random_chance(r, 0.5);
    a->window_left = random_chance(r, 0.5) ? random_between(sizes, 1, random_chance(sizes, 0.5) ? 8 : 100) : 0;
    a->window_right = !a->causal && random_chance(r, 0.5) ? random_between(sizes, 1, 60) : 0;
    a->sinks = a->window_left && random_chance(r, 0.4) ? random_between(sizes, 1, 20) : 0;
}

/* Half have a mask: whose blocks, and whose lists. */
static void draw_lists(random_state *r, spk_attention *a, check_draft *draft)
{
    static const int64_t usual[] = {16, 32, 48, 64, 96, 128, 256};
    const int64_t heads_kv = a->heads_kv ? a->heads_kv : a->heads, lists[] = {1, heads_kv, a->heads};
    draft->masked = random_chance(r, 0.5);
    draft->mask_heads = lists[random_between(r, 0, 2)];
    draft->block_rows = random_chance(r, 0.7) ? usual[random_between(r, 0, 6)] : random_between(r, 3, 100);
    draft->block_cols = random_chance(r, 0.5)   ? draft->block_rows
                        : random_chance(r, 0.7) ? usual[random_between(r, 0, 6)]
                                                : random_between(r, 3, 100);
    a->tiles = draft->masked && random_chance(r, 0.3) ? random_between(draft->sizes, 1, 5) : 0;
}

/* A quarter are packed sequences, a sixth of the rest have lengths; a fifth of all pages. */
static void draw_packing(random_state *r, random_state *sizes, spk_attention *a)
{
    static const int64_t usual[] = {16, 32, 64, 128, 256};
    if (random_chance(r, 0.25))
        a->sequences = random_chance(sizes, 0.7) ? random_between(sizes, 1, 6) : random_between(sizes, 7, 40);
    else
        a->key_lengths = random_chance(r, 0.17);
    if (random_chance(r, 0.2)) {
        a->page_keys = random_chance(r, 0.7) ? usual[random_between(r, 0, 4)] : random_between(r, 3, 50);
        a->pages = (a->keys + a->page_keys - 1) / a->page_keys + random_between(sizes, 1, 4);
    }
}

void check_draw_attention(random_state *r, bool gpu, check_draft *draft, operation_struct *given)
{
    static const int64_t sharings[] = {1, 1, 2, 3, 4, 8};
    random_state *sizes = draft->sizes;
    spk_attention a = {SPK_SIZED(spk_attention), .dtype = spk_type_is_scaled(draft->spmm.dtype_a) ? SPK_F32 : draft->spmm.dtype_a};
    const bool is_long = random_chance(sizes, gpu ? 0.15 : 0.03);
    a.queries = draw_length(sizes);
    a.keys = is_long ? random_between(sizes, 300, 2500) : random_chance(sizes, 0.4) ? a.queries : draw_length(sizes);
    a.depth = draw_depth(r, gpu);
    a.depth_v = random_chance(r, 0.7) ? 0 : draw_depth(r, gpu);
    a.heads_kv = random_between(r, 1, 3);
    a.heads = a.heads_kv * sharings[random_between(r, 0, 5)];
    a.heads_kv = a.heads == a.heads_kv && random_chance(r, 0.5) ? 0 : a.heads_kv;
    draw_band(r, sizes, &a);
    a.use_softcap = random_chance(r, 0.2);
    a.want_lse = random_chance(r, 0.5);
    draw_packing(r, sizes, &a);
    /* scores up to some 90 in size, where exponentials end */
    draft->alpha = random_chance(sizes, 0.15) ? 90 / sqrt((double)a.depth + 1) : random_normal(sizes) / sqrt((double)a.depth + 1);
    draft->beta = random_chance(sizes, 0.1) ? 0 : 5 * random_normal(sizes);
    draft->alias_c = draft->alias_residual = false;
    draft->m = a.queries;
    draft->n = a.keys;
    draft->k = a.depth;
    draw_lists(r, &a, draft);
    memcpy(given->bytes, &a, sizeof(a));
}

static const operation *operation_of(spk_operation id)
{
    return operation_at(operation_index(id));
}

/* The fields of `from` that `to` has, too. */
static void take_fields(const operation *from, const operation_struct *given, const operation *to, operation_struct *made)
{
    for (int i = 0; i < from->info.field_count; i++) {
        const spk_field_info *field = operation_field_named(to, from->fields[i].name);
        if (field)
            operation_put(field, made, operation_get(&from->fields[i], given));
    }
}

/* Without pages, and with fewer heads: the oracle has thrice as much to compute, and for queries and keys apart. */
void check_draw_attention_backward(random_state *r, bool gpu, check_draft *draft, operation_struct *given)
{
    const operation *attention = operation_of(SPK_ATTENTION), *backward = operation_of(SPK_ATTENTION_BACKWARD);
    operation_struct drawn = operation_problem(attention);
    check_draw_attention(r, gpu, draft, &drawn);
    spk_attention a;
    memcpy(&a, drawn.bytes, sizeof(a));
    const int64_t heads_kv = a.heads_kv ? a.heads_kv : a.heads, sharing = a.heads / heads_kv;
    if (sharing > 2) {
        a.heads = 2 * heads_kv;
        draft->mask_heads = draft->mask_heads > heads_kv ? a.heads : draft->mask_heads;
    }
    a.page_keys = a.pages = 0;
    memcpy(drawn.bytes, &a, sizeof(a));
    take_fields(attention, &drawn, backward, given);
    operation_put(operation_field_named(backward, "use_grad_lse"), given, random_chance(r, 0.3));
}

/* ---- what of K and V some query sees: from the words of sparsek.h, not by what the library computes with */

/* The description, with its defaults put in, and the index arrays of one item (NULL: it has none). */
typedef struct seeing {
    const check_case *c;
    spk_attention a;
    const int32_t *query_ends, *key_ends, *page_table, *tile_numbers, *tile_bits;
    int64_t item;
} seeing;

static const int32_t *index_named(const check_data *d, const char *name)
{
    for (int i = 0; i < d->c->op->info.operand_count; i++)
        if (strcmp(d->c->op->operands[i].name, name) == 0)
            return d->arrays[i];
    return NULL;
}

static int64_t pages_of(const spk_attention *a)
{
    return a->page_keys > 0 ? (a->keys + a->page_keys - 1) / a->page_keys : 0;
}

/* The description of the case, or of what it wants the gradients of. */
static spk_attention attention_of(const check_case *c)
{
    operation_struct made = operation_problem(operation_of(SPK_ATTENTION));
    spk_attention a;
    take_fields(c->op, &c->given, operation_of(SPK_ATTENTION), &made);
    memcpy(&a, made.bytes, sizeof(a));
    return a;
}

static seeing seeing_of(const check_data *d, int64_t item)
{
    seeing s = {.c = d->c, .item = item, .a = attention_of(d->c)};
    s.a.heads = s.a.heads > 0 ? s.a.heads : 1;
    s.a.heads_kv = s.a.heads_kv > 0 ? s.a.heads_kv : s.a.heads;
    s.query_ends = index_named(d, "query_ends");
    s.key_ends = index_named(d, "key_ends");
    s.page_table = index_named(d, "page_table");
    s.tile_numbers = index_named(d, "tile_numbers");
    s.tile_bits = index_named(d, "tile_bits");
    if (s.a.sequences == 0) {
        s.key_ends = s.key_ends ? s.key_ends + item : NULL;
        s.page_table = s.page_table ? s.page_table + item * pages_of(&s.a) : NULL;
    }
    return s;
}

/* Where a query's sequence begins and ends, and its keys. */
typedef struct range {
    int64_t query, queries, key, keys, number;
} range;

static range range_of(const seeing *s, int64_t query)
{
    if (s->a.sequences == 0)
        return (range){0, s->a.queries, 0, s->key_ends ? s->key_ends[0] : s->a.keys, 0};
    int64_t number = 0;
    while (number + 1 < s->a.sequences && s->query_ends[number] <= query)
        number++;
    const int64_t begin = number > 0 ? s->query_ends[number - 1] : 0, key = number > 0 && !s->page_table ? s->key_ends[number - 1] : 0;
    return (range){begin, s->query_ends[number] - begin, key, s->key_ends[number] - key, number};
}

static bool in_band(const spk_attention *a, const range *of, int64_t query, int64_t key)
{
    const int64_t shift = a->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? of->keys - of->queries : 0, beside = query - of->query + shift,
                  right = a->causal ? 1 : a->window_right, local = key - of->key;
    return local >= 0 && local < of->keys && (right == 0 || local < beside + right) &&
           (a->window_left == 0 || local > beside - a->window_left || local < a->sinks);
}

static bool in_mask(const seeing *s, int64_t head, int64_t query, int64_t key)
{
    const check_case *c = s->c;
    if (!c->has_pattern)
        return true;
    const int64_t of_item = s->a.mask_heads > 0 ? s->a.mask_heads : 1, down = (s->a.queries + c->block_rows - 1) / c->block_rows,
                  list = (s->a.mask_items > 1 ? s->item * of_item : 0) + head / (s->a.heads / of_item),
                  row = list * down + query / c->block_rows, words = (c->block_cols + 31) / 32;
    for (int64_t e = c->offsets[row]; e < c->offsets[row + 1]; e++) {
        if (c->columns[e] != key / c->block_cols)
            continue;
        const int32_t tile = s->tile_numbers ? s->tile_numbers[e] : -1;
        const int64_t bit = key % c->block_cols, line = tile * c->block_rows + query % c->block_rows;
        return tile < 0 || ((uint32_t)s->tile_bits[line * words + bit / 32] >> bit % 32 & 1) != 0;
    }
    return false;
}

/* Marks the rows of a head's K and V that its queries see, or its queries that see some key. */
static void mark(const seeing *s, int64_t head, bool of_keys, bool *rows)
{
    for (int64_t query = 0; query < s->a.queries; query++) {
        const range of = range_of(s, query);
        const int32_t *table = s->page_table ? s->page_table + of.number * pages_of(&s->a) : NULL;
        for (int64_t key = of.key; key < of.key + of.keys; key++) {
            const int64_t row = !of_keys ? query : table ? table[key / s->a.page_keys] * s->a.page_keys + key % s->a.page_keys : key;
            if (!rows[row] && in_band(&s->a, &of, query, key) && in_mask(s, head, query, key))
                rows[row] = true;
        }
    }
}

/* Whether the operand has a row for each key, or for each query. */
static bool is_along(const check_case *c, int which, const char *size)
{
    return strncmp(c->op->operands[which].extents, size, strlen(size)) == 0;
}

/* In rows of keys that no query sees, or in those of queries that see no key. */
static bool hide(random_state *r, const check_data *d, int which, bool of_keys, void *array)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const check_case *c = d->c;
    const spk_array_info *a = &c->arrays[which];
    const int64_t items = check_items(c, which);
    bool any = false;
    bool *seen = cli_alloc((size_t)(items * a->heads * a->rows), sizeof(bool));
    for (int64_t item = 0; item < c->items; item++) {
        const seeing s = seeing_of(d, item);
        for (int64_t head = 0; head < s.a.heads; head++)
            mark(&s, head, of_keys, seen + ((items > 1 ? item : 0) * a->heads + head / (of_keys ? s.a.heads / s.a.heads_kv : 1)) * a->rows);
    }
    for (int64_t row = 0; row < items * a->heads * a->rows; row++) {
        any = any || !seen[row];
        for (int64_t j = 0; j < a->cols && !seen[row]; j++)
            value_put(a->dtype, array, check_place(a, row / a->rows / a->heads, row % (a->heads * a->rows), j),
                      bad[random_between(r, 0, 2)]);
    }
    free(seen);
    return any;
}

bool check_hide_attention(random_state *r, const check_data *d, int which, void *array)
{
    return is_along(d->c, which, "keys x") && hide(r, d, which, true, array);
}

bool check_hide_attention_backward(random_state *r, const check_data *d, int which, void *array)
{
    return is_along(d->c, which, "keys x")      ? hide(r, d, which, true, array)
           : is_along(d->c, which, "queries x") ? hide(r, d, which, false, array)
                                                : false;
}

/* O and LSE, of the numbers that are drawn: of any others the weights might be beyond all bounds. The hidden ones of K and V have no
 * influence. */
spk_status check_attend(const check_data *d)
{
    const check_case *c = d->c;
    const operation *attention = operation_of(SPK_ATTENTION);
    operation_struct given = operation_problem(attention), run = operation_args(attention);
    spk_status status = SPK_OK;
    take_fields(c->op, &c->given, attention, &given);
    operation_put(operation_field_named(attention, "want_lse"), &given, 1);
    for (int i = 0; i < attention->info.operand_count; i++)
        for (int j = 0; j < c->op->info.operand_count; j++)
            if (strcmp(attention->operands[i].name, c->op->operands[j].name) == 0)
                operation_set_pointer(attention, &run, i, d->arrays[j]);
    for (int i = 0; i < attention->info.scalar_count; i++)
        operation_set_scalar(attention, &run, i, c->scalars[i]);
    for (int i = 0; i < attention->info.operand_count && status == SPK_OK; i++) {
        if (attention->operands[i].role != SPK_ROLE_OUT)
            continue;
        int which = 0;
        while (strcmp(c->op->operands[which].name, attention->operands[i].name) != 0)
            which++;
        const spk_array_info *a = &c->arrays[which];
        const int64_t rows = check_rows(a);
        double *want = cli_alloc((size_t)(c->items * rows * a->cols), sizeof(double));
        status = spk_oracle(d->context, d->pattern, &given, &run, i, NULL, 0, want, NULL);
        for (int64_t at = 0; at < c->items * rows * a->cols && status == SPK_OK; at++)
            value_put(a->dtype, d->arrays[which], check_place(a, at / a->cols / rows, at / a->cols % rows, at % a->cols), want[at]);
        free(want);
    }
    return status;
}

void check_spoil_pages(random_state *r, const check_data *d)
{
    static const int32_t bad[] = {-1, INT32_MIN, INT32_MAX, 1 << 20};
    const seeing s = seeing_of(d, 0);
    const int64_t count = s.a.sequences > 0 ? s.a.sequences : d->c->items, each = pages_of(&s.a);
    int32_t *table = (int32_t *)s.page_table;
    for (int64_t i = 0; table && s.key_ends && i < count; i++)
        for (int64_t page = (s.key_ends[i] + s.a.page_keys - 1) / s.a.page_keys; page < each; page++)
            table[i * each + page] = bad[random_between(r, 0, 3)];
}
