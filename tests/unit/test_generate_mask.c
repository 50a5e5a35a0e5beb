/* Masks of attention: a block is kept where one of its pairs is, by each shape's definition in sparsek.h; random ones keep as many as they
 * should; lists stand one below the other; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_generate.h"

static bool kept(const spk_matrix *m, int64_t row, int64_t column)
{
    for (int64_t i = m->row_offsets[row]; i < m->row_offsets[row + 1]; i++)
        if (m->col_indices[i] == column)
            return true;
    return false;
}

/* About `at`, of `all`, a window of `width` that is shifted inwards at the ends. */
static bool within(int64_t at, int64_t other, int64_t width, int64_t all)
{
    int64_t start = at - width / 2;
    start = start > all - width ? all - width : start;
    start = start < 0 ? 0 : start;
    return other >= start && other < start + width;
}

/* The definition, of a pair; documents and random ones have none. */
static bool sees(const spk_generate *o, int64_t query, int64_t key)
{
    const int64_t beside = query + o->cols - o->rows;
    const bool near = key > beside - o->window && key < beside + o->window;
    if (o->mask == SPK_MASK_VIDEO) {
        const int64_t area = o->cells_y * o->cells_z;
        return within(query / area, key / area, o->window_x, o->cells_x) &&
               within(query / o->cells_z % o->cells_y, key / o->cells_z % o->cells_y, o->window_y, o->cells_y) &&
               within(query % o->cells_z, key % o->cells_z, o->window_z, o->cells_z);
    }
    if (!o->all_keys && key > beside)
        return false;
    return o->mask == SPK_MASK_CAUSAL || (o->mask == SPK_MASK_WINDOW && near) || (o->mask == SPK_MASK_SINKS && (near || key < o->sinks)) ||
           (o->mask == SPK_MASK_STRIDED && (near || key % o->stride == o->stride - 1));
}

static spk_matrix *made(const spk_generate *o)
{
    spk_matrix *m = NULL;
    int64_t shortfall = 7;
    if (spk_generate_matrix(&spk_mem_system, o, &m, &shortfall) != SPK_OK)
        fail_msg("%s: %s", spk_mask_shape_name(o->mask), spk_error_last());
    assert_int_equal(shortfall, 0);
    assert_true(m->pattern_only && m->format == SPK_BSR);
    for (int64_t i = 0; i < spk_matrix_value_count(m); i++)
        assert_true(spk_value_get(m->values, m->dtype, i) == 1);
    for (int64_t row = 0; row < spk_matrix_grid_rows(m); row++)
        for (int64_t i = m->row_offsets[row]; i < m->row_offsets[row + 1]; i++)
            assert_true(m->col_indices[i] < spk_matrix_grid_cols(m) &&
                        (i == m->row_offsets[row] || m->col_indices[i] > m->col_indices[i - 1]));
    return m;
}

static void check(const spk_generate *o)
{
    spk_matrix *m = made(o);
    const int64_t lists = o->lists > 0 ? o->lists : 1, rows = (o->rows + o->block_rows - 1) / o->block_rows;
    assert_int_equal(m->rows, (lists - 1) * rows * o->block_rows + o->rows);
    assert_int_equal(spk_matrix_grid_rows(m), lists * rows);
    for (int64_t row = 0; row < lists * rows; row++)
        for (int64_t column = 0; column < spk_matrix_grid_cols(m); column++) {
            bool wanted = false;
            for (int64_t i = row % rows * o->block_rows; i < (row % rows + 1) * o->block_rows && i < o->rows; i++)
                for (int64_t j = column * o->block_cols; j < (column + 1) * o->block_cols && j < o->cols && !wanted; j++)
                    wanted = sees(o, i, j);
            if (kept(m, row, column) != wanted)
                fail_msg("%s: block %d, %d: wanted %d", spk_mask_shape_name(o->mask), (int)row, (int)column, wanted);
        }
    spk_matrix_release(&m);
}

