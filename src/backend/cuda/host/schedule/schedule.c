/* Tiles to blocks of threads through a heap of loads; lists of them in device memory. */
#include "backend/cuda/host/schedule/schedule.h"

#include <string.h>

static bool schedule_before(const schedule_heap *h, int a, int b)
{
    const int64_t x = h->load[h->which[a]], y = h->load[h->which[b]];
    return x != y ? x < y : h->which[a] < h->which[b];
}

/* The one at place `at` has become heavier, or is new. */
static void schedule_sink(schedule_heap *h, int at)
{
    for (int child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && schedule_before(h, child + 1, child))
            child++;
        if (schedule_before(h, at, child))
            return;
        const int moved = h->which[at];
        h->which[at] = h->which[child];
        h->which[child] = moved;
    }
}

void spk_schedule_build(schedule_heap *h, int count)
{
    h->count = count;
    for (int i = 0; i < count; i++)
        h->which[i] = i;
    for (int i = count / 2; i >= 0; i--)
        schedule_sink(h, i);
}

int spk_schedule_add(schedule_heap *h, int64_t cost)
{
    const int least = h->which[0];
    h->load[least] += cost;
    schedule_sink(h, 0);
    return least;
}

spk_status spk_schedule_heap_make(const spk_mem *mem, int count, schedule_heap *h)
{
    SPK_TRY(spk_calloc(mem, (size_t)count, sizeof *h->load, &h->load));
    return spk_calloc(mem, (size_t)count, sizeof *h->which, &h->which);
}

void spk_schedule_heap_release(const spk_mem *mem, schedule_heap *h)
{
    spk_free(mem, h->load);
    spk_free(mem, h->which);
}

