/* Attention: a caller's spk_attention as a problem, and what follows from it. m: queries, n: keys, k: columns of Q and K. */
#include <float.h>
#include <stdio.h>

#include "op/attention/attention.h"
#include "op/fields.h"
#include "op/key.h"
#include "op/read.h"

/* Keys of [first, end) that a query sees. */
static int64_t seen_of(spk_seen seen, int64_t first, int64_t end)
{
    const int64_t from = first > seen.begin ? first : seen.begin, to = end < seen.end ? end : seen.end,
                  sunk = (end < seen.sinks ? end : seen.sinks) - first;
    return (from < to ? to - from : 0) + (sunk > 0 ? sunk : 0);
}

/* Pairs of a block of block row `row`, and its keys first .. end: all at once where no limit goes through it. */
static double pairs_of_block(const spk_problem *p, int64_t query, int64_t height, int64_t first, int64_t end)
{
    const spk_sequence whole = spk_attention_whole(p);
    const spk_seen a = spk_attention_seen(p, &whole, query), b = spk_attention_seen(p, &whole, query + height - 1);
    if (first >= b.begin && end <= a.end)
        return (double)height * (double)(end - first);
    if (first >= b.end || (end <= a.begin && first >= b.sinks))
        return 0;
    double pairs = 0;
    for (int64_t i = query; i < query + height; i++)
        pairs += (double)seen_of(spk_attention_seen(p, &whole, i), first, end);
    return pairs;
}

/* Of all lists of the pattern. */
static double pairs_of_lists(const spk_problem *p)
{
    const spk_pattern *mask = p->pattern;
    const int64_t rows = spk_attention_list_rows(p);
    double pairs = 0;
    if (mask->index.offsets == NULL) /* on the device: as if no limit went through a block */
        return (double)mask->nnzb * mask->block_rows * mask->block_cols;
    for (int64_t row = 0; row < mask->index.grid_rows; row++) {
        const int64_t query = row % rows * mask->block_rows, left = p->m - query,
                      height = left < mask->block_rows ? left : mask->block_rows;
        for (int64_t at = mask->index.offsets[row]; at < mask->index.offsets[row + 1]; at++) {
            const int64_t first = (int64_t)mask->index.columns[at] * mask->block_cols, end = first + mask->block_cols;
            pairs += pairs_of_block(p, query, height, first, end < p->n ? end : p->n);
        }
    }
    return pairs;
}

/* The sum of clamp(i + offset, 0, top) over i from 0 to count - 1. */
static double sum_clamped(int64_t count, int64_t offset, int64_t top)
{
    const int64_t first = spk_attention_clamp(-offset, count), full = first + spk_attention_clamp(top - offset - first, count - first);
    return (double)(full - first) * ((double)(first + offset) + (double)(full - 1 + offset)) / 2 + (double)(count - full) * (double)top;
}

/* What spk_attention_seen says of so many queries and keys together: they may be billions. */
static double pairs_of_band(const spk_band *band, int64_t queries, int64_t keys)
{
    const int64_t shift = band->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? keys - queries : 0, begin = shift - band->left + 1;
    double pairs = band->right > 0 ? sum_clamped(queries, shift + band->right, keys) : (double)queries * (double)keys;
    if (band->left > 0)
        pairs += sum_clamped(queries, begin, band->sinks < keys ? band->sinks : keys) - sum_clamped(queries, begin, keys);
    return pairs;
}

/* As if all sequences were of the same length. */
static double pairs_of_sequences(const spk_problem *p)
{
    const int64_t count = p->packing.sequences > 0 ? p->packing.sequences : 1, queries = (p->m + count - 1) / count,
                  keys = p->packing.page_keys > 0 ? p->n : (p->n + count - 1) / count;
    return pairs_of_band(&p->band, queries, keys) * (double)p->m / (double)(queries > 0 ? queries : 1);
}

/* Of a query and a key that it sees: of all heads of an item. */
static double count_pairs(const spk_problem *p)
{
    const double heads = (double)spk_operand_heads(&p->operand[ATTENTION_Q]);
    if (p->pattern != NULL)
        return pairs_of_lists(p) * heads / (double)(p->lists.heads * (p->lists.item_step > 0 ? p->batch : 1));
    return pairs_of_sequences(p) * heads;
}

