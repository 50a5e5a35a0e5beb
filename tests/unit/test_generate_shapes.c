/* Generators: exact counts, the shape that each one promises, every pattern of a shape equally likely. */
#include "test_generate.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

static int compare_descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static void check_canonical(const grid *g)
{
    CHECK(g->offsets[0] == 0 && g->offsets[g->rows] == g->count);
    for (int64_t row = 0; row < g->rows; row++) {
        CHECK(g->offsets[row] <= g->offsets[row + 1]);
        for (int64_t p = g->offsets[row]; p < g->offsets[row + 1]; p++) {
            CHECK(g->columns[p] >= 0 && g->columns[p] < g->cols);
            CHECK(p == g->offsets[row] || g->columns[p - 1] < g->columns[p]);
        }
    }
}

/* Rows with blocks differ by at most one, counting `filled` rows as candidates. */
static void check_level(const grid *g, int64_t filled)
{
    int64_t with_more = 0, occupied = 0;
    for (int64_t row = 0; row < g->rows; row++) {
        int64_t length = length_of(g, row);
        occupied += length > 0;
        with_more += length == g->count / filled + 1;
        CHECK(length == 0 || length == g->count / filled || length == g->count / filled + 1);
    }
    CHECK(with_more == g->count % filled);
    CHECK(occupied == (g->count < filled ? g->count : filled));
}

static int64_t apart(const grid *g, int64_t row, int64_t col)
{
    return llabs((2 * row + 1) * g->cols - (2 * col + 1) * g->rows);
}

static void check_banded(const grid *g)
{
    int64_t farthest_in = -1, nearest_out = INT64_MAX;
    for (int64_t row = 0; row < g->rows; row++) {
        int64_t p = g->offsets[row];
        for (int64_t col = 0; col < g->cols; col++) {
            int64_t far = apart(g, row, col);
            if (p < g->offsets[row + 1] && g->columns[p] == col) {
                farthest_in = far > farthest_in ? far : farthest_in;
                p++;
            } else if (far < nearest_out) {
                nearest_out = far;
            }
        }
    }
    CHECK(farthest_in <= nearest_out);
}

static void check_window(const grid *g)
{
    check_level(g, g->rows);
    for (int64_t row = 0; row < g->rows; row++) {
        int64_t length = length_of(g, row);
        if (length == 0)
            continue;
        int64_t first = g->columns[g->offsets[row]], last = g->columns[g->offsets[row + 1] - 1];
        CHECK(last - first + 1 == length);
        double middle = (double)(2 * row + 1) * (double)g->cols / (double)(2 * g->rows) - (double)length / 2; /* where it would start */
        if (first > 0)
            CHECK((double)first <= middle + 0.5000001);
        if (last < g->cols - 1)
            CHECK((double)first >= middle - 0.5000001);
    }
}

static void check_causal(const grid *g)
{
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t p = g->offsets[row]; p < g->offsets[row + 1]; p++)
            CHECK(g->columns[p] * g->rows < (row + 1) * g->cols);
}

static int64_t even_part(int64_t size, int64_t parts, int64_t index)
{
    return size / parts + (index < size % parts);
}

/* The blocks lie in as many even groups as can hold them; each row is one run of columns. */
static void check_diagonal(const grid *g)
{
    int64_t groups = g->rows < g->cols ? g->rows : g->cols;
    for (; groups > 1; groups--) {
        int64_t blocks = 0;
        for (int64_t i = 0; i < groups; i++)
            blocks += even_part(g->rows, groups, i) * even_part(g->cols, groups, i);
        if (blocks >= g->count)
            break;
    }
    int64_t row = 0, first = 0;
    for (int64_t group = 0; group < groups; group++) {
        int64_t width = even_part(g->cols, groups, group);
        for (int64_t i = 0; i < even_part(g->rows, groups, group); i++, row++) {
            int64_t length = length_of(g, row);
            if (length == 0)
                continue;
            CHECK(g->columns[g->offsets[row]] >= first && g->columns[g->offsets[row + 1] - 1] < first + width);
            CHECK(g->columns[g->offsets[row + 1] - 1] - g->columns[g->offsets[row]] + 1 == length);
        }
        first += width;
    }
    CHECK(row == g->rows && first == g->cols);
}

