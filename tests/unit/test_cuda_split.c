/* Who computes what where rows are of unequal length (schedule.h), long ones shared by a cluster (cluster_split.h), one tile of a cluster
 * cut in two (cluster_cut.h), or rows cut into pieces (long_rows.h): every block of every tile once, split tiles first and in one order for
 * the whole cluster, and less to do for the fullest block than without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/device/copy/gather.h"
#include "backend/cuda/host/schedule/cluster_cut.h"
#include "backend/cuda/host/schedule/long_rows.h"
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
    const int64_t length = spk_split_length(t, row);
    return piece[1] < 0 ? (length + t->size - 1) / t->size * t->chunks + SCHEDULE_TILE_COST + SPLIT_EXCHANGE_COST
                        : length * t->chunks + SCHEDULE_TILE_COST;
}

static void check_lists(const split_task *t, const split_lists *l, tally *seen)
{
    const int *offsets = l->memory, blocks = t->clusters * t->size;
    int64_t most = 0;
    assert_int_equal(offsets[0], 0);
    assert_int_equal(offsets[blocks], l->pieces);
    assert_int_equal(l->count, spk_split_at_pieces(t) + l->pieces * SPLIT_PIECE_WORDS);
    for (int b = 0; b < blocks; b++) {
        const int *pieces = l->memory + spk_split_at_pieces(t), first = offsets[b / t->size * t->size];
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
    assert_int_equal(spk_split_make(&spk_mem_system, &t, &lists), SPK_OK);
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
        make_lists(lengths, rows,
                   (split_task){.parts = 1 + (int)spk_rng_below(&rng, 2),
                                .chunks = 1 + (int)spk_rng_below(&rng, 2),
                                .col_tiles = 1 + (int64_t)spk_rng_below(&rng, 9),
                                .clusters = 1 + (int)spk_rng_below(&rng, 66),
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
    assert_int_equal(l.whole_cost, 64 + SCHEDULE_TILE_COST);
    assert_in_range(l.cost, 8, 8 + SCHEDULE_TILE_COST + SPLIT_EXCHANGE_COST);
    l = make_lists(few, 2, (split_task){.parts = 1, .chunks = 1, .col_tiles = 8, .clusters = 16, .size = 8});
    assert_int_equal(l.split_rows, 2);
    assert_int_equal(l.cost, 16 + SCHEDULE_TILE_COST + SPLIT_EXCHANGE_COST);
    l = make_lists(law, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 4, .clusters = 32, .size = 4});
    assert_true(l.split_rows > 0 && l.split_rows < 24);
    assert_true(l.cost * 3 < l.whole_cost * 2);
    l = make_lists(even, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 2, .clusters = 64, .size = 2});
    assert_int_equal(l.split_rows, 0);
}

/* A block's pieces of lists that are cut: its stages, and the place of the one that is cut; -1: none is. */
typedef struct share {
    int64_t cost;
    int cut_at, count;
} share;

static share count_share(const split_task *t, const int *offsets, int block, tally *seen)
{
    const int *pieces = offsets + spk_split_at_pieces(t), blocks = t->clusters * 2, others = offsets[block + 1] - offsets[block];
    share s = {.cut_at = -1, .count = pieces[block * SPLIT_PIECE_WORDS] < 0 ? 0 : 1 + others};
    assert_true(others >= 0 && (s.count > 0 || others == 0));
    for (int i = 0; i < s.count; i++) {
        const int *piece = pieces + (i == 0 ? block : blocks + offsets[block] + i - 1) * SPLIT_PIECE_WORDS;
        const int64_t row = piece[0] / t->parts, tile = piece[0] * t->col_tiles + (piece[1] < 0 ? ~piece[1] : piece[1]);
        const int64_t from = t->view->offsets[row] * t->chunks, to = t->view->offsets[row + 1] * t->chunks;
        assert_true(piece[2] >= from && piece[3] <= to && (piece[2] < piece[3] || from == to));
        if (piece[1] < 0) {
            assert_int_equal(s.cut_at, -1);
            s.cut_at = i;
            assert_int_equal(block % 2 == 0 ? piece[2] : piece[3], block % 2 == 0 ? from : to);
            assert_int_equal(seen->next[tile], block % 2 == 0 ? -1 : piece[2]);
            if (t->edge && block % 2 == 0)
                assert_true(piece[3] <= to - t->chunks);
        } else {
            assert_int_equal(seen->next[tile], -1);
            assert_true(piece[2] == from && piece[3] == to);
        }
        seen->next[tile] = piece[3];
        s.cost += piece[3] - piece[2] + (piece[1] < 0 && block % 2 == 1 ? CUT_HANDOVER_COST : SCHEDULE_TILE_COST);
    }
    return s;
}