static spk_operand index_operand(int64_t count, int64_t items)
{
    return (spk_operand){.rows = 1, .cols = count, .ld = count, .stride = items > 1 ? count : 0, .dtype = SPK_INT32};
}

static void fit_indices(spk_problem *p)
{
    const spk_packing *packing = &p->packing;
    const int64_t sequences = packing->sequences > 0 ? packing->sequences : 1;
    if (packing->sequences > 0)
        p->operand[ATTENTION_QUERY_ENDS] = index_operand(sequences, 1);
    if (packing->sequences > 0 || packing->key_lengths != 0)
        p->operand[ATTENTION_KEY_ENDS] = index_operand(sequences, p->batch);
    if (packing->page_keys > 0) {
        p->operand[ATTENTION_PAGE_TABLE] = index_operand(sequences * ((p->n + packing->page_keys - 1) / packing->page_keys), p->batch);
        p->operand[ATTENTION_K].rows = p->operand[ATTENTION_V].rows = packing->pages * packing->page_keys;
    }
    if (p->lists.tiles > 0) {
        p->operand[ATTENTION_TILE_NUMBERS] = index_operand(p->pattern->nnzb, 1);
        p->operand[ATTENTION_TILE_BITS] = index_operand(p->lists.tiles * p->pattern->block_rows * spk_attention_tile_words(p), 1);
    }
}

static void fit(spk_problem *p)
{
    static const bool by_key[] = {[ATTENTION_K] = true, [ATTENTION_V] = true, [ATTENTION_LSE] = false};
    for (int i = ATTENTION_Q; i <= ATTENTION_O; i++) {
        p->operand[i].rows = by_key[i] ? p->n : p->m;
        p->operand[i].cols = i <= ATTENTION_K ? p->k : p->depth_v;
    }
    if (p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT) {
        p->operand[ATTENTION_LSE].rows = p->m;
        p->operand[ATTENTION_LSE].cols = 1;
    }
    fit_indices(p);
    p->pairs = count_pairs(p);
}

static bool holds_lists(const spk_problem *p, const spk_pattern *mask, int64_t lists)
{
    const int64_t padded = spk_attention_list_rows(p) * mask->block_rows;
    const double whole = (double)lists * (double)padded; /* of two integers that may not fit together */
    return lists == 1 ? mask->rows == p->m : (double)mask->rows <= whole && (double)mask->rows >= whole - (double)(padded - p->m);
}

/* Lists of the pattern: the queries of a head each, and all keys. */
static spk_status read_lists(const spk_attention *a, spk_pattern *mask, spk_problem *p)
{
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]), heads_kv = spk_operand_heads(&p->operand[ATTENTION_K]),
                  of_heads = a->mask_heads > 0 ? a->mask_heads : 1, of_items = a->mask_items > 0 ? a->mask_items : 1;
    SPK_TRY(spk_read_size("mask_heads", a->mask_heads));
    SPK_TRY(spk_read_size("mask_items", a->mask_items));
    SPK_TRY(spk_read_size("tiles", a->tiles));
    if (mask == NULL) {
        if (a->tiles != 0)
            return spk_fail(SPK_ERR_ARGUMENT, "tiles = %lld: there is no pattern whose blocks have them", (long long)a->tiles);
        if (a->mask_heads != 0 || a->mask_items != 0)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: there is no pattern", a->mask_heads != 0 ? "mask_heads" : "mask_items",
                            (long long)(a->mask_heads != 0 ? a->mask_heads : a->mask_items));
        return SPK_OK;
    }
    if (of_heads != 1 && of_heads != heads_kv && of_heads != heads)
        return spk_fail(SPK_ERR_ARGUMENT, "mask_heads = %lld: it is 1, heads_kv = %lld or heads = %lld", (long long)of_heads,
                        (long long)heads_kv, (long long)heads);
    if (of_items != 1 && of_items != p->batch)
        return spk_fail(SPK_ERR_ARGUMENT, "mask_items = %lld: it is 1 or batch = %lld", (long long)of_items, (long long)p->batch);
    p->pattern = mask;
    p->lists = (spk_lists){.heads = of_heads, .item_step = of_items > 1 ? of_heads : 0, .tiles = a->tiles};
    const int64_t lists = of_heads * of_items, padded = spk_attention_list_rows(p) * mask->block_rows;
    if (mask->cols != p->n)
        return spk_fail(SPK_ERR_ARGUMENT, "the pattern has %lld columns: keys = %lld", (long long)mask->cols, (long long)p->n);
    if (holds_lists(p, mask, lists))
        return SPK_OK;
    char fit[64] = "";
    const int64_t all = padded > 0 ? (mask->rows + padded - 1) / padded : 0;
    if (all > 0 && holds_lists(p, mask, all))
        snprintf(fit, sizeof fit, "; mask_heads times mask_items = %lld would fit", (long long)all);
    return spk_fail(SPK_ERR_ARGUMENT, "the pattern has %lld rows: %lld list%s of %lld queries, in blocks of %d, want %.0f%s",
                    (long long)mask->rows, (long long)lists, lists == 1 ? "" : "s", (long long)p->m, mask->block_rows,
                    lists == 1 ? (double)p->m : (double)lists * (double)padded, fit);
}