spk_status spk_schedule_sort(const spk_mem *mem, const int *lengths, int64_t count, int *order)
{
    int longest = 0;
    int64_t *places = NULL;
    for (int64_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    SPK_TRY(spk_calloc(mem, (size_t)longest + 2, sizeof *places, &places));
    for (int64_t i = 0; i < count; i++)
        places[longest - lengths[i] + 1]++;
    for (int length = 0; length <= longest; length++)
        places[length + 1] += places[length];
    for (int64_t i = 0; i < count; i++)
        order[places[longest - lengths[i]]++] = (int)i;
    spk_free(mem, places);
    return SPK_OK;
}

/* While tiles are given away. */
typedef struct schedule_work {
    schedule_heap heap;
    int *numbers, *owners; /* tiles in the order in which they are given away; who gets them */
    int64_t *places;       /* of each length */
    int longest;
} schedule_work;

static spk_status schedule_work_make(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, schedule_work *w)
{
    for (int64_t i = 0; i < rows; i++)
        w->longest = lengths[i] > w->longest ? lengths[i] : w->longest;
    SPK_TRY(spk_schedule_heap_make(mem, blocks, &w->heap));
    SPK_TRY(spk_alloc(mem, (size_t)w->longest + 2, sizeof *w->places, &w->places));
    SPK_TRY(spk_alloc(mem, (size_t)(rows * col_tiles), sizeof *w->numbers, &w->numbers));
    return spk_alloc(mem, (size_t)(rows * col_tiles), sizeof *w->owners, &w->owners);
}

static void schedule_work_release(const spk_mem *mem, schedule_work *w)
{
    spk_schedule_heap_release(mem, &w->heap);
    spk_free(mem, w->places);
    spk_free(mem, w->numbers);
    spk_free(mem, w->owners);
}

/* Tiles as they would be dealt out, row tiles fastest, but each `window` of them by falling length: those that run together use few columns
 * of B, as long as the window is small. */
static void schedule_number(const int *lengths, int64_t rows, int64_t tiles, int64_t window, schedule_work *w)
{
    const int64_t col_tiles = tiles / rows;
    for (int64_t first = 0; first < tiles; first += window) {
        const int64_t last = first + window < tiles ? first + window : tiles;
        memset(w->places, 0, ((size_t)w->longest + 2) * sizeof *w->places);
        for (int64_t i = first; i < last; i++)
            w->places[w->longest - lengths[i % rows] + 1]++;
        for (int length = 0; length <= w->longest; length++)
            w->places[length + 1] += w->places[length];
        for (int64_t i = first; i < last; i++)
            w->numbers[first + w->places[w->longest - lengths[i % rows]]++] = (int)(i % rows * col_tiles + i / rows);
    }
}

/* Gives the tiles away; returns the stages of the fullest block. */
static int64_t schedule_give(const int *lengths, int64_t col_tiles, int64_t tiles, int blocks, schedule_work *w)
{
    int64_t most = 0;
    memset(w->heap.load, 0, (size_t)blocks * sizeof *w->heap.load);
    spk_schedule_build(&w->heap, blocks);
    for (int64_t i = 0; i < tiles; i++)
        w->owners[i] = spk_schedule_add(&w->heap, lengths[w->numbers[i] / col_tiles] + SCHEDULE_TILE_COST);
    for (int b = 0; b < blocks; b++)
        most = w->heap.load[b] > most ? w->heap.load[b] : most;
    return most;
}

void spk_schedule_write(const int *numbers, const int *owners, int64_t tiles, int workers, int *lists)
{
    int *next = lists, *listed = lists + workers + 1;
    for (int64_t i = 0; i < tiles; i++)
        next[owners[i] + 1]++;
    for (int w = 0; w < workers; w++)
        next[w + 1] += next[w];
    for (int64_t i = 0; i < tiles; i++)
        listed[next[owners[i]]++] = numbers[i];
    memmove(next + 1, next, (size_t)workers * sizeof *next); /* each now stands where the next worker begins */
    next[0] = 0;
}

spk_status spk_schedule_make(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, schedule_lists *lists)
{
    const int64_t tiles = rows * col_tiles, windows[2] = {tiles, SCHEDULE_WINDOW * (int64_t)blocks};
    schedule_lists made = {.count = blocks + 1 + tiles};
    schedule_work work = {0};
    int64_t most[2];
    spk_status status;
    SPK_GOTO(schedule_work_make(mem, lengths, rows, col_tiles, blocks, &work));
    SPK_GOTO(spk_calloc(mem, (size_t)made.count, sizeof *made.memory, &made.memory));
    for (int i = 0; i < 2; i++) {
        schedule_number(lengths, rows, tiles, windows[i], &work);
        most[i] = schedule_give(lengths, col_tiles, tiles, blocks, &work);
    }
    made.most = most[1];
    if (most[1] > most[0] + most[0] / SCHEDULE_WINDOW_LOSS) {
        schedule_number(lengths, rows, tiles, windows[0], &work);
        made.most = schedule_give(lengths, col_tiles, tiles, blocks, &work);
    }
    spk_schedule_write(work.numbers, work.owners, tiles, blocks, made.memory);
    *lists = made;
    made.memory = NULL;
done:
    schedule_work_release(mem, &work);
    spk_free(mem, made.memory);
    return status;
}

spk_status spk_schedule_dealt(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, int64_t *most)
{
    int64_t *load = NULL;
    SPK_TRY(spk_calloc(mem, (size_t)blocks, sizeof *load, &load));
    *most = 0;
    for (int64_t i = 0; i < rows * col_tiles; i++) {
        int64_t *mine = &load[i % blocks];
        *mine += lengths[i % rows] + SCHEDULE_TILE_COST;
        *most = *mine > *most ? *mine : *most;
    }
    spk_free(mem, load);
    return SPK_OK;
}

spk_status spk_schedule_upload(spk_device *device, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, void **memory)
{
    schedule_lists lists = {0};
    int64_t dealt = 0;
    spk_status status;
    SPK_TRY(spk_schedule_make(&device->mem, lengths, rows, col_tiles, blocks, &lists));
    const size_t bytes = (size_t)lists.count * sizeof *lists.memory;
    SPK_GOTO(spk_schedule_dealt(&device->mem, lengths, rows, col_tiles, blocks, &dealt));
    if (dealt <= lists.most + lists.most / SCHEDULE_DEALT_LOSS)
        goto done;
    SPK_GOTO(device->backend->allocate(device, bytes, memory));
    SPK_GOTO(device->backend->copy_in(device, *memory, lists.memory, bytes));
done:
    spk_free(&device->mem, lists.memory);
    return status;
}
