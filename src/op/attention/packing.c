/* Attention whose sequences, lengths, pages and tiles of bits are among the arguments of a run. */
#include "op/attention/attention.h"

spk_sequence spk_attention_sequence(const spk_problem *p, const spk_args *args, int64_t number)
{
    const spk_packing *packing = &p->packing;
    spk_sequence s = spk_attention_whole(p);
    if (packing->sequences == 0) {
        s.keys = packing->key_lengths != 0 ? spk_attention_index(args, ATTENTION_KEY_ENDS)[0] : p->n;
        return s;
    }
    const int32_t *queries = spk_attention_index(args, ATTENTION_QUERY_ENDS), *keys = spk_attention_index(args, ATTENTION_KEY_ENDS);
    s.number = number;
    s.query = number > 0 ? queries[number - 1] : 0;
    s.query_end = queries[number];
    s.key = number > 0 && packing->page_keys == 0 ? keys[number - 1] : 0;
    s.keys = keys[number] - s.key;
    return s;
}

int64_t spk_attention_find_sequence(const spk_problem *p, const spk_args *args, int64_t query)
{
    if (p->packing.sequences == 0)
        return 0;
    const int32_t *ends = spk_attention_index(args, ATTENTION_QUERY_ENDS);
    int64_t low = 0, high = p->packing.sequences;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (ends[middle] <= query)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t spk_attention_keys(const spk_problem *p, const spk_args *args, const spk_sequence *sequence, int64_t head, int64_t query,
                           int64_t *keys)
{
    const int64_t item = args != NULL ? args->item : 0;
    spk_key_runs runs = spk_attention_runs(p, spk_attention_seen(p, sequence, query), spk_attention_list_row(p, item, head, query));
    int64_t count = 0, first, end;
    while (spk_key_runs_next(&runs, &first, &end)) {
        const int64_t tile = runs.apart ? spk_attention_tile(p, args, runs.entry + runs.at) : -1;
        for (; first < end; first++) {
            if (!spk_attention_bit(p, args, tile, query, first))
                continue;
            if (keys != NULL)
                keys[count] = first;
            count++;
        }
    }
    return count;
}

bool spk_attention_sees(const spk_problem *p, const spk_args *args, int64_t head, int64_t query, int64_t key)
{
    const int64_t number = spk_attention_find_sequence(p, args, query);
    if (p->packing.sequences > 0 && number == p->packing.sequences)
        return false;
    const spk_sequence sequence = spk_attention_sequence(p, args, number);
    const spk_seen seen = spk_attention_seen(p, &sequence, query);
    if (key < seen.first || key >= seen.end || (key >= seen.sinks && key < seen.begin))
        return false;
    if (p->pattern == NULL)
        return true;
    const spk_index *index = &p->pattern->index;
    const int64_t list_row = spk_attention_list_row(p, args->item, head, query), column = key / p->pattern->block_cols;
    for (int64_t entry = index->offsets[list_row]; entry < index->offsets[list_row + 1]; entry++)
        if (index->columns[entry] == column)
            return spk_attention_bit(p, args, spk_attention_tile(p, args, entry), query, key);
    return false;
}

/* ---- drawn: uneven ones, the last of which ends the whole */

static void draw_ends(spk_rng *rng, int64_t count, int64_t whole, int32_t *out)
{
    const spk_rng start = *rng;
    double total = 0, so_far = 0;
    for (int turn = 0; turn < 2; turn++) { /* the same draws again: the sum first */
        *rng = start;
        for (int64_t i = 0; i < count; i++) {
            const double share = 0.5 + spk_rng_uniform(rng), weight = spk_rng_below(rng, 16) == 0 ? 0 : share;
            if (turn == 0) {
                total += weight;
                continue;
            }
            so_far += weight;
            out[i] = total > 0 ? (int32_t)(so_far / total * (double)whole) : 0;
        }
    }
    out[count - 1] = (int32_t)whole;
}

/* Three quarters of the most on average, and one at least that has them all. */
static void draw_lengths(spk_rng *rng, int64_t count, int64_t most, int32_t *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (int32_t)(most - (int64_t)spk_rng_below(rng, (uint64_t)(most / 2 + 1)));
    out[spk_rng_below(rng, (uint64_t)count)] = (int32_t)most;
}

static void draw_below(spk_rng *rng, int64_t count, int64_t limit, int32_t lowest, int32_t *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (int32_t)spk_rng_below(rng, (uint64_t)(limit - lowest)) + lowest;
}

void spk_attention_draw_index(const spk_problem *p, int i, spk_rng *rng, int32_t *out)
{
    const int64_t count = spk_operand_elements(&p->operand[i], p->batch);
    if (count == 0)
        return;
    switch (i) {
    case ATTENTION_QUERY_ENDS:
        draw_ends(rng, count, p->m, out);
        break;
    case ATTENTION_KEY_ENDS:
        (p->packing.sequences > 0 && p->packing.page_keys == 0 ? draw_ends : draw_lengths)(rng, count, p->n, out);
        break;
    case ATTENTION_PAGE_TABLE:
        draw_below(rng, count, p->packing.pages, 0, out);
        break;
    case ATTENTION_TILE_NUMBERS:
        draw_below(rng, count, p->lists.tiles, -1, out);
        break;
    default:
        for (int64_t w = 0; w < count; w++)
            out[w] = (int32_t)(uint32_t)spk_rng_next(rng);
    }
}

/* ---- checked, where the host can read them */

static spk_status check_ends(const char *name, const int32_t *ends, int64_t count, int64_t whole, const char *of)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = i > 0 ? ends[i - 1] : 0;
        if (ends[i] < begin || ends[i] > whole)
            return spk_fail(SPK_ERR_ARGUMENT, "args.%s[%lld] = %d: the sequence begins at %lld, and there are %lld %s", name, (long long)i,
                            ends[i], (long long)begin, (long long)whole, of);
    }
    return SPK_OK;
}

