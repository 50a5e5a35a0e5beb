/* Tiles of attention are as long as their lists: they are given away, the longest first, each to the worker that has least to do. Where all
 * are of one length, the last ones' keys are shared out instead. */
#include "backend/cuda/host/attention/attention_order.h"

#include <limits.h>
#include <string.h>

#include "backend/cuda/host/schedule/schedule.h"
#include "op/attention/attention.h"

enum {
    TILE_COST = 1,     /* beginning and end of a tile, in steps */
    LEAST_SHARE = 2,   /* steps */
    OTHER_BETTER = 200 /* one part in so many */
};

/* Flops of a microsecond of one processor; microseconds from which on shares pay for their sums, and lists for being sorted. */
static const double FLOPS_US = 4.5e6, LEAST_SHARED_US = 25, LEAST_SORTED_US = 80;

/* K and V of the heads whose tiles are given away together: what L2 holds. */
static const double SECTION_BYTES = 32 << 20;

/* A tile that is longer than this part of what a worker gets of a section comes before all sections. */
static const double LONG_PART = 0.7;

static bool lengths_known(const spk_problem *p)
{
    return p->packing.sequences == 0 && p->packing.key_lengths == 0 && (p->pattern == NULL || !p->pattern->device_only);
}

/* Of all tiles together, on one processor. */
static double work_us(const spk_problem *p)
{
    return p->pairs * (double)p->batch * 2 * (double)(p->k + p->depth_v) / FLOPS_US;
}

bool spk_cuda_attention_shares(const spk_problem *p, const attention_tiling *t, int processors, int rings)
{
    const int workers = processors * rings;
    if (!lengths_known(p) || p->band.left != 0 || p->band.right != 0 || t->all <= workers || t->all % workers == 0)
        return false;
    const double idle = 1 - (double)(t->all % workers) / workers; /* in the last wave */
    return idle * rings * work_us(p) / (double)t->all >= LEAST_SHARED_US;
}

bool spk_cuda_attention_sorts(const spk_problem *p, const attention_tiling *t, int workers)
{
    return !lengths_known(p) && t->all > workers && work_us(p) >= LEAST_SORTED_US * workers;
}

/* While lists are made. order, owners: the tiles as they are computed, and by whom; lists: offsets and tiles, then shares and joined tiles.
 */
typedef struct attention_deal {
    const spk_mem *mem;
    const attention_tiling *t;
    int workers, longest;
    int *lengths, *sorted, *order, *owners, *lists;
    size_t ints, share_at, joined_at; /* of lists; where shares begin in it, 0: there are none */
    schedule_heap heap;
} attention_deal;

static spk_status deal_make(attention_deal *d, const spk_problem *p)
{
    const size_t tiles = (size_t)d->t->all;
    SPK_TRY(spk_alloc(d->mem, tiles, sizeof *d->lengths, &d->lengths));
    SPK_TRY(spk_alloc(d->mem, tiles, sizeof *d->sorted, &d->sorted));
    SPK_TRY(spk_alloc(d->mem, tiles, sizeof *d->order, &d->order));
    SPK_TRY(spk_alloc(d->mem, tiles, sizeof *d->owners, &d->owners));
    SPK_TRY(spk_schedule_heap_make(d->mem, d->workers, &d->heap));
    for (int64_t i = 0; i < d->t->all; i++) {
        const int64_t steps = spk_cuda_attention_steps(p, d->t, i);
        d->lengths[i] = (int)(steps < INT_MAX / 2 ? steps : INT_MAX / 2);
        d->longest = d->lengths[i] > d->longest ? d->lengths[i] : d->longest;
    }
    return SPK_OK;
}

static void deal_release(attention_deal *d)
{
    spk_free(d->mem, d->lengths);
    spk_free(d->mem, d->sorted);
    spk_free(d->mem, d->order);
    spk_free(d->mem, d->owners);
    spk_free(d->mem, d->lists);
    spk_schedule_heap_release(d->mem, &d->heap);
}

static int64_t fullest(const attention_deal *d)
{
    int64_t most = 0;
    for (int w = 0; w < d->workers; w++)
        most = d->heap.load[w] > most ? d->heap.load[w] : most;
    return most;
}

