/* block_pointers: its argument, threads of a block. */
#ifndef SPK_BACKEND_CUDA_HELPERS_BLOCK_POINTERS_H
#define SPK_BACKEND_CUDA_HELPERS_BLOCK_POINTERS_H

enum { BLOCK_POINTERS_THREADS = 256 };

/* A stored block: its place among the values, its block column, and its block row of the sums. */
typedef struct block_place {
    int position, column, row;
} block_place;

#endif
