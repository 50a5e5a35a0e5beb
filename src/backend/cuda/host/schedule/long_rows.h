/* Long block rows cut into pieces for the kernels that gather tiles: as a list for device/copy/gather.cuh. */
#ifndef SPK_BACKEND_CUDA_HOST_SCHEDULE_LONG_ROWS_H
#define SPK_BACKEND_CUDA_HOST_SCHEDULE_LONG_ROWS_H

#include "backend/cuda/runtime/program.h"

/* memory: as device/copy/gather.h has it for PIECES. */
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
