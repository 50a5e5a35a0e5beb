/* Which block of threads computes which tiles of D where tiles are of unequal length: the longest first, each to the block that has least to do. */
#ifndef SPK_BACKEND_CUDA_KERNELS_SCHEDULE_H
#define SPK_BACKEND_CUDA_KERNELS_SCHEDULE_H

#include "backend/cuda/kernels/sm90.h"

enum { SCHEDULE_TILE_COST = 2 }; /* in stages: starting a tile and storing it */

/* Loads of blocks or clusters, the least on top; of equal ones the lowest number. */
typedef struct schedule_heap {
    int64_t *load;
    int *which, count;
} schedule_heap;

static inline bool schedule_before(const schedule_heap *h, int a, int b)
{
    const int64_t x = h->load[h->which[a]], y = h->load[h->which[b]];
    return x != y ? x < y : h->which[a] < h->which[b];
}

/* The one at place `at` has become heavier, or is new. */
static inline void schedule_sink(schedule_heap *h, int at)
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

/* All loads are new. */
static inline void schedule_build(schedule_heap *h, int count)
{
    h->count = count;
    for (int i = 0; i < count; i++)
        h->which[i] = i;
    for (int i = count / 2; i >= 0; i--)
        schedule_sink(h, i);
}

/* Adds to the least loaded; returns which that is. */
static inline int schedule_add(schedule_heap *h, int64_t cost)
{
    const int least = h->which[0];
    h->load[least] += cost;
    schedule_sink(h, 0);
    return least;
}

static inline spk_status schedule_heap_make(const spk_mem *mem, int count, schedule_heap *h)
{
    SPK_TRY(spk_calloc(mem, (size_t)count, sizeof *h->load, &h->load));
    return spk_calloc(mem, (size_t)count, sizeof *h->which, &h->which);
}

static inline void schedule_heap_release(const spk_mem *mem, schedule_heap *h)
{
    spk_free(mem, h->load);
    spk_free(mem, h->which);
}

/* order: the numbers of `count` lengths, by falling length, those of one length as they come: a counting sort. */
static inline spk_status schedule_sort(const spk_mem *mem, const int *lengths, int64_t count, int *order)
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

/* The tiles of each block, as device/scheduler.cuh reads them. */
typedef struct schedule_lists {
    int *memory; /* offsets (blocks + 1); tiles: row tile * col_tiles + column tile */
    int64_t count; /* of ints */
    int64_t most;  /* stages of the fullest block */
} schedule_lists;

static inline void schedule_write(schedule_heap *heap, const int *lengths, const int *order, int64_t rows, int64_t col_tiles, int *owners,
                                  schedule_lists *lists)
{
    int *next = lists->memory, *tiles = next + heap->count + 1;
    for (int64_t i = 0; i < rows * col_tiles; i++)
        owners[i] = schedule_add(heap, lengths[order[i / col_tiles]] + SCHEDULE_TILE_COST);
    for (int64_t i = 0; i < rows * col_tiles; i++)
        next[owners[i] + 1]++;
    for (int b = 0; b < heap->count; b++) {
        next[b + 1] += next[b];
        lists->most = heap->load[b] > lists->most ? heap->load[b] : lists->most;
    }
    for (int64_t i = 0; i < rows * col_tiles; i++)
        tiles[next[owners[i]]++] = (int)(order[i / col_tiles] * col_tiles + i % col_tiles);
    memmove(next + 1, next, (size_t)heap->count * sizeof *next); /* each now stands where the next block begins */
    next[0] = 0;
}

/* lengths: stages of each row tile. rows * col_tiles fits an int. O(tiles log blocks). lists->memory is the caller's to free. */
static inline spk_status schedule_make(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, schedule_lists *lists)
{
    schedule_lists made = {.count = blocks + 1 + rows * col_tiles};
    schedule_heap heap = {0};
    int *order = NULL, *owners = NULL;
    spk_status status;
    SPK_GOTO(spk_calloc(mem, (size_t)made.count, sizeof *made.memory, &made.memory));
    SPK_GOTO(spk_alloc(mem, (size_t)rows, sizeof *order, &order));
    SPK_GOTO(spk_alloc(mem, (size_t)(rows * col_tiles), sizeof *owners, &owners));
    SPK_GOTO(schedule_heap_make(mem, blocks, &heap));
    SPK_GOTO(schedule_sort(mem, lengths, rows, order));
    schedule_build(&heap, blocks);
    schedule_write(&heap, lengths, order, rows, col_tiles, owners, &made);
    *lists = made;
    made.memory = NULL;
done:
    schedule_heap_release(mem, &heap);
    spk_free(mem, owners);
    spk_free(mem, order);
    spk_free(mem, made.memory);
    return status;
}

/* The same in the device's memory, for the caller to release. */
static inline spk_status schedule_upload(spk_device *device, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, void **memory)
{
    schedule_lists lists = {0};
    spk_status status;
    SPK_TRY(schedule_make(&device->mem, lengths, rows, col_tiles, blocks, &lists));
    const size_t bytes = (size_t)lists.count * sizeof *lists.memory;
    SPK_GOTO(device->backend->allocate(device, bytes, memory));
    SPK_GOTO(device->backend->copy_in(device, *memory, lists.memory, bytes));
done:
    spk_free(&device->mem, lists.memory);
    return status;
}

#endif