static void begin(attention_deal *d)
{
    memset(d->heap.load, 0, (size_t)d->workers * sizeof *d->heap.load);
    spk_schedule_build(&d->heap, d->workers);
}

static int64_t give(attention_deal *d, int64_t at, int tile)
{
    d->order[at] = tile;
    d->owners[at] = spk_schedule_add(&d->heap, d->lengths[tile] + TILE_COST);
    return at + 1;
}

/* Whole groups that share K and V. */
int64_t spk_cuda_attention_section(const spk_problem *p, const attention_tiling *t)
{
    const double bytes = (double)p->n * (double)(p->k + p->depth_v) * (double)spk_dtype_bytes(p->operand[ATTENTION_K].dtype);
    const double groups = bytes > 0 ? SECTION_BYTES / bytes : 1;
    const int64_t sharing = spk_attention_sharing(p) / t->heads, each = t->row_tiles * (sharing > 0 ? sharing : 1);
    const double most = (groups < 1 ? 1 : groups) * (double)each;
    return most < (double)t->all ? (int64_t)(most / (double)each) * each : t->all;
}

/* Section by section, but for tiles so long that they would leave the others waiting at the end. */
static spk_status give_sections(attention_deal *d, const spk_problem *p)
{
    const int64_t all = d->t->all, section = spk_cuda_attention_section(p, d->t);
    double total = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < all; i++)
        total += d->lengths[i] + TILE_COST;
    const double most = LONG_PART * total / d->workers * (double)section / (double)all;
    begin(d);
    SPK_TRY(spk_schedule_sort(d->mem, d->lengths, all, d->sorted));
    for (int64_t i = 0; i < all && d->lengths[d->sorted[i]] > most; i++)
        at = give(d, at, d->sorted[i]);
    for (int64_t first = 0; first < all; first += section) {
        const int64_t count = first + section < all ? section : all - first;
        SPK_TRY(spk_schedule_sort(d->mem, d->lengths + first, count, d->sorted));
        for (int64_t i = 0; i < count; i++) {
            const int tile = (int)first + d->sorted[i];
            if (d->lengths[tile] <= most)
                at = give(d, at, tile);
        }
    }
    return SPK_OK;
}

/* All tiles at once; each worker computes its own in the order of their numbers, so that neighbouring heads meet as far as they can. */
static spk_status give_all(attention_deal *d)
{
    SPK_TRY(spk_schedule_sort(d->mem, d->lengths, d->t->all, d->sorted));
    begin(d);
    for (int64_t i = 0; i < d->t->all; i++)
        d->owners[d->sorted[i]] = spk_schedule_add(&d->heap, d->lengths[d->sorted[i]] + TILE_COST);
    for (int64_t i = 0; i < d->t->all; i++)
        d->order[i] = (int)i;
    return SPK_OK;
}

static spk_status write_uneven(attention_deal *d, const spk_problem *p)
{
    SPK_TRY(give_all(d));
    const int64_t least = fullest(d);
    SPK_TRY(give_sections(d, p));
    if (fullest(d) > least + least / OTHER_BETTER)
        SPK_TRY(give_all(d));
    d->ints = (size_t)d->workers + 1 + (size_t)d->t->all;
    SPK_TRY(spk_calloc(d->mem, d->ints, sizeof *d->lists, &d->lists));
    spk_schedule_write(d->order, d->owners, d->t->all, d->workers, d->lists);
    return SPK_OK;
}

/* ---- shares */

/* Where worker w begins with the steps of the last `rest` tiles; no share of a tile is all too short. */
static int64_t share_begin(const attention_deal *d, int64_t rest, int64_t steps, int w)
{
    const int64_t at = rest * steps * w / d->workers, within = at % steps;
    if (within < LEAST_SHARE)
        return at - within;
    return steps - within < LEAST_SHARE ? at + steps - within : at;
}

static attention_joined joined_of(const attention_tiling *t, const spk_problem *p, int64_t tile, int share)
{
    const int64_t row_tile = tile % t->row_tiles, rest = tile / t->row_tiles, block = row_tile / t->block_tiles;
    const int64_t end = (block + 1) * t->block_rows;
    return (attention_joined){.share = share,
                              .item = (int)(rest / t->head_tiles),
                              .head = (int)(rest % t->head_tiles) * t->heads,
                              .row = (int)(block * t->block_rows + row_tile % t->block_tiles * t->rows),
                              .end = (int)(end < p->m ? end : p->m)};
}

