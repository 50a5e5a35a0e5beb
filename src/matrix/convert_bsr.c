/* Any format to BSR: one pass finds the blocks, a second adds the entries up in them. Time and memory are linear in entries and result. */
#include <string.h>

#include "matrix/blocks.h"
#include "matrix/check.h"

void spk_blocks_free(const spk_mem *mem, spk_blocks *blocks)
{
    spk_free(mem, blocks->offsets);
    spk_free(mem, blocks->cols_of);
    spk_free(mem, blocks->slots);
    *blocks = (spk_blocks){0};
}

static void clear_slots(spk_blocks *blocks)
{
    memset(blocks->slots, 0xff, (size_t)blocks->grid_cols * sizeof *blocks->slots); /* -1 */
}

static void list_every(spk_blocks *blocks)
{
    for (int64_t row = 0; row <= blocks->grid_rows; row++)
        blocks->offsets[row] = row * blocks->grid_cols;
    for (int64_t row = 0; row < blocks->grid_rows; row++)
        for (int64_t col = 0; col < blocks->grid_cols; col++)
            blocks->cols_of[row * blocks->grid_cols + col] = col;
}

/* Lists the blocks in the order in which entries meet them. slots[col] is the last block row that met the column. */
static spk_status list_touched(const spk_mem *mem, spk_entries *entries, spk_blocks *blocks)
{
    spk_divider by_cols = spk_divider_make(blocks->block_cols);
    int64_t room = 0;
    for (int64_t block_row = 0; block_row < blocks->grid_rows; block_row++) {
        blocks->offsets[block_row] = blocks->nnzb;
        int64_t end = spk_min_i64((block_row + 1) * blocks->block_rows, blocks->rows);
        for (int64_t row = block_row * blocks->block_rows; row < end; row++) {
            spk_entries_load(entries, row, false);
            if (room - blocks->nnzb < entries->count) { /* grown by more than half each time, so that copying stays linear */
                int64_t larger = room + room / 2 + entries->count;
                SPK_TRY(spk_realloc(mem, &blocks->cols_of, (size_t)larger, sizeof *blocks->cols_of));
                room = larger;
            }
            for (int64_t i = 0; i < entries->count; i++) {
                int64_t block_col = spk_divide(by_cols, entries->cols[i]);
                blocks->cols_of[blocks->nnzb] = block_col;
                blocks->nnzb += blocks->slots[block_col] != block_row;
                blocks->slots[block_col] = block_row;
            }
        }
    }
    blocks->offsets[blocks->grid_rows] = blocks->nnzb;
    return SPK_OK;
}

static bool is_sorted(const spk_blocks *blocks)
{
    bool falls = false;
    for (int64_t row = 0; row < blocks->grid_rows; row++)
        for (int64_t p = blocks->offsets[row] + 1; p < blocks->offsets[row + 1]; p++)
            falls |= blocks->cols_of[p] < blocks->cols_of[p - 1];
    return !falls;
}

/* Sorts every block row at once: transposed, then back, in linear time. */
static spk_status sort_rows(const spk_mem *mem, spk_blocks *blocks)
{
    spk_status status = SPK_OK;
    size_t nnzb = (size_t)blocks->nnzb;
    int64_t *turned_offsets = NULL, *turned_rows = NULL, *positions = NULL;
    SPK_GOTO(spk_alloc(mem, (size_t)blocks->grid_cols + 1, sizeof(int64_t), &turned_offsets));
    SPK_GOTO(spk_alloc(mem, nnzb, sizeof(int64_t), &turned_rows));
    SPK_GOTO(spk_alloc(mem, nnzb, sizeof(int64_t), &positions));
    spk_transpose_index(blocks->grid_rows, blocks->grid_cols, blocks->offsets, blocks->cols_of, turned_offsets, turned_rows, positions);
    spk_transpose_index(blocks->grid_cols, blocks->grid_rows, turned_offsets, turned_rows, blocks->offsets, blocks->cols_of, positions);
done:
    spk_free(mem, turned_offsets);
    spk_free(mem, turned_rows);
    spk_free(mem, positions);
    return status;
}

