/* Attention: a caller's spk_attention as a problem. m: queries, n: keys, k: columns of Q and K. */
#include <stdio.h>

#include "op/attention/attention.h"
#include "op/read.h"

/* Keys without a number take no memory, but the time of a walk over them. */
#define MOST_BARE_KEYS (INT64_C(1) << 16)

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

void spk_attention_fit(spk_problem *p)
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
    p->pairs = spk_attention_count_pairs(p);
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

/* What is counted in index arrays, before it is multiplied. */
static spk_status read_counts(const spk_attention *a, const spk_problem *p)
{
    const int64_t most = INT64_C(1) << 59, each = p->packing.page_keys > 0 ? (p->n + p->packing.page_keys - 1) / p->packing.page_keys : 0,
                  tables = p->packing.sequences > 0 ? p->packing.sequences : p->batch;
    if (each > most / tables)
        return spk_fail(SPK_ERR_ARGUMENT, "page_keys = %lld: %lld pages for each of %s = %lld exceed 2^59 entries of page_table",
                        (long long)a->page_keys, (long long)each, p->packing.sequences > 0 ? "sequences" : "batch", (long long)tables);
    const int64_t words = p->lists.tiles > 0 ? p->pattern->block_rows * spk_attention_tile_words(p) : 1;
    if (p->lists.tiles > most / words)
        return spk_fail(SPK_ERR_ARGUMENT, "tiles = %lld: of %lld words each they exceed 2^59 words of tile_bits", (long long)a->tiles,
                        (long long)words);
    if (p->k == 0 && p->depth_v == 0 && p->n > MOST_BARE_KEYS)
        return spk_fail(SPK_ERR_ARGUMENT, "keys = %lld: with depth = 0 and depth_v = 0 the limit is %lld, as each is counted",
                        (long long)p->n, (long long)MOST_BARE_KEYS);
    return SPK_OK;
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
                         .use_softcap = a->use_softcap != 0};
    const bool may_differ = a->queries != a->keys || a->sequences > 0 || a->key_lengths != 0;
    if ((p->band.left != 0 || p->band.right != 0) && a->diagonal == SPK_DIAGONAL_NONE && may_differ)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "diagonal = none with %lld queries and %lld keys: causal and windows want top_left or bottom_right",
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
    p->assume_finite = a->assume_finite != 0;
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

spk_status spk_attention_read(spk_pattern *pattern, const spk_attention *a, spk_problem *p)
{
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
    p->compute = spk_type_of(dtype)->sums;
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
    SPK_TRY(read_counts(a, p));
    spk_attention_fit(p);
    return read_arrays(a, p);
}
