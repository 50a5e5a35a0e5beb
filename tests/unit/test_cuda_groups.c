/* Row groups: every block is listed once, in its row's place, columns ascend, from the first or round from another, masks say what is
 * there; groups are chosen well, and stand where blocks of threads end together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/cuda/host/groups/group_lists.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "backend/cuda/host/schedule/schedule.h"
#include "base/rng.h"

typedef struct shape {
    int64_t grid_rows, grid_cols;
    int percent, height, tile_rows, slots;
    bool positions, ragged;
} shape;

static spk_bsr_view make_view(spk_rng *rng, const shape *s)
{
    int64_t *offsets = calloc((size_t)s->grid_rows + 1, sizeof *offsets), nnzb = 0;
    int32_t *columns = calloc((size_t)(s->grid_rows * s->grid_cols) + 1, sizeof *columns);
    int64_t *positions = calloc((size_t)(s->grid_rows * s->grid_cols) + 1, sizeof *positions);
    assert_true(offsets != NULL && columns != NULL && positions != NULL);
    for (int64_t i = 0; i < s->grid_rows; i++) {
        for (int64_t j = 0; j < s->grid_cols; j++)
            if ((int)spk_rng_below(rng, 100) < s->percent * (i % 7 == 3 ? 3 : 1))
                columns[nnzb++] = (int32_t)j;
        offsets[i + 1] = nnzb;
    }
    for (int64_t p = 0; p < nnzb; p++)
        positions[p] = nnzb - 1 - p;
    if (!s->positions) {
        free(positions);
        positions = NULL;
    }
    return (spk_bsr_view){.rows = s->grid_rows * 16,
                          .cols = s->grid_cols * 16 - s->ragged,
                          .block_rows = 16,
                          .block_cols = 16,
                          .grid_rows = s->grid_rows,
                          .grid_cols = s->grid_cols,
                          .nnzb = nnzb,
                          .offsets = offsets,
                          .columns = columns,
                          .positions = positions};
}

static void release_view(const spk_bsr_view *view)
{
    free((void *)(uintptr_t)view->offsets);
    free((void *)(uintptr_t)view->columns);
    free((void *)(uintptr_t)view->positions);
}

static int64_t block_at(const spk_bsr_view *view, int row, int column)
{
    for (int64_t p = view->offsets[row]; row >= 0 && p < view->offsets[row + 1]; p++)
        if (view->columns[p] == column)
            return view->positions != NULL ? view->positions[p] : p;
    return -1;
}

/* While a group's columns are seen: the one before, and how often they began anew with a lower one. */
typedef struct column_order {
    int last, turns;
} column_order;

static void see_column(column_order *order, int column)
{
    order->turns += column <= order->last;
    order->last = column;
}

/* One stage: returns how many blocks it lists. */
static int64_t check_stage(const spk_bsr_view *view, const group_memory *l, const shape *s, const int *rows, int64_t stage,
                           column_order *order)
{
    const int *words = l->memory + spk_groups_at_words(l) + stage * l->slots * (1 + l->height);
    int mask = 0;
    int64_t blocks = 0;
    for (int slot = 0; slot < l->slots; slot++, words += 1 + l->height) {
        int any = 0;
        for (int y = 0; y < l->height; y++) {
            assert_int_equal(words[1 + y], words[0] < 0 || rows[y] < 0 ? -1 : block_at(view, rows[y], words[0]));
            blocks += words[1 + y] >= 0;
            any |= words[1 + y] >= 0;
            mask |= words[1 + y] >= 0 ? 1 << y / s->tile_rows : 0;
        }
        assert_int_equal(any, words[0] >= 0);
        if (words[0] >= 0) {
            see_column(order, words[0]);
            mask |= s->ragged && words[0] == view->grid_cols - 1 ? 256 << slot : 0;
        } else {
            assert_true(slot > 0);
        }
    }
    assert_int_equal(l->memory[spk_groups_at_present(l) + stage], mask);
    return blocks;
}