/* The shares of worker w behind its whole tiles. Entries: those of its list so far; answers with their number then. */
static int64_t share_out(attention_deal *d, const spk_problem *p, int w, int64_t entries, attention_share *shares, attention_joined *joined,
                         attention_lists *lists)
{
    const int64_t steps = d->longest, rest = d->t->all % d->workers, whole = d->t->all - rest, end = share_begin(d, rest, steps, w + 1);
    int *const entry = d->lists + d->workers + 1;
    for (int64_t at = share_begin(d, rest, steps, w), next; at < end; at = next) {
        next = at / steps * steps + steps;
        next = next < end ? next : end;
        const int tile = (int)(whole + at / steps), first = (int)(at % steps);
        if (next - at == steps) {
            entry[entries++] = tile;
            continue;
        }
        if (first == 0)
            joined[lists->joined_count++] = joined_of(d->t, p, tile, lists->share_count);
        joined[lists->joined_count - 1].count++;
        shares[lists->share_count] = (attention_share){.tile = tile, .first = first, .end = first + (int)(next - at)};
        entry[entries++] = (int)d->t->all + lists->share_count++;
    }
    return entries;
}

/* Whole tiles dealt out, then the shares of the last ones. */
static spk_status write_shares(attention_deal *d, const spk_problem *p, attention_lists *lists)
{
    const int64_t rest = d->t->all % d->workers, most = rest + d->workers, whole = d->t->all - rest;
    const size_t listed = (size_t)(d->workers + 1 + whole + most), share_ints = sizeof(attention_share) / sizeof(int) * (size_t)most;
    d->share_at = listed;
    d->joined_at = listed + share_ints;
    d->ints = d->joined_at + sizeof(attention_joined) / sizeof(int) * (size_t)rest;
    SPK_TRY(spk_calloc(d->mem, d->ints, sizeof *d->lists, &d->lists));
    attention_share *shares = (attention_share *)(d->lists + d->share_at);
    attention_joined *joined = (attention_joined *)(d->lists + d->joined_at);
    int64_t entries = 0;
    for (int w = 0; w < d->workers; w++) {
        for (int64_t tile = w; tile < whole; tile += d->workers)
            d->lists[d->workers + 1 + entries++] = (int)tile;
        entries = share_out(d, p, w, entries, shares, joined, lists);
        d->lists[w + 1] = (int)entries;
    }
    return SPK_OK;
}

/* ---- */

static spk_status upload(spk_device *device, const attention_deal *d, attention_lists *lists)
{
    const size_t bytes = d->ints * sizeof *d->lists;
    SPK_TRY(device->backend->allocate(device, bytes, &lists->memory));
    SPK_TRY(device->backend->copy_in(device, lists->memory, d->lists, bytes));
    lists->offsets = lists->memory;
    lists->tiles = lists->offsets + d->workers + 1;
    if (d->share_at > 0) {
        lists->shares = (const attention_share *)(lists->offsets + d->share_at);
        lists->joined = (const attention_joined *)(lists->offsets + d->joined_at);
    }
    return SPK_OK;
}

spk_status spk_cuda_attention_order(spk_device *device, const spk_problem *p, const attention_tiling *t, int workers, bool shares,
                                    attention_lists *lists)
{
    attention_deal d = {.mem = &device->mem, .t = t, .workers = workers};
    spk_status status = SPK_OK;
    const bool limited = p->band.left != 0 || p->band.right != 0;
    if (!lengths_known(p) || t->all <= workers || (p->pattern == NULL && !limited && !shares))
        return SPK_OK;
    SPK_GOTO(deal_make(&d, p));
    bool even = true;
    for (int64_t i = 0; i < t->all; i++)
        even = even && d.lengths[i] == d.longest;
    if (!even)
        SPK_GOTO(write_uneven(&d, p));
    else if (shares)
        SPK_GOTO(write_shares(&d, p, lists));
    if (d.lists != NULL)
        SPK_GOTO(upload(device, &d, lists));
done:
    deal_release(&d);
    return status;
}
