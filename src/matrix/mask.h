/* One block row of a mask of attention. */
#ifndef SPK_MATRIX_MASK_H
#define SPK_MATRIX_MASK_H

#include <stdbool.h>

#include <sparsek/sparsek.h>

typedef struct spk_mask_row {
    const spk_generate *options; /* whole: no default is left open */
    int64_t grid_cols;
    unsigned char *marks; /* of each block column, 0 at first: whether the row keeps it */
    int64_t first, end;   /* all that are marked lie in between */
} spk_mask_row;

/* Marks what block row `index` of a list keeps: the same whenever it is asked. */
void spk_mask_mark(spk_mask_row *row, int64_t list, int64_t index);

#endif
