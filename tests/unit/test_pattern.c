/* Patterns: what is refused and in which words, what is derived, views and samples against a plain model, threads, failing memory. */
#include "unit/models.h"

#include <math.h>
#include <pthread.h>

/* ------------------------------------------------------------------ a random valid pattern and its grid of flags */

typedef struct grid {
    int64_t rows, cols; /* blocks */
    int64_t nnzb;
    unsigned char *there;
    int64_t *offsets, *columns;
} grid;

static grid random_grid(spk_rng *rng, int64_t rows, int64_t cols)
{
    grid g = {rows, cols, 0, calloc((size_t)(rows * cols) + 1, 1), calloc((size_t)rows + 1, 8), calloc((size_t)(rows * cols) + 1, 8)};
    int64_t chance = pick(rng, 0, 10);
    for (int64_t i = 0; i < rows; i++) {
        int empty = pick(rng, 0, 4) == 0;
        for (int64_t j = 0; j < cols; j++)
            if (!empty && pick(rng, 1, 10) <= chance) {
                g.there[i * cols + j] = 1;
                g.columns[g.nnzb++] = j;
            }
        g.offsets[i + 1] = g.nnzb;
    }
    return g;
}

static void grid_free(grid *g)
{
    free(g->there);
    free(g->offsets);
    free(g->columns);
}

static spk_pattern *pattern_of(const grid *g, spk_index_type type, int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols)
{
    void *offsets = index_array(type, g->offsets, g->rows + 1), *columns = index_array(type, g->columns, g->nnzb);
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), rows, cols, block_rows, block_cols, g->nnzb, offsets, columns, type, SPK_HOST};
    spk_pattern *pattern = NULL;
    assert_ok(spk_pattern_make(&counted, &indices, &pattern));
    free(offsets);
    free(columns);
    return pattern;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b))))
        fail_msg("%.17g is not %.17g", a, b);
}

static double plain_spread(const grid *g, int by_columns)
{
    int64_t count = by_columns ? g->cols : g->rows, across = by_columns ? g->rows : g->cols;
    double mean = count > 0 ? (double)g->nnzb / (double)count : 0, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double length = 0;
        for (int64_t j = 0; j < across; j++)
            length += by_columns ? g->there[j * g->cols + i] : g->there[i * g->cols + j];
        sum += (length - mean) * (length - mean);
    }
    return mean > 0 ? sqrt(sum / (double)count) / mean : 0;
}

static void check_features(const grid *g, const spk_pattern *pattern)
{
    int64_t empty = 0, longest = 0, pairs = 0;
    double overlap = 0, distance = 0;
    for (int64_t i = 0; i < g->rows; i++) {
        int64_t length = 0, shared = 0;
        for (int64_t j = 0; j < g->cols; j++)
            if (g->there[i * g->cols + j]) {
                length++;
                shared += i + 1 < g->rows && g->there[(i + 1) * g->cols + j];
                distance += fabs(((double)i + 0.5) / (double)g->rows - ((double)j + 0.5) / (double)g->cols);
            }
        empty += length == 0;
        longest = length > longest ? length : longest;
        if (length > 0 && i + 1 < g->rows) {
            overlap += (double)shared / (double)length;
            pairs++;
        }
    }
    assert_int_equal(pattern->features.empty_rows, empty);
    assert_int_equal(pattern->features.longest_row, longest);
    assert_near(pattern->features.row_overlap, pairs > 0 ? overlap / (double)pairs : 0);
    assert_near(pattern->features.bandwidth, g->nnzb > 0 ? distance / (double)g->nnzb : 0);
    /* The spread of equal rows is a rounding residue, of the order of the root of eps. */
    assert_true(fabs(pattern->features.row_spread - plain_spread(g, 0)) < 1e-7);
    assert_true(fabs(pattern->features.col_spread - plain_spread(g, 1)) < 1e-7);
    assert_near(pattern->density, g->rows * g->cols > 0 ? (double)g->nnzb / (double)(g->rows * g->cols) : 0);
}

