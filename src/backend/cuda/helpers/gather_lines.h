/* gather_lines: its argument, threads of a block. */
#ifndef SPK_BACKEND_CUDA_HELPERS_GATHER_LINES_H
#define SPK_BACKEND_CUDA_HELPERS_GATHER_LINES_H

enum { GATHER_LINES_PLACES = 64, GATHER_LINES_THREADS = 256 };

typedef struct gather_places {
    long long at[GATHER_LINES_PLACES];
} gather_places;

#endif
