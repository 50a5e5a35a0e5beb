/* Attention: places of its operands and scalars, and which keys a query sees. */
#ifndef SPK_OP_ATTENTION_H
#define SPK_OP_ATTENTION_H

#include "op/operation.h"

enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_O,
    ATTENTION_LSE,
    ATTENTION_QUERY_ENDS,
    ATTENTION_KEY_ENDS,
    ATTENTION_TILE_NUMBERS,
    ATTENTION_TILE_BITS,
    ATTENTION_SHARED, /* those before it are operands of the gradients, too (op/attention_backward/operands.h) */
    ATTENTION_PAGE_TABLE = ATTENTION_SHARED
};
enum { ATTENTION_SCALE, ATTENTION_SOFTCAP };

/* In tuning: scores of random numbers have a standard deviation of 0.75 (depth 16) to 3 (depth 256), about as those of models. */
#define SPK_ATTENTION_TUNED_SCALE 0.1875

/* Queries [query, query_end) of an item and their keys [key, key + keys): one of its sequences, or all that it has. */
typedef struct spk_sequence {
    int64_t number, query, query_end, key, keys;
} spk_sequence;

/* All of an item, as far as the problem says it. */
static inline spk_sequence spk_attention_whole(const spk_problem *p)
{
    return (spk_sequence){.query_end = p->m, .keys = p->n};
}

static inline const int32_t *spk_attention_index(const spk_args *args, int operand)
{
    return args->at[operand];
}

/* Sequence `number` of the item that the arguments are of: the only one, 0, where they are not packed. */
spk_sequence spk_attention_sequence(const spk_problem *p, const spk_args *args, int64_t number);

/* The sequence that a query is in; the number of sequences: in none. */
int64_t spk_attention_find_sequence(const spk_problem *p, const spk_args *args, int64_t query);

/* The row of K and V that a key has. */
static inline int64_t spk_attention_row(const spk_problem *p, const spk_args *args, const spk_sequence *sequence, int64_t key)
{
    const int64_t page_keys = p->packing.page_keys;
    if (page_keys == 0)
        return key;
    const int32_t *table = spk_attention_index(args, ATTENTION_PAGE_TABLE) + sequence->number * ((p->n + page_keys - 1) / page_keys);
    return table[key / page_keys] * page_keys + key % page_keys;
}

/* Words of a line of a tile of bits. */
static inline int64_t spk_attention_tile_words(const spk_problem *p)
{
    return (p->pattern->block_cols + 31) / 32;
}

/* Whether tile `tile` of bits (-1: none) lets a query see a key, both of which are in its block. */
static inline bool spk_attention_bit(const spk_problem *p, const spk_args *args, int64_t tile, int64_t query, int64_t key)
{
    if (tile < 0)
        return true;
    const int64_t line = tile * p->pattern->block_rows + query % p->pattern->block_rows, bit = key % p->pattern->block_cols;
    const uint32_t word = (uint32_t)spk_attention_index(args, ATTENTION_TILE_BITS)[line * spk_attention_tile_words(p) + bit / 32];
    return (word >> bit % 32 & 1) != 0;
}

/* The keys that a query sees: [first, sinks) and [begin, end), where first <= sinks <= begin <= end. */
typedef struct spk_seen {
    int64_t first, sinks, begin, end;
} spk_seen;

static inline int64_t spk_attention_clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static inline spk_seen spk_attention_seen(const spk_problem *p, const spk_sequence *s, int64_t query)
{
    const int64_t queries = s->query_end - s->query,
                  beside = query - s->query + (p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? s->keys - queries : 0);
    const int64_t end = p->band.right > 0 ? spk_attention_clamp(beside + p->band.right, s->keys) : s->keys,
                  begin = p->band.left > 0 ? spk_attention_clamp(beside - p->band.left + 1, end) : 0,
                  sinks = p->band.sinks < begin ? p->band.sinks : begin;
    return (spk_seen){s->key, s->key + sinks, s->key + begin, s->key + end};
}

/* Heads of Q that share one of K and V. */
static inline int64_t spk_attention_sharing(const spk_problem *p)
{
    return spk_operand_heads(&p->operand[ATTENTION_Q]) / spk_operand_heads(&p->operand[ATTENTION_K]);
}

/* Block rows of a list of the pattern. */
static inline int64_t spk_attention_list_rows(const spk_problem *p)
{
    return (p->m + p->pattern->block_rows - 1) / p->pattern->block_rows;
}

/* The keys that some neighbouring queries of a head see, as runs. */
typedef struct spk_key_runs {
    spk_seen seen;
    bool masked, apart;              /* apart: no run goes on from block to block */
    const int32_t *columns;          /* of the blocks: there are `count` of them, of `width` keys */
    int64_t count, width, at, entry; /* entry: of the first block, among those of the pattern */
    int64_t key;                     /* the first that is not looked at */
} spk_key_runs;