static spk_status read_band(const spk_attention *a, spk_problem *p)
{
    SPK_TRY(spk_read_size("window_left", a->window_left));
    SPK_TRY(spk_read_size("window_right", a->window_right));
    SPK_TRY(spk_read_size("sinks", a->sinks));
    if (a->causal != 0 && a->window_right != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "window_right = %lld: with causal it must be 0", (long long)a->window_right);
    if (a->sinks != 0 && a->window_left == 0)
        return spk_fail(SPK_ERR_ARGUMENT, "sinks = %lld: without window_left all first keys are seen", (long long)a->sinks);
    p->band = (spk_band){.left = a->window_left,
                         .right = a->causal != 0 ? 1 : a->window_right,
                         .sinks = a->sinks,
                         .diagonal = a->diagonal,
                         .soft_cap = a->soft_cap != 0};
    const bool may_differ = a->queries != a->keys || a->sequences > 0 || a->key_lengths != 0;
    if ((p->band.left != 0 || p->band.right != 0) && a->diagonal == SPK_DIAGONAL_NONE && may_differ)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "diagonal = 0 with %lld queries and %lld keys: causal and windows want top_left or bottom_right "
                        "(SPK_DIAGONAL_TOP_LEFT, SPK_DIAGONAL_BOTTOM_RIGHT)",
                        (long long)a->queries, (long long)a->keys);
    return SPK_OK;
}

static spk_status read_pages(const spk_attention *a, spk_problem *p)
{
    SPK_TRY(spk_read_size("page_keys", a->page_keys));
    SPK_TRY(spk_read_size("pages", a->pages));
    if ((a->page_keys > 0) != (a->pages > 0))
        return spk_fail(SPK_ERR_ARGUMENT, "page_keys = %lld with pages = %lld: pages have rows, and there is at least one",
                        (long long)a->page_keys, (long long)a->pages);
    if (a->pages > INT32_MAX || (double)a->pages * (double)a->page_keys > (double)INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "pages = %lld of %lld rows: the limit is 2^31 - 1 rows in all", (long long)a->pages,
                        (long long)a->page_keys);
    p->packing.page_keys = a->page_keys;
    p->packing.pages = a->pages;
    return SPK_OK;
}

static spk_status read_packing(const spk_attention *a, spk_problem *p)
{
    if (a->reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "reserved = %d: it must be 0", a->reserved);
    SPK_TRY(spk_read_size("sequences", a->sequences));
    if (a->sequences > INT32_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "sequences = %lld: the limit is 2^31 - 1", (long long)a->sequences);
    if (a->sequences > 0 && a->batch > 1)
        return spk_fail(SPK_ERR_ARGUMENT, "batch = %lld with sequences = %lld: sequences come one batch at a time", (long long)a->batch,
                        (long long)a->sequences);
    if ((a->sequences > 0 || a->key_lengths != 0) && (a->queries > INT32_MAX || a->keys > INT32_MAX))
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: where sequences or items end is said in 32-bit integers",
                        a->queries > INT32_MAX ? "queries" : "keys", (long long)(a->queries > INT32_MAX ? a->queries : a->keys));
    p->packing.sequences = a->sequences;
    p->packing.key_lengths = a->sequences == 0 && a->key_lengths != 0;
    return read_pages(a, p);
}