/* Some scale explains all lengths: round(scale / sqrt(rank)), or the grid's width. */
static void check_power_law(const grid *g)
{
    int64_t *lengths = malloc((size_t)g->rows * sizeof *lengths);
    assert_non_null(lengths);
    for (int64_t row = 0; row < g->rows; row++)
        lengths[row] = length_of(g, row);
    qsort(lengths, (size_t)g->rows, sizeof *lengths, compare_descending);
    double scale_from = 0, scale_to = INFINITY;
    for (int64_t rank = 0; rank < g->rows; rank++) {
        double root = sqrt((double)(rank + 1));
        scale_from = fmax(scale_from, ((double)lengths[rank] - 0.5) * root);
        if (lengths[rank] < g->cols)
            scale_to = fmin(scale_to, ((double)lengths[rank] + 0.5) * root);
    }
    CHECK(scale_from <= scale_to * (1 + 1e-12));
    free(lengths);
}

static int64_t room_of(spk_generator generator, int64_t rows, int64_t cols)
{
    if (generator == SPK_GEN_EMPTY_ROWS)
        return (rows + 1) / 2 * cols;
    if (generator != SPK_GEN_CAUSAL)
        return rows * cols;
    int64_t room = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t col = 0; col < cols; col++)
            room += col * rows < (row + 1) * cols;
    return room;
}

static void check_shape(spk_generator generator, const spk_matrix *matrix, double density, int64_t shortfall)
{
    grid g = grid_of(matrix);
    int64_t requested = llround(density * (double)(g.rows * g.cols));
    int64_t room = room_of(generator, g.rows, g.cols);
    CHECK(g.count == (requested < room ? requested : room));
    CHECK(shortfall == requested - g.count);
    check_canonical(&g);
    if (g.count == 0)
        return;
    switch (generator) {
    case SPK_GEN_UNIFORM:
        check_level(&g, g.rows);
        break;
    case SPK_GEN_BANDED:
        check_banded(&g);
        break;
    case SPK_GEN_WINDOW:
        check_window(&g);
        break;
    case SPK_GEN_CAUSAL:
        check_causal(&g);
        break;
    case SPK_GEN_DIAGONAL:
        check_diagonal(&g);
        break;
    case SPK_GEN_POWER_LAW:
        check_power_law(&g);
        break;
    case SPK_GEN_EMPTY_ROWS:
        check_level(&g, (g.rows + 1) / 2);
        break;
    default:
        break;
    }
}

static int64_t random_size(spk_rng *rng)
{
    static const int64_t limits[] = {1, 3, 8, 40, 70, 300};
    return (int64_t)spk_rng_below(rng, (uint64_t)limits[spk_rng_below(rng, 6)] + 1);
}

static double random_density(spk_rng *rng)
{
    switch (spk_rng_below(rng, 6)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return spk_rng_uniform(rng) * 0.02;
    case 3:
        return 1 - spk_rng_uniform(rng) * 0.02;
    default:
        return spk_rng_uniform(rng);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 20);
    for (int round = 0; round < 400; round++)
        for (int number = FIRST_PATTERN; number <= (int)LAST_PATTERN; number++) {
            spk_generator generator = (spk_generator)number;
            int64_t rows = random_size(&rng), cols = spk_rng_below(&rng, 3) ? random_size(&rng) : rows;
            double density = random_density(&rng);
            int64_t shortfall = -1;
            spk_matrix *matrix = generate_grid(generator, rows, cols, density, spk_rng_next(&rng), &shortfall);
            check_shape(generator, matrix, density, shortfall);
            spk_matrix_release(&matrix);
        }
}

/* Grids at and about the word and level sizes of the column set, and long thin ones. */
static void test_long_grids(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 63},     {2, 64},   {3, 65},   {2, 4095}, {2, 4096}, {3, 4097},
                                       {1, 300000}, {4097, 1}, {5000, 2}, {1, 1},    {20000, 7}};
    static const double densities[] = {0.001, 0.3, 0.7, 0.9999, 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t d = 0; d < sizeof densities / sizeof *densities; d++)
            for (int number = FIRST_PATTERN; number <= (int)LAST_PATTERN; number++) {
                int64_t shortfall = -1;
                spk_matrix *matrix = generate_grid((spk_generator)number, sizes[s][0], sizes[s][1], densities[d], 3, &shortfall);
                check_shape((spk_generator)number, matrix, densities[d], shortfall);
                spk_matrix_release(&matrix);
            }
}

