#include "backend/cuda/host/attention/attention_backward_order.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "backend/cuda/host/attention/attention_backward.h"
#include "backend/cuda/host/schedule/schedule.h"

enum {
    TILE_COST = 1,  /* beginning and end of a tile, in steps */
    APART = 3,      /* steps until a sum is in, and seen to be in */
    LOOK_AHEAD = 64 /* steps of a tile among which the next is chosen */
};

/* Q, its gradient's sums and the gradient of O of the heads whose tiles are given away together: what L2 holds. */
static const double SECTION_BYTES = 32 << 20;
static const double EVEN_TILES = 1.9; /* a worker, at least: with one, or one and a half, those that had the longest get no short one */

typedef struct draft {
    const spk_problem *p;
    attention_task task; /* without arguments */
    int rows, keys, workers;
    bool tiled;                                               /* blocks may have bits: which ones the device knows */
    int64_t key_tiles, query_tiles, heads_kv, sharing, tiles; /* tiles: of keys, of all heads and items */
    int64_t lists_sharing;                                    /* of the heads that share a tile of keys, so many have the same steps */
    unsigned char *all;                                       /* what the device gets: steps, and room for the rest */
    int *begins;                                              /* the first step of each tile, and the end */
    bool *hidden;                                             /* of each tile: some step has pairs that are not seen */
    attention_backward_step *steps;
    int *lengths, *numbers, *owners, *lists, *turns;
    int *visits; /* of each tile of queries: when a worker will be there, the last so far */
    schedule_heap heap;
} draft;

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The step of a tile of keys with a tile of queries of a head among those that share the keys, if there is one. */
static bool step_of(const draft *d, int64_t key_tile, int64_t query_tile, int64_t sharer, attention_backward_step *step)
{
    const int query = (int)query_tile * d->rows, key = (int)key_tile * d->keys;
    const attention_rows_seen seen = attention_rows_seen_of(&d->task, query, query + d->rows);
    if (!attention_rows_see(&d->task, &seen, key, key + d->keys))
        return false;
    const int hidden = attention_rows_see_all(&d->task, &seen, key, key + d->keys) ? 0 : ATTENTION_BACKWARD_HIDDEN;
    *step = (attention_backward_step){.tile = (int)query_tile | hidden, .head = (int)sharer};
    return true;
}

static int query_tile_of(attention_backward_step step)
{
    return step.tile & ~ATTENTION_BACKWARD_HIDDEN;
}

/* The steps of tiles of keys [key_tile, end) with a tile of queries: each is counted in `ends`, counted from the head's first tile of keys,
 * and written where there is room for them. */
static void add_steps(draft *d, int64_t first_tile, int64_t key_tile, int64_t end, int64_t query_tile, int64_t sharer)
{
    for (; key_tile < end; key_tile++) {
        const int64_t tile = first_tile + key_tile;
        attention_backward_step step;
        if (!step_of(d, key_tile, query_tile, sharer, &step))
            continue;
        if (d->steps != NULL) {
            d->steps[d->begins[tile] + d->lengths[tile]] = step;
            d->hidden[tile] = d->hidden[tile] || d->tiled || (step.tile & ATTENTION_BACKWARD_HIDDEN) != 0;
        }
        d->lengths[tile]++;
    }
}

/* Of all tiles of keys of a head of K and V, from `first_tile` on. */
static void add_head(draft *d, int64_t first_tile)
{
    const spk_problem *p = d->p;
    const int64_t head = first_tile / d->key_tiles % d->heads_kv * d->sharing, item = first_tile / d->key_tiles / d->heads_kv;
    for (int64_t sharer = 0; sharer < d->sharing; sharer += d->lists_sharing)
        for (int64_t query_tile = 0; query_tile < d->query_tiles; query_tile++) {
            if (p->pattern == NULL) {
                add_steps(d, first_tile, 0, d->key_tiles, query_tile, sharer);
                continue;
            }
            const spk_index *index = &p->pattern->index;
            const int64_t list = spk_attention_list_row(p, item, head + sharer, query_tile * d->rows),
                          width = p->pattern->block_cols / d->keys;
            for (int64_t at = index->offsets[list]; at < index->offsets[list + 1]; at++) {
                const int64_t first = index->columns[at] * width, end = first + width;
                add_steps(d, first_tile, first, end < d->key_tiles ? end : d->key_tiles, query_tile, sharer);
            }
        }
}

