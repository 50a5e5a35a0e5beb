/* gather_dense: its constants. */
#ifndef SPK_BACKEND_CUDA_HELPERS_GATHER_DENSE_H
#define SPK_BACKEND_CUDA_HELPERS_GATHER_DENSE_H

#include "backend/cuda/device/common/both.h"

/* The constants.
 *   BLOCK_ROWS BLOCK_COLS RAGGED   as in block_store.cuh
 *   ACC_IS_D   1: the array has D's type; 0: the type of sums */
#define GATHER_DENSE_CONSTANTS(C) \
    C(BLOCK_ROWS, block_rows)     \
    C(BLOCK_COLS, block_cols)     \
    C(RAGGED, ragged)             \
    C(ACC_IS_D, acc_is_d)
typedef struct gather_dense_constants {
    GATHER_DENSE_CONSTANTS(SPK_CONSTANT_MEMBER)
} gather_dense_constants;

enum { GATHER_DENSE_THREADS = 256 };

#endif
