/* The runs of an SDDMM on the CPU: whatever the pattern, slices, strips and parts, each block's strip is in one piece for each part of K,
 * and the runs have equal work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "backend/backend.h"
#include "backend/cpu/kernels/sddmm/sddmm_runs.h"

enum { MOST_ROWS = 12, MOST_COLUMNS = 40, MOST_TIMES = 12 };

typedef struct pattern {
    int64_t offsets[MOST_ROWS + 1];
    int32_t columns[MOST_ROWS * MOST_COLUMNS];
    spk_bsr_view view;
} pattern;

static int64_t draw(spk_rng *rng, int64_t most)
{
    return 1 + (int64_t)spk_rng_below(rng, (uint64_t)most);
}

static void draw_pattern(spk_rng *rng, pattern *p)
{
    const double density = spk_rng_uniform(rng);
    int64_t count = 0;
    p->view = (spk_bsr_view){.grid_rows = draw(rng, MOST_ROWS), .grid_cols = draw(rng, MOST_COLUMNS)};
    for (int64_t i = 0; i < p->view.grid_rows; i++) {
        const bool empty = spk_rng_below(rng, 4) == 0;
        p->offsets[i] = count;
        for (int64_t j = 0; !empty && j < p->view.grid_cols; j++)
            if (spk_rng_uniform(rng) < density)
                p->columns[count++] = (int32_t)j;
    }
    p->offsets[p->view.grid_rows] = count;
    p->view.nnzb = count;
    p->view.offsets = p->offsets;
    p->view.columns = p->columns;
}

/* Every block of every piece is where the piece says. */
static void note(const pattern *p, const sddmm_runs *runs, const sddmm_piece *piece, unsigned char *seen)
{
    const strip_range columns = strip_part(p->view.grid_cols, piece->slice, runs->slices);
    assert_in_range(piece->last - piece->first, 1, runs->most);
    assert_true(piece->first >= p->offsets[piece->block_row] && piece->last <= p->offsets[piece->block_row + 1]);
    assert_in_range(piece->strip, 0, runs->strips - 1);
    assert_in_range(piece->part, 0, runs->splits - 1);
    for (int64_t block = piece->first; block < piece->last; block++) {
        assert_true(p->columns[block] >= columns.begin && p->columns[block] < columns.end);
        seen[(block * runs->strips + piece->strip) * runs->splits + piece->part]++;
    }
}

static void test_each_once(void **state)
{
    (void)state;
    const spk_mem mem = {0};
    spk_rng rng;
    spk_rng_seed(&rng, 20261127);
    for (int trial = 0; trial < 3000; trial++) {
        static unsigned char seen[MOST_ROWS * MOST_COLUMNS * MOST_TIMES];
        pattern p;
        draw_pattern(&rng, &p);
        sddmm_runs runs = {.count = draw(&rng, 70),
                           .slices = draw(&rng, p.view.grid_cols),
                           .strips = draw(&rng, 4),
                           .splits = draw(&rng, 3),
                           .most = draw(&rng, 9)};
        const int64_t all = p.view.nnzb * runs.strips * runs.splits;
        assert_int_equal(sddmm_make_runs(&mem, &p.view, &runs), SPK_OK);
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < runs.count; i++) {
            sddmm_walk walk = sddmm_walk_run(&runs, p.view.nnzb, i);
            assert_in_range(walk.left, all / runs.count, all / runs.count + (all % runs.count != 0));
            for (sddmm_piece piece; sddmm_next(&runs, &walk, &piece);)
                note(&p, &runs, &piece, seen);
        }
        for (int64_t i = 0; i < MOST_ROWS * MOST_COLUMNS * MOST_TIMES; i++)
            assert_int_equal(seen[i], i < all);
        sddmm_free_runs(&mem, &runs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
