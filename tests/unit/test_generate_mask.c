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

#include "matrix/mask.h"
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

/* The definition, of a pair; documents of random lengths and random blocks have none. */
static bool sees(const spk_generate *o, int64_t query, int64_t key)
{
    const int64_t beside = query + (o->top_left ? 0 : o->cols - o->rows);
    const int64_t right = o->mask == SPK_MASK_WINDOW || o->mask == SPK_MASK_SINKS ? o->window_right : 0; /* others do not take it */
    const bool all = o->all_keys && !right, near = key > beside - o->window && key < beside + (right ? right : o->window);
    if (o->mask == SPK_MASK_VIDEO) {
        const int64_t area = o->cells_y * o->cells_z;
        return within(query / area, key / area, o->window_x, o->cells_x) &&
               within(query / o->cells_z % o->cells_y, key / o->cells_z % o->cells_y, o->window_y, o->cells_y) &&
               within(query % o->cells_z, key % o->cells_z, o->window_z, o->cells_z);
    }
    if (o->mask == SPK_MASK_PREFIX)
        return key <= beside || key < o->prefix;
    if (!all && key > beside + (right ? right - 1 : 0))
        return false;
    int64_t begin = 0, document = 0;
    if (o->mask == SPK_MASK_DOCUMENTS) {
        while (document < o->length_count && begin + o->lengths[document] <= beside)
            begin += o->lengths[document++];
        return beside >= 0 && document < o->length_count && key >= begin && key < begin + o->lengths[document];
    }
    return o->mask == SPK_MASK_CAUSAL || (o->mask == SPK_MASK_WINDOW && near) || (o->mask == SPK_MASK_SINKS && (near || key < o->sinks)) ||
           (o->mask == SPK_MASK_STRIDED && (near || key % o->stride == o->stride - 1));
}

/* Whether a pair of a block is seen, by its tile. */
static bool bit(const spk_mask *mask, int64_t block, int64_t query, int64_t key)
{
    const int32_t tile = mask->tile_numbers[block];
    return tile < 0 || mask->tile_bits[(tile * mask->tile_words) + query * mask->words + key / 32] >> key % 32 & 1;
}

static bool is_defined(const spk_generate *o)
{
    return !spk_mask_shape_of(o->mask)->is_random || o->length_count > 0;
}

/* A block of a mask: its pairs are those of the definition; a tile where some are not seen, none beyond the edges. */
static void check_block(const spk_generate *o, const spk_mask *mask, int64_t row, int64_t at)
{
    const int64_t top = row % mask->block_rows_of_list * o->block_rows, left = mask->col_indices[at] * o->block_cols;
    bool some = false, all = true;
    for (int64_t q = 0; q < o->block_rows; q++)
        for (int64_t k = 0; k < o->block_cols; k++) {
            const bool there = top + q < o->rows && left + k < o->cols, set = bit(mask, at, q, k);
            if (there ? is_defined(o) && set != sees(o, top + q, left + k) : set && mask->tile_numbers[at] >= 0)
                fail_msg("%s: query %d, key %d: %d", spk_mask_shape_name(o->mask), (int)(top + q), (int)(left + k), set);
            some = some || (there && set);
            all = all && (!there || set);
        }
    assert_true(some && all == (mask->tile_numbers[at] < 0));
}

