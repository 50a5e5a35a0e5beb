/* The lists of row groups, as the host writes them (host/groups/group_lists.c) and spmm_sm90_groups reads them. A stage is some slots, a
 * column of the union each; a slot has 1 + rows words: its block column (negative: none), and where each of the group's block rows has its
 * block (negative: it has none there). */
#ifndef SPK_CUDA_GROUP_LISTS_H
#define SPK_CUDA_GROUP_LISTS_H

#include "backend/cuda/device/common/both.h"

typedef struct group_lists {
    const int *offsets; /* stages of group g: offsets[g] .. offsets[g + 1] */
    const int *rows;    /* block rows of each group; negative: none */
    const int *present; /* of each stage: bit t: tile t has a block; bit GROUP_EDGE + s: slot s is the last block column, partly beyond K */
    const int *words;
} group_lists;

enum { GROUP_EDGE = 8 };

/* Of a stage. */
SPK_BOTH int group_words(int slots, int rows)
{
    return slots * (1 + rows);
}

#endif
