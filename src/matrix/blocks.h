/* The block structure of a matrix that is being made BSR: which blocks its entries touch, sorted, and where each lies. */
#ifndef SPK_MATRIX_BLOCKS_H
#define SPK_MATRIX_BLOCKS_H

#include "matrix/entries.h"

typedef struct spk_blocks {
    int64_t rows, cols, block_rows, block_cols;
    int64_t grid_rows, grid_cols;
    int64_t nnzb;
    int64_t *offsets; /* grid_rows + 1 */
    int64_t *cols_of; /* nnzb block columns, ascending in each block row */
    int64_t *slots;   /* grid_cols: work */
} spk_blocks;

/* Blocks that hold an entry; with every = true all blocks of the grid. */
spk_status spk_blocks_find(const spk_mem *mem, spk_entries *entries, int64_t block_rows, int64_t block_cols, bool every,
                           spk_blocks *blocks);
void spk_blocks_free(const spk_mem *mem, spk_blocks *blocks);

/* Drops the blocks whose keep is 0. */
void spk_blocks_select(spk_blocks *blocks, const unsigned char *keep);

/* Makes the blocks of one block row known to spk_blocks_at. Before the first, and after a selection, all slots are clear. */
static inline void spk_blocks_enter(spk_blocks *blocks, int64_t block_row)
{
    for (int64_t p = blocks->offsets[block_row]; p < blocks->offsets[block_row + 1]; p++)
        blocks->slots[blocks->cols_of[p]] = p;
}

/* Where the block of that block column lies, or -1: the slot still holds a block of an earlier row. */
static inline int64_t spk_blocks_at(const spk_blocks *blocks, int64_t block_row, int64_t block_col)
{
    int64_t p = blocks->slots[block_col];
    return p >= blocks->offsets[block_row] ? p : -1;
}

/* The BSR matrix of these blocks: entries of a block are summed, those of absent blocks are left out. */
spk_status spk_blocks_to_bsr(const spk_mem *mem, spk_blocks *blocks, spk_entries *entries, spk_layout layout, spk_matrix **out);

#endif