/* Every block that the view names is where the grid has it, once, ascending, and its elements are found through the strides. */
static void check_view(const grid *g, const spk_pattern *pattern, spk_trans trans, spk_layout layout)
{
    spk_bsr_view view;
    assert_ok(spk_pattern_view(pattern, trans, layout, &view));
    int turned = trans == SPK_TRANS;
    int64_t seen = 0;
    assert_int_equal(view.rows, turned ? pattern->cols : pattern->rows);
    assert_int_equal(view.cols, turned ? pattern->rows : pattern->cols);
    assert_int_equal(view.grid_rows, turned ? g->cols : g->rows);
    assert_int_equal(view.grid_cols, turned ? g->rows : g->cols);
    assert_int_equal(view.block_rows, turned ? pattern->block_cols : pattern->block_rows);
    assert_int_equal(view.block_cols, turned ? pattern->block_rows : pattern->block_cols);
    assert_int_equal(view.block_stride, pattern->block_rows * pattern->block_cols);
    for (int64_t i = 0; i < view.grid_rows; i++)
        for (int64_t p = view.offsets[i]; p < view.offsets[i + 1]; p++, seen++) {
            int64_t j = view.columns[p], row = turned ? j : i, col = turned ? i : j, at = view.positions != NULL ? view.positions[p] : p;
            assert_true(g->there[row * g->cols + col]);
            assert_true(p == view.offsets[i] || view.columns[p - 1] < j);
            assert_int_equal(g->columns[at], col);
            assert_in_range(at, g->offsets[row], g->offsets[row + 1] - 1);
        }
    assert_int_equal(seen, g->nnzb);
    int64_t r = view.block_rows - 1, c = view.block_cols / 2, stored_r = turned ? c : r, stored_c = turned ? r : c;
    assert_int_equal(r * view.row_stride + c * view.col_stride,
                     layout == SPK_ROW_MAJOR ? stored_r * pattern->block_cols + stored_c : stored_c * pattern->block_rows + stored_r);
}

static void check_sample(spk_rng *rng, const grid *g, const spk_pattern *pattern, spk_trans trans)
{
    int turned = trans == SPK_TRANS;
    int64_t limit = turned ? g->cols : g->rows, count = 0, elements = 0, size = turned ? pattern->cols : pattern->rows;
    int64_t block = turned ? pattern->block_cols : pattern->block_rows, *chosen = calloc((size_t)limit + 1, 8);
    for (int64_t i = 0; i < limit; i++)
        if (pick(rng, 0, 1)) {
            chosen[count++] = i;
            elements += (i + 1) * block < size ? block : size - i * block;
        }
    spk_pattern *sample = NULL;
    assert_ok(spk_pattern_sample(pattern, trans, chosen, count, &sample));
    assert_int_equal(turned ? sample->cols : sample->rows, elements);
    assert_int_equal(turned ? sample->rows : sample->cols, turned ? pattern->rows : pattern->cols);
    assert_int_equal(sample->index.grid_rows, turned ? g->rows : count);
    assert_int_equal(sample->index.grid_cols, turned ? count : g->cols);
    assert_true(sample->id != pattern->id);
    grid cut = {sample->index.grid_rows, sample->index.grid_cols, 0, NULL, NULL, NULL};
    cut.there = calloc((size_t)(cut.rows * cut.cols) + 1, 1);
    for (int64_t i = 0; i < cut.rows; i++)
        for (int64_t j = 0; j < cut.cols; j++)
            cut.nnzb += cut.there[i * cut.cols + j] = g->there[turned ? i * g->cols + chosen[j] : chosen[i] * g->cols + j];
    int64_t p = 0;
    for (int64_t i = 0; i < cut.rows; i++) {
        assert_int_equal(sample->index.offsets[i], p);
        for (int64_t j = 0; j < cut.cols; j++)
            if (cut.there[i * cut.cols + j])
                assert_int_equal(sample->index.columns[p++], j);
    }
    assert_int_equal(sample->nnzb, cut.nnzb);
    check_features(&cut, sample);
    spk_pattern_release(&sample);
    free(chosen);
    grid_free(&cut);
}

static void test_against_model(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 300; round++) {
        int64_t block_rows = pick(&rng, 1, 9), block_cols = pick(&rng, 1, 9), rows = pick(&rng, 0, 60), cols = pick(&rng, 0, 60);
        grid g = random_grid(&rng, (rows + block_rows - 1) / block_rows, (cols + block_cols - 1) / block_cols);
        spk_pattern *pattern = pattern_of(&g, pick(&rng, 0, 1) ? SPK_INDEX_I32 : SPK_INDEX_I64, rows, cols, block_rows, block_cols);
        assert_int_equal(pattern->nnzb, g.nnzb);
        check_features(&g, pattern);
        for (int kind = 0; kind < 4; kind++)
            check_view(&g, pattern, kind & 1 ? SPK_TRANS : SPK_NO_TRANS, kind & 2 ? SPK_COL_MAJOR : SPK_ROW_MAJOR);
        check_sample(&rng, &g, pattern, SPK_NO_TRANS);
        check_sample(&rng, &g, pattern, SPK_TRANS);
        spk_pattern_release(&pattern);
        grid_free(&g);
    }
}

