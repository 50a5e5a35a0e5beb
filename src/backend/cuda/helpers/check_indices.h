/* check_indices: arguments and answer of both its programs. */
#ifndef SPK_BACKEND_CUDA_HELPERS_CHECK_INDICES_H
#define SPK_BACKEND_CUDA_HELPERS_CHECK_INDICES_H

#include "backend/cuda/device/common/both.h"

/* Whole once both stamps are the ones that were asked for. */
typedef struct verdict {
    spk_u64 stamp;
    spk_u64 first; /* all bits: none is wrong; else the place, with WRONG_COLUMN where it is one of a column */
    spk_i64 fault, value, before;
    spk_u64 pad[2];
    spk_u64 stamp_again;
} verdict;

#define WRONG_COLUMN ((spk_u64)1 << 62)

typedef struct check_arguments {
    const void *offsets, *columns; /* of type INDEX, which the program is compiled for */
    spk_i64 grid_rows, grid_cols, nnzb;
    int *to_offsets, *to_columns;
    verdict *said;
    spk_u64 stamp;
} check_arguments;

enum { CHECK_THREADS = 256, SETTLE_THREADS = 1024 };

#endif
