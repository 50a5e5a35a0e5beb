#include "backend/cuda/host/attention/attention_backward_lists.h"

#include <limits.h>
#include <string.h>

#include "backend/cuda/host/attention/attention_backward.h"
#include "backend/cuda/host/schedule/schedule.h"

static const double SECTION_BYTES = 32 << 20; /* walked rows of the heads whose tiles are taken together: what L2 holds */
enum { EVEN_TILES = 2 };                      /* a worker, at least, in a section */

typedef struct draft {
    const spk_problem *p;
    attention_task task; /* without arguments */
    bool by_queries;
    int query_rows, key_rows;         /* of a tile of queries, of keys */
    int64_t query_tiles, key_tiles;   /* of a head */
    int64_t heads, heads_kv, sharing; /* sharing: heads of Q for each of K and V */
    int64_t own_heads, own_tiles;     /* heads of own rows; tiles of one */
    int64_t groups;                   /* lists of steps: heads of all items that have the same ones share one */
    int64_t *group_of;                /* of each own head of all items */
    int64_t *head_of;                 /* of each group, the first own head of all items that has it */
    int64_t *begins;                  /* the first step of each own tile of each group, and the end; counts, while they are found */
    bool fill;                        /* steps are written; else counted */
    two_pass_step *steps;
} draft;

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- which own heads have the same steps */

static int64_t list_of(const draft *d, int64_t own_head)
{
    const int64_t item = own_head / d->own_heads, head = own_head % d->own_heads;
    return spk_attention_list_row(d->p, item, d->by_queries ? head : head * d->sharing, 0);
}

static spk_status find_groups(const spk_mem *mem, draft *d)
{
    const int64_t own_heads = d->own_heads * d->p->batch;
    SPK_TRY(spk_alloc(mem, (size_t)own_heads, sizeof *d->group_of, &d->group_of));
    SPK_TRY(spk_alloc(mem, (size_t)own_heads, sizeof *d->head_of, &d->head_of));
    d->groups = 0;
    for (int64_t i = 0; i < own_heads; i++) {
        const int64_t list = list_of(d, i);
        /* Lists ascend with heads and items, but that all items may have those of the first. */
        const int64_t before = i > 0 && list == list_of(d, i - 1) ? i - 1 : i % d->own_heads;
        if (before < i && list == list_of(d, before))
            d->group_of[i] = d->group_of[before];
        else {
            d->head_of[d->groups] = i;
            d->group_of[i] = d->groups++;
        }
    }
    return SPK_OK;
}

/* ---- steps */

/* One step, of the tiles of a group; sharer: the head of queries, among those that share the keys. entry: its block's, in the mask. */
static void add_step(draft *d, int64_t group, int64_t query_tile, int64_t key_tile, const attention_rows_seen *seen, int64_t sharer,
                     int64_t entry)
{
    const int key = (int)key_tile * d->key_rows, end = key + d->key_rows;
    if (!attention_rows_see(&d->task, seen, key, end))
        return;
    const bool all = attention_rows_see_all(&d->task, seen, key, end) != 0;
    int64_t *at = &d->begins[group * d->own_tiles + (d->by_queries ? query_tile : key_tile)];
    if (d->fill)
        d->steps[*at] = (two_pass_step){
            .tile = (int)(d->by_queries ? key_tile : query_tile) | (all ? 0 : TWO_PASS_HIDDEN), .head = (int)sharer, .entry = (int)entry};
    ++*at;
}

static void add_queries(draft *d, int64_t group, int64_t query_tile, int64_t sharer)
{
    const spk_problem *p = d->p;
    const int query = (int)query_tile * d->query_rows;
    const attention_rows_seen seen = attention_rows_seen_of(&d->task, query, query + d->query_rows);
    if (p->pattern == NULL) {
        for (int64_t key_tile = 0; key_tile < d->key_tiles; key_tile++)
            add_step(d, group, query_tile, key_tile, &seen, sharer, 0);
        return;
    }
    const int64_t own_head = d->head_of[group], item = own_head / d->own_heads, head = own_head % d->own_heads,
                  list = spk_attention_list_row(p, item, d->by_queries ? head : head * d->sharing + sharer, query_tile * d->query_rows),
                  width = p->pattern->block_cols / d->key_rows;
    for (int64_t at = p->pattern->index.offsets[list]; at < p->pattern->index.offsets[list + 1]; at++)
        for (int64_t i = 0; i < width; i++) {
            const int64_t key_tile = p->pattern->index.columns[at] * width + i;
            if (key_tile < d->key_tiles)
                add_step(d, group, query_tile, key_tile, &seen, sharer, at);
        }
}

static void add_group(draft *d, int64_t group)
{
    for (int64_t sharer = 0; sharer < (d->by_queries ? 1 : d->sharing); sharer++)
        for (int64_t query_tile = 0; query_tile < d->query_tiles; query_tile++)
            add_queries(d, group, query_tile, sharer);
}

static spk_status find_steps(const spk_mem *mem, draft *d)
{
    const int64_t tiles = d->groups * d->own_tiles;
    SPK_TRY(spk_calloc(mem, (size_t)tiles + 1, sizeof *d->begins, &d->begins));
    for (int64_t group = 0; group < d->groups; group++)
        add_group(d, group);
    int64_t count = 0;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t length = d->begins[i];
        d->begins[i] = count;
        count += length;
    }
    if (count > INT_MAX / 4)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld steps of %d queries and %d keys: the limit is 2^29", (long long)count, d->query_rows,
                        d->key_rows);
    SPK_TRY(spk_alloc(mem, (size_t)count + 1, sizeof *d->steps, &d->steps));
    d->fill = true;
    for (int64_t group = 0; group < d->groups; group++)
        add_group(d, group);
    memmove(d->begins + 1, d->begins, (size_t)tiles * sizeof *d->begins); /* each had become its end */
    d->begins[0] = 0;
    return SPK_OK;
}