static cut_lists make_cut(const int64_t *lengths, int64_t rows, split_task t)
{
    static tally seen;
    int64_t offsets[MOST_ROWS + 1] = {0}, most = 0, tiles_cut = 0, pieces = 0;
    cut_lists l = {0};
    for (int64_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + lengths[i];
    const spk_bsr_view view = {.grid_rows = rows, .grid_cols = 100000, .nnzb = offsets[rows], .offsets = offsets};
    t.view = &view;
    assert_int_equal(spk_cut_make(&spk_mem_system, &t, &l), SPK_OK);
    for (int64_t i = 0; i < MOST_TILES; i++)
        seen.next[i] = -1;
    assert_int_equal(l.memory[0], 0);
    assert_true(spk_split_at_pieces(&t) + (t.clusters * 2 + l.memory[t.clusters * 2]) * SPLIT_PIECE_WORDS <= l.count);
    for (int c = 0; c < t.clusters; c++) {
        const share first = count_share(&t, l.memory, c * 2, &seen), second = count_share(&t, l.memory, c * 2 + 1, &seen);
        assert_int_equal(first.cut_at < 0, second.cut_at < 0);
        if (first.cut_at >= 0) { /* the first block adds at its end; the second sends at once where the first waits for nothing else */
            assert_int_equal(first.cut_at, first.count - 1);
            assert_int_equal(second.cut_at, first.count == 1 ? 0 : second.count - 1);
            assert_in_range(first.cost - second.cost + 1 + t.chunks, 0, 2 + 2 * t.chunks);
        }
        tiles_cut += first.cut_at >= 0;
        pieces += first.count + second.count;
        most = first.cost > most ? first.cost : most;
        most = second.cost > most ? second.cost : most;
    }
    assert_int_equal(most, l.cost);
    assert_int_equal(tiles_cut, l.cut_tiles);
    assert_int_equal(pieces, l.pieces);
    for (int64_t i = 0; i < rows * t.parts * t.col_tiles; i++)
        assert_int_equal(seen.next[i], offsets[i / t.col_tiles / t.parts + 1] * t.chunks);
    spk_free(&spk_mem_system, l.memory);
    return l;
}

static void cut_tiles(void **state)
{
    (void)state;
    spk_rng rng;
    int64_t lengths[MOST_ROWS];
    spk_rng_seed(&rng, 6);
    for (int i = 0; i < 400; i++) {
        const int64_t rows = (int64_t)spk_rng_below(&rng, MOST_ROWS) + 1, most = (int64_t)spk_rng_below(&rng, 30) + 1;
        for (int64_t r = 0; r < rows; r++)
            lengths[r] = (int64_t)spk_rng_below(&rng, (uint64_t)most) * (spk_rng_below(&rng, 10) == 0 ? 20 : 1);
        make_cut(lengths, rows,
                 (split_task){.parts = 1 + (int)spk_rng_below(&rng, 2),
                              .chunks = 1 + (int)spk_rng_below(&rng, 2),
                              .col_tiles = 1 + (int64_t)spk_rng_below(&rng, 9),
                              .clusters = 1 + (int)spk_rng_below(&rng, 66),
                              .size = 2,
                              .edge = spk_rng_below(&rng, 2) == 1});
    }
    for (int i = 0; i < 64; i++) /* as many tiles as blocks, long and short: a long one and a short one in each cluster */
        lengths[i] = i % 2 == 0 ? 12 : 4;
    cut_lists l = make_cut(lengths, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 2, .clusters = 64, .size = 2});
    assert_int_equal(l.cut_tiles, 64);
    assert_int_equal(l.cost, (12 + 4 + 2 * SCHEDULE_TILE_COST + CUT_HANDOVER_COST + 1) / 2);
    for (int i = 0; i < 64; i++)
        lengths[i] = 8;
    l = make_cut(lengths, 64, (split_task){.parts = 1, .chunks = 1, .col_tiles = 2, .clusters = 64, .size = 2});
    assert_int_equal(l.cut_tiles, 0);
    assert_int_equal(l.cost, 8 + SCHEDULE_TILE_COST);
}

