/* Better row groups than the first choice: fewer columns in all, and an order in which blocks of threads that get every n-th tile end
 * together. */
#ifndef SPK_BACKEND_CUDA_HOST_GROUPS_IMPROVE_GROUPS_H
#define SPK_BACKEND_CUDA_HOST_GROUPS_IMPROVE_GROUPS_H

#include "backend/cuda/host/schedule/balance.h"
#include "backend/cuda/host/groups/choose_groups.h"
#include "backend/cuda/host/schedule/row_period.h"
#include "base/rng.h"

/* How tiles will be dealt out: each group's column tiles to so many blocks of threads in turns, groups fastest; chunks a stage has. 0
 * blocks: not known. */
typedef struct groups_dealt {
    int64_t col_tiles;
    int blocks, chunks;
} groups_dealt;

/* Whether rows are of about one length, and of no kind whose neighbours want the same columns in turn (row_period.h): else better groups
 * cost more than they save. */
bool spk_groups_may_change(const spk_bsr_view *view);

/* Fewer columns in all groups, where there are so few rows that enough pairs of them can be tried. */
spk_status spk_groups_unite(const spk_mem *mem, groups_work *w, int64_t groups, int height);
spk_status spk_groups_balance(const spk_mem *mem, groups_work *w, int64_t groups, int height, int slots, groups_dealt dealt);

#endif
