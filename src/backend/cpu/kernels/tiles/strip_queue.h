/* Work for threads that take units one at a time. Units are in slices, each of the same number: slices of B's panels, of which a thread
 * copies what it is at, so that a slice stays in a few second caches; or as many slices as there are threads, of runs of blocks. A thread
 * begins with a slice of its own, and when its units are taken it goes over to another: where that takes a copy, only to one of which the
 * greater part is left. Who computes a unit does not change its bits. */
#ifndef SPK_BACKEND_CPU_KERNELS_STRIP_QUEUE_H
#define SPK_BACKEND_CPU_KERNELS_STRIP_QUEUE_H

#include <stdatomic.h>

#include "backend/cpu/kernels/cost.h"

typedef struct strip_counter {
    atomic_int_fast64_t taken;
    char apart[64 - sizeof(atomic_int_fast64_t)]; /* each in a line of its own */
} strip_counter;

typedef struct strip_queue {
    int64_t slices, units;
    strip_counter *counters; /* of the slices */
    bool free_to_leave;      /* no copy is made of a slice: any unit that is left is taken */
} strip_queue;

/* Where a thread is: slice -1 before its first unit. */
typedef struct strip_place {
    int64_t first, turned; /* the slice it begins with; how many it has left behind */
    int64_t slice, unit;
} strip_place;

static inline void strip_open(strip_queue *queue)
{
    for (int64_t i = 0; i < queue->slices; i++)
        atomic_init(&queue->counters[i].taken, 0);
}

static inline bool strip_take(const strip_queue *queue, strip_place *place)
{
    for (; place->turned < queue->slices; place->turned++) {
        const int64_t slice = (place->first + place->turned) % queue->slices;
        atomic_int_fast64_t *taken = &queue->counters[slice].taken;
        if (!queue->free_to_leave && slice != place->slice && place->turned > 0 && 2 * atomic_load(taken) > queue->units)
            continue;
        place->slice = slice;
        place->unit = atomic_fetch_add(taken, 1);
        if (place->unit < queue->units)
            return true;
    }
    return false;
}

/* The part of `total` that is number i of `parts`. */
typedef struct strip_range {
    int64_t begin, end;
} strip_range;

static inline strip_range strip_part(int64_t total, int64_t i, int64_t parts)
{
    return (strip_range){total * i / parts, total * (i + 1) / parts};
}

/* Slices of the panels, of at most so many columns each. */
static inline int64_t strip_slices(int64_t panels, int64_t most_columns)
{
    return panels > 0 ? tile_ceil(panels * 32, most_columns) : 1;
}

/* The copies' least numbers other than 0, of all threads. */
static inline void strip_least(atomic_int *all, int found)
{
    for (int before = atomic_load(all); found < before && !atomic_compare_exchange_weak(all, &before, found);)
        continue;
}

#endif
