/* attention_longest: what both sides know. Where only the device knows how long tiles of attention are, it finds the order in which they
 * begin. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_LONGEST_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_LONGEST_H

#include "backend/cuda/device/attention/attention.h"

enum {
    ATTENTION_LONGEST_THREADS = 1024,
    ATTENTION_LONGEST_LENGTHS = 1024,   /* that are told apart: all above are one */
    ATTENTION_LONGEST_SEQUENCES = 1024, /* at most */
    ATTENTION_LONGEST_TOP = 8           /* one tile in so many comes before all sections */
};

/* Tiles are numbered as attention_order has them. The list gets them section by section, by falling length; but the longest of all sections
 * come first, so that none is left for the end. */
typedef struct attention_longest_task {
    attention_task task;
    int tiles, row_tiles, head_tiles, heads; /* heads: of a tile */
    int block_rows, block_tiles, rows;       /* rows: of a tile */
    int step_keys, section;                  /* section: tiles of one, which is a block of threads' */
    int *list, *lengths;                     /* as many as tiles; lengths: for its own use */
    int *next;                               /* becomes 0 */
} attention_longest_task;

#endif