/* Every block once, the longest piece first, the pieces of a cut row under neighbouring numbers. */
static void check_cut(const spk_bsr_view *view, int64_t most, const pieces_list *l)
{
    const pieces_one *piece = (const pieces_one *)(const void *)(l->memory + PIECES_WORDS), *cut = piece + l->pieces;
    int64_t blocks = 0, cut_pieces = 0;
    assert_int_equal(l->memory[0], l->pieces);
    assert_int_equal(l->memory[1], l->cut_rows);
    for (int64_t i = 0; i < l->pieces; i++) {
        assert_in_range(piece[i].last - piece[i].first, 0, most);
        assert_true(piece[i].first >= view->offsets[piece[i].row] && piece[i].last <= view->offsets[piece[i].row + 1]);
        assert_true(i == 0 || piece[i].last - piece[i].first <= piece[i - 1].last - piece[i - 1].first);
        if (piece[i].number < 0)
            assert_int_equal(piece[i].last - piece[i].first, view->offsets[piece[i].row + 1] - view->offsets[piece[i].row]);
        blocks += piece[i].last - piece[i].first;
    }
    assert_int_equal(blocks, view->nnzb);
    for (int64_t c = 0; c < l->cut_rows; c++) {
        const int row = cut[c].row, first = cut[c].first, count = cut[c].last;
        assert_int_equal(first, cut_pieces);
        assert_true(count > 1);
        for (int number = first; number < first + count; number++) {
            int64_t at = 0;
            while (at < l->pieces && piece[at].number != number)
                at++;
            assert_true(at < l->pieces && piece[at].row == row);
            assert_true((number == first) == (piece[at].first == view->offsets[row]));
            assert_true((number == first + count - 1) == (piece[at].last == view->offsets[row + 1]));
        }
        cut_pieces += count;
    }
    assert_int_equal(cut_pieces, l->cut_pieces);
}

static void cut_rows(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 4);
    for (int i = 0; i < 400; i++) {
        int64_t offsets[MOST_ROWS + 1] = {0};
        const int64_t rows = (int64_t)spk_rng_below(&rng, MOST_ROWS), limit = (int64_t)spk_rng_below(&rng, 30) + 1,
                      most = (int64_t)spk_rng_below(&rng, 40) + 1;
        for (int64_t r = 0; r < rows; r++)
            offsets[r + 1] = offsets[r] + (int64_t)spk_rng_below(&rng, (uint64_t)limit) * (spk_rng_below(&rng, 10) == 0 ? 20 : 1);
        const spk_bsr_view view = {.grid_rows = rows, .nnzb = offsets[rows], .offsets = offsets};
        pieces_list list = {0};
        assert_int_equal(spk_pieces_make(&spk_mem_system, &view, most, &list), SPK_OK);
        check_cut(&view, most, &list);
        spk_free(&spk_mem_system, list.memory);
    }
}