static void keeps_what_it_says(void **state)
{
    (void)state;
    static const spk_mask_shape shapes[] = {SPK_MASK_CAUSAL, SPK_MASK_WINDOW, SPK_MASK_SINKS, SPK_MASK_STRIDED};
    static const int64_t sizes[][4] = {{100, 100, 16, 16}, {70, 130, 16, 8}, {130, 70, 7, 20},
                                       {64, 64, 64, 64},   {1, 90, 16, 16},  {30, 1, 4, 4}};
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < 6; i++)
            for (int all = 0; all < 2; all++)
                check(&(spk_generate){.generator = SPK_GEN_MASK,
                                      .mask = shapes[s],
                                      .rows = sizes[i][0],
                                      .cols = sizes[i][1],
                                      .block_rows = sizes[i][2],
                                      .block_cols = sizes[i][3],
                                      .window = 1 + 13 * (int64_t)i,
                                      .sinks = 1 + 5 * (int64_t)i,
                                      .stride = 9 + (int64_t)i,
                                      .all_keys = all,
                                      .lists = 1 + (int64_t)i % 3});
}

static void keeps_boxes_of_videos(void **state)
{
    (void)state;
    for (int64_t w = 1; w < 6; w++)
        check(&(spk_generate){.generator = SPK_GEN_MASK,
                              .mask = SPK_MASK_VIDEO,
                              .rows = 4 * 5 * 6,
                              .cols = 4 * 5 * 6,
                              .block_rows = 7,
                              .block_cols = 8,
                              .cells_x = 4,
                              .cells_y = 5,
                              .cells_z = 6,
                              .window_x = w,
                              .window_y = 6 - w,
                              .window_z = w});
}

/* Each query sees its own sequence; sequences have lengths within the limits. */
static void keeps_documents(void **state)
{
    (void)state;
    const spk_generate o = {.generator = SPK_GEN_MASK,
                            .mask = SPK_MASK_DOCUMENTS,
                            .rows = 300,
                            .cols = 300,
                            .block_rows = 1,
                            .block_cols = 1,
                            .tokens_least = 5,
                            .tokens_most = 60,
                            .seed = 4,
                            .lists = 2,
                            .all_keys = 1};
    spk_matrix *m = made(&o);
    bool differ = false;
    for (int64_t row = 0; row < 600; row++) {
        const int64_t first = m->col_indices[m->row_offsets[row]], length = m->row_offsets[row + 1] - m->row_offsets[row];
        assert_int_equal(m->col_indices[m->row_offsets[row + 1] - 1], first + length - 1);
        assert_true(first <= row % 300 && row % 300 < first + length && length <= 60 && (length >= 5 || first + length == 300));
        assert_true(row % 300 == 0 || first == m->col_indices[m->row_offsets[row - 1]] || first == row % 300);
        differ = differ || (row >= 300 && first != m->col_indices[m->row_offsets[row - 300]]);
    }
    assert_true(differ);
    spk_matrix_release(&m);
}

static void chooses_so_many(void **state)
{
    (void)state;
    const spk_generate o = {.generator = SPK_GEN_MASK,
                            .mask = SPK_MASK_SELECTED,
                            .rows = 320,
                            .cols = 320,
                            .block_rows = 16,
                            .block_cols = 16,
                            .selected = 5,
                            .lists = 3,
                            .seed = 9};
    spk_generate other = o;
    spk_matrix *m = made(&o), *again = made(&o);
    for (int64_t row = 0; row < 60; row++)
        assert_int_equal(m->row_offsets[row + 1] - m->row_offsets[row], row % 20 < 5 ? row % 20 + 1 : 5);
    assert_memory_equal(m->col_indices, again->col_indices, (size_t)m->nnz * sizeof(int64_t));
    assert_true(memcmp(m->col_indices + m->row_offsets[10], m->col_indices + m->row_offsets[30], 50 * sizeof(int64_t)) != 0);
    spk_matrix_release(&again);
    other.mask = SPK_MASK_NSA;
    other.window = 20;
    other.sinks = 10;
    again = made(&other);
    for (int64_t row = 0; row < 20; row++) {
        const int64_t length = again->row_offsets[row + 1] - again->row_offsets[row];
        assert_true(kept(again, row, 0) && kept(again, row, row) && length <= 9 && (row < 9 || length >= 8));
    }
    spk_matrix_release(&again);
    other.mask = SPK_MASK_RANDOM;
    other.density = 0.25;
    other.all_keys = 1;
    again = made(&other);
    for (int64_t row = 0; row < 60; row++)
        assert_int_equal(again->row_offsets[row + 1] - again->row_offsets[row], 5);
    spk_matrix_release(&again);
    spk_matrix_release(&m);
}