static void check_lists(const spk_bsr_view *view, const group_memory *l, const shape *s)
{
    char *seen = calloc((size_t)view->grid_rows + 1, 1);
    int64_t blocks = 0, rows_seen = 0;
    assert_non_null(seen);
    for (int64_t g = 0; g < l->groups; g++) {
        const int *rows = l->memory + spk_groups_at_rows(l) + g * l->height;
        column_order order = {-1, 0};
        for (int y = 0; y < l->height; y++)
            if (rows[y] >= 0) {
                assert_true(rows[y] < view->grid_rows && !seen[rows[y]]);
                seen[rows[y]] = 1;
                rows_seen++;
            }
        for (int64_t stage = l->memory[g]; stage < l->memory[g + 1]; stage++)
            blocks += check_stage(view, l, s, rows, stage, &order);
        assert_true(order.turns <= 1);
    }
    assert_int_equal(blocks, view->nnzb);
    assert_int_equal(rows_seen, view->grid_rows);
    assert_int_equal(l->memory[l->groups], l->stages);
    free(seen);
}

static void lists_hold_every_block_once(void **unused)
{
    (void)unused;
    const shape shapes[] = {{64, 64, 12, 2, 1, 1, false, false}, {64, 64, 50, 4, 1, 1, true, true},  {33, 20, 12, 8, 4, 4, false, true},
                            {7, 9, 30, 16, 4, 2, true, false},   {1, 1, 100, 8, 4, 2, false, true},  {50, 300, 3, 4, 2, 2, false, true},
                            {5, 5, 0, 4, 2, 1, false, false},    {300, 40, 20, 8, 2, 1, true, true}, {0, 4, 10, 4, 2, 1, false, false}};
    spk_rng rng;
    spk_rng_seed(&rng, 7);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        spk_bsr_view view = make_view(&rng, &shapes[i]);
        group_memory lists = {0};
        assert_int_equal(spk_groups_make(&spk_mem_system, &view, shapes[i].height, shapes[i].tile_rows, shapes[i].slots,
                                         (groups_dealt){5, 7, 1}, &lists),
                         SPK_OK);
        check_lists(&view, &lists, &shapes[i]);
        spk_free(&spk_mem_system, lists.memory);
        release_view(&view);
    }
}

/* Two kinds of rows in alternation: groups of two are made of one kind each. */
static void like_goes_to_like(void **unused)
{
    (void)unused;
    enum { ROWS = 32, EACH = 8 };
    int64_t offsets[ROWS + 1] = {0};
    int32_t columns[ROWS * EACH];
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < EACH; j++)
            columns[i * EACH + j] = 2 * j + i % 2;
        offsets[i + 1] = (i + 1) * EACH;
    }
    const spk_bsr_view view = {.rows = ROWS * 64,
                               .cols = 2 * EACH * 64,
                               .block_rows = 64,
                               .block_cols = 64,
                               .grid_rows = ROWS,
                               .grid_cols = 2 * EACH,
                               .nnzb = ROWS * EACH,
                               .offsets = offsets,
                               .columns = columns};
    group_memory lists = {0};
    assert_int_equal(spk_groups_make(&spk_mem_system, &view, 2, 1, 1, (groups_dealt){0}, &lists), SPK_OK);
    assert_int_equal(lists.stages, ROWS / 2 * EACH);
    spk_free(&spk_mem_system, lists.memory);
}

/* A window of 8 columns moves by one a row: groups of two have 9 and begin so that neighbours want the same ones together; columns at
 * random stay as they are. */
static void neighbours_meet(void **unused)
{
    (void)unused;
    enum { ROWS = 32, EACH = 8, UNION = EACH + 1, GROUPS = ROWS / 2 };
    int64_t offsets[ROWS + 1] = {0};
    int32_t columns[ROWS * EACH];
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < EACH; j++)
            columns[i * EACH + j] = i + j;
        offsets[i + 1] = (i + 1) * EACH;
    }
    spk_bsr_view view = {.rows = ROWS * 64,
                         .cols = (ROWS + EACH) * 64,
                         .block_rows = 64,
                         .block_cols = 64,
                         .grid_rows = ROWS,
                         .grid_cols = ROWS + EACH,
                         .nnzb = ROWS * EACH,
                         .offsets = offsets,
                         .columns = columns};
    const turns_lists rows = {.columns = columns, .stride = 1, .rows = ROWS, .offsets = offsets};
    group_memory lists = {0};
    assert_int_equal(spk_turns_period(&rows), EACH);
    assert_int_equal(spk_turns_agreement(&rows, 0), 0);
    assert_int_equal(spk_turns_agreement(&rows, EACH), (ROWS - 1) * (EACH - 1));
    assert_int_equal(spk_groups_make(&spk_mem_system, &view, 2, 1, 1, (groups_dealt){0}, &lists), SPK_OK);
    assert_int_equal(lists.stages, GROUPS * UNION);
    for (int g = 0; g < GROUPS; g++)
        for (int step = 0; step < UNION; step++) {
            const int *words = lists.memory + spk_groups_at_words(&lists) + (g * UNION + step) * 3,
                      mask = lists.memory[spk_groups_at_present(&lists) + g * UNION + step];
            assert_int_equal(words[0] % UNION, step);
            assert_in_range(words[0], 2 * g, 2 * g + EACH);
            assert_int_equal(mask, (words[1] >= 0) | (words[2] >= 0) << 1);
            assert_int_equal(words[1], words[0] == 2 * g + EACH ? -1 : 2 * g * EACH + words[0] - 2 * g);
        }
    spk_free(&spk_mem_system, lists.memory);
    for (int i = 0; i < ROWS * EACH; i++)
        columns[i] = i % EACH * 4 + (i / EACH * 7 + i) % 4;
    assert_int_equal(spk_turns_period(&rows), 0);
}