/* Those of one query, or of queries of one block row: what `seen` says, and the list of block row `list_row` of the pattern. */
static inline spk_key_runs spk_attention_runs(const spk_problem *p, spk_seen seen, int64_t list_row)
{
    spk_key_runs runs = {.seen = seen, .key = seen.first, .apart = p->lists.tiles > 0};
    if (p->pattern != NULL) {
        const spk_index *index = &p->pattern->index;
        runs.masked = true;
        runs.columns = index->columns + index->offsets[list_row];
        runs.count = index->offsets[list_row + 1] - index->offsets[list_row];
        runs.entry = index->offsets[list_row];
        runs.width = p->pattern->block_cols;
    }
    return runs;
}

/* The block row of the pattern that a query of a head of an item has; 0: there is none. */
static inline int64_t spk_attention_list_row(const spk_problem *p, int64_t item, int64_t head, int64_t query)
{
    if (p->pattern == NULL)
        return 0;
    const int64_t list = item * p->lists.item_step + head / (spk_operand_heads(&p->operand[ATTENTION_Q]) / p->lists.heads);
    return list * spk_attention_list_rows(p) + query / p->pattern->block_rows;
}

/* The next run [*first, *end), which is not empty; runs ascend, and neighbours do not touch but where sinks end, or they are kept apart.
 * Then it is of the list's block `at`. */
static inline bool spk_key_runs_next(spk_key_runs *r, int64_t *first, int64_t *end)
{
    for (;;) {
        const bool in_sinks = r->key < r->seen.sinks && r->seen.sinks < r->seen.begin;
        const int64_t limit = in_sinks ? r->seen.sinks : r->seen.end;
        if (!in_sinks && r->key >= r->seen.sinks && r->key < r->seen.begin)
            r->key = r->seen.begin;
        if (r->key >= limit)
            return false;
        int64_t stop = limit;
        if (r->masked) {
            while (r->at < r->count && (r->columns[r->at] + INT64_C(1)) * r->width <= r->key)
                r->at++;
            if (r->at == r->count)
                return false;
            const int64_t begin = r->columns[r->at] * r->width;
            if (begin > r->key)
                r->key = begin;
            if (r->key >= limit) {
                if (in_sinks)
                    continue;
                return false;
            }
            for (stop = (r->columns[r->at] + INT64_C(1)) * r->width;
                 !r->apart && stop < limit && r->at + 1 < r->count && r->columns[r->at + 1] == r->columns[r->at] + 1; stop += r->width)
                r->at++;
            stop = stop < limit ? stop : limit;
        }
        *first = r->key;
        *end = r->key = stop;
        return true;
    }
}

/* The number of the tile of bits that block `entry` of the pattern has; -1: it keeps all. */
static inline int64_t spk_attention_tile(const spk_problem *p, const spk_args *args, int64_t entry)
{
    return p->lists.tiles > 0 ? spk_attention_index(args, ATTENTION_TILE_NUMBERS)[entry] : -1;
}

/* Keys that a query of a head of the arguments' item sees, ascending, where it is one of the sequence; they are written where `keys` is not
 * NULL, which has room for all. args may be NULL where they are not packed and have no tiles. */
int64_t spk_attention_keys(const spk_problem *p, const spk_args *args, const spk_sequence *sequence, int64_t head, int64_t query,
                           int64_t *keys);

/* Whether a query of a head sees a key, which is not in a page. */
bool spk_attention_sees(const spk_problem *p, const spk_args *args, int64_t head, int64_t query, int64_t key);

/* What attention and its gradients share: description, sizes, key. */
spk_status spk_attention_read(spk_pattern *pattern, const spk_attention *given, spk_problem *problem);
void spk_attention_fit(spk_problem *problem);
double spk_attention_count_pairs(const spk_problem *problem);
double spk_attention_touched(const spk_problem *problem, int operand);
int64_t *spk_attention_free_size(spk_problem *problem);
int64_t *spk_attention_other_size(spk_problem *problem);
spk_status spk_attention_part(const spk_mem *mem, const spk_problem *whole, double share, spk_problem *part, spk_pattern **pattern);
extern const spk_key_row spk_attention_key[];
#define SPK_ATTENTION_SIZES                                                                             \
    {"queries", SPK_SIZE_LIST_ROWS, offsetof(spk_problem, m), 1024, "rows of Q and O"},                 \
        {"keys", SPK_SIZE_LIST_COLS, offsetof(spk_problem, n), 1024, "rows of K and V"},                \
        {"depth", SPK_SIZE_FIELD, offsetof(spk_problem, k), 64, "columns of Q and K"},                  \
    {                                                                                                   \
        "depth_v", SPK_SIZE_FIELD, offsetof(spk_problem, depth_v), 0, "columns of V and O; 0: as depth" \
    }

/* What rounding explains of an output's element, over its magnitude: of scores that are sums of `depth` products, of exponentials, of a sum
 * of so many terms, and where it is stored in 16 bits, of what is rounded to these before it is multiplied, and of the result. */
double spk_attention_rounding(const spk_problem *problem, int64_t depth, int64_t terms, bool is_stored);

/* Index arrays: drawn, and checked (spk_op). */
void spk_attention_draw_index(const spk_problem *p, int i, spk_rng *rng, int32_t *out);
spk_status spk_attention_check_indices(const spk_problem *p, const spk_args *args);

spk_status spk_attention_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