static void turn_around(attention_backward_step *steps, int64_t count)
{
    for (int64_t i = 0; i < count / 2; i++) {
        const attention_backward_step kept = steps[i];
        steps[i] = steps[count - 1 - i];
        steps[count - 1 - i] = kept;
    }
}

/* Of each head that shares a tile its steps begin with the tile of queries beside the keys, and go around, so that tiles that are worked on
 * at once are at different tiles of queries. */
static void begin_beside(const draft *d, int64_t tile)
{
    attention_backward_step *steps = d->steps + d->begins[tile];
    const int64_t beside = tile % d->key_tiles * d->query_tiles / d->key_tiles;
    for (int64_t first = 0, end = 0; first < d->lengths[tile]; first = end) {
        int64_t before = 0;
        for (end = first; end < d->lengths[tile] && steps[end].head == steps[first].head; end++)
            before += query_tile_of(steps[end]) < beside;
        turn_around(steps + first, before);
        turn_around(steps + first + before, end - first - before);
        turn_around(steps + first, end - first);
    }
}

/* Of the heads that have the same steps the first one's are there; heads were counted among those that share a tile. */
static void number_steps(const draft *d, int64_t tile)
{
    const int64_t first = tile / d->key_tiles * d->sharing, /* head of all items */
        count = d->lengths[tile];
    attention_backward_step *steps = d->steps + d->begins[tile];
    for (int64_t next = d->lists_sharing - 1; next >= 0; next--)
        for (int64_t i = 0; i < count; i++) {
            const attention_backward_step step = steps[i];
            const int64_t head = step.head + next;
            steps[next * count + i] = (attention_backward_step){.number = (int)((first + head) * d->query_tiles + query_tile_of(step)),
                                                                .tile = step.tile,
                                                                .head = (int)(head + first % (d->heads_kv * d->sharing))};
        }
}

static size_t steps_bytes(const draft *d)
{
    return (size_t)d->begins[d->tiles] * sizeof *d->steps;
}
static size_t tiles_bytes(const draft *d)
{
    return (size_t)d->tiles * sizeof(attention_backward_tile);
}
static size_t offsets_bytes(const draft *d)
{
    return ((size_t)d->workers + 1) * sizeof(int);
}
static size_t entries_bytes(const draft *d)
{
    return d->tiled ? (size_t)d->begins[d->tiles] * sizeof(int) : 0;
}

