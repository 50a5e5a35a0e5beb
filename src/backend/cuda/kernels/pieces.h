/* Long block rows cut into pieces for the kernels that gather tiles: as a list for device/gather.cuh. */
#ifndef SPK_BACKEND_CUDA_KERNELS_PIECES_H
#define SPK_BACKEND_CUDA_KERNELS_PIECES_H

#include <limits.h>
#include <stdlib.h>

#include "backend/cuda/cuda.h"

enum { PIECES_WORDS = 4 };

/* memory: pieces, cut rows, 0, 0; then of each piece, longest first, its block row, first block, last block, and its number among those of
 * cut rows (-1: it is the whole row); then of each cut row its number, its first piece's number, how many there are, 0. */
typedef struct pieces_list {
    int64_t pieces, cut_rows, cut_pieces; /* of all rows; of cut rows */
    int *memory;
    int64_t count; /* of ints */
} pieces_list;

typedef struct pieces_one {
    int row, first, last, number;
} pieces_one;

static inline int64_t pieces_of(int64_t length, int64_t most)
{
    return length > most ? (length + most - 1) / most : 1;
}

static inline int pieces_longer_first(const void *a, const void *b)
{
    const pieces_one *x = a, *y = b;
    const int x_length = x->last - x->first, y_length = y->last - y->first;
    if (x_length != y_length)
        return x_length < y_length ? 1 : -1;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->first > y->first) - (x->first < y->first);
}

static inline void pieces_write(const spk_bsr_view *view, int64_t most, const pieces_list *list)
{
    pieces_one *piece = (pieces_one *)(void *)(list->memory + PIECES_WORDS), *cut = piece + list->pieces;
    int number = 0;
    for (int row = 0; row < view->grid_rows; row++) {
        const int64_t from = view->offsets[row], length = view->offsets[row + 1] - from, count = pieces_of(length, most);
        if (count > 1)
            *cut++ = (pieces_one){row, number, (int)count, 0};
        for (int64_t i = 0; i < count; i++)
            *piece++ =
                (pieces_one){row, (int)(from + length * i / count), (int)(from + length * (i + 1) / count), count > 1 ? number++ : -1};
    }
    qsort(list->memory + PIECES_WORDS, (size_t)list->pieces, sizeof *piece, pieces_longer_first);
    list->memory[0] = (int)list->pieces;
    list->memory[1] = (int)list->cut_rows;
}

/* Rows of more than `most` blocks in as few equal pieces as possible. list->memory is the caller's to free. */
static inline spk_status pieces_make(const spk_mem *mem, const spk_bsr_view *view, int64_t most, pieces_list *list)
{
    pieces_list made = {0};
    for (int64_t row = 0; row < view->grid_rows; row++) {
        const int64_t count = pieces_of(view->offsets[row + 1] - view->offsets[row], most);
        made.pieces += count;
        made.cut_rows += count > 1;
        made.cut_pieces += count > 1 ? count : 0;
    }
    made.count = PIECES_WORDS * (1 + made.pieces + made.cut_rows);
    if (made.pieces > INT_MAX / 8)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld pieces of block rows: the limit is %d", (long long)made.pieces, INT_MAX / 8);
    SPK_TRY(spk_calloc(mem, (size_t)made.count, sizeof *made.memory, &made.memory));
    pieces_write(view, most, &made);
    *list = made;
    return SPK_OK;
}

#endif
