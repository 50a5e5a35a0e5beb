/* list_tiles: its argument and its constants. */
#ifndef SPK_BACKEND_CUDA_HELPERS_LIST_TILES_H
#define SPK_BACKEND_CUDA_HELPERS_LIST_TILES_H

#include "backend/cuda/device/schedule/sddmm_tile.h"

typedef struct tile_list {
    const int *offsets, *columns;
    int grid_rows;
    int *words;
} tile_list;

/* The constants.
 *   DOWN ACROSS    cells of a block
 *   ROWS SLOTS     cells of a tile below each other, and across; TILE_ROWS of a warpgroup */
#define LIST_TILES_CONSTANTS(C) \
    C(DOWN, down)               \
    C(ACROSS, across)           \
    C(ROWS, rows)               \
    C(TILE_ROWS, tile_rows)     \
    C(SLOTS, slots)
typedef struct list_tiles_constants {
    LIST_TILES_CONSTANTS(SPK_CONSTANT_MEMBER)
} list_tiles_constants;

enum { LIST_TILES_THREADS = 256 };

#endif
