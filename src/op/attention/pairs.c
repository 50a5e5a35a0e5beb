/* How many pairs of a query and a key attention has: without a walk over them, where they may be billions. */
#include "op/attention/attention.h"

static int64_t common(int64_t first, int64_t end, int64_t from, int64_t to)
{
    const int64_t begin = first > from ? first : from, stop = end < to ? end : to;
    return begin < stop ? stop - begin : 0;
}

/* Keys of [first, end) that a query sees. */
static int64_t seen_of(spk_seen seen, int64_t first, int64_t end)
{
    return common(first, end, seen.begin, seen.end) + common(first, end, seen.first, seen.sinks);
}

/* Pairs of a block's queries query .. query_end - 1, all of one sequence, and its keys first .. end - 1: all at once where no limit goes
 * through it. */
static double pairs_of_block(const spk_problem *p, const spk_sequence *s, int64_t query, int64_t query_end, int64_t first, int64_t end)
{
    const spk_seen a = spk_attention_seen(p, s, query), b = spk_attention_seen(p, s, query_end - 1);
    if (first >= b.begin && end <= a.end)
        return (double)(query_end - query) * (double)(end - first);
    if (first >= b.end || (end <= a.begin && (first >= b.sinks || end <= a.first)))
        return 0;
    double pairs = 0;
    for (int64_t i = query; i < query_end; i++)
        pairs += (double)seen_of(spk_attention_seen(p, s, i), first, end);
    return pairs;
}

static int64_t sequences(const spk_problem *p)
{
    return p->packing.sequences > 0 ? p->packing.sequences : 1;
}

/* Where sequences end is in an array that the caller may have on the device: as if all were of the same length. Pages have keys from 0 on.
 */
static spk_sequence even_sequence(const spk_problem *p, int64_t number)
{
    const int64_t count = sequences(p), key = p->packing.page_keys > 0 ? 0 : p->n * number / count,
                  key_end = p->packing.page_keys > 0 ? p->n : p->n * (number + 1) / count;
    return (spk_sequence){number, p->m * number / count, p->m * (number + 1) / count, key, key_end - key};
}

/* The one that a query is in: there may be far more than queries, most of them empty. */
static int64_t sequence_of(const spk_problem *p, int64_t query)
{
    return ((query + 1) * sequences(p) + p->m - 1) / p->m - 1;
}

/* Of the stored blocks of a block row with the queries query .. query_end - 1. */
static double pairs_of_row(const spk_problem *p, int64_t row, int64_t query, int64_t query_end)
{
    const spk_index *index = &p->pattern->index;
    double pairs = 0;
    while (query < query_end) {
        const spk_sequence s = even_sequence(p, sequence_of(p, query));
        const int64_t end = s.query_end < query_end ? s.query_end : query_end;
        for (int64_t at = index->offsets[row]; query < end && at < index->offsets[row + 1]; at++) {
            const int64_t first = (int64_t)index->columns[at] * p->pattern->block_cols, last = first + p->pattern->block_cols;
            pairs += pairs_of_block(p, &s, query, end, first, last < p->n ? last : p->n);
        }
        query = end;
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

/* Without a pattern. */
static double pairs_of_sequences(const spk_problem *p)
{
    const int64_t count = sequences(p), queries = (p->m + count - 1) / count,
                  keys = p->packing.page_keys > 0 ? p->n : (p->n + count - 1) / count;
    return pairs_of_band(&p->band, queries, keys) * (double)p->m / (double)(queries > 0 ? queries : 1);
}

static int64_t lists(const spk_problem *p)
{
    return p->lists.heads * (p->lists.item_step > 0 ? p->batch : 1);
}

/* Of all lists of the pattern. */
static double pairs_of_lists(const spk_problem *p)
{
    const spk_pattern *mask = p->pattern;
    const int64_t rows = spk_attention_list_rows(p);
    double pairs = 0;
    if (mask->index.offsets == NULL) { /* on the device: as if no limit went through a block */
        const double stored = (double)mask->nnzb * mask->block_rows * mask->block_cols, all = pairs_of_sequences(p) * (double)lists(p);
        return stored < all ? stored : all;
    }
    for (int64_t row = 0; row < mask->index.grid_rows; row++) {
        const int64_t query = row % rows * mask->block_rows, end = query + mask->block_rows;
        pairs += pairs_of_row(p, row, query, end < p->m ? end : p->m);
    }
    return pairs;
}

/* Of a query and a key that it sees: of all heads of an item. */
double spk_attention_count_pairs(const spk_problem *p)
{
    const double heads = (double)spk_operand_heads(&p->operand[ATTENTION_Q]);
    if (p->pattern != NULL)
        return pairs_of_lists(p) * heads / (double)lists(p);
    return pairs_of_sequences(p) * heads;
}