/* Columns of a row that are in `has`. */
static int shared_with(const spk_bsr_view *view, int row, const char *has)
{
    int count = 0;
    for (int64_t p = view->offsets[row]; p < view->offsets[row + 1]; p++)
        count += has[view->columns[p]];
    return count;
}

/* The row left that shares most with the columns of `has`, of equal ones the first; negative: none is left. */
static int plainly_most_alike(const spk_bsr_view *view, const char *taken, const char *has)
{
    int best = -1, most = -1;
    for (int row = 0; row < view->grid_rows; row++)
        if (!taken[row] && shared_with(view, row, has) > most) {
            most = shared_with(view, row, has);
            best = row;
        }
    return best;
}

/* Where blocks are few the first choice is that of a search of all rows left. */
static void chosen_among_all_rows(void **unused)
{
    (void)unused;
    spk_rng rng;
    spk_rng_seed(&rng, 10);
    for (int i = 0; i < 300; i++) {
        const shape s = {(int64_t)spk_rng_below(&rng, 40),
                         (int64_t)spk_rng_below(&rng, 40),
                         (int)spk_rng_below(&rng, 40),
                         2 << spk_rng_below(&rng, 4),
                         1,
                         1,
                         false,
                         false};
        spk_bsr_view view = make_view(&rng, &s);
        const int64_t groups = spk_groups_count(view.grid_rows, s.height);
        groups_work w = {.view = &view};
        char taken[40] = {0};
        assert_int_equal(spk_groups_allocate(&spk_mem_system, &w, groups, s.height), SPK_OK);
        spk_groups_choose(&w, groups, s.height);
        for (int64_t g = 0; g < groups; g++) {
            char has[40] = {0};
            int united = 0;
            for (int y = 0; y < s.height; y++) {
                const int row = plainly_most_alike(&view, taken, has);
                assert_int_equal(w.rows[g * s.height + y], row);
                if (row < 0)
                    continue;
                taken[row] = 1;
                united += (int)(view.offsets[row + 1] - view.offsets[row]) - shared_with(&view, row, has);
                for (int64_t p = view.offsets[row]; p < view.offsets[row + 1]; p++)
                    has[view.columns[p]] = 1;
            }
            assert_int_equal(w.unions[g], united);
        }
        spk_groups_release(&spk_mem_system, &w);
        release_view(&view);
    }
}

/* The first choice of groups: their lengths, and the sum. */
static int64_t first_choice(const spk_bsr_view *view, int height, int *lengths)
{
    const int64_t groups = spk_groups_count(view->grid_rows, height);
    groups_work w = {.view = view};
    int64_t sum = 0;
    assert_int_equal(spk_groups_allocate(&spk_mem_system, &w, groups, height), SPK_OK);
    spk_groups_choose(&w, groups, height);
    for (int64_t g = 0; g < groups; g++)
        sum += lengths[g] = w.unions[g];
    spk_groups_release(&spk_mem_system, &w);
    return sum;
}