static spk_status make_steps(const spk_mem *mem, draft *d)
{
    const bool alike = d->p->pattern == NULL; /* without a mask, heads are */
    int64_t count = 0;
    SPK_TRY(spk_alloc(mem, (size_t)d->tiles + 1, sizeof *d->begins, &d->begins));
    SPK_TRY(spk_calloc(mem, (size_t)d->tiles, sizeof *d->hidden, &d->hidden));
    SPK_TRY(spk_calloc(mem, (size_t)d->tiles, sizeof *d->lengths, &d->lengths));
    for (int64_t tile = 0; tile < (alike ? d->key_tiles : d->tiles); tile += d->key_tiles)
        add_head(d, tile);
    for (int64_t tile = 0; tile < d->tiles; tile++) {
        if (alike && tile >= d->key_tiles)
            d->lengths[tile] = d->lengths[tile - d->key_tiles];
        d->begins[tile] = (int)count;
        count += d->lengths[tile] * d->lists_sharing;
        if (count > INT_MAX / 2)
            return spk_fail(SPK_ERR_UNSUPPORTED, "more than 2^30 steps of %d queries and %d keys", d->rows, d->keys);
    }
    d->begins[d->tiles] = (int)count;
    SPK_TRY(spk_alloc(mem, steps_bytes(d) + tiles_bytes(d) + offsets_bytes(d) + entries_bytes(d), 1, &d->all));
    d->steps = (attention_backward_step *)(void *)d->all;
    memset(d->lengths, 0, (size_t)(alike ? d->key_tiles : d->tiles) * sizeof *d->lengths);
    for (int64_t tile = 0; tile < (alike ? d->key_tiles : d->tiles); tile += d->key_tiles)
        add_head(d, tile);
    for (int64_t tile = 0; tile < d->tiles; tile++)
        if (alike && tile >= d->key_tiles) {
            memcpy(d->steps + d->begins[tile], d->steps + d->begins[tile - d->key_tiles], (size_t)d->lengths[tile] * sizeof *d->steps);
            d->hidden[tile] = d->hidden[tile - d->key_tiles];
        } else
            begin_beside(d, tile);
    for (int64_t tile = 0; tile < d->tiles; tile++) {
        number_steps(d, tile);
        d->lengths[tile] *= (int)d->lists_sharing;
    }
    return SPK_OK;
}

/* Tiles of the heads of a section, of which all have about as many: enough for the workers' loads to come out even. */
static int64_t section_tiles(const draft *d)
{
    const double bytes = (double)d->p->m * (double)d->sharing * ((double)d->p->k * 6 + (double)d->p->depth_v * 2),
                 fit = SECTION_BYTES / bytes, even = ceil(EVEN_TILES * d->workers / (double)d->key_tiles);
    const int64_t all = d->tiles / d->key_tiles, least = (int64_t)(fit > even ? fit : even), heads = least < 1 ? 1 : least,
                  sections = all > heads ? all / heads : 1;
    return (all + sections - 1) / sections * d->key_tiles;
}

/* Tiles of a section by falling length; of equal ones every other one of each head first. So those that are worked on at once are two tiles
 * of queries from each other: until a sum is in, and seen to be in, may take as long as a step. */
static spk_status sort_section(const spk_mem *mem, draft *d, int64_t first, int64_t count)
{
    int *lengths = NULL, *order = NULL, *tiles = NULL;
    spk_status status = spk_alloc(mem, (size_t)count, sizeof *lengths, &lengths);
    if (status == SPK_OK)
        status = spk_alloc(mem, (size_t)count, sizeof *order, &order);
    if (status == SPK_OK)
        status = spk_alloc(mem, (size_t)count, sizeof *tiles, &tiles);
    if (status == SPK_OK) {
        int64_t at = 0;
        for (int64_t odd = 0; odd < 2; odd++)
            for (int64_t tile = first; tile < first + count; tile++)
                if (tile % d->key_tiles % 2 == odd) {
                    tiles[at] = (int)tile;
                    lengths[at++] = d->lengths[tile];
                }
        status = spk_schedule_sort(mem, lengths, count, order);
        for (int64_t i = 0; status == SPK_OK && i < count; i++)
            d->numbers[first + i] = tiles[order[i]];
    }
    spk_free(mem, lengths);
    spk_free(mem, order);
    spk_free(mem, tiles);
    return status;
}

