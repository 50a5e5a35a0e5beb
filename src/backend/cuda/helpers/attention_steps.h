/* attention_steps: the argument of its programs. Where only the device knows a mask's lists, they list the work of
 * attention_backward_sm90_two_pass there, as host/attention/attention_backward_lists.c does on the host. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_STEPS_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_STEPS_H

#include "backend/cuda/device/attention/attention_rows.h"
#include "backend/cuda/kernels/attention_backward_sm90_two_pass.h"

enum {
    ATTENTION_STEPS_THREADS = 256,
    ATTENTION_STEPS_SORT_THREADS = 1024,
    ATTENTION_STEPS_LENGTHS = 128 /* that are told apart, four for each power of two */
};

/* A pass. Tiles are numbered by item, head and first own row. So many neighbouring heads see the same, and so do all items or none: they
 * share steps, and a tile of such a group is one of each of them. */
typedef struct attention_steps_pass {
    int by_queries, own_rows;
    int own_tiles, own_heads;     /* tiles of a head; heads of an item */
    int group_heads, group_items; /* heads that share steps; items that have their own: 1 or all */
    int group_tiles;              /* of all groups */
    int tiles, section;           /* of all items; so many are sorted together, by falling length */
    int row_tiles;                /* tiles of queries of a block row of the mask */
    int *spans;                   /* of each tile of a group, its first step and the end */
    int *steps, *sorted;          /* two_pass_step; two_pass_tile, as many as tiles */
} attention_steps_pass;

typedef struct attention_steps_task {
    attention_task task;
    int lists, grid_cols; /* lists of the mask; block columns */
    int tiled;            /* steps name their block: it may have a tile of bits */
    int seen_words;       /* of 32 block rows, for each block column of a list: */
    unsigned *seen;       /* which rows have that column; 0 before */
    int *used;            /* steps of the pass by keys, so far; 0 before */
    attention_steps_pass pass[2];
} attention_steps_task;

#endif