/* The lengths of the groups of a plan, and the most that one of the blocks of threads has to do. */
static int64_t planned(const spk_bsr_view *view, const shape *s, groups_dealt dealt, int *lengths, int64_t *stages)
{
    group_memory lists = {0};
    int64_t most = 0;
    assert_int_equal(spk_groups_make(&spk_mem_system, view, s->height, s->tile_rows, s->slots, dealt, &lists), SPK_OK);
    check_lists(view, &lists, s);
    for (int64_t g = 0; g < lists.groups; g++)
        lengths[g] = lists.memory[g + 1] - lists.memory[g];
    assert_int_equal(spk_schedule_dealt(&spk_mem_system, lengths, lists.groups, 8, 66, &most), SPK_OK);
    *stages = lists.stages;
    spk_free(&spk_mem_system, lists.memory);
    return most;
}

/* `each` columns at random in each row. */
static spk_bsr_view even_rows(spk_rng *rng, int64_t rows, int64_t columns, int64_t each)
{
    spk_bsr_view view = {.rows = rows * 64,
                         .cols = columns * 64,
                         .block_rows = 64,
                         .block_cols = 64,
                         .grid_rows = rows,
                         .grid_cols = columns,
                         .nnzb = rows * each};
    int64_t *offsets = calloc((size_t)rows + 1, sizeof *offsets);
    int32_t *column = calloc((size_t)(rows * each), sizeof *column);
    assert_true(offsets != NULL && column != NULL);
    for (int64_t i = 0, p = 0; i < rows; i++) {
        for (int64_t j = 0, left = each; j < columns; j++)
            if ((int64_t)spk_rng_below(rng, (uint64_t)(columns - j)) < left) {
                column[p++] = (int32_t)j;
                left--;
            }
        offsets[i + 1] = p;
    }
    view.offsets = offsets;
    view.columns = column;
    return view;
}

/* Rows of random columns: fewer columns remain than the first choice leaves, and, with as many, the fullest of the blocks that tiles are
 * dealt out to has less to do. */
static void better_than_the_first_choice(void **unused)
{
    (void)unused;
    const shape shapes[] = {{64, 64, 50, 2, 1, 1, false, false}, {128, 128, 12, 4, 2, 1, false, false}};
    spk_rng rng;
    spk_rng_seed(&rng, 11);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        spk_bsr_view view = even_rows(&rng, s->grid_rows, s->grid_cols, s->grid_cols * s->percent / 100);
        int64_t stages[2];
        int lengths[64];
        const int64_t chosen = first_choice(&view, s->height, lengths),
                      as_found = planned(&view, s, (groups_dealt){0}, lengths, &stages[0]);
        const int64_t balanced = planned(&view, s, (groups_dealt){8, 66, 1}, lengths, &stages[1]);
        assert_true(stages[0] < chosen);
        assert_int_equal(stages[1], stages[0]);
        assert_true(balanced < as_found);
        release_view(&view);
    }
}

/* Groups of rows of very unequal lengths, or whose neighbours meet, stay as they are chosen. */
static void first_choice_stays(void **unused)
{
    (void)unused;
    const shape s = {64, 64, 0, 2, 1, 1, false, false};
    spk_rng rng;
    spk_rng_seed(&rng, 12);
    for (int banded = 0; banded < 2; banded++) {
        spk_bsr_view view = even_rows(&rng, 64, 64, 8);
        int64_t *offsets = (int64_t *)(uintptr_t)view.offsets, p = 0, stages;
        int32_t *columns = calloc(64 * 64, sizeof *columns);
        int first[32], lengths[32];
        assert_non_null(columns);
        for (int i = 0; i < 64; i++) { /* a band; lengths from about 2 to about 50 */
            for (int j = 0; j < 64; j++)
                if (banded ? j >= i - 4 && j <= i + 4 : (int)spk_rng_below(&rng, 64) < (i % 16 == 5 ? 50 : 2 + i % 5))
                    columns[p++] = j;
            offsets[i + 1] = p;
        }
        view.nnzb = p;
        free((void *)(uintptr_t)view.columns);
        view.columns = columns;
        first_choice(&view, 2, first);
        planned(&view, &s, (groups_dealt){8, 66, 1}, lengths, &stages);
        assert_memory_equal(lengths, first, sizeof first);
        release_view(&view);
    }
}

/* Two long tiles of one block: one of them goes to a block that has short ones. Places that run in another turn keep theirs, even where
 * that would help: of ten blocks with twelve tiles two have two each. */
