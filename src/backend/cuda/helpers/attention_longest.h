/* attention_longest: what both sides know. Lists of a mask that is new at every step: their tiles are put in order on the device. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_LONGEST_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_LONGEST_H

#include "backend/cuda/device/attention.h"

enum {
    ATTENTION_LONGEST_THREADS = 1024,
    ATTENTION_LONGEST_LENGTHS = 1024, /* that are told apart: all above are one */
    ATTENTION_LONGEST_TILES = 1 << 16 /* more tiles stay in the order of their numbers */
};

/* Tiles are numbered as attention_order has them. The list gets them by falling length, each second `workers` of them backwards: worker w,
 * which takes entries w, w + workers, ..., has about as much to do as any other. */
typedef struct attention_longest_task {
    attention_task task;
    int tiles, row_tiles, head_tiles, heads;         /* heads: of a tile */
    int block_rows, block_tiles, rows;               /* rows: of a tile */
    int workers;
    int *list; /* tiles, and room for as many numbers */
} attention_longest_task;

#endif
