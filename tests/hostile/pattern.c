/* Patterns: mostly right, and a few whose offsets, columns or number of blocks are not. */
#include "hostile.h"

#include <stdlib.h>

typedef struct lists {
    int64_t block_rows, block_cols, grid_rows, grid_cols, nnzb;
    int64_t *offsets, *columns;
} lists;

static void draw_blocks(draw *d, lists *l)
{
    int64_t side = (int64_t[]){1, 4, 16, 32, 64}[draw_below(d, 5)];
    l->block_rows = draw_chance(d, 40) ? side : 1 + draw_below(d, 40);
    l->block_cols = draw_chance(d, 40) ? l->block_rows : 1 + draw_below(d, 40);
}

static void draw_columns(draw *d, lists *l)
{
    const int density = (int)draw_below(d, 101);
    l->offsets = malloc((size_t)(l->grid_rows + 1) * sizeof *l->offsets);
    l->columns = malloc((size_t)(l->grid_rows * l->grid_cols + 1) * sizeof *l->columns);
    l->offsets[0] = 0;
    for (int64_t i = 0; i < l->grid_rows; i++) {
        for (int64_t j = 0; j < l->grid_cols; j++)
            if (draw_chance(d, density))
                l->columns[l->nnzb++] = j;
        l->offsets[i + 1] = l->nnzb;
    }
}

/* A copy of `count` numbers in an array of just their size, of which one may be wrong. */
static void *narrowed(draw *d, const int64_t *from, int64_t count, spk_index_type type, bool spoiled)
{
    const int64_t place = count > 0 ? draw_below(d, count) : 0, value = draw_wrong(d);
    int64_t *wide = malloc((size_t)count * sizeof *wide);
    int32_t *narrow = malloc((size_t)count * sizeof *narrow);
    for (int64_t i = 0; i < count; i++) {
        wide[i] = spoiled && i == place ? value : from[i];
        narrow[i] = (int32_t)wide[i];
    }
    free(type == SPK_INDEX_I64 ? (void *)narrow : (void *)wide);
    return type == SPK_INDEX_I64 ? (void *)wide : (void *)narrow;
}

/* A description that says there are more blocks than the array of columns has is no case: nobody could know. */
static int64_t spoiled_count(draw *d, int64_t nnzb)
{
    const int64_t value = draw_wrong(d);
    return value <= nnzb || value > INT64_C(1) << 40 ? value : nnzb;
}

spk_pattern *trial_draw_pattern(trial *t, int64_t rows, int64_t cols, int64_t list_count)
{
    draw *d = &t->d;
    lists l = {0};
    draw_blocks(d, &l);
    const int64_t list_rows = (rows + l.block_rows - 1) / l.block_rows;
    const int64_t all_rows = list_count == 1 ? rows : list_count * list_rows * l.block_rows;
    l.grid_rows = list_count * list_rows;
    l.grid_cols = (cols + l.block_cols - 1) / l.block_cols;
    draw_columns(d, &l);
    const spk_index_type type = draw_chance(d, 50) ? SPK_INDEX_I64 : SPK_INDEX_I32;
    const int spoilt = t->wrong && draw_chance(d, 15) ? 1 + (int)draw_below(d, 4) : 0;
    void *offsets = narrowed(d, l.offsets, l.grid_rows + 1, type, spoilt == 1);
    void *columns = narrowed(d, l.columns, l.nnzb, type, spoilt == 2);
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = spoilt == 3 ? draw_wrong(d) % 1000 : all_rows,
                                     .cols = cols,
                                     .block_rows = l.block_rows,
                                     .block_cols = l.block_cols,
                                     .nnzb = spoilt == 4 ? spoiled_count(d, l.nnzb) : l.nnzb,
                                     .row_offsets = offsets,
                                     .col_indices = columns,
                                     .index_type = type};
    spk_pattern *pattern = NULL;
    if (spoilt != 3 || indices.rows <= all_rows) { /* more rows than the array of offsets has: no case either */
        const spk_status status = spk_pattern_create(t->context, &indices, &pattern);
        if (status != SPK_OK && spoilt == 0)
            fail(t, "a right pattern is refused: %s", spk_last_error(t->context));
        else if (status != SPK_OK)
            check_refused(t, "a pattern");
    }
    free(offsets);
    free(columns);
    free(l.offsets);
    free(l.columns);
    return pattern;
}
