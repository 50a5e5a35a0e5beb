/* Row groups: block rows with similar columns put together, and the union of their columns as lists for spmm_sm90_groups. */
#ifndef SPK_BACKEND_CUDA_HOST_GROUPS_GROUP_LISTS_H
#define SPK_BACKEND_CUDA_HOST_GROUPS_GROUP_LISTS_H

#include "backend/cuda/host/groups/improve_groups.h"
#include "backend/cuda/host/schedule/row_period.h"

enum { GROUPS_MOST_ROWS = 16 };

/* One piece of memory: offsets (groups + 1), rows (groups * height), present (stages), words (stages * slots * (1 + height)), as the device
 * reads them. */
typedef struct group_memory {
    int height, slots; /* block rows of a group; columns of a stage */
    int64_t groups, stages;
    int *memory;
    int64_t count; /* of ints */
} group_memory;

int64_t spk_groups_count(int64_t grid_rows, int height);
int64_t spk_groups_at_rows(const group_memory *l);
int64_t spk_groups_at_present(const group_memory *l);
int64_t spk_groups_at_words(const group_memory *l);

/* A group's smallest column not yet listed; -1: none is left. */
int spk_groups_next_column(const groups_work *w, const int *rows, int height);

/* Groups of `height` block rows, tiles of `tile_rows`, in an order for tiles dealt out as `dealt` says. O(nnzb height), 50 to 400 ns a
 * block, and half a millisecond: where there are many blocks the search looks at fewer rows. lists->memory is the caller's to free. */
spk_status spk_groups_make(const spk_mem *mem, const spk_bsr_view *view, int height, int tile_rows, int slots, groups_dealt dealt,
                           group_memory *lists);

#endif