/* A grid so wide that its columns are hashed gives what a narrow one gives. */
static void test_wide_grid(void **state)
{
    (void)state;
    enum { ROWS = 40, WIDE = INT32_MAX };
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    int64_t offsets[ROWS + 1] = {0}, columns[ROWS * 8], nnzb = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t base = pick(&rng, 0, 3);
        for (int64_t k = 0; k < 8; k++) /* half of the columns come again, at both ends; half are hit once, so that hashes collide */
            columns[nnzb++] = k < 2 ? base + k : k < 6 ? 1000 + (i * 4 + k) * 7919 * 997 : WIDE - 20 + base + k;
        offsets[i + 1] = nnzb;
    }
    spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), ROWS * 2, (int64_t)WIDE * 2, 2, 2, nnzb, offsets, columns, SPK_INDEX_I64, SPK_HOST};
    spk_pattern *wide = NULL;
    assert_ok(spk_pattern_make(&counted, &indices, &wide));
    double overlap = 0, squares = 0;
    for (int64_t i = 0; i + 1 < ROWS; i++) {
        int64_t shared = 0;
        for (int64_t k = 0; k < 64; k++)
            shared += columns[i * 8 + k / 8] == columns[i * 8 + 8 + k % 8];
        overlap += (double)shared / 8;
    }
    for (int64_t p = 0; p < nnzb; p++)
        for (int64_t q = 0; q < nnzb; q++)
            squares += columns[p] == columns[q]; /* the sum of count^2 */
    double mean = (double)nnzb / WIDE;
    assert_near(wide->features.row_overlap, overlap / (ROWS - 1));
    assert_near(wide->features.col_spread, sqrt(squares / WIDE - mean * mean) / mean);
    assert_int_equal(wide->index.grid_cols, WIDE);
    spk_pattern_release(&wide);
    indices.nnzb = 0;
    memset(offsets, 0, sizeof offsets);
    assert_ok(spk_pattern_make(&counted, &indices, &wide)); /* no memory for columns that nothing touches */
    assert_int_equal(wide->features.empty_rows, ROWS);
    spk_pattern_release(&wide);
}

/* ------------------------------------------------------------------ refusals */

static const int32_t good_offsets[] = {0, 2, 2, 5}, good_columns[] = {0, 3, 1, 2, 3};

static spk_bsr_indices good(void)
{
    return (spk_bsr_indices){SPK_SIZED(spk_bsr_indices), 6, 8, 2, 2, 5, good_offsets, good_columns, SPK_INDEX_I32, SPK_HOST};
}

static void refused(const spk_bsr_indices *indices, spk_status status, const char *text)
{
    spk_pattern *pattern = NULL;
    assert_fails(spk_pattern_make(&counted, indices, &pattern), status, text);
    assert_null(pattern);
}

#define REFUSED(status, text, ...)    \
    do {                              \
        spk_bsr_indices bad = good(); \
        __VA_ARGS__;                  \
        refused(&bad, status, text);  \
    } while (0)

static void test_bad_shapes(void **state)
{
    (void)state;
    REFUSED(SPK_ERR_ARGUMENT, "rows = -1 is negative", bad.rows = -1);
    REFUSED(SPK_ERR_ARGUMENT, "cols = -8 is negative", bad.cols = -8);
    REFUSED(SPK_ERR_ARGUMENT, "nnzb = -5 is negative", bad.nnzb = -5);
    REFUSED(SPK_ERR_ARGUMENT, "block_rows = 0 is not in 1..256", bad.block_rows = 0);
    REFUSED(SPK_ERR_ARGUMENT, "block_rows = 257 is not in 1..256", bad.block_rows = 257);
    REFUSED(SPK_ERR_ARGUMENT, "block_cols = -2 is not in 1..256", bad.block_cols = -2);
    REFUSED(SPK_ERR_ARGUMENT, "block_cols = 1000 is not in 1..256", bad.block_cols = 1000);
    REFUSED(SPK_ERR_UNSUPPORTED, "rows = 9223372036854775807 exceeds the limit", bad.rows = INT64_MAX);
    REFUSED(SPK_ERR_UNSUPPORTED, "cols = 9223372036854775807 exceeds the limit", bad.cols = INT64_MAX);
    REFUSED(SPK_ERR_UNSUPPORTED, "4294967295 block rows: the limit is 2147483647", bad.rows = INT64_C(8589934590));
    REFUSED(SPK_ERR_UNSUPPORTED, "2147483648 block columns: the limit is 2147483647", bad.cols = INT64_C(4294967295));
    REFUSED(SPK_ERR_ARGUMENT, "nnzb = 13 exceeds the 12 blocks of a grid of 3 x 4", bad.nnzb = 13);
    REFUSED(SPK_ERR_ARGUMENT, "overflow 64-bit sizes", bad.rows = bad.cols = INT64_C(256) * INT32_MAX;
            bad.block_rows = bad.block_cols = 256; bad.nnzb = INT64_C(1) << 60);
    REFUSED(SPK_ERR_ARGUMENT, "index_type = 7", bad.index_type = (spk_index_type)7);
    REFUSED(SPK_ERR_UNSUPPORTED, "index_memory = SPK_DEVICE", bad.index_memory = SPK_DEVICE);
    REFUSED(SPK_ERR_ARGUMENT, "index_memory = 9", bad.index_memory = (spk_memory)9);
}