static void has_defaults(void **state)
{
    (void)state;
    for (int shape = SPK_MASK_CAUSAL; shape <= SPK_MASK_NSA; shape++) {
        assert_int_equal(spk_mask_shape_from_name(spk_mask_shape_name((spk_mask_shape)shape)), shape);
        spk_generate o = {
            .generator = SPK_GEN_MASK, .mask = (spk_mask_shape)shape, .rows = 480, .cols = 480, .block_rows = 16, .block_cols = 32};
        o.density = shape == SPK_MASK_RANDOM ? 0.1 : 0;
        o.cells_x = 6;
        o.cells_y = 8;
        o.cells_z = 10;
        spk_matrix *m = made(&o);
        assert_true(m->nnz > 0);
        spk_matrix_release(&m);
        o.rows = o.cols = 0;
        o.cells_x = o.cells_y = o.cells_z = 1;
        if (shape == SPK_MASK_VIDEO)
            o.rows = o.cols = 1;
        m = made(&o);
        assert_true(m->nnz == (shape == SPK_MASK_VIDEO));
        spk_matrix_release(&m);
    }
    assert_null(spk_mask_shape_name((spk_mask_shape)0));
    assert_null(spk_mask_shape_name((spk_mask_shape)10));
    assert_int_equal(spk_mask_shape_from_name("diagonal"), 0);
    assert_int_equal(spk_mask_shape_from_name(NULL), 0);
}

static const spk_generate good = {
    .generator = SPK_GEN_MASK, .mask = SPK_MASK_WINDOW, .rows = 64, .cols = 64, .block_rows = 16, .block_cols = 16};

static void refuse(const spk_generate *options, const char *message)
{
    spk_matrix *matrix = NULL;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, options, &matrix, NULL), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), message);
    assert_null(matrix);
}

#define REFUSE(message, ...)     \
    do {                         \
        spk_generate bad = good; \
        __VA_ARGS__;             \
        refuse(&bad, message);   \
    } while (0)

static void refuses_what_is_wrong(void **state)
{
    (void)state;
    REFUSE("mask = 0: must be in 1 .. 9", bad.mask = (spk_mask_shape)0);
    REFUSE("mask = 10: must be in 1 .. 9", bad.mask = (spk_mask_shape)10);
    REFUSE("all_keys = 2: must be 0 or 1", bad.all_keys = 2);
    REFUSE("lists = -1: must be at least 0", bad.lists = -1);
    REFUSE("lists = 1048577: the limit is 1048576", bad.lists = 1048577);
    REFUSE("window = -3: must be at least 0", bad.window = -3);
    REFUSE("density = 2: must be in 0 .. 1", bad.density = 2);
    REFUSE("tokens_least = 9, tokens_most = 8: both at least 1, the first no more than the second", bad.tokens_least = 9,
           bad.tokens_most = 8);
    REFUSE("block_rows = 0, block_cols = 16: must be in 1 .. 256", bad.block_rows = 0);
    REFUSE("rows = -1, cols = 64: must be at least 0", bad.rows = -1);
    REFUSE("cells = 0 x 0 x 0: each from 1, the first two together to 1073741824", bad.mask = SPK_MASK_VIDEO);
    REFUSE("rows = 64, cols = 64: of 2 frames of 3 x 4 both are 24", bad.mask = SPK_MASK_VIDEO, bad.cells_x = 2, bad.cells_y = 3,
           bad.cells_z = 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_it_says), cmocka_unit_test(keeps_boxes_of_videos), cmocka_unit_test(keeps_documents),
        cmocka_unit_test(chooses_so_many),    cmocka_unit_test(has_defaults),          cmocka_unit_test(refuses_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
