/* Long block rows cut into pieces for the kernels that gather tiles: as a list for device/gather.cuh. */
#ifndef SPK_BACKEND_CUDA_PLAN_PIECES_H
#define SPK_BACKEND_CUDA_PLAN_PIECES_H

#include "backend/cuda/cuda.h"

enum { PIECES_WORDS = 4 };

/* memory: pieces, cut rows, 0, 0; then of each piece, longest first, its block row, first block, last block, and its number among those of
 * cut rows (-1: it is the whole row); then of each cut row its number, its first piece's number, how many there are, 0. */
typedef struct pieces_list {
    int64_t pieces, cut_rows, cut_pieces; /* of all rows; of cut rows */
    int *memory;
    int64_t count; /* of ints */
} pieces_list;

typedef struct pieces_one {
    int row, first, last, number;
} pieces_one;

/* Rows of more than `most` blocks in as few equal pieces as possible. list->memory is the caller's to free. */
spk_status spk_pieces_make(const spk_mem *mem, const spk_bsr_view *view, int64_t most, pieces_list *list);

#endif