static void test_bad_arrays(void **state)
{
    (void)state;
    static const int32_t late[] = {1, 2, 2, 5}, falls[] = {0, 9, 7, 5}, short_end[] = {0, 2, 2, 4}, negative[] = {0, -1, 2, 5};
    static const int32_t out[] = {0, 99, 1, 2, 3}, below[] = {-3, 3, 1, 2, 3}, twice[] = {0, 3, 1, 1, 3}, unsorted[] = {0, 3, 2, 1, 3},
                         edge[] = {0, 4, 1, 2, 3};
    static const int32_t many[2001] = {0};
    static const int64_t wide[] = {0, 3, 1, 2, INT64_C(4294967299)};
    static const int64_t wide_offsets[] = {0, 2, 2, INT64_C(4294967301)};
    static const int64_t good_wide[] = {0, 2, 2, 5};
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets is NULL: it must hold 4 indices", bad.row_offsets = NULL);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices is NULL: it must hold 5 indices", bad.col_indices = NULL);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets = 0x", bad.row_offsets = (const char *)good_offsets + 1);
    REFUSED(SPK_ERR_ARGUMENT, "is not aligned to its indices of 4 bytes", bad.col_indices = (const char *)good_columns + 2);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[0] = 1: the first offset must be 0", bad.row_offsets = late);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[2] = 7 is less than row_offsets[1] = 9", bad.row_offsets = falls);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[1] = -1 is less than row_offsets[0] = 0", bad.row_offsets = negative);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[3] = 4: the last offset must be nnzb = 5", bad.row_offsets = short_end);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[3] = 5: the last offset must be nnzb = 4", bad.nnzb = 4);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[2000] = 0: the last offset must be nnzb = 1000000000000", bad.rows = 2000; bad.cols = INT32_MAX;
            /* found out before memory is asked for */
            bad.block_rows = bad.block_cols = 1;
            bad.nnzb = 1000000000000; bad.row_offsets = many);
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets[3] = 4294967301: the last offset must be nnzb = 5", bad.row_offsets = wide_offsets;
            bad.col_indices = wide; bad.index_type = SPK_INDEX_I64);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[1] = 99: block columns are 0..3", bad.col_indices = out);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[1] = 4: block columns are 0..3", bad.col_indices = edge);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[0] = -3: block columns are 0..3", bad.col_indices = below);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[4] = 4294967299: block columns are 0..3", bad.row_offsets = good_wide; bad.col_indices = wide;
            bad.index_type = SPK_INDEX_I64);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[3] = 1 repeats col_indices[2] in block row 2: spk_matrix_canonicalize", bad.col_indices = twice);
    REFUSED(SPK_ERR_ARGUMENT, "col_indices[3] = 1 is less than col_indices[2] = 2 in block row 2", bad.col_indices = unsorted);
    REFUSED(SPK_ERR_ARGUMENT, "spk_matrix_canonicalize sorts", bad.col_indices = unsorted);
}

