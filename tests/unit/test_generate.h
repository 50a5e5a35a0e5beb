/* What the tests of the generators share: making a matrix, its grid, and checks that name the case. */
#ifndef TEST_GENERATE_H
#define TEST_GENERATE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "matrix/matrix.h"

#define FIRST_PATTERN SPK_GEN_UNIFORM
#define LAST_PATTERN SPK_GEN_EMPTY_ROWS

static char case_name[160]; /* printed when a check fails */

#define CHECK(condition)                                             \
    do {                                                             \
        if (!(condition))                                            \
            fail_msg("%s: %s does not hold", case_name, #condition); \
    } while (0)

typedef struct grid {
    int64_t rows, cols, count;
    const int64_t *offsets, *columns;
} grid;

static inline spk_matrix *generate(spk_generate options, int64_t *shortfall)
{
    snprintf(case_name, sizeof case_name, "%s %lld x %lld in %lld x %lld density %.17g seed %llu", spk_generator_name(options.generator),
             (long long)options.rows, (long long)options.cols, (long long)options.block_rows, (long long)options.block_cols,
             options.density, (unsigned long long)options.seed);
    spk_matrix *matrix = NULL;
    options.struct_size = sizeof options;
    if (spk_generate_matrix(&spk_mem_system, &options, &matrix, shortfall) != SPK_OK)
        fail_msg("%s: %s", case_name, spk_error_message(0));
    return matrix;
}

static inline spk_matrix *generate_grid(spk_generator generator, int64_t rows, int64_t cols, double density, uint64_t seed,
                                        int64_t *shortfall)
{
    return generate(
        (spk_generate){
            .generator = generator, .rows = rows, .cols = cols, .block_rows = 1, .block_cols = 1, .density = density, .seed = seed},
        shortfall);
}

static inline grid grid_of(const spk_matrix *matrix)
{
    return (grid){spk_matrix_grid_rows(matrix), spk_matrix_grid_cols(matrix), matrix->nnz, matrix->row_offsets, matrix->col_indices};
}

static inline int64_t length_of(const grid *g, int64_t row)
{
    return g->offsets[row + 1] - g->offsets[row];
}

#endif