/* A mask has the blocks of the matrix, and no tile twice. */
static void check_pairs(const spk_generate *o, const spk_matrix *m)
{
    spk_mask *mask = NULL;
    const bool usual = o->mask == SPK_MASK_VIDEO ? !o->window_x : !o->window; /* `sees` knows no defaults */
    assert_int_equal(spk_mask_make(&spk_mem_system, o, true, &mask), SPK_OK);
    assert_int_equal(mask->blocks, m->nnz);
    assert_int_equal(mask->grid_rows, spk_matrix_grid_rows(m));
    assert_memory_equal(mask->row_offsets, m->row_offsets, (size_t)(mask->grid_rows + 1) * sizeof(int64_t));
    assert_memory_equal(mask->col_indices, m->col_indices, (size_t)mask->blocks * sizeof(int64_t));
    for (int64_t row = 0; row < mask->grid_rows && !usual; row++)
        for (int64_t at = mask->row_offsets[row]; at < mask->row_offsets[row + 1]; at++)
            check_block(o, mask, row, at);
    const size_t bytes = (size_t)mask->tile_words * sizeof(uint32_t);
    for (int64_t i = 0; i < mask->tiles; i++)
        for (int64_t j = 0; j < i && mask->tiles < 2000; j++)
            assert_true(memcmp(mask->tile_bits + i * mask->tile_words, mask->tile_bits + j * mask->tile_words, bytes) != 0);
    spk_mask_release(&mask);
}

