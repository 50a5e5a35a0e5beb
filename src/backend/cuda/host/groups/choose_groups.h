/* Row groups: block rows with similar columns put together, the first choice. */
#ifndef SPK_BACKEND_CUDA_HOST_GROUPS_CHOOSE_GROUPS_H
#define SPK_BACKEND_CUDA_HOST_GROUPS_CHOOSE_GROUPS_H

#include "backend/cuda/device/common/sm90.h"
#include "backend/cuda/host/indices/index.h"

enum {
    GROUPS_TAKEN = -1,
    GROUPS_COUNTS = 300000,     /* of a row for a column, in all: a third of a millisecond, */
    GROUPS_COUNTS_OF_BLOCK = 4, /* and so many more for each block */
    GROUPS_MOST_OF_ONE = 4      /* times the mean: no group takes more of them */
};

/* While groups are made. */
typedef struct groups_work {
    const spk_bsr_view *view;
    int *rows;             /* groups * height, in the order of the groups; negative: none */
    int *unions;           /* columns of each group */
    int64_t *next;         /* of a group's rows: the block not yet listed */
    int64_t *column_first; /* of each block column: where its rows that may be left begin in column_rows */
    int64_t *column_end;
    int *column_rows; /* the rows of each block column, ascending */
    int *marks;       /* of each block column: the last group that has it, counted from 1; negative: its rows are counted */
    int *shared;      /* of each row left: columns that it shares with the current group; GROUPS_TAKEN: it is in a group */
    int *met;         /* rows that share any */
    int64_t met_count;
    int64_t may_meet;   /* counts that the current group has left */
    int64_t first_left; /* all rows before it are taken */
    int height;
} groups_work;

void spk_groups_release(const spk_mem *mem, groups_work *w);
spk_status spk_groups_allocate(const spk_mem *mem, groups_work *w, int64_t groups, int height);

/* The groups, one after the other. O(nnzb height) at most, and a third of a millisecond: where there are many blocks, each among fewer
 * rows. */
void spk_groups_choose(groups_work *w, int64_t groups, int height);

#endif
