/* Gathers cells of stored blocks into the tiles of sddmm_sm90_wgmma. */
#include "backend/cuda/host/tiles/sddmm_tiles.h"

#include <string.h>

#include "backend/cuda/device/schedule/sddmm_tile.h"

int spk_sddmm_tile_words(const sddmm_tiling *t)
{
    return sddmm_words_of(t->rows, t->slots, t->tile_rows, t->tile_cols).count;
}

/* A column of cells that rows of a group have, and the block of each (negative: it has none). */
typedef struct sddmm_column {
    int column;
    int blocks[GROUPS_MOST_ROWS];
} sddmm_column;

enum { SDDMM_FIRST, SDDMM_COMMON, SDDMM_SECOND, SDDMM_KINDS }; /* whose rows have a column */

typedef struct sddmm_work {
    const sddmm_tiling *tiling;
    spk_bsr_view cells;               /* the pattern in cells: a block's number is that of its cells' row and turn */
    int64_t *offsets;                 /* of cells; owned */
    int32_t *columns;                 /* owned */
    int down, across;                 /* cells of a block */
    const spk_bsr_view *view;         /* the pattern in blocks */
    sddmm_column *lists[SDDMM_KINDS]; /* of a group: as long as its union may be */
    int64_t counts[SDDMM_KINDS];
    sddmm_tiles made;
    int64_t room; /* tiles that words holds */
} sddmm_work;

static void sddmm_release(const spk_mem *mem, sddmm_work *w)
{
    for (int kind = 0; kind < SDDMM_KINDS; kind++)
        spk_free(mem, w->lists[kind]);
    spk_free(mem, w->offsets);
    spk_free(mem, w->columns);
}

/* The pattern in cells. */
static spk_status sddmm_cells(const spk_mem *mem, const spk_bsr_view *view, sddmm_work *w)
{
    const sddmm_tiling *t = w->tiling;
    const int down = view->block_rows / t->cell_rows, across = view->block_cols / t->cell_cols;
    const int64_t rows = view->grid_rows * down;
    int64_t at = 0;
    SPK_TRY(spk_alloc(mem, (size_t)rows + 1, sizeof *w->offsets, &w->offsets));
    SPK_TRY(spk_alloc(mem, (size_t)(view->nnzb * down * across) + 1, sizeof *w->columns, &w->columns));
    for (int64_t row = 0; row < rows; row++) {
        w->offsets[row] = at;
        for (int64_t p = view->offsets[row / down]; p < view->offsets[row / down + 1]; p++)
            for (int c = 0; c < across; c++)
                w->columns[at++] = view->columns[p] * across + c;
    }
    w->offsets[rows] = at;
    w->cells = (spk_bsr_view){.rows = view->rows,
                              .cols = view->cols,
                              .block_rows = t->cell_rows,
                              .block_cols = t->cell_cols,
                              .grid_rows = rows,
                              .grid_cols = view->grid_cols * across,
                              .nnzb = at,
                              .offsets = w->offsets,
                              .columns = w->columns};
    w->down = down;
    w->across = across;
    return SPK_OK;
}

/* The columns of a group's rows, in ascending order, to the list of whose they are. */
static void sddmm_list_columns(sddmm_work *w, groups_work *g, const int *rows)
{
    const sddmm_tiling *t = w->tiling;
    for (int kind = 0; kind < SDDMM_KINDS; kind++)
        w->counts[kind] = 0;
    for (int y = 0; y < t->rows; y++)
        g->next[y] = rows[y] >= 0 ? w->offsets[rows[y]] : 0;
    for (int column; (column = spk_groups_next_column(g, rows, t->rows)) >= 0;) {
        sddmm_column entry = {.column = column};
        bool first = false, second = false;
        for (int y = 0; y < t->rows; y++) {
            const bool has = rows[y] >= 0 && g->next[y] < w->offsets[rows[y] + 1] && w->columns[g->next[y]] == column;
            entry.blocks[y] = has ? (int)(w->view->offsets[rows[y] / w->down] + (g->next[y] - w->offsets[rows[y]]) / w->across) : -1;
            g->next[y] += has;
            first = first || (has && y < t->tile_rows);
            second = second || (has && y >= t->tile_rows);
        }
        const int kind = first && second ? SDDMM_COMMON : first ? SDDMM_FIRST : SDDMM_SECOND;
        w->lists[kind][w->counts[kind]++] = entry;
    }
}

static int64_t sddmm_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How many of each list the next tile takes: an even share, so that all tiles of a group bring about as many columns. */
static void sddmm_share(const sddmm_tiling *t, const int64_t left[SDDMM_KINDS], int take[SDDMM_KINDS])
{
    const int64_t window = t->tile_cols, first = left[SDDMM_FIRST] + left[SDDMM_COMMON], second = left[SDDMM_SECOND] + left[SDDMM_COMMON];
    if (t->rows == t->tile_rows) { /* windows side by side */
        const int64_t tiles = sddmm_ceil(first, t->slots);
        take[SDDMM_FIRST] = (int)sddmm_ceil(first, tiles);
        return;
    }
    int64_t tiles = sddmm_ceil(first > second ? first : second, window), all = sddmm_ceil(first + left[SDDMM_SECOND], t->slots);
    tiles = tiles > all ? tiles : all;
    int64_t common = sddmm_ceil(left[SDDMM_COMMON], tiles),
            own[2] = {sddmm_ceil(left[SDDMM_FIRST], tiles), sddmm_ceil(left[SDDMM_SECOND], tiles)};
    common = common < window ? common : window;
    for (int i = 0; i < 2; i++)
        own[i] = own[i] < window - common ? own[i] : window - common;
    while (common + own[0] + own[1] > t->slots)
        own[own[0] >= own[1] ? 0 : 1]--;
    take[SDDMM_FIRST] = (int)own[0];
    take[SDDMM_COMMON] = (int)common;
    take[SDDMM_SECOND] = (int)own[1];
}

