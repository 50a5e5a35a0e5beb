/* Cuts long block rows into equal pieces and lists them, longest first. */
#include "backend/cuda/host/schedule/long_rows.h"

#include <limits.h>
#include <stdlib.h>

#include "backend/cuda/device/copy/gather.h"

static int64_t pieces_of(int64_t length, int64_t most)
{
    return length > most ? (length + most - 1) / most : 1;
}

static int pieces_longer_first(const void *a, const void *b)
{
    const pieces_one *x = a, *y = b;
    const int x_length = x->last - x->first, y_length = y->last - y->first;
    if (x_length != y_length)
        return x_length < y_length ? 1 : -1;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->first > y->first) - (x->first < y->first);
}

static void pieces_write(const spk_bsr_view *view, int64_t most, const pieces_list *list)
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

spk_status spk_pieces_make(const spk_mem *mem, const spk_bsr_view *view, int64_t most, pieces_list *list)
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
