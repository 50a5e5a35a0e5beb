/* Tiles of X and Y gathered for the stored blocks of D (sddmm_gather.cuh): what both sides know beside the team's constants. */
#ifndef SPK_CUDA_SDDMM_GATHER_H
#define SPK_CUDA_SDDMM_GATHER_H

#include "backend/cuda/device/copy/team.h"

typedef struct sddmm_tile {
    int row, column; /* block row * tiles down it + which of them; first virtual column */
} sddmm_tile;

typedef struct sddmm_work {
    const sddmm_tile *tiles;
    int tiles_count, parts, steps; /* tiles; parts of K; steps of TILE_K in all of K */
    long long elements;            /* of an item's D */
} sddmm_work;

/* The constants.
 *   RAGGED   1: M or N is no multiple of the block */
#define SDDMM_GATHER_CONSTANTS(C) C(RAGGED, ragged)
typedef struct sddmm_gather_constants {
    SDDMM_GATHER_CONSTANTS(SPK_CONSTANT_MEMBER)
} sddmm_gather_constants;

#endif