spk_status spk_blocks_find(const spk_mem *mem, spk_entries *entries, int64_t block_rows, int64_t block_cols, bool every, spk_blocks *blocks)
{
    spk_status status = SPK_OK;
    const spk_matrix *matrix = entries->matrix;
    spk_blocks made = {.rows = matrix->rows, .cols = matrix->cols, .block_rows = block_rows, .block_cols = block_cols};
    made.grid_rows = spk_ceil_div(made.rows, block_rows);
    made.grid_cols = matrix->nnz > 0 ? spk_ceil_div(made.cols, block_cols) : 0; /* no column is ever looked up in an empty matrix */
    SPK_GOTO(spk_alloc(mem, (size_t)made.grid_rows + 1, sizeof *made.offsets, &made.offsets));
    SPK_GOTO(spk_alloc(mem, (size_t)made.grid_cols, sizeof *made.slots, &made.slots));
    clear_slots(&made);
    if (every) {
        made.nnzb = made.grid_rows * made.grid_cols; /* no more than the elements of a dense matrix, which exists */
        SPK_GOTO(spk_alloc(mem, (size_t)made.nnzb, sizeof *made.cols_of, &made.cols_of));
        list_every(&made);
    } else {
        SPK_GOTO(list_touched(mem, entries, &made));
        if (!is_sorted(&made))
            SPK_GOTO(sort_rows(mem, &made));
    }
    clear_slots(&made);
    *blocks = made;
done:
    if (status != SPK_OK)
        spk_blocks_free(mem, &made);
    return status;
}

void spk_blocks_select(spk_blocks *blocks, const unsigned char *keep)
{
    int64_t kept = 0, start = 0;
    for (int64_t row = 0; row < blocks->grid_rows; row++) {
        int64_t end = blocks->offsets[row + 1];
        for (int64_t p = start; p < end; p++)
            if (keep[p])
                blocks->cols_of[kept++] = blocks->cols_of[p];
        start = end;
        blocks->offsets[row + 1] = kept;
    }
    blocks->nnzb = kept;
    clear_slots(blocks);
}

static void add_entries(spk_blocks *blocks, spk_entries *entries, spk_matrix *bsr)
{
    spk_divider by_cols = spk_divider_make(blocks->block_cols);
    bool by_rows = bsr->layout == SPK_ROW_MAJOR;
    int64_t down = by_rows ? blocks->block_cols : 1, across = by_rows ? 1 : blocks->block_rows,
            area = blocks->block_rows * blocks->block_cols;
    for (int64_t block_row = 0; block_row < blocks->grid_rows; block_row++) {
        if (blocks->offsets[block_row] == blocks->offsets[block_row + 1])
            continue;
        spk_blocks_enter(blocks, block_row);
        int64_t first = block_row * blocks->block_rows, end = spk_min_i64(first + blocks->block_rows, blocks->rows);
        for (int64_t row = first; row < end; row++) {
            spk_entries_load(entries, row, true);
            for (int64_t i = 0; i < entries->count; i++) {
                int64_t block_col = spk_divide(by_cols, entries->cols[i]), p = spk_blocks_at(blocks, block_row, block_col);
                int64_t inner = entries->cols[i] - block_col * blocks->block_cols;
                if (p >= 0)
                    spk_value_add(bsr->values, bsr->dtype, p * area + (row - first) * down + inner * across, entries->values[i]);
            }
        }
    }
}

spk_status spk_blocks_to_bsr(const spk_mem *mem, spk_blocks *blocks, spk_entries *entries, spk_layout layout, spk_matrix **out)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_matrix_make(mem, SPK_BSR, entries->matrix->dtype, blocks->rows, blocks->cols, blocks->block_rows, blocks->block_cols,
                            layout, blocks->nnzb, &made));
    memcpy(made->row_offsets, blocks->offsets, ((size_t)blocks->grid_rows + 1) * sizeof *made->row_offsets);
    if (blocks->nnzb > 0)
        memcpy(made->col_indices, blocks->cols_of, (size_t)blocks->nnzb * sizeof *made->col_indices);
    memset(made->values, 0, (size_t)spk_matrix_value_count(made) * spk_dtype_bytes(made->dtype));
    add_entries(blocks, entries, made);
    *out = made;
    return SPK_OK;
}

spk_status spk_convert_to_bsr(const spk_mem *mem, const spk_matrix *in, int64_t block_rows, int64_t block_cols, spk_layout layout,
                              spk_matrix **out)
{
    spk_entries entries;
    spk_blocks blocks = {0};
    SPK_TRY(spk_check_block(block_rows, block_cols));
    SPK_TRY(spk_entries_open(mem, in, &entries));
    spk_status status = spk_blocks_find(mem, &entries, block_rows, block_cols, false, &blocks);
    if (status == SPK_OK)
        status = spk_blocks_to_bsr(mem, &blocks, &entries, layout, out);
    spk_blocks_free(mem, &blocks);
    spk_entries_close(mem, &entries);
    return status;
}