static spk_status give_away(const spk_mem *mem, draft *d)
{
    const int64_t section = section_tiles(d);
    SPK_TRY(spk_alloc(mem, (size_t)d->tiles, sizeof *d->numbers, &d->numbers));
    SPK_TRY(spk_alloc(mem, (size_t)d->tiles, sizeof *d->owners, &d->owners));
    SPK_TRY(spk_calloc(mem, (size_t)d->workers + 1 + (size_t)d->tiles, sizeof *d->lists, &d->lists));
    SPK_TRY(spk_schedule_heap_make(mem, d->workers, &d->heap));
    memset(d->heap.load, 0, (size_t)d->workers * sizeof *d->heap.load);
    spk_schedule_build(&d->heap, d->workers);
    for (int64_t first = 0; first < d->tiles; first += section) {
        const int64_t count = first + section < d->tiles ? section : d->tiles - first;
        SPK_TRY(sort_section(mem, d, first, count));
        for (int64_t i = first; i < first + count; i++)
            d->owners[i] = spk_schedule_add(&d->heap, d->lengths[d->numbers[i]] + TILE_COST);
    }
    spk_schedule_write(d->numbers, d->owners, d->tiles, d->workers, d->lists);
    return SPK_OK;
}

/* A worker on its way: at which tile of its list, and at which of the tile's steps; below 0: between tiles. */
typedef struct walker {
    int at, step;
} walker;

/* Puts the step first, of those that a tile has left, whose tile of queries no worker was at for a while: what is added there is in by
 * then. */
static void choose_step(const draft *d, attention_backward_step *steps, int left, int now)
{
    const int count = left < LOOK_AHEAD ? left : LOOK_AHEAD;
    int best = 0;
    for (int i = 0; i < count && d->visits[steps[best].number] > now - APART; i++)
        if (d->visits[steps[i].number] < d->visits[steps[best].number])
            best = i;
    const attention_backward_step chosen = steps[best];
    memmove(steps + 1, steps, (size_t)best * sizeof *steps);
    steps[0] = chosen;
    d->visits[chosen.number] = now;
}

static bool walk(draft *d, walker *w, int end, int now)
{
    if (w->at == end)
        return false;
    const int64_t tile = d->lists[d->workers + 1 + w->at];
    if (w->step >= 0 && w->step < d->lengths[tile]) {
        attention_backward_step *step = &d->steps[d->begins[tile] + w->step];
        if (d->p->pattern != NULL) /* without a mask, begin_beside has them apart */
            choose_step(d, step, d->lengths[tile] - w->step, now);
        step->turn = d->turns[step->number]++;
    }
    if (++w->step >= d->lengths[tile]) {
        w->at++;
        w->step = -TILE_COST;
    }
    return true;
}

static spk_status take_turns(const spk_mem *mem, draft *d)
{
    walker *walkers = NULL;
    const int64_t count = d->tiles / d->key_tiles * d->sharing * d->query_tiles;
    SPK_TRY(spk_calloc(mem, (size_t)count + 1, sizeof *d->turns, &d->turns));
    SPK_TRY(spk_alloc(mem, (size_t)count + 1, sizeof *d->visits, &d->visits));
    SPK_TRY(spk_alloc(mem, (size_t)d->workers, sizeof *walkers, &walkers));
    for (int w = 0; w < d->workers; w++)
        walkers[w] = (walker){d->lists[w], 0};
    for (int64_t i = 0; i < count; i++)
        d->visits[i] = -APART;
    bool more = true;
    for (int now = 0; more; now++) {
        more = false;
        for (int w = 0; w < d->workers; w++)
            more = walk(d, &walkers[w], d->lists[w + 1], now) || more;
    }
    spk_free(mem, walkers);
    return SPK_OK;
}

static attention_backward_tile describe(const draft *d, int tile)
{
    const int head = (int)(tile / d->key_tiles);
    return (attention_backward_tile){.key = (int)(tile % d->key_tiles) * d->keys | (d->hidden[tile] ? ATTENTION_BACKWARD_HIDDEN : 0),
                                     .head_kv = head % (int)d->heads_kv,
                                     .item = head / (int)d->heads_kv,
                                     .begin = d->begins[tile],
                                     .end = d->begins[tile + 1]};
}

