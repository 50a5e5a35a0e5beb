/* Tiles of a dense product (dense.cuh): what both sides know beside the team's constants, of which BLOCK_ROWS and BLOCK_COLS are 0. */
#ifndef SPK_CUDA_DENSE_H
#define SPK_CUDA_DENSE_H

#include "backend/cuda/device/copy/team.h"

/* The constants.
 *   PIECES   1: K is cut into parts, whose sums go to the workspace and are added by a second launch */
#define DENSE_CONSTANTS(C) C(PIECES, pieces)
typedef struct dense_constants {
    DENSE_CONSTANTS(SPK_CONSTANT_MEMBER)
} dense_constants;

/* The second argument of a program, after spk_cuda_arguments. Tiles down and across D of an item (of groups that cut one of these axes: its
 * own tiles are counted on the device); of all items, or at most so many; parts of K; steps of TILE_K in all of K. */
typedef struct dense_work {
    int tiles_m, tiles_n, tiles, parts, steps;
} dense_work;

enum { DENSE_GROUP = 8 }; /* tiles below each other that neighbouring thread blocks work on before they go on to the right */

#endif