static spk_status sddmm_grow(const spk_mem *mem, sddmm_work *w)
{
    if (w->made.count < w->room)
        return SPK_OK;
    SPK_TRY(spk_realloc(mem, &w->made.words, ((size_t)w->room * 2 + 64) * (size_t)spk_sddmm_tile_words(w->tiling), sizeof *w->made.words));
    w->room = w->room * 2 + 64;
    return SPK_OK;
}

/* The blocks of a warpgroup's window, which begins at slot `begin` of the tile's `count`. */
static void sddmm_write_window(const sddmm_tiling *t, const sddmm_column *const *slots, int count, int begin, int first_row, int *to)
{
    for (int y = 0; y < t->tile_rows; y++)
        for (int x = 0; x < t->tile_cols; x++)
            *to++ = begin + x < count ? slots[begin + x]->blocks[first_row + y] : -1;
}

/* Writes the next tile of a group, with take[kind] columns from place from[kind] of each list. */
static spk_status sddmm_write_tile(const spk_mem *mem, sddmm_work *w, const int *rows, const int64_t from[SDDMM_KINDS],
                                   const int take[SDDMM_KINDS])
{
    const sddmm_tiling *t = w->tiling;
    const sddmm_column *slots[64];
    int count = 0;
    SPK_TRY(sddmm_grow(mem, w));
    int *word = w->made.words + w->made.count++ * spk_sddmm_tile_words(t);
    for (int kind = 0; kind < SDDMM_KINDS; kind++)
        for (int i = 0; i < take[kind]; i++)
            slots[count++] = &w->lists[kind][from[kind] + i];
    const bool beside = t->rows == t->tile_rows;
    const int most = t->slots - t->tile_cols, shift = beside ? t->tile_cols : take[SDDMM_FIRST] < most ? take[SDDMM_FIRST] : most;
    *word++ = shift;
    memcpy(word, rows, (size_t)t->rows * sizeof *rows);
    word += t->rows;
    for (int slot = 0; slot < t->slots; slot++)
        *word++ = slot < count ? slots[slot]->column : -1;
    sddmm_write_window(t, slots, count, 0, 0, word);
    sddmm_write_window(t, slots, count, shift, beside ? 0 : t->tile_rows, word + t->tile_rows * t->tile_cols);
    return SPK_OK;
}

static spk_status sddmm_group_tiles(const spk_mem *mem, sddmm_work *w, groups_work *g, const int *rows)
{
    int64_t from[SDDMM_KINDS] = {0}, left[SDDMM_KINDS];
    const int64_t begun = w->made.count;
    sddmm_list_columns(w, g, rows);
    memcpy(left, w->counts, sizeof left);
    while (left[SDDMM_FIRST] + left[SDDMM_COMMON] + left[SDDMM_SECOND] > 0) {
        int take[SDDMM_KINDS] = {0};
        sddmm_share(w->tiling, left, take);
        SPK_TRY(sddmm_write_tile(mem, w, rows, from, take));
        for (int kind = 0; kind < SDDMM_KINDS; kind++) {
            from[kind] += take[kind];
            left[kind] -= take[kind];
        }
    }
    while ((w->made.count - begun) % w->tiling->multiple != 0)
        SPK_TRY(sddmm_write_tile(mem, w, rows, from, (const int[SDDMM_KINDS]){0}));
    return SPK_OK;
}

/* Room for the columns of the fullest group. */
static spk_status sddmm_allocate_lists(const spk_mem *mem, sddmm_work *w, const groups_work *g, int64_t groups)
{
    int64_t most = 0;
    for (int64_t i = 0; i < groups; i++)
        most = g->unions[i] > most ? g->unions[i] : most;
    for (int kind = 0; kind < SDDMM_KINDS; kind++)
        SPK_TRY(spk_alloc(mem, (size_t)most + 1, sizeof *w->lists[kind], &w->lists[kind]));
    return SPK_OK;
}

spk_status spk_sddmm_tiles_make(const spk_mem *mem, const spk_bsr_view *view, const sddmm_tiling *tiling, sddmm_tiles *tiles)
{
    sddmm_work w = {.tiling = tiling, .view = view};
    groups_work g = {.view = &w.cells};
    spk_status status;
    SPK_GOTO(sddmm_cells(mem, view, &w));
    const int64_t groups = spk_groups_count(w.cells.grid_rows, tiling->rows);
    SPK_GOTO(spk_groups_allocate(mem, &g, groups, tiling->rows));
    spk_groups_choose(&g, groups, tiling->rows);
    SPK_GOTO(sddmm_allocate_lists(mem, &w, &g, groups));
    for (int64_t i = 0; i < groups; i++)
        SPK_GOTO(sddmm_group_tiles(mem, &w, &g, g.rows + i * tiling->rows));
    *tiles = w.made;
    w.made.words = NULL;
done:
    spk_free(mem, w.made.words);
    spk_groups_release(mem, &g);
    sddmm_release(mem, &w);
    return status;
}