/* ---- tiles */

static two_pass_tile describe(const draft *d, int64_t tile)
{
    const int64_t own_head = tile / d->own_tiles, at = d->group_of[own_head] * d->own_tiles + tile % d->own_tiles,
                  item = own_head / d->own_heads, head = own_head % d->own_heads;
    const int64_t query_head = item * d->heads + (d->by_queries ? head : head * d->sharing);
    return (two_pass_tile){.row = (int)(tile % d->own_tiles) * (d->by_queries ? d->query_rows : d->key_rows),
                           .head = (int)head,
                           .item = (int)item,
                           .begin = (int)d->begins[at],
                           .end = (int)d->begins[at + 1],
                           .first = (int)(query_head * up(d->p->m, TWO_PASS_ROWS))};
}

int64_t spk_cuda_attention_backward_section(const spk_problem *p, const two_pass_cut *cut)
{
    const double sharing = (double)spk_attention_sharing(p), walked = cut->by_queries ? (double)p->n / sharing : (double)p->m * sharing,
                 bytes = walked * (double)(p->k + p->depth_v) * 2;
    const int64_t heads = spk_operand_heads(&p->operand[cut->by_queries ? ATTENTION_Q : ATTENTION_K]) * p->batch,
                  tiles = up(cut->by_queries ? p->m : p->n, cut->own_rows);
    const int64_t fit = (int64_t)(SECTION_BYTES / bytes), even = up(EVEN_TILES * (int64_t)cut->workers, tiles),
                  most = fit > even ? fit : even, sections = heads > most && most > 0 ? heads / most : 1;
    return up(heads, sections) * tiles;
}

static spk_status sort_tiles(const spk_mem *mem, const draft *d, int64_t section, two_pass_tile *tiles)
{
    const int64_t all = d->own_heads * d->p->batch * d->own_tiles;
    int *lengths = NULL, *order = NULL;
    spk_status status = spk_alloc(mem, (size_t)all, sizeof *lengths, &lengths);
    if (status == SPK_OK)
        status = spk_alloc(mem, (size_t)all, sizeof *order, &order);
    for (int64_t first = 0; status == SPK_OK && first < all; first += section) {
        const int64_t count = first + section < all ? section : all - first;
        for (int64_t i = 0; i < count; i++) {
            const two_pass_tile tile = describe(d, first + i);
            lengths[i] = tile.end - tile.begin;
        }
        status = spk_schedule_sort(mem, lengths, count, order);
        for (int64_t i = 0; status == SPK_OK && i < count; i++)
            tiles[first + i] = describe(d, first + order[i]);
    }
    spk_free(mem, lengths);
    spk_free(mem, order);
    return status;
}

static spk_status upload(spk_device *device, const draft *d, int64_t section, two_pass_lists *lists)
{
    const int64_t tiles = d->own_heads * d->p->batch * d->own_tiles;
    const size_t tile_bytes = (size_t)tiles * sizeof(two_pass_tile),
                 step_bytes = (size_t)d->begins[d->groups * d->own_tiles] * sizeof(two_pass_step);
    two_pass_tile *sorted = NULL;
    SPK_TRY(spk_alloc(&device->mem, (size_t)tiles, sizeof *sorted, &sorted));
    spk_status status = sort_tiles(&device->mem, d, section, sorted);
    if (status == SPK_OK)
        status = device->backend->allocate(device, tile_bytes + step_bytes, &lists->memory);
    if (status == SPK_OK)
        status = device->backend->copy_in(device, lists->memory, sorted, tile_bytes);
    if (status == SPK_OK && step_bytes > 0)
        status = device->backend->copy_in(device, (unsigned char *)lists->memory + tile_bytes, d->steps, step_bytes);
    spk_free(&device->mem, sorted);
    lists->tiles = lists->memory;
    lists->steps = lists->memory != NULL ? lists->tiles + tile_bytes / sizeof(int) : NULL;
    lists->count = (int)tiles;
    return status;
}

spk_status spk_cuda_attention_backward_lists(spk_device *device, const spk_problem *p, const two_pass_cut *cut, two_pass_lists *lists)
{
    const spk_mem *mem = &device->mem;
    draft d = {.p = p,
               .task = spk_cuda_attention_task(p, NULL),
               .by_queries = cut->by_queries,
               .query_rows = cut->by_queries ? cut->own_rows : TWO_PASS_ROWS,
               .key_rows = cut->by_queries ? TWO_PASS_ROWS : cut->own_rows,
               .heads = spk_operand_heads(&p->operand[ATTENTION_Q]),
               .heads_kv = spk_operand_heads(&p->operand[ATTENTION_K]),
               .sharing = spk_attention_sharing(p)};
    d.query_tiles = up(p->m, d.query_rows);
    d.key_tiles = up(p->n, d.key_rows);
    d.own_heads = d.by_queries ? d.heads : d.heads_kv;
    d.own_tiles = d.by_queries ? d.query_tiles : d.key_tiles;
    spk_status status = d.own_tiles * d.own_heads * p->batch > INT_MAX / 4
                            ? spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d rows: the limit is 2^29",
                                       (long long)(d.own_tiles * d.own_heads * p->batch), cut->own_rows)
                            : find_groups(mem, &d);
    if (status == SPK_OK)
        status = find_steps(mem, &d);
    if (status == SPK_OK)
        status = upload(device, &d, spk_cuda_attention_backward_section(p, cut), lists);
    spk_free(mem, d.group_of);
    spk_free(mem, d.head_of);
    spk_free(mem, d.begins);
    spk_free(mem, d.steps);
    return status;
}