static spk_status read_heads(const spk_attention *a, spk_problem *p)
{
    spk_operand *q = &p->operand[ATTENTION_Q], *k = &p->operand[ATTENTION_K];
    SPK_TRY(spk_read_heads("heads", a->heads, q));
    SPK_TRY(spk_read_heads("heads_kv", a->heads_kv != 0 ? a->heads_kv : q->heads, k));
    if (q->heads % k->heads != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "heads_kv = %lld: it must divide heads = %lld", (long long)k->heads, (long long)q->heads);
    p->operand[ATTENTION_V].heads = k->heads;
    p->operand[ATTENTION_O].heads = q->heads;
    if (a->want_lse != 0)
        p->operand[ATTENTION_LSE].heads = q->heads;
    return SPK_OK;
}

static spk_status read_arrays(const spk_attention *a, spk_problem *p)
{
    const struct {
        spk_given_array array;
        const char *head_stride_name;
        int64_t head_stride;
    } arrays[] = {{{"ldq", "stride_q", a->ldq, a->stride_q, false}, "head_stride_q", a->head_stride_q},
                  {{"ldk", "stride_k", a->ldk, a->stride_k, false}, "head_stride_k", a->head_stride_k},
                  {{"ldv", "stride_v", a->ldv, a->stride_v, false}, "head_stride_v", a->head_stride_v},
                  {{"ldo", "stride_o", a->ldo, a->stride_o, true}, "head_stride_o", a->head_stride_o},
                  {{"ld_lse", "stride_lse", 0, a->stride_lse, true}, "head_stride_lse", a->head_stride_lse}};
    for (int i = ATTENTION_Q; i <= ATTENTION_LSE; i++) {
        spk_operand lse = p->operand[i]; /* checked, too, where it takes no part */
        if (i == ATTENTION_LSE && a->want_lse == 0) {
            lse = (spk_operand){.rows = p->m, .cols = 1, .heads = p->operand[ATTENTION_Q].heads, .dtype = SPK_F32, .layout = SPK_COL_MAJOR};
            SPK_TRY(spk_read_array_of_heads(&arrays[i].array, arrays[i].head_stride_name, arrays[i].head_stride, p->batch, &lse));
            continue;
        }
        const bool paged = p->packing.page_keys > 0 && (i == ATTENTION_K || i == ATTENTION_V);
        const int64_t stride = arrays[i].array.stride;
        if (paged && stride != 0 && stride != SPK_STRIDE_SHARED)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %lld: all items share the pages, give 0", arrays[i].array.stride_name,
                            (long long)stride);
        SPK_TRY(spk_read_array_of_heads(&arrays[i].array, arrays[i].head_stride_name, arrays[i].head_stride, paged ? 1 : p->batch,
                                        &p->operand[i]));
    }
    return SPK_OK;
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_attention *a = given;
    spk_dtype dtype;
    SPK_TRY(spk_read_dtype("dtype", a->dtype, SPK_F32, &dtype));
    SPK_TRY(spk_read_size("queries", a->queries));
    SPK_TRY(spk_read_size("keys", a->keys));
    SPK_TRY(spk_read_size("depth", a->depth));
    SPK_TRY(spk_read_size("depth_v", a->depth_v));
    SPK_TRY(spk_read_batch(a->batch, p));
    p->m = a->queries;
    p->n = a->keys;
    p->k = a->depth;
    p->depth_v = a->depth_v != 0 ? a->depth_v : a->depth;
    p->compute = dtype == SPK_F64 ? SPK_F64 : SPK_F32;
    for (int i = ATTENTION_Q; i <= ATTENTION_O; i++)
        p->operand[i].dtype = dtype;
    if (a->want_lse != 0) {
        p->operand[ATTENTION_LSE].dtype = p->compute;
        p->operand[ATTENTION_LSE].layout = SPK_COL_MAJOR; /* those of a head lie side by side */
    }
    SPK_TRY(read_heads(a, p));
    SPK_TRY(read_packing(a, p));
    SPK_TRY(read_band(a, p));
    SPK_TRY(read_lists(a, pattern, p));
    fit(p);
    return read_arrays(a, p);
}

