/* The tiles of sddmm_sm90_wgmma: every cell of every stored block is kept by one warpgroup's window, where the window says; windows lie
 * inside a tile's columns; tiles are no more than the columns ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/cuda/host/tiles/sddmm_tiles.h"
#include "base/rng.h"

typedef struct shape {
    int block_rows, block_cols, cell_rows, cell_cols;
    int64_t grid_rows, grid_cols;
    int percent, height, width, columns; /* of a tile; of a window; of all slots */
    int multiple;
} shape;

static spk_bsr_view make_view(spk_rng *rng, const shape *s)
{
    int64_t *offsets = calloc((size_t)s->grid_rows + 1, sizeof *offsets), nnzb = 0;
    int32_t *columns = calloc((size_t)(s->grid_rows * s->grid_cols) + 1, sizeof *columns);
    assert_true(offsets != NULL && columns != NULL);
    for (int64_t i = 0; i < s->grid_rows; i++) {
        for (int64_t j = 0; j < s->grid_cols; j++)
            if ((int)spk_rng_below(rng, 100) < s->percent * (i % 7 == 3 ? 3 : i % 5 == 1 ? 0 : 1))
                columns[nnzb++] = (int32_t)j;
        offsets[i + 1] = nnzb;
    }
    return (spk_bsr_view){.rows = s->grid_rows * s->block_rows,
                          .cols = s->grid_cols * s->block_cols,
                          .block_rows = s->block_rows,
                          .block_cols = s->block_cols,
                          .grid_rows = s->grid_rows,
                          .grid_cols = s->grid_cols,
                          .nnzb = nnzb,
                          .offsets = offsets,
                          .columns = columns};
}

static sddmm_tiling tiling_of(const shape *s)
{
    return (sddmm_tiling){
        s->cell_rows, s->cell_cols, s->height / s->cell_rows, 64 / s->cell_rows, s->width / s->cell_cols, s->columns / s->cell_cols,
        s->multiple};
}

static int block_at(const spk_bsr_view *view, int64_t row, int64_t column)
{
    for (int64_t p = view->offsets[row]; p < view->offsets[row + 1]; p++)
        if (view->columns[p] == column)
            return (int)p;
    return -1;
}

/* Counts in seen[] the cells that a window keeps. */
static void check_window(const spk_bsr_view *view, const sddmm_tiling *t, const int *words, int group, char *seen)
{
    const bool beside = t->rows == t->tile_rows;
    const int begin = group == 0 ? 0 : words[0], down = view->block_rows / t->cell_rows, across = view->block_cols / t->cell_cols;
    const int *rows = words + 1 + (beside ? 0 : group * t->tile_rows), *cols = words + 1 + t->rows;
    const int *blocks = cols + t->slots + group * t->tile_rows * t->tile_cols;
    assert_true(begin >= 0 && begin + t->tile_cols <= t->slots);
    for (int y = 0; y < t->tile_rows; y++)
        for (int x = 0; x < t->tile_cols; x++) {
            const int column = cols[begin + x], row = rows[y], block = blocks[y * t->tile_cols + x];
            assert_int_equal(block, row < 0 || column < 0 ? -1 : block_at(view, row / down, column / across));
            if (block >= 0) {
                const int64_t cell = ((int64_t)block * down + row % down) * across + column % across;
                assert_int_equal(seen[cell], 0);
                seen[cell] = 1;
            }
        }
}