static spk_matrix *made(const spk_generate *o)
{
    spk_matrix *m = NULL;
    int64_t shortfall = 7;
    if (spk_generate_matrix(&spk_mem_system, o, &m, &shortfall) != SPK_OK)
        fail_msg("%s: %s", spk_mask_shape_name(o->mask), spk_error_last());
    assert_int_equal(shortfall, 0);
    check_pairs(o, m);
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

static int count_shapes(void)
{
    int count = 0;
    while (spk_mask_shape_of((spk_mask_shape)(count + 1)) != NULL)
        count++;
    return count;
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

static int64_t draw(spk_rng *rng, int64_t least, int64_t most)
{
    return least + (int64_t)spk_rng_below(rng, (uint64_t)(most - least + 1));
}

/* Random sizes, blocks and parameters: every pair of every shape that `sees` defines, those that are new included. */
static void keeps_pairs_by_definition(void **state)
{
    (void)state;
    const int shapes = count_shapes();
    spk_rng rng;
    spk_rng_seed(&rng, 46);
    for (int i = 0; i < 100 * shapes; i++) {
        spk_generate o = {.generator = SPK_GEN_MASK, .mask = (spk_mask_shape)(1 + i % shapes), .lists = draw(&rng, 1, 2)};
        if (o.mask == SPK_MASK_VIDEO || (spk_mask_shape_of(o.mask)->is_random && o.mask != SPK_MASK_DOCUMENTS))
            continue; /* sizes that go with its frames: keeps_boxes_of_videos; no definition: chooses_so_many */
        o.rows = draw(&rng, 1, 140);
        o.cols = draw(&rng, 1, 140);
        o.block_rows = draw(&rng, 1, 70);
        o.block_cols = draw(&rng, 1, 70);
        o.window = draw(&rng, 1, 60);
        o.sinks = draw(&rng, 1, 60);
        o.stride = draw(&rng, 1, 40);
        o.prefix = draw(&rng, 0, 160);
        o.all_keys = (int)draw(&rng, 0, 1);
        o.top_left = (int)draw(&rng, 0, 1);
        o.window_right = draw(&rng, 0, 1) ? draw(&rng, 1, 60) : 0;
        int64_t lengths[8], left = o.cols;
        for (int j = 0; j < 8; j++)
            left -= lengths[j] = j < 7 ? draw(&rng, 0, left) : left;
        o.lengths = lengths;
        o.length_count = 8;
        check(&o);
    }
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

/* Counts that have no default. */
static void give_what_is_needed(spk_generate *o)
{
    const spk_mask_word *words = spk_mask_shape_of(o->mask)->words;
    for (int i = 0; i < SPK_MASK_MOST_WORDS && words[i] != SPK_MASK_TAKES_NOTHING; i++) {
        const spk_mask_parameter *p = spk_mask_parameter_of(words[i]);
        if (p->value == SPK_MASK_VALUE_COUNT && p->usual_text == NULL)
            *(int64_t *)((char *)o + p->offset) = p->least;
    }
}

static void has_defaults(void **state)
{
    (void)state;
    for (int shape = SPK_MASK_CAUSAL; spk_mask_shape_of((spk_mask_shape)shape) != NULL; shape++) {
        assert_int_equal(spk_mask_shape_from_name(spk_mask_shape_name((spk_mask_shape)shape)), shape);
        spk_generate o = {
            .generator = SPK_GEN_MASK, .mask = (spk_mask_shape)shape, .rows = 480, .cols = 480, .block_rows = 16, .block_cols = 32};
        o.density = shape == SPK_MASK_RANDOM ? 0.1 : 0;
        give_what_is_needed(&o);
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
    assert_null(spk_mask_shape_name((spk_mask_shape)(count_shapes() + 1)));
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
    char message[64];
    const int shapes = count_shapes(), wrong[] = {0, -1, shapes + 1};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(message, sizeof message, "mask = %d: must be in 1 .. %d", wrong[i], shapes);
        REFUSE(message, bad.mask = (spk_mask_shape)wrong[i]);
    }
    REFUSE("all_keys = 2: must be 0 or 1", bad.all_keys = 2);
    REFUSE("lists = -1: must be at least 0", bad.lists = -1);
    REFUSE("lists = 1048577: the limit is 1048576", bad.lists = 1048577);
    REFUSE("window = -3: must be at least 0", bad.window = -3);
    REFUSE("density = 2: must be in 0 .. 1", bad.density = 2);
    REFUSE("tokens_least = 9, tokens_most = 8: both at least 1, the first no more than the second", bad.tokens_least = 9,
           bad.tokens_most = 8);
    REFUSE("lengths: NULL, of 2 numbers", bad.length_count = 2);
    REFUSE("lengths[1] = -3: must be in 0 .. 1099511627776", bad.lengths = (const int64_t[]){4, -3}, bad.length_count = 2);
    REFUSE("lengths: their sum is 7, but there are 64 keys", bad.mask = SPK_MASK_DOCUMENTS, bad.lengths = (const int64_t[]){4, 3},
           bad.length_count = 2);
    REFUSE("lengths: their sum is at least 65, but there are 64 keys", bad.mask = SPK_MASK_DOCUMENTS,
           bad.lengths = (const int64_t[]){64, 1, 9}, bad.length_count = 3);
    REFUSE("tokens = 3-9: lengths are given, too: only one of both", bad.mask = SPK_MASK_DOCUMENTS, bad.lengths = (const int64_t[]){64},
           bad.length_count = 1, bad.tokens_least = 3, bad.tokens_most = 9);
    REFUSE("stride = 1099511627777: the limit is 1099511627776", bad.stride = (INT64_C(1) << 40) + 1);
    REFUSE("block_rows = 0, block_cols = 16: must be in 1 .. 256", bad.block_rows = 0);
    REFUSE("rows = -1, cols = 64: must be at least 0", bad.rows = -1);
    REFUSE("cells = 0 x 0 x 0: each from 1, the first two together to 1073741824", bad.mask = SPK_MASK_VIDEO);
    REFUSE("cells = 2 x 3 x 4: are 24 queries and as many keys, but rows = 64, cols = 64", bad.mask = SPK_MASK_VIDEO, bad.cells_x = 2,
           bad.cells_y = 3, bad.cells_z = 4);
}

/* What must be given has no default: C says so, too, where the least number is not 0. */
static void needs_what_has_no_default(void **state)
{
    (void)state;
    const spk_mask_parameter needed = {
        .name = "gap", .field = "stride", .offset = offsetof(spk_generate, stride), .value = SPK_MASK_VALUE_COUNT, .least = 2, .most = 9};
    spk_mask_parameter usual = needed;
    spk_generate o = good;
    assert_int_equal(spk_mask_need(&needed, &o), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), "stride = 0: mask window needs it, at least 2");
    usual.usual_text = "3";
    assert_int_equal(spk_mask_need(&usual, &o), SPK_OK);
    o.stride = 2;
    assert_int_equal(spk_mask_need(&needed, &o), SPK_OK);
}

/* What C, the command line and Python work from. */
static void has_a_table(void **state)
{
    (void)state;
    spk_mask_shape_info shape = {SPK_SIZED(spk_mask_shape_info)};
    spk_mask_parameter_info p = {SPK_SIZED(spk_mask_parameter_info)}, other = {SPK_SIZED(spk_mask_parameter_info)};
    int number = 1;
    for (; spk_mask_shape_get_info((spk_mask_shape)number, &shape) == SPK_OK; number++) {
        assert_true(shape.name[0] && shape.help[0]);
        for (int i = 0; i < shape.parameter_count; i++) {
            assert_int_equal(spk_mask_shape_get_parameter((spk_mask_shape)number, i, &p), SPK_OK);
            assert_true(p.name[0] && p.help[0] && p.offset < sizeof(spk_generate) && p.least <= p.most);
            for (int j = 0; j < i; j++) {
                assert_int_equal(spk_mask_shape_get_parameter((spk_mask_shape)number, j, &other), SPK_OK);
                assert_true(strcmp(p.name, other.name) != 0);
            }
        }
        assert_int_equal(spk_mask_shape_get_parameter((spk_mask_shape)number, shape.parameter_count, &p), SPK_ERR_ARGUMENT);
    }
    char message[64];
    snprintf(message, sizeof message, "shape = %d: this version has no such mask", count_shapes() + 1);
    assert_int_equal(number, count_shapes() + 1);
    assert_string_equal(spk_error_message(0), message);
}

/* The public calls, without a context; what is not there is refused. */
static void is_made_in_public(void **state)
{
    (void)state;
    spk_mask *mask = NULL;
    spk_mask_desc desc = {SPK_SIZED(spk_mask_desc)};
    spk_generate o = {SPK_SIZED(spk_generate), .mask = SPK_MASK_CAUSAL, .rows = 40, .cols = 40, .block_rows = 16, .block_cols = 16};
    assert_int_equal(spk_mask_create(NULL, &o, &mask), SPK_OK);
    assert_int_equal(spk_mask_view(mask, &desc), SPK_OK);
    assert_true(desc.grid_rows == 3 && desc.blocks == 6 && desc.tile_words == 16);
    assert_int_equal(desc.tiles, 2); /* of the diagonal, and of its end */
    assert_true(((const int32_t *)desc.tile_numbers)[1] == -1 && ((const uint32_t *)desc.tile_bits)[2] == 7);
    spk_mask_destroy(&mask);
    assert_null(mask);
    spk_mask_destroy(&mask);
    o.block_cols = 257;
    assert_int_equal(spk_mask_create(NULL, &o, &mask), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_last_error(NULL), "block_rows = 16, block_cols = 257: must be in 1 .. 256");
    o.reserved = 3;
    assert_int_equal(spk_mask_create(NULL, &o, &mask), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_last_error(NULL), "options.reserved = 3: it must be 0");
    assert_int_equal(spk_mask_create(NULL, NULL, &mask), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_mask_view(NULL, &desc), SPK_ERR_ARGUMENT);
}

/* Wherever memory ends, nothing is left behind. */
static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    const spk_generate o = {.mask = SPK_MASK_SINKS, .rows = 900, .cols = 900, .block_rows = 7, .block_cols = 9, .window = 100, .sinks = 5};
    spk_mask *mask = NULL;
    spk_status status = SPK_ERR_OUT_OF_MEMORY;
    for (int64_t after = 1; status != SPK_OK; after++) {
        assert_null(mask);
        spk_mem_fail_after(after);
        status = spk_mask_make(&spk_mem_system, &o, true, &mask);
        spk_mem_fail_after(-1);
        assert_true(status == SPK_OK || status == SPK_ERR_OUT_OF_MEMORY);
    }
    spk_mask_release(&mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_pairs_by_definition),
        cmocka_unit_test(has_a_table),
        cmocka_unit_test(is_made_in_public),
        cmocka_unit_test(survives_a_lack_of_memory),
        cmocka_unit_test(keeps_what_it_says),
        cmocka_unit_test(keeps_boxes_of_videos),
        cmocka_unit_test(keeps_documents),
        cmocka_unit_test(chooses_so_many),
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(needs_what_has_no_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