static void test_shortfalls(void **state)
{
    (void)state;
    static const struct {
        spk_generator generator;
        double density;
        int64_t stored, shortfall;
    } cases[] = {
        {SPK_GEN_CAUSAL, 1, 55, 45},       {SPK_GEN_CAUSAL, 0.56, 55, 1},    {SPK_GEN_CAUSAL, 0.55, 55, 0},
        {SPK_GEN_EMPTY_ROWS, 0.8, 50, 30}, {SPK_GEN_EMPTY_ROWS, 0.5, 50, 0}, {SPK_GEN_POWER_LAW, 0.97, 97, 0},
        {SPK_GEN_DIAGONAL, 0.6, 60, 0},    {SPK_GEN_WINDOW, 1, 100, 0},      {SPK_GEN_UNIFORM, 0.125, 13, 0},
        {SPK_GEN_BERNOULLI, 0.005, 1, 0},  {SPK_GEN_BANDED, 0.0049, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shortfall = -1;
        spk_matrix *matrix = generate_grid(cases[i].generator, 10, 10, cases[i].density, 1, &shortfall);
        CHECK(matrix->nnz == cases[i].stored && shortfall == cases[i].shortfall);
        spk_matrix_release(&matrix);
    }
}

/* ------------------------------------------------------------------------------------------------ distribution */

static uint64_t cells_mask(const grid *g)
{
    uint64_t mask = 0;
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t p = g->offsets[row]; p < g->offsets[row + 1]; p++)
            mask |= UINT64_C(1) << (row * g->cols + g->columns[p]);
    return mask;
}

/* Every pattern that a generator may give on a tiny grid comes equally often: chi-square over all of them. */
static void check_equally_likely(spk_generator generator, int64_t rows, int64_t cols, double density, int outcomes)
{
    enum { CELLS = 4096, DRAWS_EACH = 100 };
    int *seen = calloc(CELLS, sizeof *seen);
    assert_non_null(seen);
    for (int draw = 0; draw < outcomes * DRAWS_EACH; draw++) {
        spk_matrix *matrix = generate_grid(generator, rows, cols, density, (uint64_t)draw, NULL);
        grid g = grid_of(matrix);
        seen[cells_mask(&g)]++;
        spk_matrix_release(&matrix);
    }
    int different = 0;
    double chi_square = 0;
    for (int i = 0; i < CELLS; i++)
        if (seen[i]) {
            different++;
            chi_square += (double)(seen[i] - DRAWS_EACH) * (double)(seen[i] - DRAWS_EACH) / DRAWS_EACH;
        }
    free(seen);
    CHECK(different == outcomes);
    double freedom = outcomes - 1; /* chi-square has this mean and twice this variance */
    if (fabs(chi_square - freedom) > 4 * sqrt(2 * freedom))
        fail_msg("%s: chi-square %g at %g degrees of freedom", case_name, chi_square, freedom);
}

static void test_distribution(void **state)
{
    (void)state;
    check_equally_likely(SPK_GEN_BERNOULLI, 2, 3, 0.5, 20);           /* 3 of 6 */
    check_equally_likely(SPK_GEN_BERNOULLI, 3, 4, 0.75, 220);         /* 9 of 12: drawn by what is left out */
    check_equally_likely(SPK_GEN_CAUSAL, 3, 3, 0.23, 15);             /* 2 of the 6 at and below */
    check_equally_likely(SPK_GEN_CAUSAL, 3, 3, 0.45, 15);             /* 4 of 6 */
    check_equally_likely(SPK_GEN_UNIFORM, 3, 4, 1.0 / 3, 288);        /* 1, 1 and 2 a row: 3 * 4 * 4 * 6 */
    check_equally_likely(SPK_GEN_EMPTY_ROWS, 3, 4, 0.25, 3 * 2 * 24); /* two of three rows, 1 and 2 blocks */
}

static void test_power_law_shuffles(void **state)
{
    (void)state;
    enum { ROWS = 5, DRAWS = 5000 };
    int longest_at[ROWS] = {0};
    for (int draw = 0; draw < DRAWS; draw++) {
        spk_matrix *matrix = generate_grid(SPK_GEN_POWER_LAW, ROWS, 40, 0.3, (uint64_t)draw, NULL);
        grid g = grid_of(matrix);
        int64_t longest = 0;
        for (int64_t row = 1; row < ROWS; row++)
            if (length_of(&g, row) > length_of(&g, longest))
                longest = row;
        longest_at[longest]++;
        spk_matrix_release(&matrix);
    }
    for (int row = 0; row < ROWS; row++)
        CHECK(abs(longest_at[row] - DRAWS / ROWS) < 5 * 29); /* five standard deviations */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_long_grids),         cmocka_unit_test(test_shortfalls),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_power_law_shuffles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