static void write(const spk_problem *p, void *given)
{
    const spk_operand *q = &p->operand[ATTENTION_Q], *k = &p->operand[ATTENTION_K], *v = &p->operand[ATTENTION_V],
                      *o = &p->operand[ATTENTION_O], *lse = &p->operand[ATTENTION_LSE];
    *(spk_attention *)given = (spk_attention){SPK_SIZED(spk_attention),
                                              .dtype = q->dtype,
                                              .queries = p->m,
                                              .keys = p->n,
                                              .depth = p->k,
                                              .depth_v = p->depth_v,
                                              .batch = p->batch,
                                              .heads = q->heads,
                                              .heads_kv = k->heads,
                                              .diagonal = p->band.diagonal,
                                              .window_left = p->band.left,
                                              .window_right = p->band.right,
                                              .sinks = p->band.sinks,
                                              .soft_cap = p->band.soft_cap,
                                              .want_lse = lse->dtype != SPK_DTYPE_DEFAULT,
                                              .mask_heads = p->lists.heads,
                                              .mask_items = p->lists.item_step > 0 ? p->batch : 0,
                                              .ldq = q->ld,
                                              .ldk = k->ld,
                                              .ldv = v->ld,
                                              .ldo = o->ld,
                                              .head_stride_q = q->head_stride,
                                              .head_stride_k = k->head_stride,
                                              .head_stride_v = v->head_stride,
                                              .head_stride_o = o->head_stride,
                                              .head_stride_lse = lse->head_stride,
                                              .stride_q = spk_given_stride(p, q),
                                              .stride_k = spk_given_stride(p, k),
                                              .stride_v = spk_given_stride(p, v),
                                              .stride_o = o->stride,
                                              .stride_lse = lse->stride,
                                              .sequences = p->packing.sequences,
                                              .key_lengths = p->packing.key_lengths != 0,
                                              .page_keys = p->packing.page_keys,
                                              .pages = p->packing.pages,
                                              .tiles = p->lists.tiles};
}

static double work(const spk_problem *p, double pairs)
{
    return 2 * pairs * (double)(p->k + p->depth_v);
}

static double flops(const spk_problem *p)
{
    return work(p, p->pairs);
}

static double dense_flops(const spk_problem *p)
{
    return work(p, (double)p->m * (double)p->n * (double)spk_operand_heads(&p->operand[ATTENTION_Q]));
}

/* Of pages no more than the items' keys. */
static double touched(const spk_problem *p, int i)
{
    const spk_operand *o = &p->operand[i];
    const double rows = (double)o->rows * (double)spk_operand_heads(o),
                 keys = (double)p->n * (double)(p->packing.sequences > 0 ? p->packing.sequences : p->batch) * (double)spk_operand_heads(o);
    return (p->packing.page_keys > 0 && (i == ATTENTION_K || i == ATTENTION_V) && keys < rows ? keys : rows) * (double)o->cols;
}

/* Rounding of scores, of exponentials, of sums, of the result; with 16 bits the exponentials, too, are rounded to them. The magnitudes say
 * how large the scores' terms were. */
static double tolerance(const spk_problem *p, int output)
{
    const spk_dtype dtype = p->operand[ATTENTION_O].dtype;
    const double eps = p->compute == SPK_F64 ? DBL_EPSILON : FLT_EPSILON, stored = dtype == SPK_F16    ? 0x1p-11
                                                                                   : dtype == SPK_BF16 ? 0x1p-8
                                                                                                       : 0;
    const double sums = eps * (16 + 2 * sqrt((double)p->k) + 2 * sqrt((double)p->n));
    return output == ATTENTION_LSE ? sums : sums + 2 * stored;
}

/* A mask fixes both. */
static int64_t *free_size(spk_problem *p)
{
    return &p->n;
}

static int64_t *other_size(spk_problem *p)
{
    return &p->m;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_attention
#include "op/attention/fields.def"
};

static const spk_size_row sizes[] = {
    {"queries", SPK_SIZE_LIST_ROWS, offsetof(spk_problem, m), 1024, "rows of Q and O"},
    {"keys", SPK_SIZE_LIST_COLS, offsetof(spk_problem, n), 1024, "rows of K and V"},
    {"depth", SPK_SIZE_FIELD, offsetof(spk_problem, k), 64, "columns of Q and K"},
    {"depth_v", SPK_SIZE_FIELD, offsetof(spk_problem, depth_v), 0, "columns of V and O; 0: as depth"},
};

