/* The tiles of sddmm_sm90_wgmma, as the host (host/tiles/sddmm_tiles.c) or list_tiles.cu writes them and the program reads them: so many
 * words a tile. First where the second window begins, in cells; then the cells' rows and columns, in cells, negative: none; then of each
 * warpgroup's cells the block that it lies in, negative: it is not stored. */
#ifndef SPK_CUDA_SDDMM_TILE_H
#define SPK_CUDA_SDDMM_TILE_H

#include "backend/cuda/device/common/both.h"

typedef struct sddmm_words {
    int at_rows, at_cols, at_blocks, count;
} sddmm_words;

/* rows, slots: cells of a tile below each other, and across; tile_rows, tile_cols: of a warpgroup. */
SPK_BOTH sddmm_words sddmm_words_of(int rows, int slots, int tile_rows, int tile_cols)
{
    sddmm_words words = {1, 0, 0, 0};
    words.at_cols = words.at_rows + rows;
    words.at_blocks = words.at_cols + slots;
    words.count = words.at_blocks + 2 * tile_rows * tile_cols;
    return words;
}

/* Columns that a warp stages at a time, 16 rows of them, on their way to D; elements from line to line there, and of all lines. */
SPK_BOTH int sddmm_pass(int cell_cols)
{
    return cell_cols < 32 ? cell_cols : 32;
}
SPK_BOTH int sddmm_pitch(int cell_cols, int row_major)
{
    return row_major ? sddmm_pass(cell_cols) + 8 : 20;
}
SPK_BOTH int sddmm_staging(int cell_cols, int row_major)
{
    return (row_major ? 16 : sddmm_pass(cell_cols)) * sddmm_pitch(cell_cols, row_major);
}

#endif