static spk_status check_lengths(const int32_t *lengths, int64_t count, int64_t most)
{
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] < 0 || lengths[i] > most)
            return spk_fail(SPK_ERR_ARGUMENT, "args.key_ends[%lld] = %d: the limits are 0 and keys = %lld", (long long)i, lengths[i],
                            (long long)most);
    return SPK_OK;
}

/* The pages of the keys that an item or sequence has. */
static spk_status check_pages(const spk_problem *p, const spk_args *args)
{
    const spk_packing *packing = &p->packing;
    const bool lengths = packing->sequences > 0 || packing->key_lengths != 0; /* else key_ends may be anything */
    const int64_t count = packing->sequences > 0 ? packing->sequences : p->batch,
                  each = (p->n + packing->page_keys - 1) / packing->page_keys;
    const int32_t *table = spk_attention_index(args, ATTENTION_PAGE_TABLE), *key_ends = spk_attention_index(args, ATTENTION_KEY_ENDS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t keys = lengths ? key_ends[i] : p->n;
        for (int64_t page = 0; page * packing->page_keys < keys; page++)
            if (table[i * each + page] < 0 || table[i * each + page] >= packing->pages)
                return spk_fail(SPK_ERR_ARGUMENT, "args.page_table[%lld] = %d: the limits are 0 and pages - 1 = %lld",
                                (long long)(i * each + page), table[i * each + page], (long long)(packing->pages - 1));
    }
    return SPK_OK;
}

spk_status spk_attention_check_indices(const spk_problem *p, const spk_args *args)
{
    const spk_packing *packing = &p->packing;
    const int32_t *key_ends = spk_attention_index(args, ATTENTION_KEY_ENDS);
    if (packing->sequences > 0)
        SPK_TRY(check_ends("query_ends", spk_attention_index(args, ATTENTION_QUERY_ENDS), packing->sequences, p->m, "queries"));
    if (packing->sequences > 0 && packing->page_keys == 0)
        SPK_TRY(check_ends("key_ends", key_ends, packing->sequences, p->n, "keys"));
    else if (packing->sequences > 0 || packing->key_lengths != 0)
        SPK_TRY(check_lengths(key_ends, packing->sequences > 0 ? packing->sequences : p->batch, p->n));
    if (packing->page_keys > 0)
        SPK_TRY(check_pages(p, args));
    const int32_t *numbers = spk_attention_index(args, ATTENTION_TILE_NUMBERS);
    for (int64_t i = 0; p->lists.tiles > 0 && i < p->pattern->nnzb; i++)
        if (numbers[i] < -1 || numbers[i] >= p->lists.tiles)
            return spk_fail(SPK_ERR_ARGUMENT, "args.tile_numbers[%lld] = %d: the limits are -1 and tiles - 1 = %lld", (long long)i,
                            numbers[i], (long long)(p->lists.tiles - 1));
    return SPK_OK;
}
