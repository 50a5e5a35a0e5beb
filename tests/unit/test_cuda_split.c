/* Who computes what where long rows are split: every block of every tile once, split tiles first and in one order for the whole cluster, and less to do for
 * the fullest block than without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/cuda/kernels/split.h"
#include "base/rng.h"

enum { MOST_ROWS = 200, MOST_TILES = MOST_ROWS * 2 * 9 };

typedef struct tally {
    int64_t next[MOST_TILES]; /* the block that a tile's next segment begins with; -1: the tile was not yet seen */
    int segments[MOST_TILES];
} tally;

static void count_piece(const split_task *t, const int *piece, tally *seen)
{
    const int col = piece[1] < 0 ? ~piece[1] : piece[1], block_row = piece[0] / t->parts;
    assert_in_range(piece[0], 0, t->view->grid_rows * t->parts - 1);
    assert_in_range(col, 0, t->col_tiles - 1);
    assert_true(piece[2] >= t->view->offsets[block_row] && piece[2] <= piece[3] && piece[3] <= t->view->offsets[block_row + 1]);
    const int64_t tile = piece[0] * t->col_tiles + col;
    if (seen->next[tile] < 0)
        seen->next[tile] = t->view->offsets[block_row];
    assert_int_equal(piece[2], seen->next[tile]); /* segments come in the order of the blocks' ranks */
    seen->next[tile] = piece[3];
    seen->segments[tile]++;
    if (piece[1] >= 0)
        assert_int_equal(seen->segments[tile], 1);
}

static int64_t cost_of(const split_task *t, const int *piece)
{
    const int row = piece[0] / t->parts;
    const int64_t length = split_length(t, row);
    return piece[1] < 0 ? (length + t->size - 1) / t->size * t->chunks + SPLIT_TILE_COST + SPLIT_EXCHANGE_COST : length * t->chunks + SPLIT_TILE_COST;
}

static void check_lists(const split_task *t, const split_lists *l, tally *seen)
{
    const int *offsets = l->memory, blocks = t->clusters * t->size;
    int64_t most = 0;
    assert_int_equal(offsets[0], 0);
    assert_int_equal(offsets[blocks], l->pieces);
    assert_int_equal(l->count, split_at_pieces(t) + l->pieces * SPLIT_PIECE_WORDS);
    for (int b = 0; b < blocks; b++) {
        const int *pieces = l->memory + split_at_pieces(t), first = offsets[b / t->size * t->size];
        int64_t cost = 0;
        bool whole = false;
        for (int i = offsets[b]; i < offsets[b + 1]; i++) {
            const int *piece = pieces + i * SPLIT_PIECE_WORDS, *partner = pieces + (first + i - offsets[b]) * SPLIT_PIECE_WORDS;
            count_piece(t, piece, seen);
            cost += cost_of(t, piece);
            whole = whole || piece[1] >= 0;
            if (piece[1] < 0) {
                assert_false(whole);
                assert_int_equal(piece[0], partner[0]);
                assert_int_equal(piece[1], partner[1]);
            }
        }
        most = cost > most ? cost : most;
    }
    assert_int_equal(most, l->cost);
}

static split_lists make_lists(const int64_t *lengths, int64_t rows, split_task t)
{
    static tally seen;
    int64_t offsets[MOST_ROWS + 1] = {0};
    split_lists lists = {0};
    for (int64_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + lengths[i];
    const spk_bsr_view view = {.grid_rows = rows, .grid_cols = 100000, .nnzb = offsets[rows], .offsets = offsets};
    t.view = &view;
    assert_int_equal(split_make(&spk_mem_system, &t, &lists), SPK_OK);
    memset(&seen, 0, sizeof seen);
    for (int64_t i = 0; i < MOST_TILES; i++)
        seen.next[i] = -1;
    check_lists(&t, &lists, &seen);
    for (int64_t i = 0; i < rows * t.parts * t.col_tiles; i++) {
        const int64_t row = i / t.col_tiles / t.parts;
        assert_int_equal(seen.next[i], offsets[row + 1]);
        assert_true(seen.segments[i] == 1 || seen.segments[i] == t.size);
    }
    spk_free(&spk_mem_system, lists.memory);
    return lists;
}

static void any_rows(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    for (int i = 0; i < 400; i++) {
        int64_t lengths[MOST_ROWS];
        const int64_t rows = (int64_t)spk_rng_below(&rng, MOST_ROWS) + 1, most = (int64_t)spk_rng_below(&rng, 30) + 1;
        for (int64_t r = 0; r < rows; r++)
            lengths[r] = (int64_t)spk_rng_below(&rng, (uint64_t)most) * (spk_rng_below(&rng, 10) == 0 ? 20 : 1);
        make_lists(lengths, rows, (split_task){.parts = 1 + (int)spk_rng_below(&rng, 2), .chunks = 1 + (int)spk_rng_below(&rng, 2),
                                               .col_tiles = 1 + (int64_t)spk_rng_below(&rng, 9), .clusters = 1 + (int)spk_rng_below(&rng, 66),
                                               .size = 1 << (1 + (int)spk_rng_below(&rng, 3))});
    }
}

/* One full row among empty ones, few long rows, a power law: the fullest block's stages. */
static void long_rows(void **state)
{
    (void)state;
    int64_t one[64] = {[17] = 64}, few[2] = {128, 128}, law[64], even[64];
    static const int64_t longest[8] = {36, 26, 21, 18, 16, 15, 14, 13};
    for (int i = 0; i < 64; i++) {
        law[i] = i < 8 ? longest[i] : i < 24 ? 9 : 5;
        even[i] = 8;
    }
    split_lists l = make_lists(one, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 4, .clusters = 16, .size = 8});
    assert_int_equal(l.split_rows, 1);
    assert_int_equal(l.whole_cost, 64 + SPLIT_TILE_COST);
    assert_in_range(l.cost, 8, 8 + SPLIT_TILE_COST + SPLIT_EXCHANGE_COST);
    l = make_lists(few, 2, (split_task){.parts = 1, .chunks = 1, .col_tiles = 8, .clusters = 16, .size = 8});
    assert_int_equal(l.split_rows, 2);
    assert_int_equal(l.cost, 16 + SPLIT_TILE_COST + SPLIT_EXCHANGE_COST);
    l = make_lists(law, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 4, .clusters = 32, .size = 4});
    assert_true(l.split_rows > 0 && l.split_rows < 24);
    assert_true(l.cost * 3 < l.whole_cost * 2);
    l = make_lists(even, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 2, .clusters = 64, .size = 2});
    assert_int_equal(l.split_rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_rows), cmocka_unit_test(long_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