static void blocks_end_together(void **unused)
{
    (void)unused;
    int lengths[] = {9, 1, 1, 9, 1, 1}, places[12], long_last[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9};
    int64_t most = 0;
    assert_int_equal(spk_balance_make(&spk_mem_system, lengths, places, 6, 1, 3), SPK_OK);
    assert_int_equal(spk_schedule_dealt(&spk_mem_system, lengths, 6, 1, 3, &most), SPK_OK);
    assert_int_equal(most, 9 + 1 + 2 * SCHEDULE_TILE_COST);
    for (int place = 0, seen = 0; place < 6; place++) {
        assert_int_equal(places[place] / 3, place / 3);
        assert_int_equal(lengths[place], places[place] % 3 == 0 ? 9 : 1);
        assert_false(seen >> places[place] & 1);
        seen |= 1 << places[place];
    }
    assert_int_equal(spk_balance_make(&spk_mem_system, long_last, places, 12, 1, 10), SPK_OK);
    for (int place = 0; place < 12; place++)
        assert_int_equal(places[place], place);
}

/* However many row tiles there are, no more than so much is looked at: the exchange that would help lies far behind. */
static void balancing_ends_early(void **unused)
{
    (void)unused;
    enum { ROWS = 40000, BLOCKS = 8 };
    int *lengths = calloc(ROWS, sizeof *lengths), *places = calloc(ROWS, sizeof *places);
    assert_true(lengths != NULL && places != NULL);
    for (int enough = 0; enough < 2; enough++) {
        int64_t load[BLOCKS] = {0};
        balance_work w = {.lengths = lengths,
                          .places = places,
                          .load = load,
                          .rows = ROWS,
                          .col_tiles = 1,
                          .blocks = BLOCKS,
                          .left = enough ? 100000 : 1000};
        for (int place = 0; place < ROWS; place++) {
            lengths[place] = place == ROWS - 1 || place == ROWS - 1 - BLOCKS ? 1 : 10;
            load[place % BLOCKS] += lengths[place];
        }
        assert_int_equal(spk_balance_step(&w), enough);
        assert_true(w.left > -100);
    }
    free(lengths);
    free(places);
}

/* Whichever allocation fails, the error is said and nothing is kept. */
static void out_of_memory(void **unused)
{
    (void)unused;
    spk_rng rng;
    spk_rng_seed(&rng, 14);
    spk_bsr_view view = even_rows(&rng, 64, 64, 32);
    group_memory lists = {0};
    spk_mem_fail_after(-1);
    assert_int_equal(spk_groups_make(&spk_mem_system, &view, 2, 1, 1, (groups_dealt){8, 66, 1}, &lists), SPK_OK);
    spk_free(&spk_mem_system, lists.memory);
    const int64_t allocations = spk_mem_fail_after(-1);
    assert_in_range(allocations, 10, 100);
    for (int64_t i = 0; i < allocations; i++) {
        lists = (group_memory){0};
        spk_mem_fail_after(i);
        const spk_status status = spk_groups_make(&spk_mem_system, &view, 2, 1, 1, (groups_dealt){8, 66, 1}, &lists);
        spk_mem_fail_after(-1);
        spk_free(&spk_mem_system, lists.memory);
        assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
    }
    release_view(&view);
}

/* TMA stores whole 16 bytes: only where every line of D ends with one may it store D. */
static void lines_of_d_that_tma_may_store(void **state)
{
    (void)state;
    spk_problem p = {.m = 599, .n = 64, .d.ld = 600, .d.dtype = SPK_F16, .d.layout = SPK_ROW_MAJOR};
    _Alignas(16) char d[32] = {0};
    assert_false(spk_sm90_d_direct(&p, d));
    assert_true(spk_sm90_d_direct(&p, d + 2));
    p.d.layout = SPK_COL_MAJOR; /* lines of 599, 600 apart */
    assert_true(spk_sm90_d_direct(&p, d));
    p.m = 592;
    assert_false(spk_sm90_d_direct(&p, d));
    p.d.ld = 599;
    assert_true(spk_sm90_d_direct(&p, d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_hold_every_block_once),
                                       cmocka_unit_test(like_goes_to_like),
                                       cmocka_unit_test(neighbours_meet),
                                       cmocka_unit_test(chosen_among_all_rows),
                                       cmocka_unit_test(better_than_the_first_choice),
                                       cmocka_unit_test(first_choice_stays),
                                       cmocka_unit_test(blocks_end_together),
                                       cmocka_unit_test(balancing_ends_early),
                                       cmocka_unit_test(out_of_memory),
                                       cmocka_unit_test(lines_of_d_that_tma_may_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
