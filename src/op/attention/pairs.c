/* How many pairs of a query and a key attention has: without a walk over them, where they may be billions. */
#include "op/attention/attention.h"

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
double spk_attention_count_pairs(const spk_problem *p)
{
    const double heads = (double)spk_operand_heads(&p->operand[ATTENTION_Q]);
    if (p->pattern != NULL)
        return pairs_of_lists(p) * heads / (double)(p->lists.heads * (p->lists.item_step > 0 ? p->batch : 1));
    return pairs_of_sequences(p) * heads;
}