/* Whole tiles: each once, and the fullest block hardly fuller than the mean and the longest tile together. */
static void whole_tiles(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    for (int i = 0; i < 400; i++) {
        static int seen[MOST_TILES], lengths[MOST_ROWS];
        const int64_t rows = (int64_t)spk_rng_below(&rng, MOST_ROWS) + 1, columns = (int64_t)spk_rng_below(&rng, 9) + 1;
        const int blocks = (int)spk_rng_below(&rng, 132) + 1;
        int64_t total = 0, longest = 0, most = 0;
        schedule_lists l = {0};
        for (int64_t r = 0; r < rows; r++) {
            lengths[r] = (int)spk_rng_below(&rng, 40) * (spk_rng_below(&rng, 10) == 0 ? 5 : 1);
            total += (lengths[r] + SCHEDULE_TILE_COST) * columns;
            longest = lengths[r] + SCHEDULE_TILE_COST > longest ? lengths[r] + SCHEDULE_TILE_COST : longest;
        }
        assert_int_equal(spk_schedule_make(&spk_mem_system, lengths, rows, columns, blocks, &l), SPK_OK);
        memset(seen, 0, sizeof seen);
        assert_int_equal(l.memory[0], 0);
        assert_int_equal(l.memory[blocks], rows * columns);
        for (int b = 0; b < blocks; b++) {
            int64_t cost = 0;
            for (int at = l.memory[b]; at < l.memory[b + 1]; at++) {
                const int tile = l.memory[blocks + 1 + at];
                assert_in_range(tile, 0, rows * columns - 1);
                assert_int_equal(seen[tile]++, 0);
                cost += lengths[tile / columns] + SCHEDULE_TILE_COST;
            }
            most = cost > most ? cost : most;
        }
        assert_int_equal(most, l.most);
        assert_true(most <= (total / blocks + longest) * (SCHEDULE_WINDOW_LOSS + 1) / SCHEDULE_WINDOW_LOSS);
        spk_free(&spk_mem_system, l.memory);
    }
}

/* Long and short rows in turn, three columns, one block: two tiles at a time, the long one first, so that a column ends before the next
 * begins; two blocks: windows of four. One row much longer than the others: it comes first in all columns, or the end would wait for it. */
static void windows(void **state)
{
    (void)state;
    static const int uneven[] = {10, 40, 10, 40}, one_long[] = {1, 1, 1, 1, 1, 1, 1, 60};
    static const int in_order[] = {3, 0, 9, 6, 4, 1, 10, 7, 5, 2, 11, 8};
    schedule_lists l = {0};
    assert_int_equal(spk_schedule_make(&spk_mem_system, uneven, 4, 3, 1, &l), SPK_OK);
    assert_memory_equal(l.memory + 2, in_order, sizeof in_order);
    spk_free(&spk_mem_system, l.memory);
    assert_int_equal(spk_schedule_make(&spk_mem_system, one_long, 8, 2, 2, &l), SPK_OK);
    for (int b = 0; b < 2; b++)
        assert_int_equal(l.memory[3 + l.memory[b]] / 2, 7);
    spk_free(&spk_mem_system, l.memory);
}

/* What a list of tiles saves, beside tiles dealt out in turns. */
static void dealt(void **state)
{
    (void)state;
    static const int even[] = {8, 8, 8, 8}, uneven[] = {10, 40, 10, 40};
    int64_t most = 0;
    assert_int_equal(spk_schedule_dealt(&spk_mem_system, even, 4, 3, 6, &most), SPK_OK);
    assert_int_equal(most, 2 * (8 + SCHEDULE_TILE_COST));
    assert_int_equal(spk_schedule_dealt(&spk_mem_system, uneven, 4, 3, 2, &most), SPK_OK); /* all long rows to one block */
    assert_int_equal(most, 6 * (40 + SCHEDULE_TILE_COST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_rows), cmocka_unit_test(long_rows),   cmocka_unit_test(cut_tiles),
                                       cmocka_unit_test(cut_rows), cmocka_unit_test(whole_tiles), cmocka_unit_test(windows),
                                       cmocka_unit_test(dealt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