#define PLACE(name) offsetof(spk_attention_args, name)
#define INDEX(i, name_, title_, extents_) \
    [i] = {.name = #name_, .title = title_, .extents = extents_, .role = SPK_ROLE_IN, .place = PLACE(name_)}
static const spk_operand_row operands[] = {
    [ATTENTION_Q] = {.name = "q", .title = "Q", .extents = "queries x depth", .role = SPK_ROLE_IN, .place = PLACE(q)},
    [ATTENTION_K] = {.name = "k", .title = "K", .extents = "keys x depth", .role = SPK_ROLE_IN, .place = PLACE(k)},
    [ATTENTION_V] = {.name = "v", .title = "V", .extents = "keys x depth_v", .role = SPK_ROLE_IN, .place = PLACE(v)},
    [ATTENTION_O] = {.name = "o", .title = "O", .extents = "queries x depth_v", .role = SPK_ROLE_OUT, .place = PLACE(o)},
    [ATTENTION_LSE] =
        {.name = "lse", .title = "LSE", .extents = "queries x 1", .role = SPK_ROLE_OUT, .may_be_infinite = true, .place = PLACE(lse)},
    INDEX(ATTENTION_QUERY_ENDS, query_ends, "query ends", "1 x sequences"),
    INDEX(ATTENTION_KEY_ENDS, key_ends, "key ends", "1 x sequences, or 1"),
    INDEX(ATTENTION_PAGE_TABLE, page_table, "page table", "1 x pages of the keys, for each sequence"),
    INDEX(ATTENTION_TILE_NUMBERS, tile_numbers, "tile numbers", "1 x blocks"),
    INDEX(ATTENTION_TILE_BITS, tile_bits, "tile bits", "1 x words of all tiles"),
};

static const spk_scalar_row scalars[] = {
    [ATTENTION_SCALE] = {"scale", PLACE(scale), -1, 0.1875},
    [ATTENTION_SOFTCAP] = {"softcap", PLACE(softcap), -1, 2.5},
};

static bool key_dtype(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->operand[ATTENTION_Q].dtype));
}

static bool key_lse(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT);
}

static bool key_cap(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->band.soft_cap);
}

/* Whether there is a limit: to the left, to the right, sinks. */
static bool key_band(const spk_problem *p, char *text, size_t size)
{
    static const char *const names[] = {"all", "left", "right", "band", "sinks", "sinks_left", "sinks_right", "sinks_band"};
    return spk_key_text(text, size, names[(p->band.left > 0) + 2 * (p->band.right > 0) + 4 * (p->band.sinks > 0)]);
}

static bool key_diagonal(const spk_problem *p, char *text, size_t size)
{
    return p->band.left + p->band.right > 0 && spk_key_whole(text, size, p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT);
}

static bool key_alignment(const spk_problem *p, char *text, size_t size)
{
    int64_t steps = 0;
    for (int i = ATTENTION_Q; i <= ATTENTION_O; i++)
        steps |= spk_operand_steps(&p->operand[i]);
    return spk_key_whole(text, size, spk_key_alignment(steps));
}

/* What the arguments of a run say, where they do. */
static bool key_packing(const spk_problem *p, char *text, size_t size)
{
    const spk_packing *packing = &p->packing;
    const bool lengths = packing->key_lengths != 0, paged = packing->page_keys > 0;
    static const char *const names[] = {"", "paged", "lengths", "lengths_paged", "packed", "packed_paged"};
    const int which = (paged ? 1 : 0) + (lengths ? 2 : 0) + (packing->sequences > 0 ? 4 : 0);
    return which > 0 && spk_key_text(text, size, names[which]);
}

static bool key_tiles(const spk_problem *p, char *text, size_t size)
{
    return p->lists.tiles > 0 && spk_key_whole(text, size, 1);
}

static bool key_sequences(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->packing.sequences);
    return p->packing.sequences > 0;
}

