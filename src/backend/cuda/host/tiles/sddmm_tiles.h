/* The tiles of sddmm_sm90_wgmma: which rows of X and columns of Y meet in a tile, and which of their products are stored.
 *
 * Stored blocks are seen as cells of up to 64 x 64. A warpgroup has 64 rows (tile_rows cells below each other, of rows that need not be
 * neighbours) and a window of tile_cols cells' columns. HEIGHT 128: two warpgroups have rows of their own; the columns that both want stand
 * in the middle of the tile's, so that their windows overlap there: [first's own | common | second's own]. HEIGHT 64: both have the same
 * rows and windows side by side. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_SDDMM_TILES_H
#define SPK_BACKEND_CUDA_HOST_TILES_SDDMM_TILES_H

#include "backend/cuda/host/groups/group_lists.h"

typedef struct sddmm_tiling {
    int cell_rows, cell_cols;
    int rows;                 /* cells below each other in a tile */
    int tile_rows, tile_cols; /* of a warpgroup */
    int slots;                /* cells' columns of a tile */
    int multiple;             /* of which a group's tiles are one: the last are empty */
} sddmm_tiling;

typedef struct sddmm_tiles {
    int64_t count;
    int *words; /* spk_sddmm_tile_words each, as sddmm_sm90_wgmma.cu reads them; the caller's to free */
} sddmm_tiles;

int spk_sddmm_tile_words(const sddmm_tiling *t);

/* Tiles that hold every cell of the view once, those of the same rows one after the other. O(nnzb) time and memory, as spk_groups_choose.
 */
spk_status spk_sddmm_tiles_make(const spk_mem *mem, const spk_bsr_view *view, const sddmm_tiling *tiling, sddmm_tiles *tiles);

#endif
