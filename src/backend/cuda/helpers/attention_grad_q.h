/* attention_grad_q: what both sides know. After the gradients of attention: sums of grad_Q, which lie as registers do, become its rows. */
#ifndef SPK_BACKEND_CUDA_HELPERS_ATTENTION_GRAD_Q_H
#define SPK_BACKEND_CUDA_HELPERS_ATTENTION_GRAD_Q_H

#include "backend/cuda/device/attention/attention_backward.h"

/* The constants. A tile of queries lies as parts of 64 rows and COLUMNS columns, neighbours of a row first; of each part thread t of 128
 * has four of its sums at t * 4, four more 512 further on, and so on, in the order of wgmma's sums.
 *   ROWS        queries of a tile
 *   DEPTH       columns of Q
 *   ACROSS      parts beside each other
 *   TRANSPOSED  1: a part is the transpose of COLUMNS = 64 columns of all of a tile's queries */
#define ATTENTION_GRAD_Q_CONSTANTS(C) \
    C(ROWS, rows)                     \
    C(DEPTH, depth)                   \
    C(ACROSS, across)                 \
    C(COLUMNS, columns)               \
    C(TRANSPOSED, transposed)
typedef struct attention_grad_q_constants {
    ATTENTION_GRAD_Q_CONSTANTS(SPK_CONSTANT_MEMBER)
} attention_grad_q_constants;

enum { ATTENTION_GRAD_Q_THREADS = 128 }; /* of a block, which has a part of a tile */

/* turns: of a tile 0: there are no sums, and its rows become zeros. */
typedef struct attention_grad_q_task {
    attention_backward_task all;
    int query_tiles; /* of a head */
    int pieces;      /* 1: rows may be written 16 bytes at a time */
    const float *sums;
    const int *turns;
} attention_grad_q_task;

#endif
