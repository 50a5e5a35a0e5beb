/* Which block of threads computes which tiles of D where tiles are of unequal length: long ones first, each to the block that has least to
 * do. */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_SCHEDULE_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_SCHEDULE_H

#include "backend/cuda/host/schedule/balance.h"

enum {
    SCHEDULE_WINDOW = 2,       /* tiles a block, which are given away by falling length */
    SCHEDULE_WINDOW_LOSS = 16, /* a part in so many more for the fullest block to do costs less than all of B in use at once, */
    SCHEDULE_DEALT_LOSS = 12   /* and one in so many less than neighbours that no longer share columns of B (docs/log/hopper-spmm.md) */
};

/* Loads of blocks or clusters, the least on top; of equal ones the lowest number. */
typedef struct schedule_heap {
    int64_t *load;
    int *which, count;
} schedule_heap;

/* All loads are new. */
void spk_schedule_build(schedule_heap *h, int count);

/* Adds to the least loaded; returns which that is. */
int spk_schedule_add(schedule_heap *h, int64_t cost);
spk_status spk_schedule_heap_make(const spk_mem *mem, int count, schedule_heap *h);
void spk_schedule_heap_release(const spk_mem *mem, schedule_heap *h);

/* order: the numbers of `count` lengths, by falling length, those of one length as they come: a counting sort. */
spk_status spk_schedule_sort(const spk_mem *mem, const int *lengths, int64_t count, int *order);

/* lists: offsets (workers + 1) and the tiles' numbers, each worker's in the order given; all of it zero before. owners: who has each tile.
 */
void spk_schedule_write(const int *numbers, const int *owners, int64_t tiles, int workers, int *lists);

/* The tiles of each block, as device/schedule/scheduler.cuh reads them. */
typedef struct schedule_lists {
    int *memory;   /* offsets (blocks + 1); tiles: row tile * col_tiles + column tile */
    int64_t count; /* of ints */
    int64_t most;  /* stages of the fullest block */
} schedule_lists;

/* lengths: stages of each row tile. rows * col_tiles is at least 1 and fits an int. Windows of two tiles a block, or all tiles at once
 * where that ends sooner. O(tiles log blocks). lists->memory is the caller's to free. */
spk_status spk_schedule_make(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, schedule_lists *lists);

/* Stages of the fullest block where tiles are dealt out in turns, row tiles fastest. */
spk_status spk_schedule_dealt(const spk_mem *mem, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, int64_t *most);

/* The lists in the device's memory, for the caller to release; NULL where tiles dealt out in turns end about as soon. */
spk_status spk_schedule_upload(spk_device *device, const int *lengths, int64_t rows, int64_t col_tiles, int blocks, void **memory);

#endif