static bool key_page(const spk_problem *p, int64_t *value)
{
    *value = p->packing.page_keys;
    return p->packing.page_keys > 0;
}

static bool key_depth(const spk_problem *p, int64_t *value)
{
    *value = p->k;
    return true;
}

static bool key_depth_v(const spk_problem *p, int64_t *value)
{
    *value = p->depth_v;
    return true;
}

static bool key_queries(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->m);
    return true;
}

static bool key_keys(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->n);
    return true;
}

static bool key_window(const spk_problem *p, int64_t *value)
{
    const int64_t left = p->band.left > 0 ? p->band.left : 0, right = p->band.right > 1 ? p->band.right : 0;
    *value = spk_key_size(left + right);
    return left + right > 0;
}

static bool key_heads(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(spk_operand_heads(&p->operand[ATTENTION_Q]));
    return true;
}

static bool key_sharing(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(spk_attention_sharing(p));
    return true;
}

/* Whose lists the mask has. */
static bool key_lists(const spk_problem *p, char *text, size_t size)
{
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]);
    return p->pattern != NULL && spk_key_text(text, size, p->lists.heads == 1 ? "one" : p->lists.heads < heads ? "groups" : "heads");
}

/* Keys that a query sees on average. */
static bool key_seen(const spk_problem *p, int64_t *value)
{
    const double queries = (double)p->m * (double)spk_operand_heads(&p->operand[ATTENTION_Q]);
    *value = queries > 0 ? spk_key_size((int64_t)ceil(p->pairs / queries)) : 0;
    return p->pattern != NULL;
}

static const spk_key_row key[] = {{.name = "t", .exact = key_dtype},
                                  {.name = "lse", .exact = key_lse},
                                  {.name = "cap", .exact = key_cap},
                                  {.name = "band", .exact = key_band},
                                  {.name = "diag", .exact = key_diagonal},
                                  {.name = "lists", .exact = key_lists},
                                  {.name = "packing", .exact = key_packing},
                                  {.name = "tiles", .exact = key_tiles},
                                  {.name = "al", .exact = key_alignment},
                                  {.name = "batch", .exact = spk_key_batch},
                                  {.name = "finite", .exact = spk_key_finite},
                                  {.name = "cache", .exact = spk_key_cache},
                                  {.name = "d", .near = key_depth, .weight = 4},
                                  {.name = "dv", .near = key_depth_v, .weight = 4},
                                  {.name = "q", .near = key_queries, .weight = 1},
                                  {.name = "kv", .near = key_keys, .weight = 1},
                                  {.name = "win", .near = key_window, .weight = 1, .optional = true},
                                  {.name = "br", .near = spk_key_block_rows, .weight = 4, .optional = true},
                                  {.name = "bc", .near = spk_key_block_cols, .weight = 4, .optional = true},
                                  {.name = "seen", .near = key_seen, .weight = 1, .optional = true},
                                  {.name = "rs", .near = spk_key_spread, .weight = 0.5, .is_class = true, .optional = true},
                                  {.name = "h", .near = key_heads, .weight = 1},
                                  {.name = "share", .near = key_sharing, .weight = 1},
                                  {.name = "items", .near = spk_key_items, .weight = 1, .optional = true},
                                  {.name = "seqs", .near = key_sequences, .weight = 1, .optional = true},
                                  {.name = "page", .near = key_page, .weight = 1, .optional = true},
                                  {.name = NULL}};

const spk_op spk_op_attention = {.id = SPK_ATTENTION,
                                 .name = "attention",
                                 SPK_OP_STRUCTS(spk_attention, spk_attention_args),
                                 .formula = "O = softmax(scale Q K^T) V",
                                 .sentence = "attention of {queries} queries on {keys} keys, depth {depth} and {depth_v}",
                                 SPK_OP_TABLES,
                                 .takes_pattern = SPK_PATTERN_OPTIONAL,
                                 .read = read,
                                 .write = write,
                                 .fit = fit,
                                 .flops = flops,
                                 .dense_flops = dense_flops,
                                 .touched = touched,
                                 .tolerance = tolerance,
                                 .draw_index = spk_attention_draw_index,
                                 .check_indices = spk_attention_check_indices,
                                 .free_size = free_size,
                                 .other_size = other_size,
                                 .oracle = spk_attention_oracle};