static void test_empty(void **state)
{
    (void)state;
    static const int32_t zeros[] = {0, 0, 0, 0};
    spk_bsr_indices cases[] = {good(), good(), good(), good()};
    cases[0].rows = 0, cases[0].nnzb = 0, cases[0].row_offsets = NULL, cases[0].col_indices = NULL; /* no block rows */
    cases[1].nnzb = 0, cases[1].row_offsets = zeros, cases[1].col_indices = NULL;
    cases[2].cols = 0, cases[2].nnzb = 0, cases[2].row_offsets = zeros;
    cases[3].rows = cases[3].cols = 0, cases[3].nnzb = 0, cases[3].row_offsets = zeros;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_pattern *pattern = NULL;
        assert_ok(spk_pattern_make(&counted, &cases[i], &pattern));
        spk_bsr_view view;
        assert_ok(spk_pattern_view(pattern, SPK_TRANS, SPK_ROW_MAJOR, &view));
        assert_int_equal(view.offsets[view.grid_rows], 0);
        assert_int_equal(pattern->features.empty_rows, pattern->index.grid_rows);
        spk_pattern_release(&pattern);
    }
    REFUSED(SPK_ERR_ARGUMENT, "row_offsets is NULL", bad.nnzb = 0; bad.row_offsets = NULL);
    REFUSED(SPK_ERR_ARGUMENT, "nnzb = 5 exceeds the 0 blocks", bad.cols = 0);
    spk_pattern *none = NULL;
    spk_pattern_release(&none);
}

static void test_bad_views_and_samples(void **state)
{
    (void)state;
    spk_bsr_indices indices = good();
    spk_pattern *pattern = NULL, *sample = NULL;
    spk_bsr_view view;
    assert_ok(spk_pattern_make(&counted, &indices, &pattern));
    assert_fails(spk_pattern_view(pattern, (spk_trans)5, SPK_ROW_MAJOR, &view), SPK_ERR_ARGUMENT, "trans_a = 5");
    assert_fails(spk_pattern_view(pattern, SPK_TRANS, (spk_layout)4, &view), SPK_ERR_ARGUMENT, "block_layout = 4");
    assert_fails(spk_pattern_sample(pattern, SPK_NO_TRANS, (int64_t[]){0, 3}, 2, &sample), SPK_ERR_ARGUMENT,
                 "block_rows[1] = 3: block rows of op(A) are 0..2");
    assert_fails(spk_pattern_sample(pattern, SPK_TRANS, (int64_t[]){2, 2}, 2, &sample), SPK_ERR_ARGUMENT,
                 "block_rows[1] = 2 does not exceed block_rows[0] = 2");
    assert_fails(spk_pattern_sample(pattern, SPK_TRANS, (int64_t[]){2}, 9, &sample), SPK_ERR_ARGUMENT, "count = 9 is not in 0..4");
    assert_null(sample);
    spk_pattern_release(&pattern);
}

/* ------------------------------------------------------------------ sharing, threads, failing memory */

static void *hold_and_turn(void *shared)
{
    spk_pattern *mine = spk_pattern_share(shared);
    const spk_index *index = NULL;
    spk_status status = spk_pattern_transposed(mine, &index);
    uintptr_t answer = status == SPK_OK && index->offsets[index->grid_rows] == mine->nnzb ? (uintptr_t)index : 0;
    spk_pattern_release(&mine);
    return (void *)answer;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 30; round++) {
        grid g = random_grid(&rng, 30, 40);
        spk_pattern *pattern = pattern_of(&g, SPK_INDEX_I32, 120, 160, 4, 4);
        pthread_t threads[THREADS];
        void *answers[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, hold_and_turn, pattern), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], &answers[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_true(answers[i] != NULL && answers[i] == answers[0]); /* one index for all */
        spk_pattern_release(&pattern);
        grid_free(&g);
    }
}

static void test_failing_memory(void **state)
{
    (void)state;
    spk_bsr_indices indices = good();
    spk_pattern *pattern = NULL, *sample = NULL;
    const spk_index *index = NULL;
    static const int64_t chosen[] = {0, 2};
    assert_survives_injection(spk_pattern_make(&counted, &indices, &pattern), pattern);
    assert_survives_injection(spk_pattern_transposed(pattern, &index), index);
    assert_survives_injection(spk_pattern_sample(pattern, SPK_NO_TRANS, chosen, 2, &sample), sample);
    spk_pattern_release(&sample);
    assert_survives_injection(spk_pattern_sample(pattern, SPK_TRANS, chosen, 2, &sample), sample);
    spk_pattern_release(&sample);
    spk_pattern_release(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_against_model, no_leaks), cmocka_unit_test_teardown(test_wide_grid, no_leaks),
        cmocka_unit_test_teardown(test_bad_shapes, no_leaks),    cmocka_unit_test_teardown(test_bad_arrays, no_leaks),
        cmocka_unit_test_teardown(test_empty, no_leaks),         cmocka_unit_test_teardown(test_bad_views_and_samples, no_leaks),
        cmocka_unit_test_teardown(test_threads, no_leaks),       cmocka_unit_test_teardown(test_failing_memory, no_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
