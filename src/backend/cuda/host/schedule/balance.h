/* An order of row tiles of unequal length in which blocks of threads that get every n-th tile end together. Few row tiles leave their
 * neighbours. */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_BALANCE_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_BALANCE_H

#include "backend/cuda/device/common/sm90.h"
#include "backend/cuda/host/indices/index.h"

enum {
    SCHEDULE_TILE_COST = 2, /* in stages: starting a tile and storing it */
    BALANCE_WORK = 100000   /* places and loads looked at: 0.1 to 0.4 ms */
};

/* Tiles dealt out in turns, row tiles fastest: tile t is column tile t / rows of the row tile at place t % rows, and block t % blocks
 * computes it. */
typedef struct balance_work {
    int *lengths, *places; /* of the row tile at each place: its length; which one it is */
    int64_t *load;         /* of each block */
    int64_t rows, col_tiles, blocks;
    int64_t left; /* of BALANCE_WORK */
} balance_work;

void spk_balance_exchange(int *a, int *b);

/* One exchange that relieves the fullest block. A row tile stays among those places whose first column tiles run in one turn. */
bool spk_balance_step(balance_work *w);

/* lengths: stages of each row tile; on return those at each place. places: which row tile stands there. The same result on each call. */
spk_status spk_balance_make(const spk_mem *mem, int *lengths, int *places, int64_t rows, int64_t col_tiles, int blocks);

#endif