/* Of each step of each tile, its block's number in the mask. */
static void write_entries(const draft *d, int *entries)
{
    const spk_problem *p = d->p;
    const spk_index *index = &p->pattern->index;
    for (int64_t tile = 0; tile < d->tiles; tile++) {
        const int64_t item = tile / d->key_tiles / d->heads_kv, column = tile % d->key_tiles * d->keys / p->pattern->block_cols;
        for (int i = d->begins[tile]; i < d->begins[tile + 1]; i++) {
            const int64_t list = spk_attention_list_row(p, item, d->steps[i].head, (int64_t)query_tile_of(d->steps[i]) * d->rows);
            int64_t low = index->offsets[list], high = index->offsets[list + 1] - 1;
            while (low < high) {
                const int64_t middle = (low + high) / 2;
                if (index->columns[middle] < column)
                    low = middle + 1;
                else
                    high = middle;
            }
            entries[i] = (int)low;
        }
    }
}

/* One piece of the device's memory: steps, tiles in the workers' order, where those of each worker begin, and of blocks with bits the
 * steps' entries. */
static spk_status upload(spk_device *device, draft *d, backward_order *order)
{
    const size_t steps = steps_bytes(d), tiles = tiles_bytes(d), offsets = offsets_bytes(d),
                 bytes = steps + tiles + offsets + entries_bytes(d);
    unsigned char *all = d->all;
    for (int64_t i = 0; i < d->tiles; i++) {
        const attention_backward_tile tile = describe(d, d->lists[d->workers + 1 + i]);
        memcpy(all + steps + (size_t)i * sizeof tile, &tile, sizeof tile);
    }
    memcpy(all + steps + tiles, d->lists, offsets);
    if (d->tiled)
        write_entries(d, (int *)(void *)(all + steps + tiles + offsets));
    spk_status status = device->backend->allocate(device, bytes, &order->memory);
    if (status == SPK_OK)
        status = device->backend->copy_in(device, order->memory, all, bytes);
    if (status != SPK_OK)
        return status;
    order->made.steps = order->memory;
    order->made.tiles = order->made.steps + steps / sizeof(int);
    order->made.offsets = order->made.tiles + tiles / sizeof(int);
    order->made.entries = order->made.offsets + offsets / sizeof(int);
    return SPK_OK;
}

static void release(const spk_mem *mem, draft *d)
{
    spk_free(mem, d->begins);
    spk_free(mem, d->hidden);
    spk_free(mem, d->all);
    spk_free(mem, d->lengths);
    spk_free(mem, d->numbers);
    spk_free(mem, d->owners);
    spk_free(mem, d->lists);
    spk_free(mem, d->turns);
    spk_free(mem, d->visits);
    spk_schedule_heap_release(mem, &d->heap);
}

spk_status spk_cuda_attention_backward_order(spk_device *device, const spk_problem *p, int rows, int keys, int workers,
                                             backward_order *order)
{
    const spk_mem *mem = &device->mem;
    draft d = {
        .p = p, .task = spk_cuda_attention_task(p, NULL), .rows = rows, .keys = keys, .workers = workers, .tiled = p->lists.tiles > 0};
    d.key_tiles = up(p->n, keys);
    d.query_tiles = up(p->m, rows);
    d.heads_kv = spk_operand_heads(&p->operand[ATTENTION_K]);
    d.sharing = spk_attention_sharing(p);
    d.lists_sharing = p->pattern == NULL || p->lists.heads <= d.heads_kv ? d.sharing : 1;
    d.tiles = d.key_tiles * d.heads_kv * p->batch;
    order->made = (attention_backward_order){.key_tiles = (int)d.key_tiles, .heads_kv = (int)d.heads_kv, .query_tiles = (int)d.query_tiles};
    spk_status status = d.tiles > INT_MAX / 4
                            ? spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d keys: the limit is 2^29", (long long)d.tiles, keys)
                            : make_steps(mem, &d);
    if (status == SPK_OK)
        status = give_away(mem, &d);
    if (status == SPK_OK)
        status = take_turns(mem, &d);
    if (status == SPK_OK)
        status = upload(device, &d, order);
    release(mem, &d);
    return status;
}