static void check_tiles(const spk_bsr_view *view, const sddmm_tiling *t, const sddmm_tiles *tiles)
{
    const int64_t cells = view->nnzb * (view->block_rows / t->cell_rows) * (view->block_cols / t->cell_cols);
    char *seen = calloc((size_t)cells + 1, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < tiles->count; i++) {
        const int *words = tiles->words + i * spk_sddmm_tile_words(t);
        if (words[1 + t->rows] < 0) /* without a column: it makes up the multiple */
            assert_true(i % t->multiple != 0);
        if (i % t->multiple != 0) /* those that come together have the same rows */
            assert_memory_equal(words + 1, words + 1 - spk_sddmm_tile_words(t), (size_t)t->rows * sizeof *words);
        for (int group = 0; group < 2; group++)
            check_window(view, t, words, group, seen);
    }
    for (int64_t i = 0; i < cells; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(tiles->count % t->multiple, 0);
    free(seen);
}

static const shape shapes[] = {{64, 64, 64, 64, 20, 30, 25, 128, 256, 256, 1},  {64, 64, 64, 64, 20, 30, 25, 128, 256, 384, 2},
                               {64, 64, 64, 64, 21, 30, 25, 128, 128, 256, 1},  {64, 64, 64, 64, 20, 30, 25, 64, 128, 256, 2},
                               {32, 32, 32, 32, 50, 60, 12, 128, 256, 384, 1},  {32, 32, 32, 32, 50, 60, 50, 128, 256, 256, 2},
                               {16, 16, 16, 16, 70, 90, 12, 128, 256, 384, 1},  {16, 16, 16, 16, 70, 90, 5, 64, 128, 256, 2},
                               {128, 128, 64, 64, 9, 11, 30, 128, 256, 256, 2}, {256, 256, 64, 64, 5, 6, 40, 128, 128, 128, 1},
                               {48, 96, 16, 32, 13, 17, 30, 128, 128, 192, 1},  {32, 128, 32, 64, 30, 10, 30, 128, 256, 384, 2},
                               {64, 64, 64, 64, 1, 1, 100, 128, 256, 384, 1},   {64, 64, 64, 64, 6, 8, 0, 128, 256, 384, 1},
                               {16, 64, 16, 64, 40, 1, 60, 128, 128, 128, 1}};

static void every_cell_is_kept_once(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const sddmm_tiling tiling = tiling_of(&shapes[i]);
        spk_bsr_view view = make_view(&rng, &shapes[i]);
        sddmm_tiles tiles = {0};
        assert_int_equal(spk_sddmm_tiles_make(&spk_mem_system, &view, &tiling, &tiles), SPK_OK);
        check_tiles(&view, &tiling, &tiles);
        assert_true((view.nnzb == 0) == (tiles.count == 0));
        spk_free(&spk_mem_system, tiles.words);
        free((void *)(uintptr_t)view.offsets);
        free((void *)(uintptr_t)view.columns);
    }
}

/* Two rows with the same columns need no column twice; rows with none in common need a window each. */
static void common_columns_are_shared(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 8, 16};
    int32_t columns[16];
    const sddmm_tiling tiling = {64, 64, 2, 1, 4, 8, 1};
    for (int apart = 0; apart < 2; apart++) {
        for (int i = 0; i < 16; i++)
            columns[i] = i % 8 + (i >= 8 && apart ? 8 : 0);
        const spk_bsr_view view = {.rows = 128,
                                   .cols = 1024,
                                   .block_rows = 64,
                                   .block_cols = 64,
                                   .grid_rows = 2,
                                   .grid_cols = 16,
                                   .nnzb = 16,
                                   .offsets = offsets,
                                   .columns = columns};
        sddmm_tiles tiles = {0};
        assert_int_equal(spk_sddmm_tiles_make(&spk_mem_system, &view, &tiling, &tiles), SPK_OK);
        assert_int_equal(tiles.count, 2);
        for (int64_t i = 0; i < tiles.count; i++) {
            const int *words = tiles.words + i * spk_sddmm_tile_words(&tiling);
            assert_int_equal(words[0], apart ? 4 : 0);
            assert_int_equal(words[1 + 2 + 4] >= 0, apart); /* the fifth slot */
        }
        check_tiles(&view, &tiling, &tiles);
        spk_free(&spk_mem_system, tiles.words);
    }
}

static void failure_of_memory_is_reported(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 2);
    const sddmm_tiling tiling = tiling_of(&shapes[4]);
    spk_bsr_view view = make_view(&rng, &shapes[4]);
    spk_status status = SPK_ERR_OUT_OF_MEMORY;
    for (int64_t fail = 0; status != SPK_OK; fail++) {
        sddmm_tiles tiles = {0};
        assert_true(fail < 100);
        spk_mem_fail_after(fail);
        status = spk_sddmm_tiles_make(&spk_mem_system, &view, &tiling, &tiles);
        spk_mem_fail_after(-1);
        assert_true(status == SPK_OK || (status == SPK_ERR_OUT_OF_MEMORY && tiles.words == NULL));
        spk_free(&spk_mem_system, tiles.words);
    }
    free((void *)(uintptr_t)view.offsets);
    free((void *)(uintptr_t)view.columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cell_is_kept_once), cmocka_unit_test(common_columns_are_shared),
                                       cmocka_unit_test(failure_of_memory_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
